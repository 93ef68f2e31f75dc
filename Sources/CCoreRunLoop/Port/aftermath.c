/* SPDX-License-Identifier: Apache-2.0 */
/* What has to come after callbacks; see aftermath.h. No state of its own. */
#include "Port/aftermath.h"

#include "Loop/activation.h"

/* Runs that were left before are over first, as a run in the callback would find: what is held from here on is above what they hold. */
__attribute__((noinline)) uint32_t aftermath_begin(CFRunLoopRef loop, void (*do_it)(const void *thing), const void *thing)
{
    if (loop != thread_loop_if_any()) {
        return 0; /* threads that have ended their loops share this one */
    }
    loop_lock(loop);
    if (loop->activation) {
        runs_leave_gone(loop, (uintptr_t)__builtin_frame_address(0));
    }
    loop_unlock(loop);
    return held_hold(loop, do_it, thing);
}
