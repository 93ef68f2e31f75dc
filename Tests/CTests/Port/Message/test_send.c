/* SPDX-License-Identifier: Apache-2.0 */
/* Sending and receiving: rules 211 to 243, and the fault cases that belong to them. */
#define _GNU_SOURCE
#include <linux/sock_diag.h>
#include <math.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Port/Core/local_info.h"
#include "Port/Message/remote_send.h"
#include "Port/Core/message_port.h"
#include "Port/port_probe.h"

static struct trace events;

enum { attempts = 4 }; /* a machine that does other things too may be late */

static int room_as_it_is(int socket, int wanted)
{
    (void)wanted;
    return kernel_ports_linux.send_room(socket, 0);
}

/* ---- results, one way, reply ---- */

PORT_TEST_BOTH_WAYS(one_way_messages_are_queued_and_forgotten, "211 212 218 234")
{
    CFMessagePortRef port = port_open(NAME, port_note, &events, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef a = port_data("a");
    CFDataRef untouched = a;

    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, a, 1, 1, NULL, &untouched), kCFMessagePortSuccess);
    EXPECT_EQ(untouched, a);
    EXPECT_EQ(CFMessagePortSendRequest(remote, 2, a, 1, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_TRACE(&events, "");
    /* One callback a pass. */
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&events, "1:a");
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&events, "1:a 2:a");
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunTimedOut);
    CFRelease(a);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST_BOTH_WAYS(a_one_way_message_outlives_its_sender, "212 H9")
{
    CFMessagePortRef port = port_open(NAME, port_note, &events, MODE);
    pid_t pid = fork();

    if (pid == 0) {
        CFMessagePortRef remote = port_connect(NAME);
        CFDataRef data = port_data("last words");

        _exit(CFMessagePortSendRequest(remote, 5, data, 1, 0, NULL, NULL) == kCFMessagePortSuccess ? 0 : 1);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&events, "5:last words");
    port_drop(port);
}

static void note_activity(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)info;
    trace_add(&events, activity == kCFRunLoopEntry ? "E" : activity == kCFRunLoopExit ? "X" : "?");
}

static void note_perform(void *info)
{
    trace_add(&events, "source");
    (void)info;
}

PORT_TEST_BOTH_WAYS(the_wait_for_a_reply_runs_the_loop, "213 214 216 M13")
{
    struct port_thread server;
    CFRunLoopSourceContext context = {.perform = note_perform};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopSourceRef elsewhere = CFRunLoopSourceCreate(NULL, 1, &context);
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopEntry | kCFRunLoopExit, true, 0, note_activity, NULL);
    CFMessagePortRef remote;
    CFDataRef reply = NULL;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    /* The mode has nothing in it, and does not exist before. */
    EXPECT_EQ(port_ask(remote, 1, NULL, &reply), kCFMessagePortSuccess);
    CFRelease(reply);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), elsewhere, kCFRunLoopDefaultMode);
    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, MODE);
    CFRunLoopSourceSignal(source);
    CFRunLoopSourceSignal(elsewhere);
    EXPECT_EQ(port_ask(remote, 1, NULL, &reply), kCFMessagePortSuccess);
    /* The first run ends with the source, and the wait goes on, unless the reply was there already. */
    EXPECT(strcmp(events.text, "E source X E X") == 0 || strcmp(events.text, "E source X") == 0);
    CFRelease(reply);
    CFRunLoopSourceInvalidate(source);
    CFRunLoopSourceInvalidate(elsewhere);
    CFRunLoopObserverInvalidate(observer);
    CFRelease(source);
    CFRelease(elsewhere);
    CFRelease(observer);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunFinished); /* nothing stays in the mode */
    CFRelease(remote);
    port_thread_stop(&server);
}

static void tick(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    ++*(int *)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static void signal_again(void *info)
{
    CFRunLoopSourceSignal(*(CFRunLoopSourceRef *)info);
}

/* A new receiver that never runs, whose queue has room for all attempts, and how long a wait for its reply is. */
static void expect_timeout(double timeout_s, double most_late_s)
{
    pid_t owner = port_process_start_idle(NAME);
    CFMessagePortRef remote = port_connect(NAME);
    double took = 0;

    for (int attempt = 0; attempt < attempts && (attempt == 0 || took >= timeout_s + most_late_s); attempt++) {
        double own = port_probe_own_time();
        double begun = port_probe_now();

        EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 1, timeout_s, MODE, NULL), kCFMessagePortReceiveTimeout);
        EXPECT(port_probe_now() - begun >= timeout_s);
        took = port_probe_own_time() - own;
    }
    EXPECT(took < timeout_s + most_late_s || test_is_instrumented());
    CFRelease(remote);
    port_process_kill(owner);
}

PORT_TEST_BOTH_WAYS(sources_and_stops_do_not_lengthen_or_end_the_wait, "214 215 233")
{
    CFRunLoopSourceRef busy = NULL;
    CFRunLoopSourceContext context = {.info = &busy, .perform = signal_again};
    CFRunLoopTimerContext timer_context = {0, NULL, NULL, NULL, NULL};
    CFRunLoopTimerRef timer;
    int ticks = 0;

    timer_context.info = &ticks;
    timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0.02, 0, 0, tick, &timer_context);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, MODE);
    expect_timeout(0.04 * test_patience_s(), 0.15);
    EXPECT(ticks >= 2);
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    busy = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), busy, MODE);
    CFRunLoopSourceSignal(busy);
    expect_timeout(0.1, 0.09); /* it is not started anew */
    CFRunLoopSourceInvalidate(busy);
    CFRelease(busy);
}

