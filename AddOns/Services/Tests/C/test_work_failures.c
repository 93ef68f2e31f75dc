/* SPDX-License-Identifier: Apache-2.0 */
/* Work when memory or a thread is not to be had: it is refused, or ends. */
#include <errno.h>

#include "Failure/nth_failure.h"
#include "Work/work_kernel.h"
#include "work_probe.h"

static int failing_thread_start(void *(*function)(void *info))
{
    static const struct failing_call call = {"work.thread_start", {ENOMEM, 0}};

    (void)function;
    return -nth_failure_take(&call);
}

/* Two pieces, of which one is cancelled, on threads that are steps of this one. */
static bool work_in_the_background(void)
{
    struct work_probe probes[2] = {{0}, {0}};
    CRLWorkRef taken;
    bool is_given[2];

    work_kernel.thread_start = failing_thread_start;
    for (int i = 0; i < 2; i++) {
        is_given[i] = work_probe_give(&probes[i], CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    }
    taken = work_step_take();
    MUST((taken != NULL) == (is_given[0] || is_given[1]));
    for (int i = 0; i < 2; i++) {
        MUST(!is_given[i] || CRLWorkCancel(probes[i].work) == (taken != probes[i].work));
    }
    if (taken) {
        work_step_finish(taken);
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    for (int i = 0; i < 2; i++) {
        MUST(probes[i].ends == is_given[i]);
        if (is_given[i]) {
            work_probe_release(&probes[i]);
        }
        MUST(probes[i].releases == is_given[i]);
    }
    work_steps_end();
    return is_given[0] && is_given[1];
}

NTH_FAILURE(background_work, "")
{
    return work_in_the_background();
}

TEST(work_without_any_thread_is_refused, "")
{
    struct work_probe probe = {0};

    work_steps_begin(-EAGAIN);
    EXPECT(!work_probe_give(&probe, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    EXPECT_EQ(probe.releases, 0); /* it is the caller's still */
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false), kCFRunLoopRunFinished);
}
