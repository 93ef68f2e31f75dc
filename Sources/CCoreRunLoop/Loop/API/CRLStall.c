/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of stalls and statistics. No state. */
#include "CRLRunLoop.h"

#include "Loop/Core/instant.h"
#include "Loop/Run/stall.h"
#include "Loop/Run/thread_registry.h"
#include "Loop/Trace/statistics.h"

Boolean CRLRunLoopSetStallHandler(CFRunLoopRef loop, CFTimeInterval seconds, CRLStallCallBack callback, void *info,
                                  void (*release)(void *info))
{
    object_check(loop, &run_loop_class, "CRLRunLoopSetStallHandler", "loop");
    thread_registry_prepare(); /* which looks after forks */
    return stall_watch(loop, seconds > 0 ? instant_interval_ns(seconds) : 0, callback, info, release);
}

void CRLStatisticsStart(void)
{
    thread_registry_prepare(); /* which looks after forks, and what the environment asks for */
    statistics_start();
}

/* The loop's lock keeps its thread from ending, whose number another one may have then. */
Boolean CRLRunLoopGetStatistics(CFRunLoopRef loop, CRLStatistics *statistics)
{
    bool is_counted;

    object_check(loop, &run_loop_class, "CRLRunLoopGetStatistics", "loop");
    loop_lock(loop);
    is_counted = !loop->is_dead && statistics->version == 0 &&
                 statistics_copy(atomic_load_explicit(&loop->thread, memory_order_relaxed), statistics);
    loop_unlock(loop);
    return is_counted;
}
