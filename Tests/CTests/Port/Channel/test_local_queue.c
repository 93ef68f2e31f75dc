/* SPDX-License-Identifier: Apache-2.0 */
/* Messages within a process: what differs from those through sockets, and what must not. test_send.c runs everything else both ways. */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Loop/Core/loop.h"
#include "Port/Core/port_use.h"
#include "Port/Channel/local_queue.h"
#include "Port/Core/message_port.h"
#include "Port/Wire/payload.h"
#include "Port/port_probe.h"

#define INBOX_TEST(_name, _rules) PORT_TEST_WITH_INBOX(_name, _rules, ported_##_name)
#define PORT_TEST_WITH_INBOX(_name, _rules, _body)                   \
    static void _body(void);                                         \
    PORT_TEST_WAY(_name, _rules, test_default_limit_s, _body, false) \
    static void _body(void)

static struct trace events;
static _Atomic int packets;

static ssize_t count_send(int socket, const void *bytes, size_t size)
{
    packets++;
    return kernel_ports_linux.send(socket, bytes, size);
}

static ssize_t count_send_message(int socket, const struct msghdr *message)
{
    packets++;
    return kernel_ports_linux.send_message(socket, message);
}

static void count_packets(void)
{
    kernel_ports.send = count_send;
    kernel_ports.send_message = count_send_message;
}

/* ---- which way ---- */

INBOX_TEST(messages_within_a_process_do_not_pass_through_the_kernel, "213")
{
    struct port_thread server;
    CFDataRef data = port_pattern(1 << 20, 3);
    CFDataRef reply = NULL;
    CFMessagePortRef remote;

    count_packets();
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, data, &reply), kCFMessagePortSuccess);
    EXPECT(port_is_pattern(reply, 1 << 20, 3));
    EXPECT_EQ(port_tell(remote, 2, data), kCFMessagePortSuccess);
    EXPECT_EQ(port_ask(remote, 3, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(packets, 0);
    CFRelease(reply);
    CFRelease(data);
    CFRelease(remote);
    port_thread_stop(&server);
}

INBOX_TEST(the_environment_switches_inboxes_off, "")
{
    struct port_thread server;
    CFMessagePortRef remote;

    EXPECT_EQ(setenv("CORERUNLOOP_MESSAGES", "socket", 1), 0);
    count_packets();
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(packets, 2);
    CFRelease(remote);
    port_thread_stop(&server);
}

/* What was sent before the port had a source is in its socket, and comes first. */
INBOX_TEST(the_order_holds_when_messages_change_their_way, "234")
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_note, &(CFMessagePortContext){.info = &events}, NULL);
    CFMessagePortRef remote = port_connect(NAME);
    CFRunLoopSourceRef source;

    count_packets();
    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(packets, 1);
    source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT_EQ(port_tell(remote, 2, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(packets, 2); /* the first may still be in the socket */
    EXPECT_EQ(port_ask(remote, 3, NULL, NULL), kCFMessagePortSuccess);
    EXPECT(packets >= 4);
    packets = 0;
    EXPECT_EQ(port_ask(remote, 4, NULL, NULL), kCFMessagePortSuccess); /* the reply has confirmed all before it */
    EXPECT_EQ(packets, 0);
    EXPECT_TRACE(&events, "1: 2: 3: 4:");
    CFRelease(source);
    CFRelease(remote);
    port_drop(port);
}

static void *tell(void *remote)
{
    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    return NULL;
}

static uint32_t count_waiting(CFMessagePortRef port)
{
    struct local_queue *local_queue = port->side.local.local_queue;
    uint32_t count;

    local_queue_lock(local_queue);
    count = local_queue->count;
    local_queue_unlock(local_queue);
    return count;
}

/* The first sender has put its message in, and cannot tell the loop of it, whose lock it waits for. */
INBOX_TEST(what_was_sent_is_seen_by_the_next_look_though_the_sender_before_is_held_up, "212 234 46")
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFMessagePortRef port = port_open(NAME, port_note, &events, MODE);
    CFMessagePortRef remote = port_connect(NAME);

    for (int i = 0; i < 100; i++) {
        pthread_t thread;

        loop_lock(loop);
        REQUIRE(pthread_create(&thread, NULL, tell, remote) == 0);
        while (count_waiting(port) == 0) {
            (void)sched_yield();
        }
        loop_unlock(loop);
        EXPECT_EQ(port_tell(remote, 2, NULL), kCFMessagePortSuccess);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
        EXPECT_EQ(count_waiting(port), 0);
        (void)pthread_join(thread, NULL);
        (void)CFRunLoopRunInMode(MODE, 0, true); /* the first sender may have told it last, and in vain */
    }
    CFRelease(remote);
    port_drop(port);
}

