/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock over a few steps, in which a thread may call the C library, and over which no thread forks: so the child finds it free, and finds
 * free what the C library locked meanwhile. Never held over the program's code, nor by a thread twice.
 */
#ifndef CRL_PLIST_FORK_LOCK_H
#define CRL_PLIST_FORK_LOCK_H

#include "plist_link_names.h"

#include "Support/guard.h"

extern struct lock_role the_fork_lock;

/* Returns the thread's cancel state from before, which the drop sets again. */
ACQUIRES(the_fork_lock) int fork_lock_take(void);
RELEASES(the_fork_lock) void fork_lock_drop(int cancel_state);

#endif
