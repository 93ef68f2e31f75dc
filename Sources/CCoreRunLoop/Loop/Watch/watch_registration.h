/* SPDX-License-Identifier: Apache-2.0 */
/* Registers watches with the kernel. The loop's lock is held. */
#ifndef CRL_LOOP_WATCH_REGISTRATION_H
#define CRL_LOOP_WATCH_REGISTRATION_H

#include "Loop/link_names.h"

#include "Loop/Watch/watch.h"

/* Returns the token that a report of the watch has. */
static inline uint64_t watch_token_of(const struct watch *watch)
{
    /* Generations start at 1, so that no watch has a token of enum watch_token. */
    invariant(watch->generation != 0);
    return (uint64_t)watch->generation << 32 | (uint32_t)watch->descriptor;
}

/* Tells the kernel all changes. There must be a wait set. */
REQUIRES(the_loop_lock) void watch_flush(CFRunLoopRef loop, struct watch_set *watches);
/* Takes a watch out of the set at once. It must be in there. */
void watch_take_out(const struct watch_set *watches, const struct watch *watch);
/* Adds the main dispatch queue's descriptor to the set. Returns false if the kernel has no room for it. */
bool watch_put_main_queue(const struct watch_set *watches, int descriptor);
/* Frees a watch without members. It must not be in the set. */
REQUIRES(the_loop_lock) void watch_destroy(struct watch_set *watches, struct watch *watch);

#endif