/* Between calls the channel of a remote is in no mode, as far as a run can tell. */
PORT_TEST_BOTH_WAYS(nothing_is_left_in_the_mode_of_a_reply, "213 25 27")
{
    struct port_thread server;
    CFMessagePortRef remote;
    int descriptors;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    for (int i = 0; i < 2 * reply_page_after; i++) { /* so that the channel has all that it ever gets */
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    }
    descriptors = port_probe_count_descriptors();
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 5, 5, MODE, NULL), kCFMessagePortSuccess);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 5, false), kCFRunLoopRunFinished);
        EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 5, 5, kCFRunLoopDefaultMode, NULL), kCFMessagePortSuccess);
        EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 5, false), kCFRunLoopRunFinished);
        EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 5, 5, kCFRunLoopDefaultMode, NULL), kCFMessagePortSuccess);
    }
    /* The wait set of the second mode, and nothing for each call. */
    EXPECT(port_probe_descriptors_fall_to(descriptors + 1));
    port_thread_stop(&server);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 5, false), kCFRunLoopRunFinished);
    CFRelease(remote);
}

static void *ask_in_two_modes(void *remote)
{
    for (int i = 0; i < 50; i++) {
        EXPECT_EQ(CFMessagePortSendRequest(remote, i, NULL, 5, 5, i % 3 ? MODE : kCFRunLoopDefaultMode, NULL), kCFMessagePortSuccess);
    }
    return NULL;
}

/* A free channel is taken up by whichever thread asks next: by two at once, and by one whose predecessor's loop has ended. */
PORT_TEST_BOTH_WAYS(channels_go_from_thread_to_thread_and_from_mode_to_mode, "209 213")
{
    struct port_thread server;
    CFMessagePortRef remote;
    pthread_t threads[2];

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) {
            EXPECT_EQ(pthread_create(&threads[i], NULL, ask_in_two_modes, remote), 0);
        }
        for (int i = 0; i < 2; i++) {
            EXPECT_EQ(pthread_join(threads[i], NULL), 0);
        }
        (void)ask_in_two_modes(remote);
    }
    port_thread_stop(&server);
    CFRelease(remote);
}

/* Runs the mode of the wait inside the wait, until the reply has come there. */
static void run_inside(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.05, false), kCFRunLoopRunTimedOut);
}

PORT_TEST_BOTH_WAYS(a_reply_that_a_run_inside_the_wait_takes_ends_the_wait, "213 237")
{
    struct port_thread server;
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, 0, 0, 0, 0, run_inside, NULL);
    CFMessagePortRef remote;
    double begun;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, MODE);
    begun = port_probe_now();
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 5, 8, MODE, NULL), kCFMessagePortSuccess);
    EXPECT(port_probe_now() - begun < 4);
    CFRelease(timer);
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST_BOTH_WAYS(common_modes_stand_for_the_default_mode, "217")
{
    struct port_thread server;
    CFMessagePortRef remote;
    CFDataRef reply = NULL;
    clock_t begun;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 1, 1, kCFRunLoopCommonModes, &reply), kCFMessagePortSuccess);
    CFRelease(reply);
    CFRelease(remote);
    port_thread_stop(&server);
    /* And no processor time goes by while nothing comes. */
    pid_t owner = port_process_start_idle(NAME);
    remote = port_connect(NAME);
    begun = clock();
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 1, 0.3, kCFRunLoopCommonModes, NULL), kCFMessagePortReceiveTimeout);
    EXPECT((double)(clock() - begun) / CLOCKS_PER_SEC < 0.1);
    CFRelease(remote);
    port_process_kill(owner);
}

static CFDataRef reply_by_id(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)info;
    EXPECT(data != NULL);
    if (message_id == 0) {
        EXPECT_EQ(CFDataGetLength(data), 0);
        return NULL;
    }
    return CFDataCreate(NULL, (const UInt8 *)&message_id, sizeof message_id);
}

PORT_TEST_BOTH_WAYS(replies_are_new_data_and_never_null, "218 219 220 221 222 240")
{
    static const SInt32 ids[] = {1, -1, INT32_MIN, INT32_MAX, 42};
    struct port_thread server;
    CFMessagePortRef remote;
    CFDataRef reply = NULL;

    port_thread_start(&server, NAME, reply_by_id, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 0, NULL, &reply), kCFMessagePortSuccess);
    REQUIRE(reply != NULL);
    EXPECT_EQ(CFDataGetLength(reply), 0);
    EXPECT_EQ(CFGetRetainCount(reply), 1);
    CFRelease(reply);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        REQUIRE(port_ask(remote, ids[i], NULL, &reply) == kCFMessagePortSuccess);
        EXPECT(memcmp(CFDataGetBytePtr(reply), &ids[i], sizeof ids[i]) == 0);
        CFRelease(reply);
    }
    CFRelease(remote);
    port_thread_stop(&server);
}

static const void *note_retain(const void *info)
{
    trace_add(&events, "retain");
    return info;
}

static void note_release(const void *info)
{
    (void)info;
    trace_add(&events, "release");
}

static CFDataRef counted_reply;

static CFDataRef note_call(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)message_id;
    (void)data;
    (void)info;
    trace_add(&events, "call");
    CFRetain(counted_reply);
    return counted_reply;
}

PORT_TEST_BOTH_WAYS(the_context_is_held_during_each_callback_and_the_reply_released, "223 224")
{
    CFMessagePortContext context = {0, &events, note_retain, note_release, NULL};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, note_call, &context, NULL);
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef reply = NULL;

    counted_reply = port_data("counted");
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT_EQ(port_ask(remote, 1, NULL, &reply), kCFMessagePortSuccess);
    EXPECT_TRACE(&events, "retain retain call release");
    EXPECT(reply != counted_reply && CFEqual(reply, counted_reply));
    CFRelease(reply); /* it may share the bytes of the other */
    EXPECT_EQ(CFGetRetainCount(counted_reply), 1);
    CFRelease(counted_reply);
    CFRelease(source);
    CFRelease(remote);
    port_drop(port);
    EXPECT_TRACE(&events, "retain retain call release release");
}

static CFDataRef end_itself(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    CFMessagePortInvalidate(port);
    return note_call(port, message_id, data, info);
}

