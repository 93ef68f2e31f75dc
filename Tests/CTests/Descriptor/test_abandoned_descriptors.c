/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks of descriptors, sockets and children that do not return (fault case P11). They end their thread, or jump out of a nested run.
 * An invalidation afterwards releases the context at once, and nothing leaks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Socket/socket_recorder.h"
#include "Kernel/kernel.h"
#include "Loop/loop_trace.h"

static int told;

static void ends_its_thread(struct recorder *recorder)
{
    (void)recorder;
    told++;
    pthread_exit(NULL);
}

static void runs_its_recorder(void *recorder)
{
    recorder_schedule(recorder);
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

/* A socket whose callback ends the thread that calls it. */
static void expect_that_nothing_is_left(struct recorder *recorder)
{
    probe_on_thread(runs_its_recorder, recorder);
    EXPECT_EQ(told, 1);
    EXPECT_EQ(recorder->retains, recorder->releases + (CFSocketIsValid(recorder->object) ? 1 : 0));
    EXPECT_EQ(CFGetRetainCount(recorder->object), 1);
    CFSocketInvalidate(recorder->object);
    EXPECT_EQ(recorder->releases, recorder->retains);
    recorder_free(recorder);
}

TEST(a_socket_is_released_whose_read_callback_ends_the_thread, "170 275 P11")
{
    struct recorder recorder = RECORDER(.action = ends_its_thread, .is_silent = true);
    int ends[2];

    pair_open(ends);
    tell(ends[1], "x");
    recorder_create(&recorder, ends[0], reads);
    expect_that_nothing_is_left(&recorder);
    close(ends[1]);
}

TEST(the_data_is_released_whose_callback_ends_the_thread, "170 256 275 P11")
{
    struct recorder recorder = RECORDER(.action = ends_its_thread, .is_silent = true);
    int ends[2];

    pair_open(ends);
    tell(ends[1], "x");
    recorder_create(&recorder, ends[0], receives);
    expect_that_nothing_is_left(&recorder);
    close(ends[1]);
}

TEST(a_socket_is_invalid_after_the_end_was_told_by_a_callback_that_ends_the_thread, "170 257 P11")
{
    struct recorder recorder = RECORDER(.action = ends_its_thread, .is_silent = true);
    int ends[2];

    pair_open(ends);
    close(ends[1]);
    recorder_create(&recorder, ends[0], receives);
    probe_on_thread(runs_its_recorder, &recorder);
    EXPECT(!CFSocketIsValid(recorder.object));
    EXPECT_EQ(recorder.releases, recorder.retains);
    recorder_free(&recorder);
}

TEST(the_address_is_released_of_a_connection_whose_callback_ends_the_thread, "170 259 P11")
{
    struct recorder recorder = RECORDER(.action = ends_its_thread, .is_silent = true);
    CFDataRef address = loopback_address(PF_INET);
    int listener = listen_on(address, 1);
    CFDataRef bound = address_of(listener);
    int client = connect_to(bound);

    recorder_create(&recorder, listener, accepts);
    expect_that_nothing_is_left(&recorder);
    close(client);
    CFRelease(bound);
    CFRelease(address);
}

TEST(a_socket_that_a_thread_has_left_in_a_callback_is_told_in_another, "170 255 276 P11")
{
    struct recorder recorder = RECORDER(.action = ends_its_thread, .is_silent = true);
    int ends[2];

    pair_open(ends);
    tell(ends[1], "x");
    recorder_create(&recorder, ends[0], reads);
    probe_on_thread(runs_its_recorder, &recorder);
    recorder.action = NULL;
    recorder_schedule(&recorder);
    recorder_await(&recorder, 1);
    recorder_free(&recorder);
    close(ends[1]);
}

/* ---- jumps ---- */

static void jumps_out_once(struct recorder *recorder)
{
    (void)recorder;
    if (++told == 1) {
        longjmp(probe_way_out, 1);
    }
}

TEST(a_socket_goes_on_after_its_callback_was_jumped_out_of, "45 255 275 276 P11")
{
    struct recorder recorder = RECORDER(.action = jumps_out_once, .is_silent = true);
    int ends[2];

    pair_open(ends);
    tell(ends[1], "x");
    recorder_add(&recorder, ends[0], reads);
    EXPECT(probe_run_is_left(MODE));
    recorder_await(&recorder, 1);
    EXPECT_EQ(recorder.retains, recorder.releases + 1);
    CFSocketInvalidate(recorder.object);
    EXPECT_EQ(recorder.retains, recorder.releases);
    recorder_free(&recorder);
    close(ends[1]);
}

/* ---- CFFileDescriptor ---- */

struct watched {
    CFFileDescriptorRef object;
    void (*action)(struct watched *watched);
    _Atomic int calls;
    _Atomic int releases;
};

static void released(void *info)
{
    ((struct watched *)info)->releases++;
}

static void called(CFFileDescriptorRef object, CFOptionFlags kinds, void *info)
{
    struct watched *watched = info;

    (void)object, (void)kinds;
    watched->calls++;
    if (watched->action) {
        watched->action(watched);
    }
}

static void watch(struct watched *watched, int descriptor)
{
    CFFileDescriptorContext context = {.info = watched, .release = released};

    watched->object = CFFileDescriptorCreate(NULL, descriptor, false, called, &context);
    REQUIRE(watched->object != NULL);
    CFFileDescriptorEnableCallBacks(watched->object, kCFFileDescriptorReadCallBack);
}

static void join(const struct watched *watched, CFStringRef mode)
{
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, watched->object, 0);

    CFRunLoopAddSource(LOOP, source, mode);
    CFRelease(source);
}

