/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clean-ups that follow a program's callback even if it ends its thread or jumps out: the thread's loop holds them
 * (Loop/Core/callout_cleanup.h), and they run when the run around the callback goes on, or at the thread's end. On the calling thread,
 * without locks.
 */
#ifndef CRL_PORT_CORE_CALLBACK_CLEANUP_H
#define CRL_PORT_CORE_CALLBACK_CLEANUP_H

#include "Port/link_names.h"

#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/thread_loop.h"

/*
 * Called before the callback, with the thread's own loop. After the callback the caller passes the result to callback_cleanup_end, and does
 * the clean-up itself. Returns 0 if there is no memory or the thread's loop has ended. Then nobody cleans up if the callback does not
 * return.
 */
uint32_t callback_cleanup_begin(CFRunLoopRef loop, void (*do_it)(const void *thing), const void *thing);

static inline void callback_cleanup_end(CFRunLoopRef loop, uint32_t begun)
{
    cleanup_pop(loop, begun);
}

#endif
