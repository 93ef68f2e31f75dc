/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ending thread does with its loop: rules 96 and 170 to 175, and fault cases P4 to P7. Threads are started and joined; the
 * harness checks that no descriptor and no object is left.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Loop/loop_trace.h"
#include "Runtime/Object/object.h"

static struct probe leaving_source = {.name = "A", .logging = probe_logs_membership | probe_logs_context};
static struct probe leaving_timer = {.name = "T", .logging = probe_logs_context};
static struct probe leaving_observer = {.name = "O", .logging = probe_logs_context};

static void leaves_items(void *context)
{
    (void)context;
    CFRunLoopAddSource(LOOP, probe_source_of(&leaving_source), MODE);
    probe_timer_add(&leaving_timer, 100, 1, LOOP, MODE);
    probe_observer_add(&leaving_observer, kCFRunLoopEntry, 0, LOOP, MODE);
    trace_clear(&probe_trace);
    probe_log("ends");
}

TEST(an_ending_thread_cancels_its_sources_first, "96 170 P5")
{
    CFRunLoopSourceRef a = probe_source(&leaving_source, 0);
    probe_on_thread(leaves_items, NULL);
    EXPECT_EQ(leaving_timer.releases, 1);
    EXPECT_EQ(leaving_observer.releases, 1);
    EXPECT_EQ(leaving_source.releases, 0);
    EXPECT_EQ(leaving_source.cancels, 1);
    CFRelease(a);
    EXPECT_EQ(leaving_source.releases, 1);
    trace_clear(&probe_trace);
}

static void leaves_only_references(void *context)
{
    (void)context;
    static struct probe source = {.name = "A", .logging = probe_logs_membership | probe_logs_context};
    probe_source_add(&source, 0, LOOP, MODE);
    trace_clear(&probe_trace);
}

TEST(a_source_that_only_the_loop_held_is_cancelled_then_released, "170 73")
{
    probe_on_thread(leaves_only_references, NULL);
    EXPECT_LOG("A-test release(A)");
}

static void adds_to_three_modes(void *context)
{
    CFRunLoopSourceRef a = context;
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, a, CFSTR("M"));
    CFRunLoopAddSource(LOOP, a, kCFRunLoopCommonModes);
}

TEST(an_ending_thread_leaves_other_loops_sources_alone, "96 170 P5")
{
    clock_start();
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddSource(LOOP, a, MODE);
    probe_on_thread(adds_to_three_modes, a);
    EXPECT_EQ(source.schedules, 4);
    EXPECT_EQ(source.cancels, 3);
    EXPECT(CFRunLoopSourceIsValid(a));
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    EXPECT_LOG("A HS");
    CFRunLoopSourceInvalidate(a);
    EXPECT_EQ(source.cancels, 4);
    CFRelease(a);
}

static CFRunLoopRef loop_to_end;
static _Atomic int loop_may_end;

static void ends_when_it_may(void *has_begun)
{
    loop_to_end = (CFRunLoopRef)(uintptr_t)CFRetain(LOOP);
    *(_Atomic int *)has_begun = 1;
    probe_await_count(&loop_may_end, 1);
}

/* Its callout has moved it to the other loop, and is under way when that one ends. */
static void moves_to_a_loop_that_ends(struct probe *probe)
{
    if (probe->calls == 1) {
        CFRunLoopRemoveTimer(LOOP, probe_timer_of(probe), MODE);
        CFRunLoopAddTimer(loop_to_end, probe_timer_of(probe), MODE);
        EXPECT(CFRunLoopContainsTimer(loop_to_end, probe_timer_of(probe), MODE));
        loop_may_end = 1;
        probe_thread_join(probe->context);
        EXPECT(!CFRunLoopContainsTimer(loop_to_end, probe_timer_of(probe), MODE));
        CFRelease(loop_to_end);
    }
}

