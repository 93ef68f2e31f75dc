/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mach-style ports: the object, messages, full queues, the end, forks (rules 183 to 187 and 245 to 250).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/loop_trace.h"
#include "Port/Mach/mach_port.h"

/* One port, and what its callback was told: logged is the message's id. */
struct receiver {
    CFMachPortRef port; /* owned until receiver_free */
    void (*action)(struct receiver *receiver, const mach_msg_header_t *message);
    void *context; /* the action's own */
    bool logs_context;
    bool is_silent;
    _Atomic int calls;
    _Atomic int retains;
    _Atomic int releases;
};

static const void *info_retain(const void *info)
{
    struct receiver *receiver = (struct receiver *)(uintptr_t)info;

    receiver->retains++;
    if (receiver->logs_context) {
        probe_log("retain");
    }
    return info;
}

static void info_release(const void *info)
{
    struct receiver *receiver = (struct receiver *)(uintptr_t)info;

    receiver->releases++;
    if (receiver->logs_context) {
        probe_log("release");
    }
}

static void received(CFMachPortRef port, void *msg, CFIndex size, void *info)
{
    struct receiver *receiver = info;
    const mach_msg_header_t *message = msg;

    EXPECT(port == receiver->port);
    EXPECT_EQ(size, message->msgh_size);
    EXPECT_EQ(message->msgh_local_port, CFMachPortGetPort(port));
    if (!receiver->is_silent) {
        probe_note("%d", (int)message->msgh_id);
    }
    if (receiver->action) {
        receiver->action(receiver, message);
    }
    receiver->calls++;
}

static CFMachPortRef receiver_create(struct receiver *receiver)
{
    CFMachPortContext context = {.info = receiver, .retain = info_retain, .release = info_release};
    Boolean should_free = true;

    receiver->port = CFMachPortCreate(NULL, received, &context, &should_free);
    REQUIRE(receiver->port != NULL);
    EXPECT(!should_free);
    return receiver->port;
}

static void receiver_schedule(struct receiver *receiver)
{
    CFRunLoopSourceRef source = CFMachPortCreateRunLoopSource(NULL, receiver->port, 0);

    REQUIRE(source != NULL);
    CFRunLoopAddSource(LOOP, source, MODE);
    CFRelease(source);
}

static void receiver_free(struct receiver *receiver)
{
    CFMachPortInvalidate(receiver->port);
    CFRelease(receiver->port);
}

static CRLMachPortResult send_id(mach_port_t port, SInt32 id, CFTimeInterval timeout)
{
    mach_msg_header_t message = {.msgh_size = sizeof message, .msgh_remote_port = port, .msgh_id = id};

    return CRLMachPortSend(&message, timeout);
}

static void look(void)
{
    for (int i = 0; i < 8; i++) {
        CFRunLoopRunInMode(MODE, 0, false);
    }
}

/* ---- numbers ---- */

TEST(a_mach_port_number_has_one_object, "245 194")
{
    struct receiver receiver = {0};
    struct receiver other = {0};
    CFMachPortContext context = {.info = &other, .retain = info_retain, .release = info_release};
    Boolean should_free = false;
    mach_port_t number;
    CFMachPortRef again;

    receiver_create(&receiver);
    number = CFMachPortGetPort(receiver.port);
    EXPECT(number != MACH_PORT_NULL);
    again = CFMachPortCreateWithPort(NULL, number, received, &context, &should_free);
    EXPECT(again == receiver.port);
    EXPECT(should_free);
    EXPECT_EQ(CFGetRetainCount(again), 2);
    EXPECT_EQ(other.retains, 0);
    CFRelease(again);
    CFMachPortInvalidate(receiver.port);
    EXPECT_EQ(CFMachPortGetPort(receiver.port), number);
    should_free = false;
    EXPECT(CFMachPortCreateWithPort(NULL, number, received, &context, &should_free) == NULL);
    EXPECT(should_free);
    EXPECT(CFMachPortCreateWithPort(NULL, MACH_PORT_NULL, received, NULL, NULL) == NULL);
    EXPECT(CFMachPortCreateWithPort(NULL, 0xffffffff, received, NULL, NULL) == NULL);
    CFRelease(receiver.port);
}

