/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to come after a program's callback, also if that does not return, as it ends its thread or jumps out: the thread's loop holds it
 * (Loop/held.h), and it is done when the run around the callback goes on, or at the thread's end. On the calling thread, without locks.
 */
#ifndef CRL_PORT_AFTERMATH_H
#define CRL_PORT_AFTERMATH_H

#include "Support/link_names.h"

#include "Loop/held.h"

/*
 * Before the callback; after it aftermath_end, with the result, and the caller does by itself what comes. The loop is the thread's own. 0:
 * there is no memory, or the thread has ended its loop, and then it is not done if the callback does not return.
 */
uint32_t aftermath_begin(CFRunLoopRef loop, void (*do_it)(const void *thing), const void *thing);

static inline void aftermath_end(CFRunLoopRef loop, uint32_t begun)
{
    held_let_go(loop, begun);
}

#endif
