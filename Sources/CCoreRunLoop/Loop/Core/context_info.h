/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The info of a context while the program uses it: in a callout, in a description, or in the context's `retain` when the object is made.
 *
 * No use holds a lock, so another thread may invalidate the object meanwhile. The info is then released by the use that ends last, on that
 * use's thread. Always true: the info is handed to a releaser once, and not before the object has retired it and its users are gone. One
 * exception: an object that is freed no longer waits for users, because they are callouts whose threads have ended.
 *
 * One lock, which the object chooses, guards the whole structure. Functions marked "locked" need it held.
 */
#ifndef CRL_LOOP_CORE_CONTEXT_INFO_H
#define CRL_LOOP_CORE_CONTEXT_INFO_H

#include "Loop/link_names.h"

#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFRunLoop.h"
#include "Support/lock.h"

struct context_info {
    void *info; /* NULL once handed to the releaser */
    uint32_t users; /* callouts and other uses under way */
    bool is_over; /* the object needs the info no more: the last user releases it */
    bool is_released; /* the info has been handed to its releaser */
};

/* For an object that counts its callouts. */
struct callout_info {
    struct context_info hold;
    /* Identifies the thread of the latest callout that began. NULL once any callout has ended. A thread compares it with its own mark, and
     * finds that only while it is in a callout. */
    const void *called_by;
};

/* Locked. The object needs the info no more. Returns true if nobody uses it: the caller releases `*ret_info` after dropping the lock. */
bool context_info_retire(struct context_info *counted, void **ret_info);
/* Locked, or the object is being freed. Takes the info whatever users are left. Returns false if it was handed out before. */
bool context_info_finish(struct context_info *counted, void **ret_info);

/* ---- uses other than callouts, such as descriptions; these functions take the lock ---- */

/* Keeps the info alive. Returns false if the object needs it no more. */
bool context_info_begin_use(struct context_info *counted, struct lock *lock, void **ret_info);
/* Returns true if this was the last use of a retired info: the caller releases `*ret_info`. */
bool context_info_end_use(struct context_info *counted, struct lock *lock, void **ret_info);
/* Returns the text that `copy` makes of the info. NULL if there is no `copy`, or the info is retired. */
CFStringRef context_info_describe(struct context_info *counted, struct lock *lock, CFStringRef (*copy)(const void *info),
                                  void (*release)(const void *info));

/* ---- callouts; locked ---- */

/* A callout begins on this thread. Returns the info. */
void *callout_info_begin(struct callout_info *called);
/* A callout has ended. Returns true if the caller has to release `*ret_info`. */
bool callout_info_end(struct callout_info *called, void **ret_info);
/* As context_info_retire. Also true if the only use is a callout on this very thread, which is the one that invalidates. */
bool callout_info_retire(struct callout_info *called, void **ret_info);

#endif