TEST(a_mach_port_number_is_valid_and_none_and_dead_are_not, "245")
{
    CFMachPortRef port = CFMachPortCreate(NULL, NULL, NULL, NULL);
    mach_port_name_t name = CFMachPortGetPort(port);
    boolean_t is_valid = MACH_PORT_VALID(name);

    EXPECT(is_valid == TRUE);
    EXPECT(!MACH_PORT_VALID(MACH_PORT_NULL));
    EXPECT(!MACH_PORT_VALID(MACH_PORT_DEAD));
    EXPECT(CFMachPortCreateWithPort(NULL, MACH_PORT_DEAD, received, NULL, NULL) == NULL);
    CFRelease(port);
}

TEST(mach_port_numbers_are_not_soon_used_again, "245")
{
    mach_port_t first = MACH_PORT_NULL;

    for (int i = 0; i < 10000; i++) {
        CFMachPortRef port = CFMachPortCreate(NULL, NULL, NULL, NULL);

        if (i == 0) {
            first = CFMachPortGetPort(port);
        } else {
            EXPECT(CFMachPortGetPort(port) != first);
        }
        CFRelease(port);
    }
}

TEST(many_mach_ports_have_numbers_of_their_own, "245")
{
    enum { count = 300 };
    CFMachPortRef ports[count];

    for (int i = 0; i < count; i++) {
        ports[i] = CFMachPortCreate(NULL, NULL, NULL, NULL);
        for (int j = 0; j < i; j++) {
            EXPECT(CFMachPortGetPort(ports[i]) != CFMachPortGetPort(ports[j]));
        }
    }
    for (int i = 0; i < count; i++) {
        CFRelease(ports[i]);
    }
}

TEST(mach_ports_are_equal_by_number, "183 184 185 187 249")
{
    CFMachPortRef one = CFMachPortCreate(kCFAllocatorDefault, NULL, NULL, NULL);
    CFMachPortRef other = CFMachPortCreate(NULL, NULL, NULL, NULL);
    CFStringRef text = CFCopyDescription(one);

    EXPECT(CFMachPortGetTypeID() != 0);
    EXPECT_EQ(CFGetTypeID(one), CFMachPortGetTypeID());
    EXPECT(CFEqual(one, one));
    EXPECT(!CFEqual(one, other));
    EXPECT_EQ(CFHash(one), CFMachPortGetPort(one));
    EXPECT(CFStringHasPrefix(text, CFSTR("<CFMachPort")));
    EXPECT_EQ(sizeof(CFMachPortContext), 5 * sizeof(void *));
    EXPECT_EQ(sizeof(mach_msg_header_t), 24);
    CFRelease(text);
    CFRelease(one);
    CFRelease(other);
}

/* ---- messages ---- */

static void checks_body(struct receiver *receiver, const mach_msg_header_t *message)
{
    (void)receiver;
    EXPECT_EQ(message->msgh_remote_port, 77); /* the answer's port */
    EXPECT_EQ(message->msgh_bits, 5);
    EXPECT_EQ(message->msgh_voucher_port, 6);
    EXPECT_EQ(memcmp(message + 1, "hello", 6), 0);
}

TEST(a_mach_message_arrives_with_its_ports_exchanged, "246 250")
{
    struct receiver receiver = {.action = checks_body};
    struct {
        mach_msg_header_t header;
        char body[6];
    } message = {{.msgh_bits = 5, .msgh_voucher_port = 6, .msgh_local_port = 77, .msgh_id = -42}, "hello"};

    receiver_create(&receiver);
    receiver_schedule(&receiver);
    message.header.msgh_size = offsetof(__typeof__(message), body) + sizeof message.body;
    message.header.msgh_remote_port = CFMachPortGetPort(receiver.port);
    EXPECT_EQ(CRLMachPortSend(&message.header, 0), kCRLMachPortSuccess);
    message.body[0] = 'x'; /* it was copied */
    look();
    EXPECT_LOG("-42");
    receiver_free(&receiver);
}

static void checks_alignment(struct receiver *receiver, const mach_msg_header_t *message)
{
    (void)receiver;
    EXPECT_EQ((uintptr_t)message % _Alignof(max_align_t), 0);
}

