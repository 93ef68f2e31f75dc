/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several threads that move, open, close and release one stream at once: rules 320, 338 and 341. The library's own invariants do most of
 * the judging. Where the process has no libdispatch, streams stay in loops.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/loop_probe.h"
#include "Stream/Core/stream_schedule.h"
#include "Stream/stream_recorder.h"

extern void *dispatch_queue_create(const char *label, void *attributes) __attribute__((weak));
extern void dispatch_release(void *object) __attribute__((weak));
void put_reader_on(CFReadStreamRef stream, void *queue) __asm__("crl_CFReadStreamSetDispatchQueue");

static CFReadStreamRef stream_of_socket(int ret_ends[2])
{
    CFReadStreamRef stream;

    socket_pair_open(ret_ends);
    CFStreamCreatePairWithSocket(NULL, ret_ends[0], &stream, NULL);
    REQUIRE(stream);
    return stream;
}

/* ---- what another thread does while a loop is left ---- */

/* A stream that a thread takes out of its loop, and what comes in between, on another thread. */
static struct {
    CFReadStreamRef stream;
    int ends[2];
    void (*between)(void *context);
    bool was_open; /* the descriptor, after that */
    bool is_over;
} leaving;

static int run_between(int set, int descriptor)
{
    if (descriptor == leaving.ends[0] && !leaving.is_over) {
        leaving.is_over = true;
        probe_on_thread(leaving.between, NULL);
        leaving.was_open = descriptor_is_open(descriptor);
    }
    return kernel_linux.set_remove(set, descriptor);
}

/* Opens a stream that this thread's loop watches. */
static void begin_leaving(struct stream_recorder *recorder, void (*between)(void *context))
{
    leaving.stream = stream_of_socket(leaving.ends);
    leaving.between = between;
    recorder_add_reader(recorder, leaving.stream);
    EXPECT(CFReadStreamOpen(leaving.stream));
    run_what_is_ready();
    EXPECT_TRACE(&recorder->trace, "open");
    kernel.set_remove = run_between;
}

static struct probe_thread reading_thread;
static _Atomic int receipts;

static int count_receipt(int descriptor, void *bytes, size_t size, struct kernel_address *ret_peer)
{
    int result = kernel_linux.socket_receive(descriptor, bytes, size, ret_peer);

    receipts++;
    return result;
}

static void read_a_byte(void *context)
{
    UInt8 byte;

    (void)context;
    EXPECT_EQ(CFReadStreamRead(leaving.stream, &byte, 1), 1);
}

static void end_reading(void *context)
{
    (void)context;
    EXPECT_EQ(write(leaving.ends[1], "x", 1), 1);
    probe_thread_join(&reading_thread);
}

TEST(a_read_that_ends_during_a_close_leaves_the_descriptor_to_the_loop, "320")
{
    struct stream_recorder recorder = {0};

    begin_leaving(&recorder, end_reading);
    EXPECT(CFReadStreamSetProperty(leaving.stream, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue));
    kernel.socket_receive = count_receipt;
    probe_thread_start(&reading_thread, read_a_byte, NULL);
    probe_await_count(&receipts, 1); /* it has told the loop that it reads, and takes no lock of a loop any more */
    CFReadStreamClose(leaving.stream);
    kernel.socket_receive = kernel_linux.socket_receive;
    kernel.set_remove = kernel_linux.set_remove;
    EXPECT(leaving.is_over && leaving.was_open);
    EXPECT(!descriptor_is_open(leaving.ends[0]));
    CFRelease(leaving.stream);
    close(leaving.ends[1]);
}

/* A test that needs a queue begins with this. */
static void *make_queue(void)
{
    if (!dispatch_queue_create || !dispatch_release) {
        SKIP("there is no libdispatch in the process");
    }
    test_allow_left(64, 64); /* libdispatch's own, and the loops of its threads */
    return dispatch_queue_create("streams", NULL);
}

