/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks of ports that do not return, fault case P11: they end their thread, or jump out of a nested run. Who has asked is told at once,
 * the context is released by who makes the port invalid, and nothing is left.
 */
#include <pthread.h>
#include <setjmp.h>

#include "CRLMachPort.h"
#include "CRLRunLoop.h"
#include "Loop/loop_probe.h"
#include "Port/port_probe.h"

static _Atomic int retains;
static _Atomic int releases;

static const void *count_retain(const void *info)
{
    retains++;
    return info;
}

static void count_release(const void *info)
{
    (void)info;
    releases++;
}

/* ---- message ports ---- */

static CFDataRef ends_its_thread(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)local, (void)message_id, (void)data, (void)info;
    pthread_exit(NULL);
}

/* A port of the main thread's, which another one serves. */
struct service {
    CFMessagePortRef port;
    CFRunLoopRef loop;
    pthread_barrier_t ready;
};

static void is_ready(void *barrier)
{
    (void)pthread_barrier_wait(barrier);
}

static void serves(void *info)
{
    struct service *service = info;
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, service->port, 0);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRelease(source);
    CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), kCFRunLoopDefaultMode, is_ready, &service->ready, NULL);
    CFRunLoopRun();
    FAIL("the run has returned");
}

static CFMessagePortRef make_port(CFMessagePortCallBack callout)
{
    CFMessagePortContext context = {.info = &releases, .retain = count_retain, .release = count_release};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, callout, &context, NULL);

    REQUIRE(port != NULL);
    return port;
}

static void service_start(struct service *service, struct probe_thread *thread)
{
    service->port = make_port(ends_its_thread);
    (void)pthread_barrier_init(&service->ready, NULL, 2);
    probe_thread_start(thread, serves, service);
    (void)pthread_barrier_wait(&service->ready);
}

static void service_end(struct service *service)
{
    EXPECT_EQ(CFGetRetainCount(service->port), 2); /* the source's, which the port has until it is invalid */
    CFMessagePortInvalidate(service->port);
    EXPECT_EQ(releases, retains);
    CFRelease(service->port);
    (void)pthread_barrier_destroy(&service->ready);
}

PORT_TEST_BOTH_WAYS(who_asks_is_told_when_the_callback_ends_its_thread, "170 224 P11")
{
    struct probe_thread thread;
    struct service service;
    CFDataRef data = port_pattern(100000, 1);
    CFMessagePortRef remote;

    service_start(&service, &thread);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, data, NULL), kCFMessagePortTransportError);
    probe_thread_join(&thread);
    CFRelease(data);
    port_drop(remote);
    service_end(&service);
}

PORT_TEST_BOTH_WAYS(a_message_whose_callback_ends_its_thread_is_done_with, "170 224 P11")
{
    struct probe_thread thread;
    struct service service;
    CFMessagePortRef remote;

    service_start(&service, &thread);
    remote = port_connect(NAME);
    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    probe_thread_join(&thread);
    EXPECT_EQ(releases, 1);
    EXPECT_EQ(retains, 2);
    port_drop(remote);
    service_end(&service);
}

static int calls;

static CFDataRef jumps_out_once(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    if (++calls == 1) {
        longjmp(probe_way_out, 1);
    }
    return port_echo(local, message_id, data, info);
}

static void jumps_out_of_the_wait(struct probe *probe)
{
    (void)probe;
    longjmp(probe_way_out, 1);
}

static void join_mode(CFMessagePortRef port)
{
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    CFRelease(source);
}

PORT_TEST_BOTH_WAYS(a_port_goes_on_after_its_callback_was_jumped_out_of, "45 224 P11")
{
    CFMessagePortRef port = make_port(jumps_out_once);
    CFMessagePortRef remote;
    CFDataRef data = port_data("again");
    CFDataRef reply = NULL;

    join_mode(port);
    remote = port_connect(NAME);
    EXPECT_EQ(port_tell(remote, 1, data), kCFMessagePortSuccess);
    EXPECT(probe_run_is_left(MODE));
    EXPECT_EQ(CFMessagePortSendRequest(remote, 2, data, test_patience_s(), test_patience_s(), MODE, &reply), kCFMessagePortSuccess);
    EXPECT(port_data_is(reply, "again"));
    EXPECT_EQ(retains, releases + 1);
    port_drop(remote);
    CFMessagePortInvalidate(port);
    EXPECT_EQ(retains, releases);
    CFRelease(port);
    CFRelease(data);
    CFRelease(reply);
}