/* ---- data ---- */

static const UInt8 *seen_bytes;
static char seen_first;

static CFDataRef look_at_bytes(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)message_id;
    (void)info;
    seen_bytes = CFDataGetBytePtr(data);
    seen_first = (char)seen_bytes[0];
    return CFRetain(data);
}

INBOX_TEST(the_order_holds_when_a_remote_port_ends_whose_messages_are_in_the_socket, "234")
{
    CFMessagePortContext context = {.info = &events};
    CFMessagePortRef local = CFMessagePortCreateLocal(NULL, NAME, port_note, &context, NULL);
    CFMessagePortRef remote = port_connect(NAME);
    CFRunLoopSourceRef source;

    trace_clear(&events);
    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess); /* there is no source yet: by the socket */
    EXPECT_EQ(port_tell(remote, 2, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    source = CFMessagePortCreateRunLoopSource(NULL, local, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    CFRelease(source);
    remote = port_connect(NAME);
    EXPECT_EQ(port_tell(remote, 3, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_ask(remote, 4, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_TRACE(&events, "1: 2: 3: 4:");
    count_packets();
    packets = 0;
    EXPECT_EQ(port_ask(remote, 5, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(packets, 0); /* all of them have been taken */
    CFRelease(remote);
    port_drop(local);
}

INBOX_TEST(data_that_nobody_can_change_is_not_copied, "219 223")
{
    CFMessagePortRef port = port_open(NAME, look_at_bytes, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef data = port_data("fixed");
    CFDataRef reply = NULL;

    EXPECT_EQ(port_ask(remote, 1, data, &reply), kCFMessagePortSuccess);
    EXPECT_EQ(seen_bytes, CFDataGetBytePtr(data));
    EXPECT(reply && reply != data && CFDataGetBytePtr(reply) == CFDataGetBytePtr(data));
    CFRelease(data);
    EXPECT(port_data_is(reply, "fixed"));
    CFRelease(reply);
    CFRelease(remote);
    port_drop(port);
}

static CFDataRef seen_data;

static CFDataRef keep_and_give(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)message_id;
    CFRetain(data);
    seen_data = data;
    return CFRetain(*(CFDataRef *)info);
}

INBOX_TEST(data_that_was_made_to_be_given_goes_itself_but_only_once, "219 223")
{
    CFDataRef reply_given = payload_copy_to_give("answer", 6);
    CFMessagePortRef port = port_open(NAME, keep_and_give, &reply_given, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef given = payload_copy_to_give("question", 8);

    for (int i = 0; i < 2; i++) {
        CFDataRef reply = NULL;

        EXPECT_EQ(port_ask(remote, 1, given, &reply), kCFMessagePortSuccess);
        EXPECT((seen_data == given) == (i == 0) && CFEqual(seen_data, given));
        EXPECT((reply == reply_given) == (i == 0) && CFEqual(reply, reply_given));
        CFRelease(seen_data);
        CFRelease(reply);
    }
    EXPECT_EQ(CFGetRetainCount(given), 1);
    CFRelease(given);
    CFRelease(remote);
    port_drop(port);
    CFRelease(reply_given);
}

INBOX_TEST(data_that_its_owner_may_change_is_copied_when_it_is_sent, "212 219")
{
    CFMessagePortRef port = port_open(NAME, look_at_bytes, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    CFMutableDataRef changing = CFDataCreateMutable(NULL, 0);
    char buffer[] = "mine";
    CFDataRef lent = CFDataCreateWithBytesNoCopy(NULL, (const UInt8 *)buffer, 4, kCFAllocatorNull);

    CFDataAppendBytes(changing, (const UInt8 *)"old", 3);
    EXPECT_EQ(port_tell(remote, 1, changing), kCFMessagePortSuccess);
    EXPECT_EQ(port_tell(remote, 2, lent), kCFMessagePortSuccess);
    CFDataGetMutableBytePtr(changing)[0] = 'n';
    CFRelease(lent);
    memset(buffer, 'x', 4);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(seen_first, 'o');
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(seen_first, 'm');
    CFRelease(changing);
    CFRelease(remote);
    port_drop(port);
}

/* ---- the source ---- */

INBOX_TEST(letters_wait_for_their_source_and_go_where_it_goes, "226 234")
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_note, &(CFMessagePortContext){.info = &events}, NULL);
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFMessagePortRef remote = port_connect(NAME);
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    for (SInt32 i = 1; i <= 4; i++) {
        EXPECT_EQ(port_tell(remote, i, NULL), kCFMessagePortSuccess);
    }
    CFRunLoopAddSource(loop, source, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&events, "1:");
    CFRunLoopRemoveSource(loop, source, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunFinished);
    CFRunLoopAddSource(loop, source, CFSTR("another"));
    CFRunLoopAddSource(loop, source, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("another"), 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&events, "1: 2: 3: 4:");
    /* Nothing is left of the posts in either mode. */
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("another"), 0, true), kCFRunLoopRunTimedOut);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunTimedOut);
    CFRelease(source);
    CFRelease(remote);
    port_drop(port);
}

/* A new source takes over from one that was invalidated. */
INBOX_TEST(letters_find_the_ports_next_source, "201 226")
{
    CFMessagePortRef port = port_open(NAME, port_note, &events, MODE);
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFMessagePortRef remote = port_connect(NAME);

    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
    EXPECT_EQ(port_tell(remote, 2, NULL), kCFMessagePortSuccess);
    source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&events, "1: 2:");
    CFRelease(source);
    CFRelease(remote);
    port_drop(port);
}

/* What a removal by an AfterWaiting observer keeps from being performed is performed once the source is back. */
static void take_source_out(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *source)
{
    (void)activity;
    CFRunLoopRemoveSource(CFRunLoopGetCurrent(), source, MODE);
    CFRunLoopObserverInvalidate(observer);
}

INBOX_TEST(a_letter_is_not_lost_with_its_turn, "88 234")
{
    CFMessagePortRef port = port_open(NAME, port_note, &events, MODE);
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFMessagePortRef remote = port_connect(NAME);
    CFRunLoopObserverContext context = {.info = source};
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopAfterWaiting, false, 0, take_source_out, &context);

    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, MODE);
    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunFinished);
    EXPECT_TRACE(&events, "");
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&events, "1:");
    CFRelease(observer);
    CFRelease(source);
    CFRelease(remote);
    port_drop(port);
}

