/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run loop and its modes: the structures that the files of this folder share, and what guards each field.
 *
 *   L  the loop's lock      I  the item's lock (Support/lock.h)      O  only the thread whose loop it is
 *   A  atomic, see the comment      C  constant after creation
 *
 * Lock order: registry -> loop -> item -> mailbox pool. Never two loops at once, never a loop while holding an item. No lock is held at any
 * callout, at any retain, release, hash, equal or copyDescription of a context, at the disposal of a block, or when a reference that may be
 * the last is dropped.
 *
 * Invariants
 *   (I1) A source's mark is set and its slot is bound to this loop => the slot is in the mailbox's queue, or its members are in the
 *        pending lists, or a running signaller or joiner is about to do one of the two and to wake the loop if it could have looked in
 *        between.
 *   (I2) A mark is taken by exactly one compare-and-swap; queues and pending lists are hints.
 *   (I3) A bound slot holds one reference on its source and one on its loop. A timer or observer in a loop is referenced once by it and
 *        holds none on it.
 *   (I4) Work of a pass is proportional to what is signalled, due or ready in its mode.
 *   (I5) While asleep, `armed_ns` is no later than the limit of any timer of `waiting`, or RETIME is set.
 */
#ifndef CRL_LOOP_LOOP_H
#define CRL_LOOP_LOOP_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFArray.h"
#include "CoreFoundation/CFRunLoop.h"
#include "CoreFoundation/CFString.h"
#include "Loop/mailbox.h"
#include "Runtime/object.h"
#include "Support/hash_table.h"
#include "Support/heap.h"
#include "Support/list.h"
#include "Support/lock.h"

struct block;
struct observer_list;
struct source_member;
struct watch_set;

enum loop_limits {
    activity_count = 6, /* Entry, BeforeTimers, BeforeSources, BeforeWaiting, AfterWaiting, Exit */
};

/* What ended a wait (step 9 handles one kind). */
enum wake_cause { cause_none, cause_wake_up, cause_timers, cause_port, cause_main_queue };

/* Sources by equality (rule 94). L. */
struct source_set {
    struct source_member **buckets; /* NULL: the single bucket `first` */
    struct source_member *first;
    uint32_t bucket_count; /* a power of two */
    uint32_t count;
    uint32_t first_full; /* when a loop ends: no source before this bucket */
    uint32_t changes; /* counts insertions and removals: tells whether a search that had to let go of the lock still holds */
};

/* A queue of blocks in order of their sequence numbers. L. */
struct block_queue {
    struct block *head;
    struct block **tail;
};

struct mode {
    CFStringRef name; /* C */
    CFHashCode name_hash; /* C */
    struct mode *next; /* L; modes are only ever added */
    struct mode *next_common; /* L; likewise */
    bool is_declared; /* L; something was added under the name: it is a mode (rule 11) */
    bool is_common; /* L */
    bool pending_is_unsorted; /* L */
    bool prefers_port; /* L; turns at each wait, so that neither timers nor ports starve (35) */
    struct source_set sources; /* L; of every kind */
    uint32_t resting_count; /* L; those of them that rest: to everybody else they are not in the mode */
    struct link pending; /* L; members of version-0 sources whose mark was seen, in order of arrival unless unsorted */
    struct heap timers; /* L; those that wait; and those in callout that were added meanwhile, behind all others */
    uint32_t timer_count; /* L; all that are in the mode, in the heap or not */
    uint32_t tolerant_count; /* L; those of them with a tolerance */
    uint32_t deferred_count; /* L; those in the heap that stand there for an earlier date than they have, see timer.h */
    uint32_t advanced_count; /* L; those that stand there for a later one */
    uint32_t advanced_capacity; /* L */
    struct heap_node **advanced; /* L; in no order */
    struct block_queue blocks; /* L */
    _Atomic uint32_t observed; /* activities that somebody watches; written under L, read relaxed by O */
    struct observer_list *observers[activity_count]; /* L; not changed while they are walked */
    struct watch_set *watches; /* L; NULL until the mode has its first descriptor */
    bool lacks_main_queue; /* L; the main dispatch queue is to be served, and could not be watched: its descriptor is polled */
};

