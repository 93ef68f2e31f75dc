/* SPDX-License-Identifier: Apache-2.0 */
/* Work on threads of the pool: where it runs, where its end is told, and what becomes of it without its loop or its process. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Loop/loop_probe.h"
#include "Work/work_kernel.h"
#include "work_probe.h"

enum { many = 2000 };

static CFRunLoopRunResult run_to_end(void)
{
    return CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), false);
}

static void note_thread(struct work_probe *probe)
{
    sigset_t blocked;

    EXPECT(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 && sigismember(&blocked, SIGTERM) == 1);
    *(pthread_t *)probe->context = pthread_self();
}

TEST(work_runs_elsewhere_and_its_end_is_told_here, "")
{
    pthread_t thread = pthread_self();
    struct work_probe probe = {.during = note_thread, .context = &thread};

    work_probe_give_away(&probe, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished); /* kept alive till then, and no longer */
    EXPECT(!pthread_equal(thread, pthread_self()));
    EXPECT_EQ(probe.ends, 1);
    EXPECT_EQ(probe.end, kCRLWorkDone);
    EXPECT_EQ(probe.releases, 1);
}

TEST(all_work_ends, "")
{
    static struct work_probe probes[many];
    int wrong = 0;

    for (int i = 0; i < many; i++) {
        work_probe_give_away(&probes[i], CFRunLoopGetCurrent(), i % 2 ? kCFRunLoopDefaultMode : kCFRunLoopCommonModes);
    }
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    for (int i = 0; i < many; i++) {
        wrong += probes[i].runs != 1 || probes[i].ends != 1 || probes[i].releases != 1;
    }
    EXPECT_EQ(wrong, 0);
}

TEST(the_end_waits_for_its_mode, "")
{
    struct work_probe probe = {0};

    work_probe_give_away(&probe, CFRunLoopGetCurrent(), CFSTR("rare"));
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished); /* nothing is in this mode */
    EXPECT_EQ(probe.ends, 0);
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("rare"), test_patience_s(), false), kCFRunLoopRunFinished);
    EXPECT_EQ(probe.ends, 1);
}

static void run_within(struct work_probe *probe)
{
    struct work_probe *behind = probe->context;

    while (behind->ends == 0) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), true);
    }
}