PORT_TEST_BOTH_WAYS(a_callback_that_invalidates_its_port_has_lost_the_info_but_not_a_callee, "224")
{
    CFMessagePortContext context = {0, &events, NULL, note_release, NULL};

    counted_reply = port_data("last");
    for (int is_called = 0; is_called < 2; is_called++) {
        CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, end_itself, &context, NULL);
        CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
        CFMessagePortRef remote = port_connect(NAME);

        if (is_called) {
            EXPECT(local_port_set_receiver(port, &context));
        }
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
        (void)port_ask(remote, 1, NULL, NULL);
        EXPECT_TRACE(&events, is_called ? "release call release" : "release call");
        trace_clear(&events);
        CFRelease(source);
        CFRelease(remote);
        CFRelease(port);
    }
    CFRelease(counted_reply);
}

static void *is_called_and_then_invalidates(void *context)
{
    CFMessagePortRef port = context;
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFMessagePortRef remote = port_connect(NAME);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT_EQ(port_tell(remote, 2, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 5, true), kCFRunLoopRunHandledSource);
    CFMessagePortInvalidate(port);
    CFRelease(source);
    CFRelease(remote);
    return NULL;
}

static CFDataRef is_called_elsewhere_meanwhile(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    pthread_t thread;

    (void)data;
    (void)info;
    trace_add(&events, message_id == 1 ? "first" : "second");
    if (message_id == 1) {
        REQUIRE(pthread_create(&thread, NULL, is_called_and_then_invalidates, port) == 0);
        (void)pthread_join(thread, NULL);
        trace_add(&events, "end");
    }
    return NULL;
}

PORT_TEST_BOTH_WAYS(a_port_invalidated_behind_a_callback_keeps_its_info_for_that_on_another_thread, "224 231")
{
    CFMessagePortContext context = {0, &events, NULL, note_release, NULL};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, is_called_elsewhere_meanwhile, &context, NULL);
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFMessagePortRef remote = port_connect(NAME);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 5, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&events, "first second end release");
    CFRelease(source);
    CFRelease(remote);
    CFRelease(port);
}

/* ---- callees ---- */

static void note_object(const void *object)
{
    trace_addf(&events, "-%s", (const char *)object);
}

/* Each message names the next callee, and what is sent before the callback goes on. */
static CFDataRef call_next(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *object)
{
    static const char *const names[] = {"a", "b", "c", "d"};

    (void)data;
    trace_addf(&events, "%s", (const char *)object);
    if (message_id > 0) {
        EXPECT(local_port_set_receiver(port, (void *)(uintptr_t)names[message_id]));
        (void)CFRunLoopRunInMode(MODE, 0, true); /* the next message */
    }
    trace_addf(&events, "/%s", (const char *)object);
    return NULL;
}

PORT_TEST_BOTH_WAYS(a_callee_is_released_when_another_is_called_and_its_own_last_callback_has_ended, "")
{
    CFMessagePortContext context = {0, "info", NULL, note_object, NULL};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, call_next, &context, NULL);
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFMessagePortRef remote = port_connect(NAME);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT(local_port_set_receiver(port, "a"));
    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_tell(remote, 2, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_tell(remote, 0, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&events, "a b c /c /b -b /a -a");
    trace_clear(&events);
    EXPECT(local_port_set_receiver(port, "d")); /* no callback has the one before */
    EXPECT_TRACE(&events, "-c");
    EXPECT_EQ(port_tell(remote, 0, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, true), kCFRunLoopRunHandledSource);
    CFMessagePortInvalidate(port);
    EXPECT(local_port_set_receiver(port, "late"));
    EXPECT_TRACE(&events, "-c d /d -info -d -late");
    CFRelease(source);
    CFRelease(remote);
    CFRelease(port);
}

/* ---- the queue ---- */

static void expect_full_after(CFMessagePortRef remote, int count)
{
    for (int i = 0; i < count; i++) {
        EXPECT_EQ(CFMessagePortSendRequest(remote, i, NULL, 0, 0, NULL, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(CFMessagePortSendRequest(remote, count, NULL, 0, 0, NULL, NULL), kCFMessagePortSendTimeout);
}

PORT_TEST_BOTH_WAYS(the_sixth_message_to_a_receiver_that_does_not_run_times_out, "225 226 227 M7")
{
    pid_t owner = port_process_start_idle(NAME);
    CFMessagePortRef remote = port_connect(NAME);
    static const double limits[] = {-1, 0, 1e-9, 0.05, 0.2};
    double begun;

    expect_full_after(remote, 5);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        double wanted = limits[i] < 0.001 ? 0 : limits[i];
        double took = 0;

        for (int attempt = 0; attempt < attempts && (attempt == 0 || took > wanted + 0.02); attempt++) {
            double own = port_probe_own_time();

            begun = port_probe_now();
            EXPECT_EQ(CFMessagePortSendRequest(remote, 9, NULL, limits[i], 0, NULL, NULL), kCFMessagePortSendTimeout);
            EXPECT(port_probe_now() - begun >= wanted);
            took = port_probe_own_time() - own;
        }
        EXPECT(took < wanted + 0.02 || test_is_instrumented());
    }
    EXPECT_EQ(CFMessagePortSendRequest(remote, 9, NULL, 0, 1, MODE, NULL), kCFMessagePortSendTimeout);
    EXPECT(CFMessagePortIsValid(remote));
    CFRelease(remote);
    port_process_kill(owner);
}

/* One message after the other, of many sizes about where a packet ends and memory begins, until the queue is full. */
static void expect_large_full_after(int limit)
{
    static const CFIndex sizes[] = {4097, 16000, 20000, 33000, 45000, 52000, 60000, 65000, 65536, 65537, 100000};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_silence, NULL, NULL);
        CFDataRef data = port_pattern(sizes[i], 1);
        CFMessagePortRef remote;

        CRLMessagePortSetQueueLimit(port, limit);
        remote = port_connect(NAME);
        for (int sent = 0; sent < limit; sent++) {
            EXPECT_EQ(CFMessagePortSendRequest(remote, sent, data, 0, 0, NULL, NULL), kCFMessagePortSuccess);
        }
        EXPECT_EQ(CFMessagePortSendRequest(remote, limit, data, 0, 0, NULL, NULL), kCFMessagePortSendTimeout);
        CFRelease(data);
        CFRelease(remote);
        port_drop(port);
    }
}