/* ---- requests ---- */

/* Asks, and jumps out of the wait for the reply before it is there. */
static void asks_and_jumps_out(CFMessagePortRef remote)
{
    static struct probe thrower = {.name = "T", .logging = probe_is_silent};

    thrower.action = jumps_out_of_the_wait;
    if (setjmp(probe_way_out) == 0) {
        CFRunLoopSourceSignal(probe_source_add(&thrower, 0, CFRunLoopGetCurrent(), MODE));
        (void)CFMessagePortSendRequest(remote, 1, NULL, test_patience_s(), test_patience_s(), MODE, NULL);
        FAIL("the request has returned");
    }
    probe_invalidate(&thrower);
}

/* Where the request had what it knows of its reply. Nobody writes there any more. */
static __attribute__((noinline)) bool is_left_alone(void)
{
    volatile unsigned char bytes[16384];
    bool is_same = true;

    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 0;
    }
    for (int i = 0; i < 20; i++) {
        CFRunLoopRunInMode(MODE, 0.005, true);
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        is_same = is_same && bytes[i] == 0;
    }
    return is_same;
}

static void ends_in_the_wait(struct probe *probe)
{
    (void)probe;
    pthread_exit(NULL);
}

static void asks_and_ends(void *remote)
{
    static struct probe source = {.name = "S", .action = ends_in_the_wait, .logging = probe_is_silent};

    CFRunLoopSourceSignal(probe_source_add(&source, 0, CFRunLoopGetCurrent(), MODE));
    (void)CFMessagePortSendRequest(remote, 1, NULL, test_patience_s(), test_patience_s(), MODE, NULL);
    FAIL("the request has returned");
}

PORT_TEST_BOTH_WAYS(a_request_whose_wait_ends_the_thread_is_given_up, "170 214 P11")
{
    CFMessagePortRef port = port_open(NAME, port_silence, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);

    probe_on_thread(asks_and_ends, remote);
    EXPECT_EQ(CFGetRetainCount(remote), 1);
    port_drop(remote);
    port_drop(port);
}

PORT_TEST_BOTH_WAYS(a_reply_to_a_request_that_was_jumped_out_of_is_written_nowhere, "45 214 P11")
{
    struct port_thread server;
    CFMessagePortRef remote;
    CFDataRef data = port_data("again");
    CFDataRef reply = NULL;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    asks_and_jumps_out(remote);
    EXPECT(is_left_alone());
    EXPECT_EQ(CFMessagePortSendRequest(remote, 2, data, test_patience_s(), test_patience_s(), MODE, &reply), kCFMessagePortSuccess);
    EXPECT(port_data_is(reply, "again"));
    CFRelease(reply);
    CFRelease(data);
    port_drop(remote);
    port_thread_stop(&server);
}

/* ---- ports in the style of Mach ---- */

static void ends_the_thread(CFMachPortRef port, void *message, CFIndex size, void *info)
{
    (void)port, (void)message, (void)size, (void)info;
    pthread_exit(NULL);
}

static void jumps_out_of_the_port_once(CFMachPortRef port, void *message, CFIndex size, void *info)
{
    (void)port, (void)message, (void)size, (void)info;
    if (++calls == 1) {
        longjmp(probe_way_out, 1);
    }
}

static CFMachPortRef make_mach_port(CFMachPortCallBack callout)
{
    CFMachPortContext context = {.info = &releases, .retain = count_retain, .release = count_release};
    CFMachPortRef port = CFMachPortCreate(NULL, callout, &context, NULL);

    REQUIRE(port != NULL);
    return port;
}

static void send_to(CFMachPortRef port)
{
    mach_msg_header_t message = {.msgh_size = sizeof message, .msgh_remote_port = CFMachPortGetPort(port), .msgh_id = 1};

    EXPECT_EQ(CRLMachPortSend(&message, 0), kCRLMachPortSuccess);
}

static void join_mode_of_mach(CFMachPortRef port)
{
    CFRunLoopSourceRef source = CFMachPortCreateRunLoopSource(NULL, port, 0);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    CFRelease(source);
}

static void drop_mach_port(CFMachPortRef port)
{
    CFMachPortInvalidate(port);
    EXPECT_EQ(releases, retains);
    CFRelease(port);
}

