/* SPDX-License-Identifier: Apache-2.0 */
/* See work_probe.h. */
#include "work_probe.h"

#include "Work/work.h"
#include "Work/work_kernel.h"

static int start_error;

static void run(void *info)
{
    struct work_probe *probe = info;

    probe->runs++;
    if (probe->during) {
        probe->during(probe);
    }
}

static void end(CRLWorkRef work, CRLWorkEnd how, void *info)
{
    struct work_probe *probe = info;

    EXPECT(!probe->work || probe->work == work);
    probe->end = how;
    probe->ends++;
    if (probe->after) {
        probe->after(probe);
    }
}

static void count_release(const void *info)
{
    ((struct work_probe *)(uintptr_t)info)->releases++;
}

bool work_probe_give(struct work_probe *probe, CFRunLoopRef loop, CFRunLoopMode mode)
{
    CRLSourceContext context = {.info = probe, .release = count_release};

    probe->work = CRLRunLoopPerformInBackground(loop, mode, run, end, &context);
    return probe->work != NULL;
}

void work_probe_release(struct work_probe *probe)
{
    CRLWorkRef work = probe->work;

    probe->work = NULL;
    CFRelease(work);
}

void work_probe_give_away(struct work_probe *probe, CFRunLoopRef loop, CFRunLoopMode mode)
{
    CRLSourceContext context = {.info = probe, .release = count_release};
    CRLWorkRef work = CRLRunLoopPerformInBackground(loop, mode, run, end, &context);

    REQUIRE(work);
    CFRelease(work);
}

static int start_nothing(void *(*function)(void *info))
{
    (void)function;
    return start_error;
}

void work_steps_begin(int error)
{
    start_error = error;
    work_kernel.thread_start = start_nothing;
}

CRLWorkRef work_step_take(void)
{
    CRLWorkRef work;

    service_lock_take(&work_lock);
    work = work_pool_take();
    service_lock_drop(&work_lock);
    return work;
}

void work_step_finish(CRLWorkRef work)
{
    work->function(work->context.info);
    work_pool_finish(work);
}

void work_steps_end(void)
{
    EXPECT(!work_step_take());
    service_lock_take(&work_lock);
    work_pool_reset();
    service_lock_drop(&work_lock);
}
