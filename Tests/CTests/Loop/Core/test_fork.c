/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops across fork, also without handlers, and exec: rules 14, 176 and 177, and fault cases P1 to P3. Children report through their exit
 * status.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Loop/Core/loop.h"
#include "Loop/loop_trace.h"
#include "Loop/Run/thread_registry.h"
#include "Loop/Watch/watch.h"
#include "older_glibc.h"

/*
 * Runs the function in a child; true if it ends normally with true. The answer comes through shared memory: under valgrind the exit status
 * speaks of what the other threads, which a child does not have, held at the time.
 */
static bool in_child_of(pid_t (*fork_function)(void), bool (*function)(void))
{
    bool *answer = mmap(NULL, sizeof *answer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(answer != MAP_FAILED);
    pid_t child = fork_function();
    if (child == 0) {
        alarm((unsigned)(4 * test_patience_s()));
        *answer = function();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    bool worked = WIFEXITED(status) && *answer;
    munmap(answer, sizeof *answer);
    return worked;
}

static bool in_child(bool (*function)(void))
{
    return in_child_of(fork, function);
}

/* The handlers of forks are not run. */
static bool in_bare_child(bool (*function)(void))
{
    return in_child_of(fork_without_handlers, function);
}

static struct probe source = {.name = "S0", .logging = probe_is_silent};
static struct probe timer = {.name = "T", .logging = probe_is_silent};
static struct probe port = {.name = "S1", .logging = probe_is_silent};
static int event = -1;

static void set_up(void)
{
    event = probe_event();
    probe_source_add(&source, 0, LOOP, MODE);
    probe_timer_add(&timer, 0.001, 0.001, LOOP, MODE);
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0.002, false); /* the parent's kernel objects are made */
}

static void tear_down(void)
{
    CFRunLoopSourceInvalidate(probe_source_of(&port));
    close(event);
}

static bool runs_everything(void)
{
    int sources = source.calls;
    int timers = timer.calls;
    int ports = port.calls;
    double start = probe_seconds();
    CFRunLoopSourceSignal(probe_source_of(&source));
    CFRunLoopWakeUp(LOOP);
    probe_event_post(event);
    while (source.calls == sources || timer.calls == timers || port.calls == ports) {
        if (CFRunLoopRunInMode(MODE, 0.01, false) != kCFRunLoopRunTimedOut) {
            return false;
        }
    }
    CFRunLoopTimerInvalidate(probe_timer_of(&timer));
    return CFRunLoopRunInMode(MODE, 0.05, false) == kCFRunLoopRunTimedOut && probe_seconds() - start >= 0.05;
}

TEST(a_forked_child_can_run_the_loop, "176 P1")
{
    set_up();
    EXPECT(in_child(runs_everything));
    EXPECT(runs_everything());
    tear_down();
}

static bool removes_everything(void)
{
    CFRunLoopSourceInvalidate(probe_source_of(&source));
    CFRunLoopSourceInvalidate(probe_source_of(&port));
    CFRunLoopTimerInvalidate(probe_timer_of(&timer));
    return CFRunLoopRunInMode(MODE, 0.01, false) == kCFRunLoopRunFinished;
}

TEST(a_forked_child_does_not_disturb_its_parent, "176 P1")
{
    set_up();
    EXPECT(in_child(removes_everything));
    EXPECT(runs_everything());
    tear_down();
}

static bool wakes_itself_often(void)
{
    for (int i = 0; i < 1000; i++) {
        CFRunLoopWakeUp(LOOP);
        CFRunLoopStop(LOOP);
    }
    return true;
}

static _Atomic int child_is_done;

static void forks_then_stops(void *context)
{
    EXPECT(in_child(wakes_itself_often));
    child_is_done = 1;
    CFRunLoopStop(context);
}

TEST(a_childs_wake_ups_stay_in_the_child, "176 P1")
{
    int quiet = probe_event();
    static struct probe idle = PROBE("S1", NULL);
    struct probe_thread other;
    probe_activities_add(LOOP, MODE);
    probe_port_source_add(&idle, 0, quiet, LOOP, MODE); /* asleep in epoll, with an eventfd that the child inherits */
    probe_thread_when_waiting(&other, LOOP, forks_then_stops, LOOP);
    probe_run(MODE, 1000, false);
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW X S");
    EXPECT(child_is_done);
    CFRunLoopSourceInvalidate(probe_source_of(&idle));
    close(quiet);
}

static bool has_a_loop_of_its_own(void)
{
    static struct probe one = {.name = "S0", .logging = probe_is_silent};
    CFRunLoopSourceSignal(probe_source_add(&one, 0, LOOP, MODE));
    return CFRunLoopRunInMode(MODE, 1, true) == kCFRunLoopRunHandledSource && CFRunLoopGetMain() != NULL;
}

static void forks_on_thread(void *context)
{
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0.001, false);
    *(bool *)context = in_child(has_a_loop_of_its_own);
}