/* ---- fairness ---- */

static int letters_before_the_descriptor;
static bool descriptor_was_served;

static CFDataRef send_another(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)data;
    if (!descriptor_was_served) {
        letters_before_the_descriptor++;
        EXPECT_EQ(CFMessagePortSendRequest(*(CFMessagePortRef *)info, message_id + 1, NULL, 0, 0, NULL, NULL), kCFMessagePortSuccess);
    }
    return NULL;
}

static void serve_descriptor(CFFileDescriptorRef descriptor, CFOptionFlags types, void *info)
{
    (void)descriptor;
    (void)types;
    (void)info;
    descriptor_was_served = true;
}

INBOX_TEST(letters_without_end_do_not_starve_a_descriptor, "35 H10")
{
    CFMessagePortRef remote = NULL;
    CFMessagePortRef port = port_open(NAME, send_another, &remote, MODE);
    int ends[2];
    CFFileDescriptorRef descriptor;
    CFRunLoopSourceRef source;

    remote = port_connect(NAME);
    REQUIRE(pipe(ends) == 0);
    descriptor = CFFileDescriptorCreate(NULL, ends[0], false, serve_descriptor, NULL);
    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
    source = CFFileDescriptorCreateRunLoopSource(NULL, descriptor, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    for (int i = 0; i < 100 && !descriptor_was_served; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, true), kCFRunLoopRunHandledSource);
    }
    EXPECT(descriptor_was_served);
    EXPECT(letters_before_the_descriptor <= 8);
    CFFileDescriptorInvalidate(descriptor);
    CFRelease(source);
    CFRelease(descriptor);
    (void)close(ends[0]);
    (void)close(ends[1]);
    CFRelease(remote);
    port_drop(port);
}

/* ---- the end ---- */

static void *ask_for_ever(void *remote)
{
    return (void *)(intptr_t)CFMessagePortSendRequest(remote, 9, NULL, 1e9, 1e9, MODE, NULL);
}

static void *tell_for_ever(void *remote)
{
    return (void *)(intptr_t)CFMessagePortSendRequest(remote, 9, NULL, 1e9, 0, NULL, NULL);
}