/* Programs lay structures with 64-bit fields over a message. */
TEST(a_mach_message_is_aligned_for_every_type, "246")
{
    struct receiver receiver = {.action = checks_alignment};
    mach_msg_header_t message = {.msgh_size = sizeof message, .msgh_id = 1};

    receiver_create(&receiver);
    receiver_schedule(&receiver);
    message.msgh_remote_port = CFMachPortGetPort(receiver.port);
    EXPECT_EQ(CRLMachPortSend(&message, 0), kCRLMachPortSuccess);
    look();
    EXPECT_LOG("1");
    receiver_free(&receiver);
}

TEST(mach_messages_are_handled_in_order_one_in_a_pass, "246 249 250 34")
{
    struct receiver receiver = {0};
    mach_port_t number;

    number = CFMachPortGetPort(receiver_create(&receiver));
    for (int i = 1; i <= 3; i++) {
        EXPECT_EQ(send_id(number, i, 0), kCRLMachPortSuccess); /* also before there is a source */
    }
    receiver_schedule(&receiver);
    for (int i = 1; i <= 3; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
        EXPECT_EQ(receiver.calls, i);
    }
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunTimedOut);
    EXPECT_LOG("1 2 3");
    receiver_free(&receiver);
}

TEST(a_mach_ports_context_brackets_every_callback, "246 186")
{
    struct receiver receiver = {.logs_context = true};
    CFMachPortContext context = {.version = 0};

    receiver_create(&receiver);
    receiver_schedule(&receiver);
    CFMachPortGetContext(receiver.port, &context);
    EXPECT(context.info == &receiver);
    send_id(CFMachPortGetPort(receiver.port), 1, 0);
    look();
    EXPECT_LOG("retain retain 1 release");
    CFMachPortInvalidate(receiver.port);
    EXPECT_LOG("release");
    CFMachPortGetContext(receiver.port, &context);
    EXPECT(context.info == NULL);
    CFRelease(receiver.port);
    EXPECT_LOG("");
}

TEST(a_mach_port_without_a_callback_swallows_messages, "246")
{
    CFMachPortRef port = CFMachPortCreate(NULL, NULL, NULL, NULL);
    CFRunLoopSourceRef source = CFMachPortCreateRunLoopSource(NULL, port, 0);

    CFRunLoopAddSource(LOOP, source, MODE);
    for (int i = 0; i < 20; i++) {
        EXPECT_EQ(send_id(CFMachPortGetPort(port), i, 0), kCRLMachPortSuccess);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    }
    CFMachPortInvalidate(port);
    CFRelease(source);
    CFRelease(port);
}

TEST(bad_mach_messages_are_refused, "250")
{
    CFMachPortRef port = CFMachPortCreate(NULL, NULL, NULL, NULL);
    mach_port_t number = CFMachPortGetPort(port);
    mach_msg_header_t message = {.msgh_size = sizeof message - 1, .msgh_remote_port = number};

    EXPECT_EQ(CRLMachPortSend(&message, 0), kCRLMachPortTooSmall);
    message.msgh_size = UINT32_MAX;
    EXPECT_EQ(CRLMachPortSend(&message, 0), kCRLMachPortTooSmall);
    EXPECT_EQ(send_id(MACH_PORT_NULL, 0, 0), kCRLMachPortIsInvalid);
    EXPECT_EQ(send_id(number + 1, 0, 0), kCRLMachPortIsInvalid);
    CFRelease(port);
    EXPECT_EQ(send_id(number, 0, 0), kCRLMachPortIsInvalid);
    EXPECT_STOPS("CRLMachPortSend: the message is NULL", { CRLMachPortSend(NULL, 0); });
    EXPECT_STOPS("CFMachPortInvalidate: the port is NULL", { CFMachPortInvalidate(NULL); });
    EXPECT_STOPS("CFMachPortGetContext: the context is NULL", { CFMachPortGetContext(CFMachPortCreate(NULL, NULL, NULL, NULL), NULL); });
}

/* ---- full queues ---- */

