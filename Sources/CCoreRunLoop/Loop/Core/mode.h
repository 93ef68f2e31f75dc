/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mode of a loop: what is in it, by kind. A mode is made when something is added under its name, and lives as long as its loop.
 */
#ifndef CRL_LOOP_CORE_MODE_H
#define CRL_LOOP_CORE_MODE_H

#include "Loop/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFArray.h"
#include "CoreFoundation/CFRunLoop.h"
#include "CoreFoundation/CFString.h"
#include "Support/guard.h"
#include "Support/heap.h"
#include "Support/list.h"

struct block;
struct observer_list;
struct source_member;
struct watch_set;

/* The lock of whichever loop: no thread ever holds two of them. */
extern struct lock_role the_loop_lock;

enum loop_limits {
    activity_count = 6, /* Entry, BeforeTimers, BeforeSources, BeforeWaiting, AfterWaiting, Exit */
};

/* Sources by equality (rule 94); see Signal/source_set.h. The loop's lock guards a set. */
struct source_set {
    struct source_member **buckets; /* NULL: the set has the single bucket `first` */
    struct source_member *first;
    uint32_t bucket_count; /* a power of two */
    uint32_t count;
    uint32_t first_full; /* when a loop ends: the buckets before this one are empty */
    uint32_t changes; /* counts insertions and removals, so that a search that dropped the lock knows whether it has to begin again */
};

/* A queue of blocks in order of their sequence numbers; see Block/block.h. The loop's lock guards a queue. */
struct block_queue {
    struct block *head;
    struct block **tail;
};

static inline void block_queue_init(struct block_queue *queue)
{
    queue->head = NULL;
    queue->tail = &queue->head;
}

struct mode {
    CFStringRef name; /* constant */
    CFHashCode name_hash; /* constant */
    struct mode *next GUARDED_BY(the_loop_lock); /* of the loop; modes are added and never removed */
    struct mode *next_common GUARDED_BY(the_loop_lock); /* of the loop's common modes */
    bool is_declared GUARDED_BY(the_loop_lock); /* something was added under the name: it counts as a mode (rule 11) */
    bool is_common GUARDED_BY(the_loop_lock);
    bool pending_is_unsorted GUARDED_BY(the_loop_lock);
    bool prefers_sources GUARDED_BY(the_loop_lock); /* alternates at each wait, so that neither timers nor sources starve (rule 35) */
    struct source_set sources GUARDED_BY(the_loop_lock); /* of every kind */
    uint32_t suspended_count GUARDED_BY(the_loop_lock); /* sources that are suspended or let runs finish: for runs they are not in it */
    struct link pending GUARDED_BY(the_loop_lock); /* members of signalled version-0 sources, in order of arrival if unsorted */
    struct heap timers GUARDED_BY(the_loop_lock); /* the waiting ones; and behind them those that were added during their callout */
    uint32_t timer_count GUARDED_BY(the_loop_lock); /* all timers of the mode, in the heap or not */
    uint32_t tolerant_count GUARDED_BY(the_loop_lock); /* timers with a tolerance */
    uint32_t early_key_count GUARDED_BY(the_loop_lock); /* timers whose key in the heap is earlier than their date; see Timer/timer.h */
    struct block_queue blocks GUARDED_BY(the_loop_lock);
    _Atomic uint32_t observed; /* activities that have observers; written with the loop's lock, read by the loop's thread without it */
    struct observer_list *observers[activity_count] GUARDED_BY(the_loop_lock); /* a list does not change while it is walked */
    struct watch_set *watches; /* NULL until the mode has its first descriptor; set once, with the loop's lock */
    void (*free_watches)(struct mode *mode) GUARDED_BY(the_loop_lock); /* set with `watches` */
    bool lacks_main_queue; /* loop's thread only: the main dispatch queue's descriptor cannot be watched, and is polled */
};

/* Returns true if the name is kCFRunLoopCommonModes, by value (rule 13). */
bool mode_name_equals_common(CFStringRef name);

static inline bool mode_name_is_common(CFStringRef name)
{
    return name != kCFRunLoopDefaultMode && mode_name_equals_common(name);
}

/*
 * As mode_name_is_common. Quicker where a mode of the loop has this very string for its name: no mode has the common modes' name, and
 * comparing texts costs more than the rest of a call.
 */
REQUIRES(the_loop_lock) bool mode_name_means_common(CFRunLoopRef loop, CFStringRef name);

/* Returns the mode, or NULL if there is none of the name. */
REQUIRES(the_loop_lock) struct mode *mode_find(CFRunLoopRef loop, CFStringRef name);

/* Finds or makes the mode, and declares it. Returns NULL if there is no memory. */
REQUIRES(the_loop_lock) struct mode *mode_declare(CFRunLoopRef loop, CFStringRef name);

/* Finds or makes the mode without declaring it, because what is to be added may yet be refused (rule 11). NULL if there is no memory. */
REQUIRES(the_loop_lock) struct mode *mode_create_undeclared(CFRunLoopRef loop, CFStringRef name);

/*
 * Finds out where to add something under `name`. Returns true if that is the common modes. Otherwise returns false and the mode in
 * `ret_mode`, which is made undeclared if need be, or NULL if there is no memory.
 */
REQUIRES(the_loop_lock) bool mode_resolve(CFRunLoopRef loop, CFStringRef name, struct mode **ret_mode);

/* Whether the loop has more than one common mode: there is always the default mode. */
EXCLUDES(the_loop_lock) bool mode_common_are_several(CFRunLoopRef loop);
/* Puts a mode among the common ones. It must not be there. The caller adds the common items to it. */
REQUIRES(the_loop_lock) void mode_make_common(CFRunLoopRef loop, struct mode *mode);

/* Returns the names of the declared modes, or NULL if there is no memory. Takes the lock. */
EXCLUDES(the_loop_lock) CFMutableArrayRef modes_copy_names(CFRunLoopRef loop);

/* Returns the name of the innermost run's mode with a reference, or NULL if there is no run. Takes the lock. */
EXCLUDES(the_loop_lock) CFStringRef mode_copy_current_name(CFRunLoopRef loop);

/* Frees the memory of a loop's modes. Nothing may be in them. */
REQUIRES(the_loop_lock) void modes_free(CFRunLoopRef loop);

#endif