TEST(a_timer_in_callout_leaves_the_ending_loop_that_it_was_moved_to, "116 132 170 172")
{
    static struct probe_thread thread;
    static struct probe probe = {.name = "T", .action = moves_to_a_loop_that_ends, .context = &thread, .logging = probe_is_silent};
    _Atomic int has_begun = 0;
    CFRunLoopTimerRef timer = probe_timer(&probe, 0, 0.001);

    CFRunLoopAddTimer(LOOP, timer, MODE);
    probe_thread_start(&thread, ends_when_it_may, (void *)&has_begun);
    probe_await_count(&has_begun, 1);
    (void)CFRunLoopRunInMode(MODE, 10, false);
    EXPECT_EQ(probe.calls, 1);
    EXPECT_EQ(CFGetRetainCount(timer), 1);
    CFRunLoopAddTimer(LOOP, timer, MODE);
    while (probe.calls == 1) {
        REQUIRE(CFRunLoopRunInMode(MODE, 0.01, false) == kCFRunLoopRunTimedOut);
    }
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    EXPECT_EQ(probe.releases, probe.retains);
}

static pthread_t ending_thread;
static CFRunLoopRef ending_loop;

static void cancelled_at_the_end(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    EXPECT(pthread_equal(pthread_self(), ending_thread));
    EXPECT(loop == ending_loop);
    EXPECT(CFRunLoopGetCurrent() == ending_loop);
    EXPECT(!CFRunLoopContainsSource(loop, *(CFRunLoopSourceRef *)info, mode));
    EXPECT(CFRunLoopSourceIsValid(*(CFRunLoopSourceRef *)info));
    /* adds to a loop that is being taken down are ignored */
    static struct probe late = {.name = "late", .logging = probe_is_silent};
    probe_timer_add(&late, 0, 0, loop, MODE);
    probe_observer_add(&late, kCFRunLoopEntry, 0, loop, MODE);
    CFRelease(CFRunLoopCopyAllModes(loop));
    CFRunLoopWakeUp(loop);
    CFRunLoopStop(loop);
    probe_note_string("cancel", mode);
}

static void has_a_nosy_source(void *context)
{
    CFRunLoopSourceContext source = {.info = context, .cancel = cancelled_at_the_end};
    ending_thread = pthread_self();
    ending_loop = LOOP;
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &source);
    *(CFRunLoopSourceRef *)context = a;
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRelease(a);
}

TEST(cancel_at_the_end_may_use_the_loop, "170 175 P7")
{
    CFRunLoopSourceRef a = NULL;
    probe_on_thread(has_a_nosy_source, &a);
    EXPECT_LOG("cancel=test");
}

static pthread_key_t late_key;

static void uses_the_loop_late(void *value)
{
    static struct probe source = PROBE("late", NULL);
    (void)value;
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0, true);
}

static void has_a_late_destructor(void *context)
{
    static struct probe early = PROBE("early", NULL);
    pthread_setspecific(late_key, context);
    probe_source_add(&early, 0, LOOP, MODE);
}

TEST(other_destructors_may_use_the_loop, "171 P7")
{
    EXPECT_EQ(pthread_key_create(&late_key, uses_the_loop_late), 0);
    probe_on_thread(has_a_late_destructor, &late_key);
    EXPECT_LOG("late HS");
}

static CFRunLoopRef kept_loop;

static void keeps_its_loop(void *context)
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    (void)context;
    probe_source_add(&source, 0, LOOP, MODE);
    CFRunLoopAddCommonMode(LOOP, CFSTR("common"));
    kept_loop = (CFRunLoopRef)(uintptr_t)CFRetain(LOOP);
}