TEST(a_child_forked_by_another_thread_runs_that_threads_loop, "176 P1")
{
    bool worked = false;
    pid_t child = fork(); /* in a process whose main thread has not used its loop */
    if (child == 0) {
        probe_on_thread(forks_on_thread, &worked);
        _exit(worked ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static struct probe_thread blocked_thread;
static CFRunLoopRef blocked_loop;
static struct probe blocked_observer;
static struct probe blocked_timer;
static _Atomic int is_blocked;
static _Atomic int may_go_on;

static void blocks_in_its_callout(struct probe *probe)
{
    (void)probe;
    is_blocked = 1;
    probe_await_count(&may_go_on, 1);
    CFRunLoopStop(LOOP);
}

static void runs_in_its_callout(struct probe *probe)
{
    (void)probe;
    CFRunLoopRunInMode(MODE, 1000, false);
}

/* A timer's callout runs the loop, and there an observer's does not return. */
static void is_blocked_in_callouts(void *context)
{
    (void)context;
    blocked_loop = LOOP;
    blocked_timer = (struct probe){.name = "T", .action = runs_in_its_callout, .logging = probe_is_silent};
    blocked_observer = (struct probe){.name = "O", .action = blocks_in_its_callout, .logging = probe_is_silent};
    probe_timer_add(&blocked_timer, 0, 1000, LOOP, CFSTR("outer"));
    probe_source_add(&source, 0, LOOP, MODE);
    probe_observer_add(&blocked_observer, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    CFRunLoopRunInMode(CFSTR("outer"), 0.001, false);
}

static bool ends_what_the_thread_was_in(void)
{
    CFStringRef mode = CFRunLoopCopyCurrentMode(blocked_loop);

    CFRunLoopTimerInvalidate(probe_timer_of(&blocked_timer));
    CFRunLoopObserverInvalidate(probe_observer_of(&blocked_observer));
    return !mode && blocked_timer.releases == 1 && blocked_observer.releases == 1;
}

TEST(in_a_child_nothing_is_in_callout_on_the_threads_that_it_has_not, "176 P1")
{
    probe_thread_start(&blocked_thread, is_blocked_in_callouts, NULL);
    probe_await_count(&is_blocked, 1);
    EXPECT(in_child(ends_what_the_thread_was_in));
    may_go_on = 1;
    probe_thread_join(&blocked_thread);
}

static CFRunLoopRef parents_loop;

static bool waits_no_more(void)
{
    return !CFRunLoopIsWaiting(parents_loop);
}

static void forks_then_stops_another(void *context)
{
    parents_loop = context;
    EXPECT(in_child(waits_no_more));
    EXPECT(CFRunLoopIsWaiting(parents_loop));
    CFRunLoopStop(context);
}

TEST(in_a_child_no_loop_waits_awake_that_did_in_its_parent, "176 P1")
{
    struct probe_thread other;

    probe_source_add(&source, 0, LOOP, MODE);
    CRLRunLoopSetBusyWait(LOOP, 1000);
    probe_thread_when_waiting(&other, LOOP, forks_then_stops_another, LOOP);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1000, false), kCFRunLoopRunStopped);
    CRLRunLoopSetBusyWait(LOOP, 0);
    probe_thread_join(&other);
}

/* ---- children that are made without handlers ---- */

static bool has_no_descriptors_of_its_parents(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    const struct watch_set *watches = mode_find(loop, MODE)->watches;

    return watches->set < 0 && watches->alarm < 0 && atomic_load(&loop->waker->event) < 0 && CFRunLoopGetMain() == loop;
}

static bool looks_and_runs_everything(void)
{
    return has_no_descriptors_of_its_parents() && runs_everything();
}

TEST(a_child_made_without_handlers_can_run_the_loop, "176 P1")
{
    set_up();
    EXPECT(in_bare_child(looks_and_runs_everything));
    EXPECT(runs_everything());
    tear_down();
}

/* What is in the parent's wait set stays there. */
static bool looks_and_removes_everything(void)
{
    return CFRunLoopGetMain() && removes_everything();
}

static bool runs_and_removes_everything(void)
{
    return CFRunLoopRunInMode(CFSTR("nothing"), 0, false) == kCFRunLoopRunFinished && removes_everything();
}

TEST(a_child_made_without_handlers_does_not_disturb_its_parent, "176 P1")
{
    set_up();
    EXPECT(in_bare_child(looks_and_removes_everything));
    EXPECT(in_bare_child(runs_and_removes_everything));
    EXPECT(runs_everything());
    tear_down();
}

static bool has_only_its_own_loop(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    bool is_own = CFRunLoopGetMain() == loop && loop != parents_loop;
    bool is_over = !CFRunLoopIsWaiting(parents_loop) && !CFRunLoopCopyCurrentMode(parents_loop);

    return is_own && is_over && has_a_loop_of_its_own();
}

static void forks_without_handlers_then_stops(void *context)
{
    (void)LOOP;
    parents_loop = context;
    loop_lock(parents_loop); /* which it has until a moment after it says that it waits; with the lock held it would be left as it is */
    loop_unlock(parents_loop);
    EXPECT(in_bare_child(has_only_its_own_loop));
    CFRunLoopStop(context);
}

TEST(a_child_made_without_handlers_by_another_thread_has_that_threads_loop, "176 P1")
{
    struct probe_thread other;
    set_up();
    CFRunLoopTimerInvalidate(probe_timer_of(&timer));
    probe_thread_when_waiting(&other, LOOP, forks_without_handlers_then_stops, LOOP);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1000, false), kCFRunLoopRunStopped);
    probe_thread_join(&other);
    tear_down();
}

