/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that use run loops: a task's loop is its own, and MPExit takes it down as any thread's end does.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <CoreServices/CoreServices.h>
#include <pthread.h>
#include <semaphore.h>

#include "harness.h"

struct task_work {
    struct trace trace;
    sem_t ended;
    CFRunLoopRef loop;
    bool calls_exit;
};

static void work_perform(void *info)
{
    struct task_work *work = info;
    trace_add(&work->trace, "S0");
}

static void work_cancel(void *info, CFRunLoopRef rl, CFStringRef mode)
{
    struct task_work *work = info;
    (void)mode;
    trace_add(&work->trace, rl == work->loop ? "cancel" : "cancel-elsewhere");
}

static void work_release(const void *info)
{
    struct task_work *work = (struct task_work *)info;
    trace_add(&work->trace, "release");
    sem_post(&work->ended);
}

static OSStatus run_a_loop(void *parameter)
{
    struct task_work *work = parameter;
    CFRunLoopSourceContext context = {0, work, NULL, work_release, NULL, NULL, NULL, NULL, work_cancel, work_perform};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &context);
    work->loop = CFRunLoopGetCurrent();
    CFRunLoopAddSource(work->loop, source, kCFRunLoopDefaultMode);
    CFRunLoopSourceSignal(source);
    CFRelease(source);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, FALSE);
    if (work->calls_exit)
        MPExit(0);
    trace_add(&work->trace, "return");
    return noErr;
}

TEST(a_task_has_a_run_loop_that_ends_with_it, "1 96 170")
{
    struct task_work work = {.loop = NULL};
    CFRunLoopRef own = CFRunLoopGetCurrent(); /* now: one made later may stand where the task's was */
    sem_init(&work.ended, 0, 0);
    EXPECT_EQ(MPCreateTask(run_a_loop, &work, 8 * 4096, NULL, NULL, NULL, 0, NULL), noErr);
    sem_wait(&work.ended);
    EXPECT_TRACE(&work.trace, "S0 return cancel release");
    EXPECT(work.loop != own);
}

TEST(MPExit_takes_the_run_loop_down, "96 170")
{
    struct task_work work = {.calls_exit = true};
    sem_init(&work.ended, 0, 0);
    EXPECT_EQ(MPCreateTask(run_a_loop, &work, 8 * 4096, NULL, NULL, NULL, 0, NULL), noErr);
    sem_wait(&work.ended);
    EXPECT_TRACE(&work.trace, "S0 cancel release");
}