PORT_TEST(a_queue_holds_as_many_large_messages_as_small_ones, "226")
{
    expect_large_full_after(5);
    expect_large_full_after(8);
    kernel_ports.send_room = room_as_it_is; /* on a host that allows no more */
    expect_large_full_after(5);
    expect_large_full_after(8);
}

/* As where the host's limits leave a socket less than a packet may have. */
static int little_room(int socket, int wanted)
{
    int room = 16384;

    (void)wanted;
    REQUIRE(setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
    return kernel_ports_linux.send_room(socket, 0);
}

PORT_TEST(a_packet_is_no_larger_than_the_socket_takes, "226 239")
{
    kernel_ports.send_room = little_room;
    expect_large_full_after(1);
    expect_large_full_after(2);
    expect_large_full_after(5);
}

/* What the kernel counts of a socket's room for one packet; -1 where it does not say. */
static int64_t charge_of(const int ends[2], size_t size)
{
    static uint8_t bytes[wire_frame_max];
    uint32_t counts[16] = {0};
    socklen_t length = sizeof counts;

    REQUIRE(send(ends[0], bytes, size, 0) == (ssize_t)size);
    if (getsockopt(ends[0], SOL_SOCKET, SO_MEMINFO, counts, &length) < 0) {
        return -1;
    }
    REQUIRE(recv(ends[1], bytes, sizeof bytes, 0) == (ssize_t)size);
    return counts[SK_MEMINFO_WMEM_ALLOC];
}

TEST(the_kernel_counts_no_more_for_a_packet_than_is_expected, "226")
{
    const uint64_t page = kernel_ports.page_size();
    int room = 1 << 20;
    int ends[2];

    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    REQUIRE(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
    if (charge_of(ends, 1) < 0) {
        SKIP("the kernel does not say what it counts");
    }
    for (size_t size = 1; size <= wire_frame_max; size += 7) {
        EXPECT(charge_of(ends, size) <= (int64_t)packet_charge_max(size, page));
    }
    close(ends[0]);
    close(ends[1]);
}

TEST(a_packet_counts_no_more_than_what_its_size_was_chosen_for, "226")
{
    static const uint64_t pages[] = {4096, 16384, 65536};

    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        for (uint64_t charge = 0; charge < 300000; charge += 111) {
            uint64_t size = packet_size_within(charge, pages[i]);

            EXPECT(size == 0 || packet_charge_max(size, pages[i]) <= charge);
            EXPECT(packet_charge_max(size + 1, pages[i]) > charge);
        }
    }
}

static size_t large_page(void)
{
    return 65536;
}

/* On pages of 64 KiB, of which a packet never takes four. */
static uint64_t charge_on_large_pages(uint64_t size)
{
    uint64_t block = 512;

    while (block < size + 320) {
        block *= 2;
    }
    return block + 256;
}

PORT_TEST(a_queue_of_the_largest_packets_fits_a_socket_on_larger_pages, "226")
{
    static const CFIndex limits[] = {2, 5, 8, 11};

    kernel_ports.send_room = room_as_it_is;
    kernel_ports.page_size = large_page;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_silence, NULL, NULL);
        CFMessagePortRef remote;
        uint64_t size;

        CRLMessagePortSetQueueLimit(port, limits[i]);
        remote = port_connect(NAME);
        size = remote_port_packet_data_max(remote, wire_inline_max) + wire_header_size + wire_name_max;
        EXPECT((uint64_t)(limits[i] - 1) * charge_on_large_pages(size) < remote->side.remote.send_room);
        CFRelease(remote);
        port_drop(port);
    }
}

PORT_TEST_BOTH_WAYS(room_in_the_queue_comes_back_as_messages_are_taken, "226 M9")
{
    CFMessagePortRef port = port_open(NAME, port_silence, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);

    expect_full_after(remote, 5);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource); /* the third asked to be confirmed */
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(port_tell(remote, i, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(CFMessagePortSendRequest(remote, 9, NULL, 0, 0, NULL, NULL), kCFMessagePortSendTimeout);
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    }
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunTimedOut);
    CFRelease(remote);
    port_drop(port);
}

static void raise_limit(CFMessagePortRef port)
{
    CRLMessagePortSetQueueLimit(port, 8);
}

PORT_TEST_BOTH_WAYS(the_queue_limit_can_be_set, "226")
{
    CFMessagePortRef port = port_open(NAME, port_silence, NULL, MODE);
    CFMessagePortRef remote;

    raise_limit(port);
    remote = port_connect(NAME);
    expect_full_after(remote, 8);
    CFRelease(remote);
    CFMessagePortInvalidate(port);
    CFRelease(port);
    port = port_open(NAME, port_silence, NULL, MODE);
    CRLMessagePortSetQueueLimit(port, 0); /* becomes 1 */
    remote = port_connect(NAME);
    expect_full_after(remote, 1);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(CFMessagePortSendRequest(remote, 0, NULL, 0, 0, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST_BOTH_WAYS(a_blocked_sender_goes_on_when_there_is_room, "225 226 M7")
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_silence, NULL, NULL);
    CFMessagePortRef remote = port_connect(NAME);
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    struct port_thread server;

    expect_full_after(remote, 5);
    port_thread_start(&server, CFSTR("another"), port_silence, NULL);
    CFRunLoopAddSource(server.loop, source, kCFRunLoopDefaultMode);
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, NAN, 0, NULL, NULL), kCFMessagePortSuccess);
    for (int i = 0; i < 20; i++) {
        EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, INFINITY, 0, NULL, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 864000, NAN, MODE, NULL), kCFMessagePortSuccess);
    CFRelease(source);
    CFRelease(remote);
    CFMessagePortInvalidate(port);
    CFRelease(port);
    port_thread_stop(&server);
}

/* ---- the wait ---- */