static bool runs_in_its_callout_of_before(void)
{
    return source.calls == 1 && has_no_descriptors_of_its_parents();
}

static void forks_in_its_callout(struct probe *probe)
{
    (void)probe;
    EXPECT(in_bare_child(runs_in_its_callout_of_before));
}

TEST(a_child_made_without_handlers_in_a_callout_is_known_by_the_next_look, "176 P1")
{
    set_up();
    source.action = forks_in_its_callout;
    CFRunLoopSourceSignal(probe_source_of(&source));
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 10, true), kCFRunLoopRunHandledSource);
    source.action = NULL;
    EXPECT(runs_everything());
    tear_down();
}

static CFRunLoopRef loop_that_is_locked;
static _Atomic int loop_is_there;

static void is_there_until_the_end(void *context)
{
    loop_that_is_locked = LOOP;
    probe_source_add(context, 0, LOOP, CFSTR("other"));
    loop_is_there = 1;
    (void)CFRunLoopRunInMode(CFSTR("other"), 1000, false);
}

static bool says_yes(void)
{
    return true;
}

/* The loop that was being changed is not touched. A later fork of the child, which takes the locks of all loops, does not meet it. */
static bool runs_everything_and_forks(void)
{
    return looks_and_runs_everything() && !loop_that_is_locked->is_dead && lock_is_taken(&loop_that_is_locked->lock) && in_child(says_yes);
}

/* The locks are taken as if by other threads of the parent, which do not exist in the child. */
TEST(a_child_made_without_handlers_finds_no_lock_taken_that_it_needs, "176 P2")
{
    static struct probe idle = {.name = "I", .logging = probe_is_silent};
    struct probe_thread thread;
    set_up();
    probe_thread_start(&thread, is_there_until_the_end, &idle);
    probe_await_count(&loop_is_there, 1);
    probe_await_sleep(loop_that_is_locked);
    loop_lock(loop_that_is_locked);
    loop_lock(LOOP);
    item_locks_take_all();
    waker_pool_lock();
    EXPECT(in_bare_child(runs_everything_and_forks));
    waker_pool_unlock();
    item_locks_drop_all();
    loop_unlock(LOOP);
    loop_unlock(loop_that_is_locked);
    CFRunLoopStop(loop_that_is_locked);
    probe_thread_join(&thread);
    EXPECT(runs_everything());
    tear_down();
}

/* ---- the locks of items ---- */

static void skip_unless_they_are_wiped(void)
{
    if (!kernel.fork_mark() || sysconf(_SC_PAGESIZE) != item_locks_bytes) {
        SKIP("the kernel wipes nothing, or pages are larger than the row of locks");
    }
    EXPECT((uintptr_t)kernel.fork_mark() - (uintptr_t)item_locks() < item_locks_bytes);
}

static bool finds_free_locks_of_items(void)
{
    for (int i = 0; i < item_lock_count; i++) {
        if (lock_is_taken(&item_locks()[i].lock)) {
            return false;
        }
    }
    return true;
}

/* Before it calls anything. */
TEST(a_child_made_without_handlers_finds_the_locks_of_items_free, "176 P2")
{
    set_up();
    skip_unless_they_are_wiped();
    item_locks_take_all();
    EXPECT(in_bare_child(finds_free_locks_of_items));
    EXPECT(!finds_free_locks_of_items());
    item_locks_drop_all();
    EXPECT(runs_everything());
    tear_down();
}