TEST(the_sixth_mach_message_waits, "250 226 225")
{
    struct receiver receiver = {0};
    mach_port_t number = CFMachPortGetPort(receiver_create(&receiver));
    int64_t start;

    for (int i = 1; i <= 5; i++) {
        EXPECT_EQ(send_id(number, i, 0), kCRLMachPortSuccess);
    }
    EXPECT_EQ(send_id(number, 6, 0), kCRLMachPortSendTimeout);
    EXPECT_EQ(send_id(number, 6, -1), kCRLMachPortSendTimeout);
    EXPECT_EQ(send_id(number, 6, __builtin_nan("")), kCRLMachPortSendTimeout);
    start = kernel.monotonic_ns();
    EXPECT_EQ(send_id(number, 6, 0.05), kCRLMachPortSendTimeout);
    EXPECT(kernel.monotonic_ns() - start >= 50000000);
    receiver_schedule(&receiver);
    CFRunLoopRunInMode(MODE, 0, true);
    EXPECT_EQ(send_id(number, 7, 0), kCRLMachPortSuccess);
    look();
    EXPECT_LOG("1 2 3 4 5 7");
    receiver_free(&receiver);
}

struct flood {
    mach_port_t number;
    int count;
    _Atomic int failures;
};

static void sends_many(void *context)
{
    struct flood *flood = context;

    for (int i = 0; i < flood->count; i++) {
        flood->failures += send_id(flood->number, i, 1e9) != kCRLMachPortSuccess;
    }
}

TEST(waiting_mach_senders_all_get_room, "250 226")
{
    enum { threads = 4, count = 500 };
    struct receiver receiver = {.is_silent = true};
    struct flood flood = {CFMachPortGetPort(receiver_create(&receiver)), count, 0};
    struct probe_thread senders[threads];
    CFAbsoluteTime end = CFAbsoluteTimeGetCurrent() + 5 * test_patience_s();

    receiver_schedule(&receiver);
    for (int i = 0; i < threads; i++) {
        probe_thread_start(&senders[i], sends_many, &flood);
    }
    while (receiver.calls < threads * count && CFAbsoluteTimeGetCurrent() < end) {
        CFRunLoopRunInMode(MODE, 0.1, true);
    }
    EXPECT_EQ(receiver.calls, threads * count);
    for (int i = 0; i < threads; i++) {
        probe_thread_join(&senders[i]);
    }
    EXPECT_EQ(flood.failures, 0);
    receiver_free(&receiver);
}

static void sends_one(void *context)
{
    struct flood *flood = context;

    flood->failures += send_id(flood->number, 0, 1e9) == kCRLMachPortIsInvalid;
}

static uint32_t waiting_senders(CFMachPortRef port)
{
    uint32_t count;

    mach_port_lock(port);
    count = port->waiting_senders;
    mach_port_unlock(port);
    return count;
}

TEST(waiting_mach_senders_fail_when_the_port_ends, "247 250 243")
{
    enum { threads = 3 };
    struct receiver receiver = {0};
    struct flood flood = {CFMachPortGetPort(receiver_create(&receiver)), 0, 0};
    struct probe_thread senders[threads];

    for (int i = 0; i < mach_port_queue_limit; i++) {
        send_id(flood.number, i, 0);
    }
    for (int i = 0; i < threads; i++) {
        probe_thread_start(&senders[i], sends_one, &flood);
    }
    while (waiting_senders(receiver.port) < threads) {
        sched_yield();
    }
    CFMachPortInvalidate(receiver.port);
    for (int i = 0; i < threads; i++) {
        probe_thread_join(&senders[i]);
    }
    EXPECT_EQ(flood.failures, threads);
    CFRelease(receiver.port);
}

static void sends_to_sleeper(void *context)
{
    EXPECT_EQ(send_id(*(mach_port_t *)context, 9, 0), kCRLMachPortSuccess);
}

TEST(a_mach_message_wakes_a_sleeping_loop, "246 250 61")
{
    struct receiver receiver = {0};
    mach_port_t number = CFMachPortGetPort(receiver_create(&receiver));
    struct probe_thread thread;

    receiver_schedule(&receiver);
    probe_thread_when_waiting(&thread, LOOP, sends_to_sleeper, &number);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 3600, true), kCFRunLoopRunHandledSource);
    EXPECT_LOG("9");
    probe_thread_join(&thread);
    receiver_free(&receiver);
}

/* ---- the end ---- */

static void invalidated(CFMachPortRef port, void *info)
{
    struct receiver *receiver = info;

    EXPECT(!CFMachPortIsValid(port));
    probe_note("invalidated(%s)", info ? "info" : "");
    if (receiver) {
        EXPECT_EQ(receiver->releases, 0);
        EXPECT(!receiver->context || CFRunLoopSourceIsValid(receiver->context));
    }
}

static void other_invalidated(CFMachPortRef port, void *info)
{
    (void)port;
    probe_note("other(%s)", info ? "info" : "");
}