PORT_TEST_BOTH_WAYS(receive_timeouts_are_kept, "228 229 M8")
{
    pid_t owner = port_process_start_idle(NAME);
    CFMessagePortRef remote = port_connect(NAME);
    static const double limits[] = {-1, 0, 1e-9, 0.05, 0.2};

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        double wanted = limits[i] < 0 ? 0 : limits[i];
        double took = 0;

        for (int attempt = 0; attempt < attempts && (attempt == 0 || took > wanted + 0.02); attempt++) {
            double begun = port_probe_now();
            double starved = port_probe_starved_s();

            EXPECT_EQ(CFMessagePortSendRequest(remote, 9, NULL, 0, limits[i], MODE, NULL), kCFMessagePortReceiveTimeout);
            took = port_probe_now() - begun;
            EXPECT(took >= wanted);
            took -= port_probe_starved_s() - starved;
        }
        EXPECT(took < wanted + 0.02 || test_is_instrumented());
        CFRelease(remote); /* the queue holds five: a fresh receiver */
        port_process_kill(owner);
        owner = port_process_start_idle(NAME);
        remote = port_connect(NAME);
    }
    CFRelease(remote);
    port_process_kill(owner);
}

PORT_TEST_BOTH_WAYS(a_poll_finds_a_reply_that_is_there, "228")
{
    struct trace seen = {0};
    CFMessagePortRef port = port_open(NAME, port_note, &seen, MODE);
    CFMessagePortRef remote = port_connect(NAME);

    /* The one pass handles the request; the reply is there by then. */
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 0, 0, MODE, NULL), kCFMessagePortSuccess);
    EXPECT_TRACE(&seen, "1:");
    CFRelease(remote);
    port_drop(port);
}

static CFDataRef echo_late(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    if (message_id == 1) {
        (void)pthread_barrier_wait(info);
        (void)pthread_barrier_wait(info);
    }
    return CFRetain(data);
}

PORT_TEST_BOTH_WAYS(a_late_reply_is_thrown_away, "230 233 M10")
{
    struct port_thread server;
    pthread_barrier_t barrier;
    CFMessagePortRef remote;
    CFDataRef late = port_data("late");
    CFDataRef good = port_data("good");
    CFDataRef reply = NULL;

    pthread_barrier_init(&barrier, NULL, 2);
    port_thread_start(&server, NAME, echo_late, &barrier);
    remote = port_connect(NAME);
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, late, 1, 0.02, MODE, &reply), kCFMessagePortReceiveTimeout);
    EXPECT_EQ(reply, NULL);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 2; i < 100; i++) {
        EXPECT_EQ(port_ask(remote, i, good, &reply), kCFMessagePortSuccess);
        EXPECT(port_data_is(reply, "good"));
        CFRelease(reply);
    }
    CFRelease(late);
    CFRelease(good);
    CFRelease(remote);
    port_thread_stop(&server);
    pthread_barrier_destroy(&barrier);
}

/* A request by the arena, whose sender gives up before a new channel of another's makes the receiver look for dead ones. */
PORT_TEST(a_large_request_stays_queued_when_its_sender_gives_up, "230 233 M10")
{
    CFMessagePortRef port = port_open(NAME, port_note, &events, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    CFMutableDataRef large = CFDataCreateMutable(NULL, 0);
    pid_t pid;

    CFDataSetLength(large, 70000); /* zeros: the trace shows the id alone */
    EXPECT_EQ(port_ask(remote, 1, large, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_ask(remote, 2, large, NULL), kCFMessagePortSuccess);
    pid = fork();
    if (pid == 0) {
        CFMessagePortRef other = port_connect(NAME);

        _exit(CFMessagePortSendRequest(other, 3, NULL, 1, 0, MODE, NULL) == kCFMessagePortReceiveTimeout ? 0 : 1);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(CFMessagePortSendRequest(remote, 4, large, 1, 0, CFSTR("another mode"), NULL), kCFMessagePortReceiveTimeout);
    while (CFRunLoopRunInMode(MODE, 0, true) == kCFRunLoopRunHandledSource) {
    }
    EXPECT_TRACE(&events, "1: 2: 3: 4:");
    EXPECT_EQ(port_ask(remote, 5, large, NULL), kCFMessagePortSuccess);
    CFRelease(large);
    CFRelease(remote);
    port_drop(port);
}

static CFDataRef die(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)info;
    if (message_id == 666) {
        (void)raise(SIGKILL);
    }
    return CFRetain(data);
}

PORT_TEST_BOTH_WAYS(the_death_of_the_receiver_ends_the_wait_at_once, "232 M1")
{
    for (int round = 0; round < 3; round++) {
        pid_t owner = port_process_start(NAME, die, NULL, NULL);
        CFMessagePortRef remote = port_connect(NAME);
        double begun;

        for (int i = 0; i < round; i++) { /* with and without a channel that the receiver keeps */
            EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
        }
        begun = port_probe_now();
        EXPECT_EQ(port_ask(remote, 666, NULL, NULL), kCFMessagePortBecameInvalidError);
        EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
        EXPECT(!CFMessagePortIsValid(remote));
        CFRelease(remote);
        waitpid(owner, NULL, 0);
    }
}

static void *kill_soon(void *info)
{
    usleep(20000); /* so that the request is in the queue */
    (void)kill(*(pid_t *)info, SIGKILL);
    return NULL;
}

/* What is said of a request to a receiver that is killed meanwhile. One that is late, on a busy machine, has not been sent: then again. */
static SInt32 send_to_one_who_is_killed(bool is_full)
{
    SInt32 result = kCFMessagePortIsInvalid;

    for (int tries = 0; tries < 20 && result == kCFMessagePortIsInvalid; tries++) {
        pid_t owner = port_process_start_idle(NAME);
        CFMessagePortRef remote = port_connect(NAME);
        pthread_t killer;
        double begun;

        if (is_full) {
            expect_full_after(remote, 5);
        }
        pthread_create(&killer, NULL, kill_soon, &owner);
        begun = port_probe_now();
        result = is_full ? port_tell(remote, 1, NULL) : port_ask(remote, 1, NULL, NULL);
        EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
        pthread_join(killer, NULL);
        waitpid(owner, NULL, 0);
        CFRelease(remote);
    }
    return result;
}

PORT_TEST_BOTH_WAYS(the_death_of_a_receiver_that_never_ran_ends_the_wait, "232 243 M1 H13")
{
    EXPECT_EQ(send_to_one_who_is_killed(false), kCFMessagePortBecameInvalidError);
    EXPECT_EQ(send_to_one_who_is_killed(true), kCFMessagePortBecameInvalidError);
}

PORT_TEST_BOTH_WAYS(messages_arrive_in_order_whatever_their_size, "234 240 M15")
{
    static const CFIndex sizes[] = {0, 1, 100000, 10, 70000, 65536, 3, 65537, 5, 300000};
    enum { count = sizeof sizes / sizeof sizes[0] };
    struct trace seen = {0};
    struct port_thread server;
    CFMessagePortRef remote;
    char expected[200] = "";

    port_thread_start(&server, NAME, port_note, &seen);
    remote = port_connect(NAME);
    for (int i = 0; i < count; i++) {
        CFMutableDataRef data = CFDataCreateMutable(NULL, 0);

        CFDataSetLength(data, sizes[i]); /* zeros: the trace shows the id alone */
        EXPECT_EQ(port_tell(remote, i, data), kCFMessagePortSuccess);
        CFRelease(data);
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%d: ", i);
    }
    EXPECT_EQ(port_ask(remote, count, NULL, NULL), kCFMessagePortSuccess);
    snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%d:", count);
    EXPECT_TRACE(&seen, expected);
    CFRelease(remote);
    port_thread_stop(&server);
}

enum { asking_threads = 4 };

struct asker {
    CFMessagePortRef remote;
    unsigned number;
    int rounds;
};

static void *ask_much(void *info)
{
    const struct asker *asker = info;

    for (int i = 0; i < asker->rounds; i++) {
        CFIndex length = (CFIndex)((unsigned)i * 37 % 3000);
        CFDataRef data = port_pattern(length, asker->number);
        CFDataRef reply = NULL;
        SInt32 result = port_ask(asker->remote, (SInt32)asker->number, data, &reply);

        EXPECT_EQ(result, kCFMessagePortSuccess);
        EXPECT(port_is_pattern(reply, length, asker->number));
        CFRelease(data);
        if (result != kCFMessagePortSuccess) {
            break;
        }
        CFRelease(reply);
    }
    return NULL;
}

PORT_TEST_BOTH_WAYS(stress_threads_on_one_remote_get_their_own_replies, "235 M12 M21")
{
    struct port_thread server;
    struct asker askers[asking_threads];
    pthread_t threads[asking_threads];
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    for (unsigned i = 0; i < asking_threads; i++) {
        askers[i] = (struct asker){remote, i + 1, test_is_soak() ? 250000 : 2500};
        pthread_create(&threads[i], NULL, ask_much, &askers[i]);
    }
    for (int i = 0; i < asking_threads; i++) {
        pthread_join(threads[i], NULL);
    }
    CFRelease(remote);
    port_thread_stop(&server);
}

/* ---- re-entrancy ---- */

PORT_TEST_BOTH_WAYS(a_thread_can_ask_its_own_port, "236 H24")
{
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef data = port_data("me");
    CFDataRef reply = NULL;

    EXPECT_EQ(port_ask(remote, 1, data, &reply), kCFMessagePortSuccess);
    EXPECT(port_data_is(reply, "me"));
    CFRelease(reply);
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, data, 1, 0.05, CFSTR("without it"), NULL), kCFMessagePortReceiveTimeout);
    CFRelease(data);
    CFRelease(remote);
    port_drop(port);
}

