/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel is told of a mode's watches. L */
#ifndef CRL_LOOP_WATCH_REGISTRATION_H
#define CRL_LOOP_WATCH_REGISTRATION_H

#include "Support/link_names.h"

#include "Loop/watch.h"

/* What a report of the watch brings back. */
static inline uint64_t watch_token_of(const struct watch *watch)
{
    /* Generations start at 1, so that no watch has the token of the eventfd or of the main queue. */
    return (uint64_t)watch->generation << 32 | (uint32_t)watch->descriptor;
}

/* Tells the kernel of all that has changed. There is a wait set. */
void watch_flush(CFRunLoopRef loop, struct watch_set *watches);
/* At once, of a watch that is in the set. */
void watch_take_out(const struct watch_set *watches, const struct watch *watch);
/* False if the kernel has no room for it. */
bool watch_put_main_queue(const struct watch_set *watches, int descriptor);
/* The watch is in no set, or in one that is told, and has no members. */
void watch_destroy(struct watch_set *watches, struct watch *watch);

#endif