TEST(a_mach_port_ends_in_order_and_once, "247")
{
    struct receiver receiver = {0};
    CFRunLoopSourceRef source;

    receiver_create(&receiver);
    source = CFMachPortCreateRunLoopSource(NULL, receiver.port, 0);
    receiver.context = source;
    CFRunLoopAddSource(LOOP, source, MODE);
    EXPECT(CFMachPortGetInvalidationCallBack(receiver.port) == NULL);
    CFMachPortSetInvalidationCallBack(receiver.port, other_invalidated);
    CFMachPortSetInvalidationCallBack(receiver.port, invalidated);
    EXPECT(CFMachPortGetInvalidationCallBack(receiver.port) == invalidated);
    send_id(CFMachPortGetPort(receiver.port), 1, 0);
    CFMachPortInvalidate(receiver.port);
    CFMachPortInvalidate(receiver.port);
    EXPECT_LOG("invalidated(info)");
    EXPECT(!CFMachPortIsValid(receiver.port));
    EXPECT(!CFRunLoopSourceIsValid(source));
    EXPECT_EQ(receiver.releases, 1);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunFinished);
    CFRelease(source);
    CFRelease(receiver.port);
    EXPECT_EQ(receiver.releases, 1);
}

TEST(an_invalid_mach_port_calls_a_first_callback_at_once, "248")
{
    CFMachPortRef never_had = CFMachPortCreate(NULL, NULL, NULL, NULL);
    CFMachPortRef had = CFMachPortCreate(NULL, NULL, NULL, NULL);

    CFMachPortSetInvalidationCallBack(had, invalidated);
    CFMachPortInvalidate(had);
    CFMachPortInvalidate(never_had);
    EXPECT_LOG("invalidated()");
    CFMachPortSetInvalidationCallBack(had, other_invalidated); /* there is one that cannot be replaced */
    EXPECT_LOG("");
    EXPECT(CFMachPortGetInvalidationCallBack(had) == invalidated);
    CFMachPortSetInvalidationCallBack(never_had, NULL);
    EXPECT_LOG("");
    CFMachPortSetInvalidationCallBack(never_had, other_invalidated);
    EXPECT_LOG("other()");
    CFRelease(had);
    CFRelease(never_had);
}

TEST(a_freed_mach_port_releases_its_info, "247 245")
{
    struct receiver receiver = {0};
    mach_port_t number;

    receiver_create(&receiver);
    CFMachPortSetInvalidationCallBack(receiver.port, invalidated);
    number = CFMachPortGetPort(receiver.port);
    send_id(number, 1, 0);
    CFRelease(receiver.port);
    EXPECT_LOG("");
    EXPECT_EQ(receiver.releases, 1);
    EXPECT_EQ(send_id(number, 1, 0), kCRLMachPortIsInvalid);
}

static void invalidates_itself(struct receiver *receiver, const mach_msg_header_t *message)
{
    (void)message;
    CFMachPortInvalidate(receiver->port);
}

TEST(a_mach_port_invalidated_in_its_callback_gets_no_more, "246 247")
{
    struct receiver receiver = {.action = invalidates_itself};
    mach_port_t number = CFMachPortGetPort(receiver_create(&receiver));

    receiver_schedule(&receiver);
    send_id(number, 1, 0);
    send_id(number, 2, 0);
    look();
    EXPECT_LOG("1");
    EXPECT_EQ(receiver.retains, receiver.releases);
    CFRelease(receiver.port);
}

static void is_called_and_then_invalidates(void *context)
{
    struct receiver *receiver = context;

    receiver_schedule(receiver);
    send_id(CFMachPortGetPort(receiver->port), 2, 0);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 5, true), kCFRunLoopRunHandledSource);
    CFMachPortInvalidate(receiver->port);
    EXPECT_EQ(receiver->releases, 0); /* the callback on the other thread still uses the info */
}

static void is_called_elsewhere_meanwhile(struct receiver *receiver, const mach_msg_header_t *message)
{
    if (message->msgh_id == 1) {
        probe_on_thread(is_called_and_then_invalidates, receiver);
        EXPECT_EQ(receiver->releases, 0);
    }
}