TEST(a_loop_may_outlive_its_thread, "172 175 L11")
{
    static struct probe source = PROBE("B", NULL);
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    probe_on_thread(keeps_its_loop, NULL);
    EXPECT_LOG("A+test A-test");
    CFRunLoopWakeUp(kept_loop);
    CFRunLoopStop(kept_loop);
    EXPECT(!CFRunLoopIsWaiting(kept_loop));
    EXPECT(CFRunLoopCopyCurrentMode(kept_loop) == NULL);
    CFRunLoopSourceRef b = probe_source(&source, 0);
    CFRunLoopTimerRef t = probe_timer(&timer, 0, 1);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopEntry, true, 0);
    CFRunLoopAddSource(kept_loop, b, MODE);
    CFRunLoopAddTimer(kept_loop, t, MODE);
    CFRunLoopAddObserver(kept_loop, o, kCFRunLoopCommonModes);
    CFRunLoopAddCommonMode(kept_loop, CFSTR("another"));
    EXPECT(!CFRunLoopContainsSource(kept_loop, b, MODE));
    EXPECT_EQ(source.schedules, source.cancels);
    CFRunLoopSourceSignal(b);
    CFRunLoopRemoveSource(kept_loop, b, MODE);
    CFRunLoopAddTimer(LOOP, t, MODE); /* it is free */
    EXPECT(CFRunLoopContainsTimer(LOOP, t, MODE));
    CFArrayRef modes = CFRunLoopCopyAllModes(kept_loop);
    if (modes) {
        CFRelease(modes);
    }
    CFRunLoopTimerInvalidate(t);
    CFRunLoopObserverInvalidate(o);
    CFRunLoopSourceInvalidate(b);
    CFRelease(b);
    CFRelease(t);
    CFRelease(o);
    CFRelease(kept_loop);
}

static void expects_a_fresh_loop(void *context)
{
    static struct probe source = PROBE("A", NULL);
    (void)context;
    EXPECT(!probe_mode_exists(LOOP, MODE));
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunFinished);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    CFRunLoopStop(LOOP);
    CFRunLoopWakeUp(LOOP);
}

TEST(each_new_thread_has_a_fresh_loop, "173")
{
    for (int i = 0; i < 50; i++) {
        probe_on_thread(expects_a_fresh_loop, NULL);
    }
}

static void never_runs(void *info)
{
    (void)info;
    _exit(2);
}

/* Until the kernel says that the process's first thread is gone; ThreadSanitizer cannot join it. */
static void await_end_of_the_main_thread(void)
{
    while (test_thread_state(getpid()) != 'Z') {
        sched_yield();
    }
}

static int log_file;

static bool is_logged_once(const char *sentence)
{
    char text[4096] = "";
    const char *first;

    (void)!pread(log_file, text, sizeof text - 1, 0);
    first = strstr(text, sentence);
    return first && !strstr(first + 1, sentence);
}

static void outlives_the_main_thread(void *context)
{
    static struct probe source = PROBE("A", NULL);
    (void)context;
    await_end_of_the_main_thread();
    CFRunLoopRef loop = CFRunLoopGetMain();
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddSource(loop, a, MODE);
    CRLRunLoopPerformFunction(loop, MODE, never_runs, NULL, NULL);
    CFRunLoopWakeUp(loop);
    CFRunLoopStop(loop);
    CFRunLoopWakeUp(loop);
    CFRelease(a);
    if (!is_logged_once("the main thread has ended")) {
        _exit(2);
    }
    _exit(CFRunLoopGetMain() == loop && CFRunLoopGetCurrent() != loop ? 42 : 1);
}

static struct probe_thread survivor;