/* The source that the loop calls just now, or NULL: what a wait has found ready, or a signalled one alone. */
struct watch_report {
    CFRunLoopSourceRef source;
    uint32_t ready;
    bool is_borrowed; /* by `borrowed` of the loop; else the report has a reference */
};

/* What the callouts under way hold, see held.h. O. */
struct held {
    void (*give_back)(const void *thing); /* NULL: it has been taken */
    const void *thing;
};

struct held_stack {
    struct held *items;
    uint32_t count;
    uint32_t capacity;
};

/* One run; where it stands, activation.h says. O; `outer` and `mode` also L to write. */
struct activation {
    struct activation *outer;
    struct mode *mode;
    uintptr_t frame; /* C; where its function stands on the stack; 0: nowhere that tells when it has gone */
    int64_t deadline_ns; /* kernel_never: no limit */
    bool is_allocated; /* C */
    bool polls; /* a limit of 0: one pass, no sleep */
    bool returns_after_source;
    bool has_handled_source; /* in this pass */
    bool is_before_waiting; /* its BeforeWaiting observers are being called, or have been, and it does not sleep yet */
    bool is_hosted_asleep; /* prepared, and the host is waiting */
    bool took_token; /* a wait of this run, or of one inside it, was ended by a wake-up */
    bool is_owed_token; /* ... of one inside its BeforeWaiting observers; paid before it sleeps */
    bool served_main_queue; /* rule 181: do not look at the main queue first again */
    uint64_t poll_number; /* of a run with a limit of 0, once a source has asked for it (descriptor_source_poll_number) */
    const _Atomic uint32_t *awaited; /* C; NULL, or what ends a run that returns after a source as one does, once it is not 0 */
    uint32_t outer_word; /* the wake word as it was */
    uint32_t held_count; /* what the loop's callouts held before it */
    struct held in_hand; /* what its callout is about */
    struct block *blocks; /* or, if not NULL, the chain of them that it goes through */
    CFRunLoopObserverRef calling; /* the observer in whose callout it is, of the array in its hand */
    CFRunLoopSourceRef performing; /* the source of a descriptor in whose callout it is */
    struct watch_report report; /* what the wait has found, for cause_port, or what is performed before it */
};

struct __CFRunLoop {
    struct object object;
    struct mailbox *mailbox; /* C; NULL once dead and unreferenced */
    struct mode *modes; /* L; in the order in which they were made, the default mode first */
    struct mode **modes_end; /* L */
    struct hash_table modes_by_name; /* L; without slots while there are few of them */
    uint32_t mode_count; /* L */
    struct mode *default_mode; /* C */
    struct mode *common_modes; /* L; in the order in which they became common, the default mode first */
    struct mode **common_modes_end; /* L */
    struct lock lock; /* a line of the cache away from the mailbox's place, which threads read that wake the loop */
    bool is_dead; /* L; its thread has ended: nothing can be added (175) */
    bool is_main; /* C */
    bool is_niced; /* L; see loop_note_slack */
    bool in_main_queue; /* O; a block of the main dispatch queue is running (179) */
    struct activation *activation; /* O to write with L, L to read: the innermost */
    struct activation first_activation; /* the outermost, but for a hosted one */
    struct held_stack held; /* O */
    struct mode *waiting; /* L; the mode that is being slept on */
    int64_t armed_ns; /* L; the deadline given to the kernel */
    int64_t slack_ns; /* L; how late the kernel may be that nobody has asked to be late, see loop_note_slack */
    _Atomic(CFTimeInterval) busy_wait_s; /* A, relaxed; how long a wait stays awake before it sleeps, if it does */
    _Atomic uint8_t busy_wait; /* A, relaxed; enum busy_wait */
    uint8_t short_waits; /* O; in a row, of a loop that waits awake by what it finds */
    uint8_t short_waits_wanted; /* O; after so many it stays awake; 0: not begun yet */
    uint8_t short_waits_earned; /* O; awake, and not used up by one in vain */
    int64_t last_look_ns; /* O; of a wait that is awake; not positive: it is so no more */
    int64_t flood_look_ns; /* O; when a pass has looked at flooded sources */
    atomic_bool waits_awake; /* A; O to write: it is in a wait that has not slept at once */
    uint64_t next_sequence; /* L; order of arrival of timers, observers, blocks */
    struct source_set common_sources; /* L */
    struct link common_sources_in_order; /* L; of joining; the members of the set */
    struct link common_timers; /* L */
    struct link common_observers; /* L */
    struct block_queue common_blocks; /* L */
    struct block_queue listed_blocks; /* L; those for a list of modes */
    struct block *_Atomic spare_blocks; /* A, relaxed; written under L; looked at without it */
    uint32_t spare_block_count; /* L */
    uint32_t bound_slots; /* L */
    CFRunLoopTimerRef firing; /* O to write with L, L to read; timers in callout, innermost first */
    CFRunLoopSourceRef borrowed; /* L; of a report, whose reference is the slot's; who unbinds that slot gives the report one of its own */
    struct hosting *hosting; /* L; NULL until CRLRunLoopGetDescriptor or Prepare */
    struct link registry_link; /* registry lock */
    uint32_t generation; /* registry lock; one of another generation belongs to a parent of the process */
    struct __CFRunLoop *next_limbo; /* registry lock */
};