TEST(a_mach_port_invalidated_behind_a_callback_keeps_its_info_for_that_on_another_thread, "246 247")
{
    struct receiver receiver = {.action = is_called_elsewhere_meanwhile};
    CFMachPortContext context = {.info = &receiver, .release = info_release};

    receiver.port = CFMachPortCreate(NULL, received, &context, NULL);
    receiver_schedule(&receiver);
    send_id(CFMachPortGetPort(receiver.port), 1, 0);
    look();
    EXPECT_LOG("1 2");
    EXPECT_EQ(receiver.releases, 1);
    CFRelease(receiver.port);
    EXPECT_EQ(receiver.releases, 1);
}

TEST(a_mach_ports_source_is_of_version_1_and_made_once, "249")
{
    struct receiver receiver = {0};
    CFRunLoopSourceContext1 context = {.version = 1};
    CFRunLoopSourceRef source;
    CFRunLoopSourceRef again;

    receiver_create(&receiver);
    source = CFMachPortCreateRunLoopSource(NULL, receiver.port, 4);
    again = CFMachPortCreateRunLoopSource(NULL, receiver.port, 9);
    EXPECT(source == again);
    EXPECT_EQ(CFRunLoopSourceGetOrder(source), 4);
    CFRunLoopSourceGetContext(source, (CFRunLoopSourceContext *)(void *)&context);
    EXPECT(context.info == receiver.port);
    CFRelease(again);
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
    EXPECT(CFMachPortIsValid(receiver.port));
    receiver_schedule(&receiver); /* a new one */
    send_id(CFMachPortGetPort(receiver.port), 1, 0);
    look();
    EXPECT_LOG("1");
    CFMachPortInvalidate(receiver.port);
    EXPECT(CFMachPortCreateRunLoopSource(NULL, receiver.port, 0) == NULL);
    CFRelease(receiver.port);
}

static int no_event(void)
{
    return -EMFILE;
}

TEST(a_mach_port_without_descriptors_has_no_source_yet, "249")
{
    struct receiver receiver = {0};

    receiver_create(&receiver);
    kernel.event_create = no_event;
    EXPECT(CFMachPortCreateRunLoopSource(NULL, receiver.port, 0) == NULL);
    kernel.event_create = kernel_linux.event_create;
    receiver_schedule(&receiver);
    send_id(CFMachPortGetPort(receiver.port), 1, 0);
    look();
    EXPECT_LOG("1");
    receiver_free(&receiver);
}

struct racer {
    CFMachPortRef port;
    _Atomic bool starts;
};

static void invalidates_at_once(void *context)
{
    struct racer *racer = context;

    while (!racer->starts) {
        sched_yield();
    }
    CFMachPortInvalidate(racer->port);
}

TEST(a_mach_port_may_be_invalidated_by_another_thread, "246 247")
{
    for (int round = 0; round < 200; round++) {
        struct receiver receiver = {.is_silent = true};
        struct racer racer = {NULL, false};
        mach_port_t number = CFMachPortGetPort(receiver_create(&receiver));
        struct probe_thread thread;

        racer.port = receiver.port;
        receiver_schedule(&receiver);
        probe_thread_start(&thread, invalidates_at_once, &racer);
        racer.starts = true;
        while (send_id(number, 1, 0) != kCRLMachPortIsInvalid) {
            CFRunLoopRunInMode(MODE, 0, true);
        }
        probe_thread_join(&thread);
        EXPECT_EQ(receiver.retains, receiver.releases);
        CFRelease(receiver.port);
    }
}

TEST(the_child_of_a_fork_has_mach_ports_of_its_own, "250 176 P1")
{
    struct receiver receiver = {0};
    mach_port_t number = CFMachPortGetPort(receiver_create(&receiver));
    int status = -1;
    pid_t child;

    receiver_schedule(&receiver);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunTimedOut);
    send_id(number, 1, 0);
    child = fork();
    if (child == 0) {
        bool is_empty = CFRunLoopRunInMode(MODE, 0, true) == kCFRunLoopRunTimedOut;
        bool works = send_id(number, 2, 0) == kCRLMachPortSuccess && CFRunLoopRunInMode(MODE, 0, true) == kCFRunLoopRunHandledSource;

        send_id(number, 3, 0); /* left in the child's queue */
        _exit(is_empty && works && receiver.calls == 1 ? 0 : 1);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    look();
    EXPECT_LOG("1");
    receiver_free(&receiver);
}