static CFDataRef descend(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    CFDataRef reply = NULL;
    SInt32 here = message_id;

    (void)port;
    (void)data;
    if (message_id > 0) {
        CFMessagePortRef other = ((CFMessagePortRef *)info)[message_id % 2];

        EXPECT_EQ(port_ask(other, message_id - 1, NULL, &reply), kCFMessagePortSuccess);
        if (reply) {
            EXPECT(memcmp(CFDataGetBytePtr(reply), &(SInt32){message_id - 1}, sizeof(SInt32)) == 0);
            CFRelease(reply);
        }
    }
    return CFDataCreate(NULL, (const UInt8 *)&here, sizeof here);
}

PORT_TEST_BOTH_WAYS(requests_nest_64_deep, "236 237 H25 M14")
{
    CFMessagePortRef remotes[2];
    CFMessagePortRef a = port_open(CFSTR("A"), descend, remotes, MODE);
    CFMessagePortRef b = port_open(CFSTR("B"), descend, remotes, MODE);
    CFDataRef reply = NULL;

    remotes[0] = port_connect(CFSTR("A"));
    remotes[1] = port_connect(CFSTR("B"));
    EXPECT_EQ(port_ask(remotes[0], 64, NULL, &reply), kCFMessagePortSuccess);
    CFRelease(reply);
    CFRelease(remotes[0]);
    CFRelease(remotes[1]);
    port_drop(a);
    port_drop(b);
}

static CFMessagePortRef back_to_main;

static CFDataRef ask_back(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    CFDataRef reply = NULL;

    (void)port;
    (void)info;
    EXPECT_EQ(port_ask(back_to_main, message_id, data, &reply), kCFMessagePortSuccess);
    return reply;
}

PORT_TEST_BOTH_WAYS(the_receiver_can_ask_the_asker, "237")
{
    CFMessagePortRef own = port_open(CFSTR("own"), port_echo, NULL, MODE);
    struct port_thread server;
    CFMessagePortRef remote;
    CFDataRef data = port_data("there and back");
    CFDataRef reply = NULL;

    back_to_main = port_connect(CFSTR("own"));
    port_thread_start(&server, NAME, ask_back, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, data, &reply), kCFMessagePortSuccess);
    EXPECT(port_data_is(reply, "there and back"));
    CFRelease(reply);
    CFRelease(data);
    CFRelease(remote);
    CFRelease(back_to_main);
    port_thread_stop(&server);
    port_drop(own);
}

static CFMessagePortRef victim;

static void invalidate_victim(void *info)
{
    (void)info;
    CFMessagePortInvalidate(victim);
    CFRelease(victim);
}

