/* SPDX-License-Identifier: Apache-2.0 */
/* The public call of stalls. No state. */
#include "CRLRunLoop.h"

#include "Loop/Core/instant.h"
#include "Loop/Run/stall.h"
#include "Loop/Run/thread_registry.h"

Boolean CRLRunLoopSetStallHandler(CFRunLoopRef loop, CFTimeInterval seconds, CRLStallCallBack callback, void *info,
                                  void (*release)(void *info))
{
    object_check(loop, &run_loop_class, "CRLRunLoopSetStallHandler", "loop");
    thread_registry_prepare(); /* which looks after forks */
    return stall_watch(loop, seconds > 0 ? instant_interval_ns(seconds) : 0, callback, info, release);
}