static void receives(void *port)
{
    join_mode_of_mach(port);
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

TEST(a_mach_port_is_released_whose_callback_ends_the_thread, "170 246 P11")
{
    CFMachPortRef port = make_mach_port(ends_the_thread);

    send_to(port);
    probe_on_thread(receives, port);
    EXPECT_EQ(retains, releases + 1);
    EXPECT_EQ(CFGetRetainCount(port), 1);
    drop_mach_port(port);
}

TEST(a_mach_port_goes_on_after_its_callback_was_jumped_out_of, "45 246 P11")
{
    CFMachPortRef port = make_mach_port(jumps_out_of_the_port_once);

    send_to(port);
    join_mode_of_mach(port);
    EXPECT(probe_run_is_left(MODE));
    send_to(port);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 10, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(calls, 2);
    drop_mach_port(port);
}

/* ---- the end of ports ---- */

/* Of the port that is made invalid, or found to be without its receiver. */
static CFRunLoopSourceRef source_of_ended;
static CFRunLoopTimerRef keeper; /* keeps a run of the default mode going */

static void expect_an_end(CFTypeRef port)
{
    EXPECT_EQ(releases, retains);
    if (source_of_ended) {
        EXPECT(!CFRunLoopSourceIsValid(source_of_ended));
        CFRelease(source_of_ended);
    }
    if (keeper) {
        CFRunLoopTimerInvalidate(keeper);
        CFRelease(keeper);
        keeper = NULL;
    }
    EXPECT_EQ(CFGetRetainCount(port), 1);
    CFRelease(port);
}

static void ends_the_thread_of_the_end(CFMessagePortRef port, void *info)
{
    (void)info;
    EXPECT(!CFMessagePortIsValid(port));
    pthread_exit(NULL);
}

static void jumps_out_of_the_end(CFMessagePortRef port, void *info)
{
    (void)port, (void)info;
    longjmp(probe_way_out, 1);
}

/* The callback jumps out of a run in `mode` in which a source does something to the port. */
static void jumps_out_in(CFStringRef mode, void (*action)(struct probe *probe), CFTypeRef port)
{
    struct probe source = {.name = "S", .action = action, .context = (void *)(uintptr_t)port, .logging = probe_is_silent};

    CFRunLoopSourceSignal(probe_source_add(&source, 0, CFRunLoopGetCurrent(), mode));
    EXPECT(probe_run_is_left(mode));
    expect_an_end(port);
    probe_invalidate(&source);
}

static void makes_invalid(void *port)
{
    CFMessagePortInvalidate(port);
    FAIL("the callback has returned");
}

static void source_makes_invalid(struct probe *probe)
{
    makes_invalid(probe->context);
}

/* A port in the main thread's loop, with that callback. */
static CFMessagePortRef make_port_to_end(CFMessagePortInvalidationCallBack callout)
{
    CFMessagePortRef port = make_port(port_echo);

    source_of_ended = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source_of_ended, MODE);
    CFMessagePortSetInvalidationCallBack(port, callout);
    return port;
}

PORT_TEST_BOTH_WAYS(a_port_has_ended_though_its_invalidation_callback_ends_the_thread, "170 203 P11")
{
    CFMessagePortRef port = make_port_to_end(ends_the_thread_of_the_end);

    probe_on_thread(makes_invalid, port);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    expect_an_end(port);
}

PORT_TEST_BOTH_WAYS(a_port_has_ended_though_its_invalidation_callback_was_jumped_out_of, "45 203 P11")
{
    jumps_out_in(MODE, source_makes_invalid, make_port_to_end(jumps_out_of_the_end));
}

static void never(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    FAIL("a timer of the next century has fired");
}

/*
 * Something finds the receiver of a remote port gone. The loop of the same thread calls the port's invalidation callback afterwards, which
 * does not return.
 */
static void is_told_after(void (*finds)(CFMessagePortRef remote), CFMessagePortRef remote)
{
    CFMessagePortSetInvalidationCallBack(remote, CFMessagePortGetInvalidationCallBack(remote)); /* for the loop of this thread */
    finds(remote);
    keeper = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 3e9, 0, 0, 0, never, NULL);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), keeper, kCFRunLoopDefaultMode);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), false);
    FAIL("the callback has returned, or was not called");
}

/* Asks a receiver that has gone, or goes instead of an answer. */
static void finds_by_asking(CFMessagePortRef remote)
{
    EXPECT(port_ask(remote, 1, NULL, NULL) != kCFMessagePortSuccess);
}