PORT_TEST_BOTH_WAYS(a_remote_may_be_invalidated_and_released_inside_the_wait, "238 M20")
{
    pid_t owner = port_process_start_idle(NAME);
    double begun = port_probe_now();

    victim = port_connect(NAME);
    CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), MODE, invalidate_victim, NULL, NULL);
    EXPECT_EQ(port_ask(victim, 1, NULL, NULL), kCFMessagePortBecameInvalidError);
    EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
    port_process_kill(owner);
}

static sem_t request_is_sent;

static ssize_t send_and_say_so(int socket, const void *bytes, size_t size)
{
    ssize_t result = kernel_ports_linux.send(socket, bytes, size);

    (void)sem_post(&request_is_sent);
    return result;
}

static ssize_t send_message_and_say_so(int socket, const struct msghdr *message)
{
    ssize_t result = kernel_ports_linux.send_message(socket, message);

    (void)sem_post(&request_is_sent);
    return result;
}

/* An earlier end of the port would refuse the request instead of ending its wait. */
static void *invalidate_once_sent(void *info)
{
    while (sem_wait(&request_is_sent) != 0) {
        continue; /* a signal */
    }
    CFMessagePortInvalidate((CFMessagePortRef)info);
    return NULL;
}

PORT_TEST_BOTH_WAYS(a_remote_invalidated_by_another_thread_ends_the_wait, "232 238")
{
    pid_t owner = port_process_start_idle(NAME);
    CFMessagePortRef remote = port_connect(NAME);
    double begun = port_probe_now();
    pthread_t thread;

    (void)sem_init(&request_is_sent, 0, 0);
    kernel_ports.send = send_and_say_so;
    kernel_ports.send_message = send_message_and_say_so;
    pthread_create(&thread, NULL, invalidate_once_sent, remote);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortBecameInvalidError);
    EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
    pthread_join(thread, NULL);
    CFRelease(remote);
    port_process_kill(owner);
}

static CFDataRef invalidate_itself(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    CFMessagePortInvalidate(message_id == 1 ? port : (CFMessagePortRef)info);
    return CFRetain(data);
}

PORT_TEST_BOTH_WAYS(a_callback_may_invalidate_its_own_port, "232 203 H26")
{
    CFMessagePortRef port = port_open(NAME, invalidate_itself, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    SInt32 result = port_ask(remote, 1, NULL, NULL);

    EXPECT(result == kCFMessagePortBecameInvalidError || result == kCFMessagePortSuccess);
    EXPECT(!CFMessagePortIsValid(port));
    EXPECT(!CFMessagePortIsValid(remote));
    CFRelease(remote);
    CFRelease(port);
    /* And the port through which it is being asked. */
    victim = port_open(NAME, port_silence, NULL, MODE);
    port = port_open(CFSTR("other"), invalidate_itself, victim, MODE);
    remote = port_connect(CFSTR("other"));
    EXPECT_EQ(port_ask(remote, 2, NULL, NULL), kCFMessagePortSuccess);
    EXPECT(!CFMessagePortIsValid(victim));
    CFRelease(victim);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST_BOTH_WAYS(invalidating_a_port_drops_its_messages, "243")
{
    CFMessagePortRef port = port_open(NAME, port_note, &events, MODE);
    CFMessagePortRef remote = port_connect(NAME);

    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    CFMessagePortInvalidate(port);
    (void)CFRunLoopRunInMode(MODE, 0, true);
    EXPECT_TRACE(&events, "");
    EXPECT_EQ(port_tell(remote, 2, NULL), kCFMessagePortIsInvalid);
    CFRelease(remote);
    CFRelease(port);
}

PORT_TEST_BOTH_WAYS(sending_to_a_local_port_is_refused, "242 211")
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL);

    EXPECT_EQ(port_ask(port, 1, NULL, NULL), kCFMessagePortIsInvalid);
    port_drop(port);
}

static void invalidate_at_exit(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    CFMessagePortInvalidate((CFMessagePortRef)info);
}

static void expect_reply_wins(bool of_remote)
{
    CFRunLoopObserverContext context = {0, NULL, NULL, NULL, NULL};
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    CFRunLoopObserverRef observer;
    CFDataRef data = port_data("in time");
    CFDataRef reply = NULL;

    /* The first run ends after the callout: the reply is there, and then one side goes. */
    context.info = of_remote ? remote : port;
    observer = CFRunLoopObserverCreate(NULL, kCFRunLoopExit, true, 0, invalidate_at_exit, &context);
    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, MODE);
    EXPECT_EQ(port_ask(remote, 1, data, &reply), kCFMessagePortSuccess);
    EXPECT(port_data_is(reply, "in time"));
    EXPECT(!CFMessagePortIsValid(remote));
    CFRunLoopObserverInvalidate(observer);
    CFRelease(observer);
    CFRelease(reply);
    CFRelease(data);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST_BOTH_WAYS(a_reply_that_is_there_wins_over_the_end_of_the_port, "231")
{
    expect_reply_wins(false);
    expect_reply_wins(true);
}

extern void *dispatch_get_global_queue(intptr_t priority, uintptr_t flags) __attribute__((weak));
void set_queue(CFMessagePortRef port, void *queue) __asm__("crl_CFMessagePortSetDispatchQueue");

PORT_TEST_BOTH_WAYS(a_dispatch_queue_drives_a_port_where_there_is_one, "244 201")
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL);
    CFMessagePortRef remote = port_connect(NAME);
    CFRunLoopSourceRef source;

    set_queue(remote, port); /* ignored, with a channel */
    set_queue(remote, NULL);
    if (!dispatch_get_global_queue) {
        set_queue(port, port); /* ignored, with a channel */
        source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
        EXPECT(source != NULL);
        CFRelease(source);
    } else {
        test_allow_left(64, 64); /* libdispatch's own, and what it has not yet cancelled */
        set_queue(port, dispatch_get_global_queue(0, 0));
        EXPECT_EQ(CFMessagePortCreateRunLoopSource(NULL, port, 0), NULL);
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
        set_queue(port, NULL);
        source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
        EXPECT(source != NULL);
        set_queue(port, dispatch_get_global_queue(0, 0)); /* it has a source now: ignored */
        EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 1, 0.05, MODE, NULL), kCFMessagePortReceiveTimeout);
        CFRelease(source);
    }
    CFRelease(remote);
    port_drop(port);
}