static inline void loop_lock(CFRunLoopRef loop)
{
    lock_take(&loop->lock);
}

static inline void loop_unlock(CFRunLoopRef loop)
{
    lock_drop(&loop->lock);
}

extern const struct object_class run_loop_class;

/* ---- modes (mode.c); the lock is held ---- */

bool mode_name_equals_common(CFStringRef name);

/* The name is kCFRunLoopCommonModes, by value (rule 13). */
static inline bool mode_name_is_common(CFStringRef name)
{
    return name != kCFRunLoopDefaultMode && mode_name_equals_common(name);
}

/*
 * The same, quicker where a mode of the loop has this very string for its name: no mode has the common modes' name, and comparing texts
 * costs more than all the rest of a call.
 */
bool mode_name_means_common(CFRunLoopRef loop, CFStringRef name);
struct mode *mode_find(CFRunLoopRef loop, CFStringRef name);
/* Finds or makes it; NULL if there is no memory. */
struct mode *mode_declare(CFRunLoopRef loop, CFStringRef name);
/* The same, for something that may not come to be added (11). */
struct mode *mode_create_undeclared(CFRunLoopRef loop, CFStringRef name);
/*
 * Where something goes that is to be added under `name`: true, to the common modes; false, to the mode in `ret_mode`, which is made if need
 * be, undeclared, and NULL if there is no memory.
 */
bool mode_resolve(CFRunLoopRef loop, CFStringRef name, struct mode **ret_mode);
/* Puts a mode among the common ones, that is not there; what is in them is the caller's to add. */
void mode_make_common(CFRunLoopRef loop, struct mode *mode);
/* Rule 25. */
bool mode_is_empty(CFRunLoopRef loop, const struct mode *mode);
/* Frees the memory of a loop's modes, which hold nothing any more. */
void modes_free(CFRunLoopRef loop);

/* The sleeper's deadline may be later than what has just been added to, or changed in, `mode`. */
static inline bool mode_is_waited_on(CFRunLoopRef loop, const struct mode *mode)
{
    return loop->waiting == mode;
}

/* ---- construction (loop.c) ---- */

/* Always false; of the main loop it is said once (174). */
__attribute__((cold)) bool loop_refuse(CFRunLoopRef loop);

/* It can be added to. L. */
static inline bool loop_is_open(CFRunLoopRef loop)
{
    return !loop->is_dead || loop_refuse(loop);
}

CFRunLoopRef loop_create(bool is_main);
/* The eventfd, made at the first need; negative errno. L. */
int loop_event(CFRunLoopRef loop);
/*
 * Notes the timer slack and the niceness of the calling thread: the loop's own, unless another makes the main loop. What a thread has of
 * slack above the usual it has asked for, to be woken less often, and gets. L, or nobody else knows the loop.
 */
void loop_note_slack(CFRunLoopRef loop);
/*
 * Its thread has gone, but the loop keeps what is in it: it is in no run and no callout any more, and takes nothing. With `releases` on
 * that thread, without locks; without, in the child of a fork, where no context may be told.
 */
void loop_retire(CFRunLoopRef loop, bool releases);
/* Takes apart what an ending thread leaves (rules 170-175). On the loop's own thread, without locks. */
void loop_end(CFRunLoopRef loop);

#endif
