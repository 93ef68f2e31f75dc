/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a loop: what CFCopyDescription and CFShow say of it. */
#ifndef CRL_LOOP_RUN_LOOP_DUMP_H
#define CRL_LOOP_RUN_LOOP_DUMP_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"

/*
 * Returns the state of the loop, its modes and what is in each of them, one item a line. NULL, or a shorter text, if there is no memory.
 * Any thread, while the loop runs, too. Calls the contexts of the items to describe their infos.
 */
EXCLUDES(the_loop_lock, the_item_lock) CFStringRef loop_copy_dump(CFRunLoopRef loop);

#endif