static void asks_in_vain(void *remote)
{
    is_told_after(finds_by_asking, remote);
}

static void source_asks_in_vain(struct probe *probe)
{
    asks_in_vain(probe->context);
}

static CFMessagePortRef connect_for_the_end(CFMessagePortInvalidationCallBack callout)
{
    CFMessagePortRef remote = port_connect(NAME);

    CFMessagePortSetInvalidationCallBack(remote, callout);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess); /* it has a channel now */
    return remote;
}

PORT_TEST_BOTH_WAYS(a_channel_is_closed_though_the_invalidation_callback_ends_the_thread, "170 205 P11")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = connect_for_the_end(ends_the_thread_of_the_end);
    port_thread_stop(&server);
    probe_on_thread(asks_in_vain, remote);
    expect_an_end(remote);
}

static CFDataRef echoes_once(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    if (++calls > 1) {
        CFMessagePortInvalidate(local);
    }
    return port_echo(local, message_id, data, info);
}

PORT_TEST_BOTH_WAYS(a_request_has_ended_though_the_invalidation_callback_ends_the_thread, "170 205 243 P11")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, echoes_once, NULL);
    remote = connect_for_the_end(ends_the_thread_of_the_end);
    probe_on_thread(asks_in_vain, remote);
    expect_an_end(remote);
    port_thread_stop(&server);
}

PORT_TEST_BOTH_WAYS(a_request_has_ended_though_the_invalidation_callback_was_jumped_out_of, "45 205 243 P11")
{
    struct port_thread server;

    port_thread_start(&server, NAME, echoes_once, NULL);
    jumps_out_in(CFSTR("asking"), source_asks_in_vain, connect_for_the_end(jumps_out_of_the_end));
    port_thread_stop(&server);
}

static void finds_by_validity(CFMessagePortRef remote)
{
    EXPECT(!CFMessagePortIsValid(remote));
}

static void asks_whether_valid(void *remote)
{
    is_told_after(finds_by_validity, remote);
}

static void finds_by_connecting(CFMessagePortRef remote)
{
    (void)remote;
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
}

static void connects_again(void *remote)
{
    is_told_after(finds_by_connecting, remote);
}

PORT_TEST_BOTH_WAYS(who_finds_a_receiver_gone_leaves_nothing_in_a_callback_that_ends_the_thread, "170 205 207 P11")
{
    void (*const finders[])(void *remote) = {asks_whether_valid, connects_again};

    for (size_t i = 0; i < sizeof finders / sizeof finders[0]; i++) {
        struct port_thread server;
        CFMessagePortRef remote;

        port_thread_start(&server, NAME, port_echo, NULL);
        remote = connect_for_the_end(ends_the_thread_of_the_end);
        port_thread_stop(&server);
        probe_on_thread(finders[i], remote);
        expect_an_end(remote);
    }
}

static void ends_the_thread_of_the_mach_ports_end(CFMachPortRef port, void *info)
{
    (void)info;
    EXPECT(!CFMachPortIsValid(port));
    pthread_exit(NULL);
}

static void jumps_out_of_the_mach_ports_end(CFMachPortRef port, void *info)
{
    (void)port, (void)info;
    longjmp(probe_way_out, 1);
}

static void makes_mach_port_invalid(void *port)
{
    CFMachPortInvalidate(port);
    FAIL("the callback has returned");
}

static void source_makes_mach_port_invalid(struct probe *probe)
{
    makes_mach_port_invalid(probe->context);
}

static CFMachPortRef make_mach_port_to_end(CFMachPortInvalidationCallBack callout)
{
    CFMachPortRef port = make_mach_port(NULL);

    source_of_ended = CFMachPortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source_of_ended, MODE);
    CFMachPortSetInvalidationCallBack(port, callout);
    return port;
}

TEST(a_mach_port_has_ended_though_its_invalidation_callback_ends_the_thread, "170 247 P11")
{
    CFMachPortRef port = make_mach_port_to_end(ends_the_thread_of_the_mach_ports_end);

    probe_on_thread(makes_mach_port_invalid, port);
    expect_an_end(port);
}

TEST(a_mach_port_has_ended_though_its_invalidation_callback_was_jumped_out_of, "45 247 P11")
{
    jumps_out_in(MODE, source_makes_mach_port_invalid, make_mach_port_to_end(jumps_out_of_the_mach_ports_end));
}