TEST(a_run_within_a_callback_hears_of_other_ends, "")
{
    struct work_probe last = {0};
    struct work_probe second = {.after = run_within, .context = &last};
    struct work_probe first = {.after = run_within, .context = &second};

    work_steps_begin(0);
    work_probe_give_away(&first, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    work_probe_give_away(&second, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    work_probe_give_away(&last, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    for (int i = 0; i < 3; i++) {
        work_step_finish(work_step_take());
    }
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    EXPECT_EQ(first.ends + second.ends + last.ends, 3);
    EXPECT_EQ(first.releases + second.releases + last.releases, 3);
    work_steps_end();
}

static void give_next(struct work_probe *probe)
{
    if (probe->ends < 20) {
        work_probe_give_away(probe, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    }
}

TEST(a_callback_gives_the_next_work, "")
{
    struct work_probe probe = {.after = give_next};

    give_next(&probe);
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    EXPECT_EQ(probe.ends, 20);
    EXPECT_EQ(probe.releases, 20);
}

/* ---- cancelling ---- */

TEST(work_is_cancelled_before_it_begins, "")
{
    struct work_probe probe = {0};

    work_steps_begin(0);
    EXPECT(work_probe_give(&probe, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    EXPECT(CRLWorkCancel(probe.work));
    EXPECT(!CRLWorkCancel(probe.work));
    EXPECT_EQ(probe.ends, 0); /* not within the call */
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    EXPECT_EQ(probe.ends, 1);
    EXPECT_EQ(probe.end, kCRLWorkCancelled);
    EXPECT_EQ(probe.runs, 0);
    EXPECT_EQ(probe.releases, 0);
    work_probe_release(&probe);
    EXPECT_EQ(probe.releases, 1);
    work_steps_end();
}

TEST(threads_cancel_work_that_may_have_begun, "")
{
    static struct work_probe probes[many];
    int cancelled = 0;
    int wrong = 0;

    for (int i = 0; i < many; i++) {
        EXPECT(work_probe_give(&probes[i], CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    }
    for (int i = many - 1; i >= 0; i--) {
        cancelled += CRLWorkCancel(probes[i].work);
        work_probe_release(&probes[i]);
    }
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    for (int i = 0; i < many; i++) {
        wrong += probes[i].ends != 1 || probes[i].runs != (probes[i].end == kCRLWorkDone) || probes[i].releases != 1;
        cancelled -= probes[i].end == kCRLWorkCancelled;
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(cancelled, 0);
}

/* ---- threads ---- */

static sem_t both;

static void wait_for_another(struct work_probe *probe)
{
    (void)probe;
    sem_post(&both);
    while (sem_trywait(&both) != 0) {
        (void)sched_yield();
    }
}

static void leave_the_thread(struct work_probe *probe)
{
    (void)probe;
    pthread_exit(NULL);
}

TEST(work_that_ends_its_thread_has_ended, "")
{
    static struct work_probe probes[100];
    int wrong = 0;

    for (int i = 0; i < 100; i++) {
        probes[i].during = i % 2 ? leave_the_thread : NULL;
        work_probe_give_away(&probes[i], CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    }
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    for (int i = 0; i < 100; i++) {
        wrong += probes[i].ends != 1 || probes[i].releases != 1;
    }
    EXPECT_EQ(wrong, 0);
}

static _Atomic int waits;

/* The time is over at once; now and then not. */
static bool wait_shortly(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    (void)sched_yield();
    pthread_mutex_lock(mutex);
    return ++waits % 3 == 0;
}

TEST(idle_threads_end_and_begin_again, "")
{
    struct work_probe probe = {.after = give_next};

    work_kernel.idle_wait = wait_shortly;
    give_next(&probe);
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    EXPECT_EQ(probe.ends, 20);
}

static unsigned one_processor(void)
{
    return 1;
}

static unsigned many_processors(void)
{
    return 1000;
}

static _Atomic int started;
static int (*linux_start)(void *(*function)(void *info));

static int count_start(void *(*function)(void *info))
{
    started++;
    return linux_start(function);
}

static pthread_key_t thread_end;
static sem_t ended_threads;

static void note_end(void *unused)
{
    (void)unused;
    (void)sem_post(&ended_threads);
}

static void note_end_later(struct work_probe *probe)
{
    EXPECT(pthread_setspecific(thread_end, probe) == 0);
}

static bool wait_no_time(pthread_mutex_t *mutex)
{
    (void)mutex;
    return false;
}

TEST(a_thread_that_was_idle_for_too_long_has_ended, "")
{
    REQUIRE(sem_init(&ended_threads, 0, 0) == 0 && pthread_key_create(&thread_end, note_end) == 0);
    linux_start = work_kernel.thread_start;
    work_kernel.thread_start = count_start;
    work_kernel.idle_wait = wait_no_time;
    for (int i = 1; i <= 3; i++) {
        struct work_probe probe = {.during = note_end_later};

        work_probe_give_away(&probe, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
        EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
        while (sem_wait(&ended_threads) != 0) {
        }
        EXPECT_EQ(probe.releases, 1);
        EXPECT_EQ(started, i);
    }
}

static void check_threads(unsigned (*processors)(void), int expected)
{
    static struct work_probe probes[200];
    sem_t go;

    sem_init(&both, 0, 0);
    sem_init(&go, 0, 0);
    linux_start = work_kernel.thread_start;
    work_kernel.thread_start = count_start;
    work_kernel.processor_count = processors;
    for (int i = 0; i < 200; i++) {
        work_probe_give_away(&probes[i], CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    }
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    EXPECT(started >= 1 && started <= expected);
}

TEST(the_pool_has_a_thread_more_than_one_on_one_processor, "")
{
    struct work_probe probes[2] = {{.during = wait_for_another}, {.during = wait_for_another}};

    sem_init(&both, 0, 0);
    work_kernel.processor_count = one_processor;
    work_probe_give_away(&probes[0], CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    work_probe_give_away(&probes[1], CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
}

TEST(the_pool_has_four_threads_on_one_processor, "")
{
    check_threads(one_processor, 4);
}

TEST(the_pool_has_64_threads_on_many_processors, "")
{
    check_threads(many_processors, 64);
}

/* ---- the loop ends ---- */

static void give_three(void *info)
{
    struct work_probe *probes = info;

    for (int i = 0; i < 3; i++) {
        work_probe_give_away(&probes[i], CFRunLoopGetCurrent(), kCFRunLoopCommonModes);
    }
    probes[0].work = work_step_take();
    work_step_finish(probes[0].work);
    probes[0].work = NULL;
    probes[1].context = work_step_take();
}

TEST(a_loop_that_ends_tells_nothing_and_gives_back, "")
{
    struct work_probe probes[3] = {{0}, {0}, {0}};

    work_steps_begin(0);
    probe_on_thread(give_three, probes);
    EXPECT_EQ(probes[0].releases, 1); /* had ended */
    EXPECT_EQ(probes[1].releases, 0); /* runs on */
    EXPECT_EQ(probes[2].releases, 1); /* had not begun */
    work_step_finish(probes[1].context);
    EXPECT_EQ(probes[1].releases, 1);
    EXPECT_EQ(probes[0].ends + probes[1].ends + probes[2].ends, 0);
    work_steps_end();
}

static void keep_one(void *info)
{
    struct work_probe *probe = info;

    EXPECT(work_probe_give(probe, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    probe->context = (void *)(uintptr_t)CFRetain(CFRunLoopGetCurrent());
}

TEST(a_loop_that_has_ended_takes_no_work, "")
{
    struct work_probe probe = {0};
    CFStringRef text;

    work_steps_begin(0);
    probe_on_thread(keep_one, &probe);
    EXPECT_EQ(probe.releases, 0);
    EXPECT(!CRLWorkCancel(probe.work));
    text = CFCopyDescription(probe.work);
    EXPECT(CFStringGetLength(text) > 20);
    CFRelease(text);
    work_probe_release(&probe);
    EXPECT_EQ(probe.releases, 1);
    EXPECT(!work_probe_give(&probe, (CFRunLoopRef)probe.context, kCFRunLoopDefaultMode));
    EXPECT_EQ(probe.releases, 1);
    CFRelease(probe.context);
    work_steps_end();
}

static CFStringRef copy_name(const void *info)
{
    (void)info;
    return CFRetain(CFSTR("the context's name"));
}

static bool is_described(CFTypeRef object, CFStringRef as)
{
    CFStringRef text = CFCopyDescription(object);
    bool result = CFStringFind(text, as, 0).location != kCFNotFound;

    CFRelease(text);
    return result;
}

TEST(work_and_its_loop_are_described, "")
{
    CRLSourceContext context = {.copyDescription = copy_name};
    CRLWorkRef work;

    work_steps_begin(0);
    work = CRLRunLoopPerformInBackground(CFRunLoopGetCurrent(), kCFRunLoopDefaultMode, free, NULL, &context);
    REQUIRE(work);
    EXPECT(is_described(work, CFSTR("state = waiting, context = the context's name")));
    EXPECT(is_described(CFRunLoopGetCurrent(), CFSTR("ends of background work")));
    EXPECT(CRLWorkCancel(work));
    EXPECT(is_described(work, CFSTR("state = ended")));
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    EXPECT(is_described(work, CFSTR("state = told")));
    CFRelease(work);
    work_steps_end();
}

/* ---- processes ---- */

static void check_child(struct work_probe *former)
{
    struct work_probe probe = {0};
    bool is_clean = !CRLWorkCancel(former->work) && run_to_end() == kCFRunLoopRunFinished && former->ends == 0;

    work_probe_give_away(&probe, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    _exit(is_clean && run_to_end() == kCFRunLoopRunFinished && probe.ends == 1 ? 0 : 1);
}

TEST(the_child_of_a_fork_drops_work, "")
{
    struct work_probe probes[3] = {{0}, {0}, {0}};
    int (*start)(void *(*function)(void *info)) = work_kernel.thread_start;
    int status = -1;
    pid_t child;

    work_steps_begin(0);
    for (int i = 0; i < 3; i++) {
        EXPECT(work_probe_give(&probes[i], CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    }
    work_step_finish(work_step_take());
    probes[1].context = work_step_take();
    child = fork();
    if (child == 0) {
        work_kernel.thread_start = start;
        check_child(&probes[2]);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
    work_step_finish(probes[1].context);
    work_step_finish(work_step_take());
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(probes[i].ends, 1);
        work_probe_release(&probes[i]);
    }
    work_steps_end();
}

TEST(a_busy_program_forks, "")
{
    static struct work_probe probes[many];

    for (int i = 0; i < many; i++) {
        work_probe_give_away(&probes[i], CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
        if (i % 200 == 100) {
            struct work_probe probe = {0};
            int status = -1;
            pid_t child = fork();

            if (child == 0) {
                work_steps_begin(0); /* a sanitizer starts no thread here */
                work_probe_give_away(&probe, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
                work_step_finish(work_step_take());
                _exit(run_to_end() == kCFRunLoopRunFinished && probe.ends == 1 ? 0 : 1);
            }
            EXPECT(waitpid(child, &status, 0) == child);
            EXPECT_EQ(status, 0);
        }
    }
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
}

static _Atomic bool is_idle;

static bool note_idle(pthread_mutex_t *mutex)
{
    (void)mutex;
    is_idle = true;
    return false;
}

/* In the child of a fork, once the thread that forked has left the pool. */
static void *give_later(void *unused)
{
    struct work_probe probe = {0};

    while (!is_idle) {
        (void)sched_yield();
    }
    work_probe_give_away(&probe, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    (void)unused;
    _exit(run_to_end() == kCFRunLoopRunFinished && probe.ends == 1 ? 0 : 1);
}

/* The child's one thread is the pool's, and goes on as such. */
static void fork_and_return(struct work_probe *probe)
{
    pid_t child = fork();
    pthread_t thread;

    if (child == 0) {
        work_kernel.idle_wait = note_idle;
        if (pthread_create(&thread, NULL, give_later, NULL) != 0) {
            _exit(2);
        }
        return;
    }
    *(pid_t *)probe->context = child;
}

TEST(work_may_fork_and_its_thread_be_one_of_the_child_s_pool, "")
{
    pid_t child = -1;
    struct work_probe probe = {.during = fork_and_return, .context = &child};
    int status = -1;

    if (test_is_instrumented()) {
        SKIP("a sanitizer starts no thread in the child");
    }
    work_probe_give_away(&probe, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(probe.ends, 1);
}

/* ---- callbacks that do not return ---- */

static jmp_buf way_out;

static void jump_out(struct work_probe *probe)
{
    (void)probe;
    longjmp(way_out, 1);
}

TEST(a_callback_that_leaves_its_run_loses_no_end, "")
{
    struct work_probe first = {.after = jump_out};
    struct work_probe second = {0};

    work_steps_begin(0);
    work_probe_give_away(&first, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    work_probe_give_away(&second, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    work_step_finish(work_step_take());
    work_step_finish(work_step_take());
    if (setjmp(way_out) == 0) {
        (void)run_to_end();
        FAIL("the callback has returned");
    }
    EXPECT_EQ(run_to_end(), kCFRunLoopRunFinished);
    EXPECT_EQ(first.ends + second.ends, 2);
    work_steps_end();
}

TEST(work_that_makes_no_sense_is_refused, "")
{
    CRLSourceContext wrong = {.version = 1};

    EXPECT(!CRLRunLoopPerformInBackground(CFRunLoopGetCurrent(), kCFRunLoopDefaultMode, NULL, NULL, NULL));
    EXPECT(!CRLRunLoopPerformInBackground(CFRunLoopGetCurrent(), kCFRunLoopDefaultMode, free, NULL, &wrong));
    EXPECT_STOPS("CRLRunLoopPerformInBackground: the run loop is NULL",
                 (void)CRLRunLoopPerformInBackground(NULL, kCFRunLoopDefaultMode, free, NULL, NULL));
    EXPECT_STOPS("CRLWorkCancel: the work is another object", (void)CRLWorkCancel((CRLWorkRef)(uintptr_t)kCFBooleanTrue));
}