static void expect_result(pthread_t thread, SInt32 expected, SInt32 or_this)
{
    void *result = NULL;

    EXPECT_EQ(pthread_join(thread, &result), 0);
    EXPECT((SInt32)(intptr_t)result == expected || (SInt32)(intptr_t)result == or_this);
}

static void fill(CFMessagePortRef remote)
{
    SInt32 result;

    while ((result = CFMessagePortSendRequest(remote, 1, NULL, 0, 0, NULL, NULL)) == kCFMessagePortSuccess) {
    }
    EXPECT_EQ(result, kCFMessagePortSendTimeout);
}

/* For a reply, and for room. A thread that had not begun finds the remote invalid. */
INBOX_TEST(the_end_of_a_port_ends_every_wait_for_it, "232 243 M1")
{
    CFMessagePortRef port = port_open(NAME, port_note, &events, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    pthread_t asking;
    pthread_t telling;

    EXPECT_EQ(pthread_create(&asking, NULL, ask_for_ever, remote), 0);
    fill(remote);
    EXPECT_EQ(pthread_create(&telling, NULL, tell_for_ever, remote), 0);
    CFMessagePortInvalidate(port);
    expect_result(asking, kCFMessagePortBecameInvalidError, kCFMessagePortIsInvalid);
    expect_result(telling, kCFMessagePortBecameInvalidError, kCFMessagePortIsInvalid);
    EXPECT(!CFMessagePortIsValid(remote));
    EXPECT_TRACE(&events, "");
    CFRelease(remote);
    CFRelease(port);
}

INBOX_TEST(the_end_of_a_remote_ends_every_wait_on_it, "232 238")
{
    CFMessagePortRef port = port_open(NAME, port_note, &events, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(pthread_create(&threads[i], NULL, ask_for_ever, remote), 0);
    }
    fill(remote);
    CFMessagePortInvalidate(remote);
    for (int i = 0; i < 4; i++) {
        expect_result(threads[i], kCFMessagePortBecameInvalidError, kCFMessagePortIsInvalid);
    }
    CFRelease(remote);
    port_drop(port);
}

/* ---- fork ---- */

static CFDataRef fork_and_return(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    pid_t *child = info;

    (void)port;
    (void)message_id;
    *child = fork();
    return CFRetain(data);
}

/* The child goes on in the callback and in the wait, where the other side is not there; it finds all ports invalid and leaves. */
INBOX_TEST(a_callback_may_fork_and_both_return_from_it, "176 M6")
{
    pid_t child = -1;
    pid_t parent = getpid();
    CFMessagePortRef port = port_open(NAME, fork_and_return, &child, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    SInt32 result = CFMessagePortSendRequest(remote, 1, NULL, 5, 5, MODE, NULL);
    int status = -1;

    if (getpid() != parent) {
        _exit(!CFMessagePortIsValid(port) && !CFMessagePortIsValid(remote) &&
                      CFMessagePortSendRequest(remote, 1, NULL, 5, 5, MODE, NULL) == kCFMessagePortIsInvalid
                  ? 0
                  : 1);
    }
    EXPECT_EQ(result, kCFMessagePortSuccess);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT(CFMessagePortIsValid(remote));
    CFRelease(remote);
    port_drop(port);
}

/* ---- hosting ---- */

static void *tell_once(void *remote)
{
    return (void *)(intptr_t)port_tell(remote, 1, NULL);
}

INBOX_TEST(a_letter_makes_a_hosted_loops_descriptor_readable, "234")
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFMessagePortRef port = port_open(NAME, port_note, &events, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    struct pollfd one = {.fd = CRLRunLoopGetDescriptor(loop), .events = POLLIN};
    pthread_t thread;

    EXPECT(CRLRunLoopPrepare(loop, MODE));
    EXPECT_EQ(poll(&one, 1, 0), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, tell_once, remote), 0);
    EXPECT_EQ(poll(&one, 1, (int)(test_patience_s() * 1000)), 1);
    expect_result(thread, kCFMessagePortSuccess, kCFMessagePortSuccess);
    (void)CRLRunLoopDispatch(loop);
    EXPECT_TRACE(&events, "1:");
    CRLRunLoopLeave(loop);
    CFRelease(remote);
    port_drop(port);
}

/* ---- many ---- */

static void *ask_many(void *remote)
{
    for (SInt32 i = 0; i < 2000; i++) {
        UInt8 bytes[4] = {(UInt8)i, (UInt8)(i >> 8), 1, 2};
        CFDataRef data = CFDataCreate(NULL, bytes, i % 5);
        CFDataRef reply = NULL;

        if (CFMessagePortSendRequest(remote, i, data, 30, 30, MODE, &reply) != kCFMessagePortSuccess || !CFEqual(data, reply)) {
            FAIL("another's reply, or none");
        }
        CFRelease(data);
        CFRelease(reply);
    }
    return NULL;
}

/* Four threads ask a port that is served by two loops; nobody gets another's reply, and nothing is left. */
INBOX_TEST(stress_threads_ask_a_port_in_two_loops, "209 235 M12 M21")
{
    struct port_thread servers[2];
    CFMessagePortRef remote;
    CFRunLoopSourceRef source;
    pthread_t threads[4];

    port_thread_start(&servers[0], NAME, port_echo, NULL);
    port_thread_start(&servers[1], CFSTR("only for its loop"), port_echo, NULL);
    source = CFMessagePortCreateRunLoopSource(NULL, servers[0].port, 0);
    CFRunLoopAddSource(servers[1].loop, source, kCFRunLoopDefaultMode);
    CFRelease(source);
    remote = port_connect(NAME);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(pthread_create(&threads[i], NULL, ask_many, remote), 0);
    }
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(pthread_join(threads[i], NULL), 0);
    }
    CFRelease(remote);
    port_thread_stop(&servers[1]);
    port_thread_stop(&servers[0]);
}