/* P2: other threads use the library's locks all the time while one forks. AddressSanitizer's malloc is itself not safe there. */
#if defined(__SANITIZE_ADDRESS__)
static const bool fork_is_safe_for_malloc = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
static const bool fork_is_safe_for_malloc = false;
#else
static const bool fork_is_safe_for_malloc = true;
#endif
#else
static const bool fork_is_safe_for_malloc = true;
#endif

static _Atomic int workers_end;

static void works_all_the_time(void *context)
{
    CFRunLoopRef loop = context;
    struct probe own = {.name = "w", .logging = probe_is_silent};
    struct probe clock = {.name = "t", .logging = probe_is_silent};
    CFRunLoopTimerRef t = probe_timer(&clock, 1000, 0);
    CFRunLoopAddTimer(loop, t, CFSTR("busy"));
    while (!workers_end) {
        CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent() + 1000);
        EXPECT(CFRunLoopContainsTimer(loop, t, CFSTR("busy")));
        CFRunLoopWakeUp(loop);
        if (fork_is_safe_for_malloc) {
            CFRunLoopSourceRef a = probe_source(&own, 0);
            CFRunLoopAddSource(loop, a, CFSTR("busy"));
            CFRunLoopSourceSignal(a);
            CFRelease(CFRunLoopCopyAllModes(loop));
            CFRunLoopSourceInvalidate(a);
            CFRelease(a);
        }
    }
    CFRunLoopTimerInvalidate(t);
    CFRelease(t);
}

static bool uses_the_loop(void)
{
    static struct probe one = {.name = "S0", .logging = probe_is_silent};
    CFRelease(CFRunLoopCopyAllModes(LOOP));
    CFRunLoopSourceSignal(probe_source_add(&one, 0, LOOP, MODE));
    return CFRunLoopRunInMode(MODE, 0.01, true) == kCFRunLoopRunHandledSource;
}

TEST(stress_fork_while_other_threads_hold_locks, "176 P2")
{
    struct probe_thread threads[3];
    for (int i = 0; i < 3; i++) {
        probe_thread_start(&threads[i], works_all_the_time, LOOP);
    }
    int rounds = test_is_soak() ? 2000 : test_is_instrumented() ? 10 : 50;
    for (int i = 0; i < rounds; i++) {
        EXPECT(in_child(uses_the_loop));
    }
    workers_end = 1;
    for (int i = 0; i < 3; i++) {
        probe_thread_join(&threads[i]);
    }
    EXPECT(uses_the_loop());
}

TEST(all_descriptors_are_closed_on_exec, "14 177 P3")
{
    bool open_before[256] = {false};
    for (int i = 0; i < 256; i++) {
        open_before[i] = fcntl(i, F_GETFD) >= 0;
    }
    set_up();
    for (int i = 0; i < 256; i++) {
        int flags = fcntl(i, F_GETFD);
        EXPECT(open_before[i] || flags < 0 || (flags & FD_CLOEXEC));
    }
    tear_down();
}

static int count_descriptors(void)
{
    int count = 0;
    for (int i = 0; i < 1024; i++) {
        count += fcntl(i, F_GETFD) >= 0;
    }
    return count;
}

TEST(a_loop_without_descriptors_opens_none, "14")
{
    clock_start();
    static struct probe one = {.name = "S0", .logging = probe_is_silent};
    static struct probe tick = {.name = "T", .logging = probe_is_silent};
    int before = count_descriptors();
    CFRunLoopSourceSignal(probe_source_add(&one, 0, LOOP, MODE));
    CFRunLoopAddSource(LOOP, probe_source_of(&one), CFSTR("M"));
    probe_timer_add(&tick, 0.01, 0.01, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0.1, false);
    CFRunLoopRunInMode(CFSTR("M"), 0.1, false);
    EXPECT_EQ(one.calls, 1);
    EXPECT(count_descriptors() - before <= 1);
}

TEST(descriptors_do_not_grow_with_modes_and_timers, "14 T15")
{
    clock_start();
    static struct probe many[300];
    int before = count_descriptors();
    for (int i = 0; i < 300; i++) {
        CFStringRef name = CFStringCreateWithFormat(NULL, NULL, CFSTR("mode %d"), i);
        many[i] = (struct probe){.name = "T", .logging = probe_is_silent};
        probe_timer_add(&many[i], 0.01, 1000, LOOP, name);
        CFRunLoopRunInMode(name, 0.02, false);
        EXPECT_EQ(many[i].calls, 1);
        CFRelease(name);
    }
    EXPECT(count_descriptors() - before <= 1);
}