static void invalidate(void *object)
{
    CFFileDescriptorInvalidate(object);
}

static void is_invalidated_and_ends(struct watched *watched)
{
    struct probe_thread thread;

    probe_thread_start(&thread, invalidate, watched->object);
    probe_thread_join(&thread);
    EXPECT_EQ(watched->releases, 0); /* the callout under way still uses it */
    pthread_exit(NULL);
}

static void runs_its_watched(void *watched)
{
    join(watched, MODE);
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

TEST(a_file_descriptor_made_invalid_meanwhile_is_released_at_the_end_of_the_callbacks_thread, "170 P11")
{
    struct watched watched = {.action = is_invalidated_and_ends};
    int event = probe_event();

    probe_event_post(event);
    watch(&watched, event);
    probe_on_thread(runs_its_watched, &watched);
    EXPECT_EQ(watched.releases, 1);
    EXPECT_EQ(CFGetRetainCount(watched.object), 1);
    CFRelease(watched.object);
    close(event);
}

static void ends(struct watched *watched)
{
    (void)watched;
    pthread_exit(NULL);
}

TEST(a_file_descriptor_that_a_thread_has_left_in_a_callback_serves_another, "170 278 P11")
{
    struct watched watched = {.action = ends};
    int event = probe_event();

    probe_event_post(event);
    watch(&watched, event);
    probe_on_thread(runs_its_watched, &watched);
    watched.action = NULL;
    join(&watched, MODE);
    CFFileDescriptorEnableCallBacks(watched.object, kCFFileDescriptorReadCallBack);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 10, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(watched.calls, 2);
    CFFileDescriptorInvalidate(watched.object);
    EXPECT_EQ(watched.releases, 1);
    CFRelease(watched.object);
    close(event);
}

static void jumps(struct watched *watched)
{
    if (watched->calls == 1) {
        longjmp(probe_way_out, 1);
    }
}

static void is_invalidated_elsewhere(struct watched *watched)
{
    struct probe_thread thread;

    probe_thread_start(&thread, invalidate, watched->object);
    probe_thread_join(&thread);
    EXPECT_EQ(watched->releases, 1);
}

TEST(a_file_descriptor_is_called_again_after_its_callback_was_jumped_out_of, "45 278 P11")
{
    struct watched watched = {.action = jumps};
    struct watched other = {.action = NULL};
    int event = probe_event();

    probe_event_post(event);
    watch(&watched, event);
    watch(&other, event);
    join(&watched, MODE);
    EXPECT(probe_run_is_left(MODE));
    CFFileDescriptorEnableCallBacks(other.object, kCFFileDescriptorReadCallBack); /* not in the callout that was left */
    CFFileDescriptorEnableCallBacks(watched.object, kCFFileDescriptorReadCallBack);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 10, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(watched.calls, 2);
    is_invalidated_elsewhere(&watched);
    CFRelease(watched.object);
    CFRelease(other.object);
    EXPECT_EQ(other.releases, 1);
    close(event);
}

/* ---- children ---- */

static void ends_with_the_child(CFRunLoopSourceRef source, pid_t pid, int status, void *info)
{
    (void)source, (void)pid, (void)status;
    ++*(int *)info;
    pthread_exit(NULL);
}

struct childhood {
    pid_t pid;
    CFRunLoopSourceRef source;
    int calls;
};

static void awaits_its_child(void *info)
{
    struct childhood *childhood = info;
    CRLSourceContext context = {.info = &childhood->calls};

    childhood->source = CRLChildSourceCreate(NULL, childhood->pid, 0, ends_with_the_child, &context);
    REQUIRE(childhood->source != NULL);
    CFRunLoopAddSource(LOOP, childhood->source, MODE);
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

TEST(a_child_whose_callback_ends_the_thread_has_been_told_of, "170 P11")
{
    struct childhood childhood = {.pid = fork()};

    if (childhood.pid == 0) {
        _exit(0);
    }
    probe_on_thread(awaits_its_child, &childhood);
    EXPECT_EQ(childhood.calls, 1);
    EXPECT(!CFRunLoopSourceIsValid(childhood.source));
    EXPECT_EQ(CFGetRetainCount(childhood.source), 1);
    CFRelease(childhood.source);
}