TEST(the_main_loop_survives_its_thread, "174 P6")
{
    pid_t child = fork();
    if (child == 0) {
        log_file = memfd_create("log", MFD_CLOEXEC);
        REQUIRE(dup2(log_file, STDERR_FILENO) >= 0);
        (void)CFRunLoopGetCurrent();
        probe_thread_start(&survivor, outlives_the_main_thread, NULL);
        pthread_exit(NULL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 42);
}

static CFRunLoopRef left_loop;

static void looks_at_the_run_that_was_left(void *context)
{
    CFStringRef mode;

    (void)context;
    await_end_of_the_main_thread();
    mode = CFRunLoopCopyCurrentMode(left_loop);
    _exit(!mode && CFRunLoopGetMain() == left_loop && !CFRunLoopIsWaiting(left_loop) ? 42 : 1);
}

static void ends_the_main_thread(struct probe *probe)
{
    (void)probe;
    pthread_exit(NULL);
}

TEST(the_main_thread_may_end_in_a_callback, "174 P6")
{
    static struct probe source = {.name = "S0", .action = ends_the_main_thread, .logging = probe_is_silent};
    pid_t child = fork();
    if (child == 0) {
        left_loop = LOOP;
        CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
        probe_thread_start(&survivor, looks_at_the_run_that_was_left, NULL);
        CFRunLoopRunInMode(MODE, 1000, false);
        _exit(2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 42);
}

static pthread_key_t last_key;
static CFRunLoopRef late_loops[2];
static CFRunLoopRunResult late_result;

/* The C library calls destructors again as long as there are values, up to this many rounds: this one is last. */
static void asks_in_the_last_round(void *value)
{
    uintptr_t left = (uintptr_t)value - 1;

    if (left > 0) {
        (void)pthread_setspecific(last_key, (void *)left);
        return;
    }
    for (int i = 0; i < 2; i++) {
        late_loops[i] = CFRunLoopGetCurrent();
    }
    late_result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1000, false);
}

static void has_a_destructor_for_the_last_round(void *context)
{
    *(CFRunLoopRef *)context = CFRunLoopGetCurrent();
    (void)pthread_setspecific(last_key, (void *)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
}

TEST(a_destructor_after_the_loops_end_gets_a_loop_that_finishes, "171 P7")
{
    CFRunLoopRef own = NULL;
    long objects;

    if (test_is_instrumented()) {
        SKIP("the tool has taken down what it knows of a thread by the last round");
    }
    EXPECT_EQ(pthread_key_create(&last_key, asks_in_the_last_round), 0);
    test_allow_left(0, 2); /* the one such loop of the process, and its mode's name */
    probe_on_thread(has_a_destructor_for_the_last_round, &own);
    EXPECT(late_loops[0] && late_loops[1] == late_loops[0]);
    EXPECT_EQ(late_result, kCFRunLoopRunFinished);
    objects = object_live_count();
    probe_on_thread(has_a_destructor_for_the_last_round, &own);
    EXPECT_EQ(object_live_count(), objects); /* one for all threads */
}

static void ends_its_thread(struct probe *probe)
{
    const struct probe *timer = probe->context;

    if (timer->calls > 0) {
        pthread_exit(NULL);
    }
}

static CFRunLoopTimerRef left_timer;
static CFRunLoopObserverRef left_observer;

static void ends_in_callouts(void *context)
{
    static struct probe idle = PROBE("idle", NULL);
    (void)context;
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopAddTimer(LOOP, left_timer, MODE);
    CFRunLoopAddObserver(LOOP, left_observer, MODE);
    CFRunLoopRunInMode(MODE, 1000, false);
}

static void runs_in_a_callout(struct probe *probe)
{
    (void)probe;
    CFRunLoopRunInMode(MODE, 1000, false);
}

TEST(what_a_thread_ends_in_can_be_called_by_another, "170 174")
{
    static struct probe timer = {.name = "T", .action = runs_in_a_callout, .logging = probe_is_silent};
    static struct probe observer = {.name = "O", .action = ends_its_thread, .context = &timer, .logging = probe_is_silent};

    left_timer = probe_timer(&timer, 0, 1000); /* in its callout, a run whose observer ends the thread */
    left_observer = probe_observer(&observer, kCFRunLoopBeforeWaiting, true, 0);
    probe_on_thread(ends_in_callouts, NULL);
    EXPECT_EQ(timer.calls, 1);
    EXPECT(CFRunLoopTimerIsValid(left_timer));
    timer.action = NULL;
    observer.action = NULL;
    timer.calls = observer.calls = 0;
    CFRunLoopTimerSetNextFireDate(left_timer, CFAbsoluteTimeGetCurrent());
    CFRunLoopAddTimer(LOOP, left_timer, MODE);
    CFRunLoopAddObserver(LOOP, left_observer, MODE);
    while (timer.calls == 0 || observer.calls == 0) {
        (void)CFRunLoopRunInMode(MODE, 0.01, false);
    }
    CFRunLoopTimerInvalidate(left_timer);
    CFRunLoopObserverInvalidate(left_observer);
    CFRelease(left_timer);
    CFRelease(left_observer);
}

static void ends_its_thread_in_a_port(struct probe *probe)
{
    (void)probe;
    pthread_exit(NULL);
}

static void ends_in_a_port(void *context)
{
    struct probe *port = context;

    probe_port_source_add(port, 0, port->descriptor, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 1000, false);
}

TEST(a_thread_that_ends_in_a_ports_callback_lets_go_of_the_source, "73 170 174")
{
    static struct probe port = PROBE("P", ends_its_thread_in_a_port);

    port.descriptor = probe_event();
    probe_event_post(port.descriptor);
    probe_on_thread(ends_in_a_port, &port);
    EXPECT_LOG("P");
    EXPECT_EQ(port.releases, 1);
    close(port.descriptor);
}

static void uses_loop_at_exit(void)
{
    CFRunLoopGetCurrent();
    CFRunLoopWakeUp(CFRunLoopGetMain());
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
}

TEST(exit_handlers_may_use_the_loop, "P7 P8")
{
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            static struct probe idle = PROBE("idle", NULL);
            probe_source_add(&idle, 0, LOOP, MODE);
            atexit(uses_loop_at_exit);
            at_quick_exit(uses_loop_at_exit);
            if (i == 0) {
                exit(3);
            }
            quick_exit(3);
        }
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
}

/* P4: many threads, each with a loop, a source, a timer, an observer, a port and a block left behind. */
struct crowd {
    CFRunLoopSourceRef shared; /* in every loop */
    _Atomic int next;
    int count;
};

struct visit {
    struct crowd *crowd;
    struct probe source; /* these are used to the end of the thread */
    struct probe timer;
    struct probe observer;
    struct probe port;
};

static void lives_shortly(void *context)
{
    struct visit *visit = context;
    int event = probe_event();
    CFRunLoopSourceSignal(probe_source_add(&visit->source, 0, LOOP, kCFRunLoopCommonModes));
    CFRunLoopAddSource(LOOP, visit->crowd->shared, MODE);
    probe_timer_add(&visit->timer, 100, 1, LOOP, MODE);
    probe_observer_add(&visit->observer, kCFRunLoopAllActivities, 0, LOOP, MODE);
    CFRunLoopSourceRef p = probe_port_source_add(&visit->port, 0, event, LOOP, MODE);
    probe_event_post(event);
    CRLRunLoopPerformFunction(LOOP, CFSTR("never"), free, NULL, free);
    CFRunLoopSourceSignal(visit->crowd->shared);
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    CFRunLoopRunInMode(MODE, 0.0001, false);
    CFRunLoopSourceInvalidate(p);
    close(event);
}

static void starts_one_after_another(void *context)
{
    struct crowd *crowd = context;
    const struct probe silent = {.name = "silent", .logging = probe_is_silent};
    while (crowd->next++ < crowd->count) {
        struct visit visit = {.crowd = crowd, .source = silent, .timer = silent, .observer = silent, .port = silent};
        probe_on_thread(lives_shortly, &visit);
        EXPECT_EQ(visit.source.releases, 1);
        EXPECT_EQ(visit.timer.releases, 1);
        EXPECT_EQ(visit.observer.releases, 1);
        EXPECT_EQ(visit.port.releases, 1);
    }
}

TEST_LIMIT(stress_ten_thousand_threads_leave_nothing, "170 173 P4", 300)
{
    enum { at_once = 32 }; /* each with its child: 64 threads with loops at most */
    static struct probe shared = {.name = "S", .logging = probe_is_silent};
    static struct crowd crowd;
    struct probe_thread threads[at_once];
    crowd.count = test_is_soak() ? 10000 : test_is_instrumented() ? 300 : 1000;
    crowd.shared = probe_source(&shared, 0);
    for (int i = 0; i < at_once; i++) {
        probe_thread_start(&threads[i], starts_one_after_another, &crowd);
    }
    for (int i = 0; i < at_once; i++) {
        probe_thread_join(&threads[i]);
    }
    EXPECT_EQ(shared.schedules, crowd.count);
    EXPECT_EQ(shared.cancels, crowd.count);
    EXPECT_EQ(CFGetRetainCount(crowd.shared), 1);
    CFRelease(crowd.shared);
}