static void schedule_and_unschedule(void *context)
{
    (void)context;
    CFReadStreamScheduleWithRunLoop(leaving.stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    CFReadStreamUnscheduleFromRunLoop(leaving.stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
}

/* The schedule comes after the queue, as the stream is on that from the moment it has left its loops. */
TEST(a_stream_goes_from_a_loop_to_a_queue_in_one_step, "338 341")
{
    struct stream_recorder recorder = {0};
    void *queue = make_queue();

    begin_leaving(&recorder, schedule_and_unschedule);
    put_reader_on(leaving.stream, queue);
    kernel.set_remove = kernel_linux.set_remove;
    EXPECT(leaving.is_over);
    EXPECT_EQ(write(leaving.ends[1], "x", 1), 1);
    CFReadStreamScheduleWithRunLoop(leaving.stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes");
    CFReadStreamClose(leaving.stream);
    CFRelease(leaving.stream);
    close(leaving.ends[0]);
    close(leaving.ends[1]);
    dispatch_release(queue);
}

static void close_it(void *context)
{
    (void)context;
    CFReadStreamClose(leaving.stream);
}

TEST(a_close_during_a_move_to_a_queue_leaves_the_descriptor_to_the_loop, "338 341")
{
    struct stream_recorder recorder = {0};
    void *queue = make_queue();

    begin_leaving(&recorder, close_it);
    EXPECT(CFReadStreamSetProperty(leaving.stream, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue));
    put_reader_on(leaving.stream, queue);
    kernel.set_remove = kernel_linux.set_remove;
    EXPECT(leaving.is_over && leaving.was_open);
    EXPECT(!descriptor_is_open(leaving.ends[0]));
    CFRelease(leaving.stream);
    close(leaving.ends[1]);
    dispatch_release(queue);
}

/* ---- a thread that waits for the opening ---- */

static int slow_descriptor; /* is always writable */
static _Atomic int openings_awaited, openings_over;

static int open_slowly(struct stream *s)
{
    atomic_store(&s->opening_interest, kernel_writable);
    stream_schedule_descriptor_changed(s, slow_descriptor);
    return -EINPROGRESS;
}

static int finish_slowly(struct stream *s, bool waits)
{
    if (waits) {
        openings_awaited++;
        probe_await_count(&openings_over, 1);
    }
    if (openings_over == 0) {
        return -EINPROGRESS;
    }
    atomic_store(&s->opening_interest, 0);
    return 0;
}

static CFIndex read_x(struct stream *s, UInt8 *bytes, CFIndex size, bool *ret_at_end)
{
    (void)s, (void)size, (void)ret_at_end;
    *bytes = 'x';
    return 1;
}

static const struct stream_kind slow_kind = {
    .size = sizeof(struct stream), .open = open_slowly, .finish_open = finish_slowly, .read = read_x};

/* As during a handshake, for which another kind of readiness counts than the loop watches for. */
TEST(a_read_that_waits_for_the_opening_leaves_the_loop_asleep, "320 321 329")
{
    struct stream_recorder recorder = {0};
    int ends[2];

    socket_pair_open(ends);
    slow_descriptor = ends[0];
    leaving.stream = (CFReadStreamRef)stream_create(NULL, &slow_kind, true);
    recorder_add_reader(&recorder, leaving.stream);
    EXPECT(CFReadStreamOpen(leaving.stream));
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunHandledSource);
    probe_thread_start(&reading_thread, read_a_byte, NULL);
    probe_await_count(&openings_awaited, 1);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunTimedOut);
    openings_over = 1;
    probe_thread_join(&reading_thread);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open");
    CFReadStreamClose(leaving.stream);
    CFRelease(leaving.stream);
    close(ends[0]);
    close(ends[1]);
}

/* ---- any three calls at once ---- */

/* A stream, and the calls that three threads make on it. The caller's thread has the loop. */
struct melee {
    CFReadStreamRef stream;
    CFRunLoopRef loop;
    void *queue; /* NULL: there is no libdispatch */
    pthread_barrier_t gate;
    size_t calls[3];
    _Atomic size_t next_thread;
    bool is_over;
};

static void count_call(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    (void)stream, (void)type;
    ++*(_Atomic int *)info;
}

/* The client counts its calls; NULL does not. */
static void watch(struct melee *melee, CFOptionFlags events, _Atomic int *counter)
{
    static _Atomic int uncounted;
    CFStreamClientContext context = {.info = counter ? counter : &uncounted};

    EXPECT(CFReadStreamSetClient(melee->stream, events, count_call, &context));
}

static void do_schedule(struct melee *melee)
{
    CFReadStreamScheduleWithRunLoop(melee->stream, melee->loop, kCFRunLoopDefaultMode);
}

static void do_unschedule(struct melee *melee)
{
    CFReadStreamUnscheduleFromRunLoop(melee->stream, melee->loop, kCFRunLoopDefaultMode);
}

static void do_schedule_and_unschedule(struct melee *melee)
{
    do_schedule(melee);
    do_unschedule(melee);
}

static void do_put_on_queue(struct melee *melee)
{
    put_reader_on(melee->stream, melee->queue);
}

static void do_leave_queue(struct melee *melee)
{
    put_reader_on(melee->stream, NULL);
}

static void do_open(struct melee *melee)
{
    (void)CFReadStreamOpen(melee->stream);
}

static void do_close(struct melee *melee)
{
    CFReadStreamClose(melee->stream);
}

static void do_set_client(struct melee *melee)
{
    watch(melee, events_all, NULL);
}

static void do_remove_client(struct melee *melee)
{
    EXPECT(CFReadStreamSetClient(melee->stream, 0, NULL, NULL));
}

static void do_nothing(struct melee *melee)
{
    (void)melee; /* its release may be the last */
}

/* What the threads draw from. */
static void (*const calls[])(struct melee *melee) = {
    do_schedule, do_unschedule, do_schedule_and_unschedule, do_put_on_queue, do_leave_queue, do_open,
    do_close,    do_set_client, do_remove_client,           do_nothing};

enum { call_count = sizeof calls / sizeof calls[0], repeats = 3 };

static void fight(void *context)
{
    struct melee *melee = context;
    size_t number = melee->next_thread++;

    for (;;) {
        pthread_barrier_wait(&melee->gate);
        if (melee->is_over) {
            return;
        }
        for (int i = 0; i < repeats; i++) {
            calls[melee->calls[number]](melee);
        }
        CFRelease(melee->stream);
        pthread_barrier_wait(&melee->gate);
    }
}

/* Wherever the calls have left the stream, it still does what it is told, unless it is closed. */
static void expect_usable(struct melee *melee)
{
    _Atomic int told = 0;

    watch(melee, kCFStreamEventHasBytesAvailable, &told);
    do_schedule(melee);
    do_open(melee);
    if (CFReadStreamGetStatus(melee->stream) != kCFStreamStatusClosed) {
        while (told == 0) { /* polls: the queue may be telling yet what it began to tell, and that wakes no loop */
            run_what_is_ready();
            sched_yield();
        }
    }
    CFReadStreamClose(melee->stream);
    EXPECT(CFReadStreamSetClient(melee->stream, 0, NULL, NULL));
}

/* One round: the streams of even rounds have a descriptor and are open; the others have none, or are not. */
static void run_round(struct melee *melee, int round)
{
    int ends[2] = {-1, -1};

    melee->stream = round % 3 == 0 ? reader_of("abc") : stream_of_socket(ends);
    if (round % 2 == 0) {
        do_set_client(melee);
        do_open(melee);
        do_schedule(melee);
    }
    if (ends[1] >= 0) {
        EXPECT(CFReadStreamSetProperty(melee->stream, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue));
        EXPECT_EQ(write(ends[1], "abc", 3), 3);
    }
    for (size_t i = 0; i < 3; i++) {
        CFRetain(melee->stream);
    }
    pthread_barrier_wait(&melee->gate);
    run_what_is_ready();
    pthread_barrier_wait(&melee->gate);
    expect_usable(melee);
    CFRelease(melee->stream);
    if (ends[1] >= 0) {
        close(ends[1]);
    }
}

TEST(stress_any_three_calls_on_a_stream_at_once, "320 322 338 341")
{
    struct melee melee = {.loop = CFRunLoopGetCurrent()};
    struct probe_thread threads[3];
    int rounds = test_is_soak() ? 600 : 6;

    if (dispatch_queue_create) {
        melee.queue = make_queue();
    }
    REQUIRE(pthread_barrier_init(&melee.gate, NULL, 4) == 0);
    for (size_t i = 0; i < 3; i++) {
        probe_thread_start(&threads[i], fight, &melee);
    }
    for (size_t i = 0; i < call_count; i++) {
        for (size_t j = i; j < call_count; j++) {
            for (size_t k = j; k < call_count; k++) {
                melee.calls[0] = i, melee.calls[1] = j, melee.calls[2] = k;
                for (int round = 0; round < rounds; round++) {
                    run_round(&melee, round);
                }
            }
        }
    }
    melee.is_over = true;
    pthread_barrier_wait(&melee.gate);
    for (size_t i = 0; i < 3; i++) {
        probe_thread_join(&threads[i]);
    }
    pthread_barrier_destroy(&melee.gate);
    if (melee.queue) {
        dispatch_release(melee.queue);
    }
}
