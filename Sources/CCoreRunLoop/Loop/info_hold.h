/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The info of a context, while the program uses it: in callouts, where it describes it, and where it retains it as the object is made. None
 * of them holds a lock, so whoever makes the object invalid meanwhile leaves the info to the last of them, on whatever thread that is.
 *
 * The lock that guards the info, of the object's choice, guards the whole of it: H.
 */
#ifndef CRL_LOOP_INFO_HOLD_H
#define CRL_LOOP_INFO_HOLD_H

#include "Support/link_names.h"

#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFRunLoop.h"
#include "Support/lock.h"

struct info_hold {
    void *info; /* H; NULL once released */
    uint32_t users; /* H; callouts and other uses under way */
    bool is_over; /* H; the object needs the info no more: the last user releases it */
    bool is_released; /* H */
};

/* Of an object that counts its callouts here. */
struct called_info {
    struct info_hold hold;
    CFRunLoopRef called_on; /* H; the loop of the latest callout; NULL once one has ended: as good as another loop than one's own */
};

/* The object needs its info no more. True: nobody uses it, and the caller gives `ret_info` back once the lock is dropped. H */
bool info_hold_give_up(struct info_hold *hold, void **ret_info);
/* The object is freed: a user that has not ended is a thread that has. True: the info was not given back yet. */
bool info_hold_finish(struct info_hold *hold, void **ret_info);

/* ---- other uses, as descriptions; without the lock, which they take ---- */

/* Keeps the info. False if the object needs it no more. */
bool info_hold_begin_use(struct info_hold *hold, struct lock *lock, void **ret_info);
/* True: the caller gives `ret_info` back. */
bool info_hold_end_use(struct info_hold *hold, struct lock *lock, void **ret_info);
/* What `copy` says of the info; NULL if there is no such function, or no need of the info any more. */
CFStringRef info_hold_describe(struct info_hold *hold, struct lock *lock, CFStringRef (*copy)(const void *info),
                               void (*release)(const void *info));

/* ---- callouts; H ---- */

/* One begins on this thread. Returns the info. */
void *called_info_begin(struct called_info *called);
/* It has ended. True: as above. */
bool called_info_end(struct called_info *called, void **ret_info);
/* As info_hold_give_up; where the only callout is this thread's own, nobody uses the info either. */
bool called_info_give_up(struct called_info *called, void **ret_info);

#endif
