/* SPDX-License-Identifier: Apache-2.0 */
/* Clean-ups around a program's callback; see callback_cleanup.h. No state of its own. */
#include "Port/Core/callback_cleanup.h"

#include "Loop/Core/run.h"

/* Ends the runs that were left before, as a run in the callback would do: later clean-ups have to lie above those of such runs. */
__attribute__((noinline)) uint32_t callback_cleanup_begin(CFRunLoopRef loop, void (*do_it)(const void *thing), const void *thing)
{
    if (loop != thread_loop_if_any()) {
        return 0; /* threads whose loops have ended share this loop */
    }
    loop_lock(loop);
    if (loop->innermost_run) {
        runs_leave_gone(loop, (uintptr_t)__builtin_frame_address(0));
    }
    loop_unlock(loop);
    return cleanup_push(loop, do_it, thing);
}