static CFMessagePortRef late_local, late_remote;
static bool has_interrupted;

/* As another thread would, between a sender's choice of the way and its sending: the port gets its source, and a message. */
static int64_t attach_and_send(void)
{
    if (!has_interrupted) {
        CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, late_local, 0);

        has_interrupted = true;
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
        CFRelease(source);
        EXPECT_EQ(CFMessagePortSendRequest(late_remote, 2, NULL, 1, 0, NULL, NULL), kCFMessagePortSuccess);
    }
    return kernel_linux.monotonic_ns();
}

PORT_TEST_BOTH_WAYS(the_order_holds_when_the_way_changes_under_a_sender, "234")
{
    struct trace trace = {0};
    CFMessagePortContext context = {.info = &trace};

    late_local = CFMessagePortCreateLocal(NULL, NAME, port_note, &context, NULL);
    late_remote = port_connect(NAME);
    kernel.monotonic_ns = attach_and_send;
    EXPECT_EQ(CFMessagePortSendRequest(late_remote, 1, NULL, 1, 0, NULL, NULL), kCFMessagePortSuccess);
    kernel.monotonic_ns = kernel_linux.monotonic_ns;
    EXPECT(has_interrupted);
    EXPECT_EQ(CFMessagePortSendRequest(late_remote, 3, NULL, 1, 0, NULL, NULL), kCFMessagePortSuccess);
    while (CFRunLoopRunInMode(MODE, 0, true) == kCFRunLoopRunHandledSource) {
    }
    EXPECT_TRACE(&trace, "2: 1: 3:");
    CFRelease(late_remote);
    port_drop(late_local);
}

static CFMessagePortRef read_port;
static CFRunLoopSourceRef read_source;
static bool was_closed_in_loop;

/* Between the two looks that the end of the port takes at its socket: a thread that was reading has done so. */
static int wake_and_end_read(_Atomic uint32_t *word)
{
    if (read_port) {
        CFMessagePortRef port = read_port;

        read_port = NULL;
        port_lock(port);
        local_port_end_read(port);
        was_closed_in_loop = CFRunLoopSourceIsValid(read_source) && port->side.local.socket < 0;
        port_unlock(port);
    }
    return kernel_linux.futex_wake(word);
}

/* The number may be another file's at once, and a loop would take it for the port's. */
INBOX_TEST(a_socket_is_closed_when_its_source_is_in_no_loop, "203")
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_note, &(CFMessagePortContext){.info = &events}, NULL);

    read_source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), read_source, MODE);
    EXPECT(local_port_begin_read(port));
    read_port = port;
    kernel.futex_wake = wake_and_end_read;
    CFMessagePortInvalidate(port);
    kernel.futex_wake = kernel_linux.futex_wake;
    EXPECT(!read_port);
    EXPECT(!was_closed_in_loop);
    EXPECT(!CFRunLoopSourceIsValid(read_source));
    EXPECT_EQ(port->side.local.socket, -1);
    CFRelease(read_source);
    CFRelease(port);
}