/* ---- sizes ---- */

PORT_TEST_BOTH_WAYS(payloads_of_every_size_arrive_whole, "239 240 M15")
{
    static const CFIndex sizes[] = {0, 1, 63, 1024, 1025, 4096, 4097, 65535, 65536, 65537, 212960, 1 << 20, 5 << 20, 100, 16 << 20, 7};
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            CFDataRef data = port_pattern(sizes[i], (unsigned)i);
            CFDataRef reply = NULL;

            EXPECT_EQ(port_ask(remote, 1, data, &reply), kCFMessagePortSuccess);
            EXPECT(port_is_pattern(reply, sizes[i], (unsigned)i));
            CFRelease(data);
            if (reply) {
                CFRelease(reply);
            }
        }
    }
    CFRelease(remote);
    port_thread_stop(&server);
}

static CFDataRef reply_large(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)data;
    (void)info;
    return port_pattern(message_id, 3);
}

PORT_TEST_BOTH_WAYS(replies_may_be_larger_than_requests, "239 M15")
{
    static const SInt32 sizes[] = {70000, 300000, 3 << 20, 100, 70000, 20 << 20, 65536};
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, reply_large, NULL);
    remote = port_connect(NAME);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CFDataRef reply = NULL;

        EXPECT_EQ(port_ask(remote, sizes[i], NULL, &reply), kCFMessagePortSuccess);
        EXPECT(port_is_pattern(reply, sizes[i], 3));
        if (reply) {
            CFRelease(reply);
        }
    }
    CFRelease(remote);
    port_thread_stop(&server);
}

static atomic_int memory_files;

static int count_memory(uint64_t size, bool reserve)
{
    atomic_fetch_add(&memory_files, 1);
    return kernel_ports_linux.memory_create(size, reserve);
}

/* Asks for a reply of that many bytes by a request without data. Returns how many files of memory both ends have made for it. */
static int ask_for_large(CFMessagePortRef remote, SInt32 size)
{
    CFDataRef reply = NULL;

    atomic_store(&memory_files, 0);
    /* A busy or emulated machine takes long for the largest. */
    EXPECT_EQ(CFMessagePortSendRequest(remote, size, NULL, 60, 60, MODE, &reply), kCFMessagePortSuccess);
    EXPECT(port_is_pattern(reply, size, 3));
    if (reply) {
        CFRelease(reply);
    }
    return atomic_load(&memory_files);
}

PORT_TEST(large_replies_to_requests_without_data_share_one_arena, "239 M15")
{
    enum { beyond_arenas = 65 << 20 };
    struct port_thread server;
    CFMessagePortRef remote;

    kernel_ports.memory_create = count_memory;
    port_thread_start(&server, NAME, reply_large, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(ask_for_large(remote, 100000), 1); /* the reply's own */
    EXPECT_EQ(ask_for_large(remote, 100000), 1); /* the arena */
    EXPECT_EQ(ask_for_large(remote, 100000), 0);
    EXPECT_EQ(ask_for_large(remote, beyond_arenas), 1); /* the reply's own: no arena is so large */
    EXPECT_EQ(ask_for_large(remote, 100000), 0); /* and none is made in vain */
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST_BOTH_WAYS(what_is_too_large_is_not_sent, "239 M15")
{
    CFMessagePortRef port = port_open(NAME, port_note, &events, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    /* Bytes that are never touched, in address space only. */
    UInt8 byte = 0;
    CFDataRef data = CFDataCreateWithBytesNoCopy(NULL, &byte, 0x60000001, kCFAllocatorNull);

    EXPECT_EQ(port_ask(remote, 1, data, NULL), kCFMessagePortTransportError);
    EXPECT_EQ(port_tell(remote, 1, data), kCFMessagePortTransportError);
    EXPECT(CFMessagePortIsValid(remote));
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_TRACE(&events, "1:");
    CFRelease(data);
    CFRelease(remote);
    port_drop(port);
}

static CFDataRef reply_huge(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    static UInt8 byte;

    (void)port;
    (void)message_id;
    (void)data;
    (void)info;
    return CFDataCreateWithBytesNoCopy(NULL, &byte, 0x60000001, kCFAllocatorNull);
}

PORT_TEST_BOTH_WAYS(a_reply_that_is_too_large_becomes_empty, "239 H22")
{
    struct port_thread server;
    CFMessagePortRef remote;
    CFDataRef reply = NULL;

    port_thread_start(&server, NAME, reply_huge, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, NULL, &reply), kCFMessagePortSuccess);
    EXPECT_EQ(CFDataGetLength(reply), 0);
    CFRelease(reply);
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST_BOTH_WAYS(what_is_beyond_the_budget_fails_at_once, "239")
{
    struct port_thread server;
    CFDataRef large = port_pattern(200000, 1);
    CFDataRef small = port_pattern(2000, 1);
    CFMessagePortRef remote, early;
    double begun;

    port_thread_start(&server, NAME, port_echo, NULL);
    early = port_connect(NAME); /* has read the old budget, so that the receiver has to refuse */
    CRLMessagePortSetMemoryBudget(server.port, 100000);
    begun = port_probe_now();
    EXPECT_EQ(port_ask(early, 1, large, NULL), kCFMessagePortTransportError);
    EXPECT_EQ(port_ask(early, 1, small, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_ask(early, 1, large, NULL), kCFMessagePortTransportError);
    CFMessagePortInvalidate(early);
    CFRelease(early);
    remote = port_connect(NAME);
    EXPECT_EQ(port_tell(remote, 1, large), kCFMessagePortTransportError);
    EXPECT_EQ(port_ask(remote, 1, small, NULL), kCFMessagePortSuccess);
    EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
    CFRelease(large);
    CFRelease(small);
    CFRelease(remote);
    port_thread_stop(&server);
}
