/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of a mode: one wait set for each mode that has any, one watch for each descriptor, however many sources stand on it.
 *
 * Interest is changed in memory and told to the kernel when the mode next waits, so that a callback that re-arms what it has just been
 * disarmed of costs no call; a mode that is being waited on is told at once. A watch is known to the kernel by its descriptor and a
 * generation, so that a report for one that is gone is recognised. Guarded by the loop's lock; the kept batch of reports belongs to the
 * loop's thread.
 *
 * What the kernel refuses:
 *   EPERM   regular files, directories, /dev/null: always ready, as poll says of them
 *   EEXIST, ENOENT  the number now stands for another file: registered anew
 *   EBADF   the number is closed: reported once as a failure to sources of this library's own, so that their owner finds out; logged
 *   others  (no memory, no room in the set) logged once; the descriptor is polled at short intervals until the kernel takes it
 */
#ifndef CRL_LOOP_WATCH_H
#define CRL_LOOP_WATCH_H

#include "Support/link_names.h"

#include "Kernel/kernel.h"
#include "Loop/descriptor_source.h"
#include "Loop/source.h"

enum { watch_batch_size = 64, watch_retry_ns = 20000000 };

/* With a report, beside the kernel's readiness. */
enum {
    watch_posted = 1 << 8, /* instead: the source was posted */
    watch_stands = 1 << 9, /* the kernel goes on watching, whatever the interest becomes, until the loop is told */
};

/* How many posted sources may be performed one after the other before the kernel is asked about the others. */
enum { watch_posted_in_row = 4 };

/* Tokens that are not watches. */
enum watch_token { watch_token_event = 0, watch_token_main_queue = 1, watch_token_alarm = 2 };

/*
 * Waits for one answer after the other have limits that are seldom reached: setting and clearing them is a twentieth of a message. After so
 * many in a row that ended before a limit this far off, the kernel is told of a limit once, by an alarm in the set, and while that is still
 * to come later limits need not be told.
 */
enum { watch_alarm_after = 32, watch_alarm_least_ns = 1000000000 };

enum watch_standing {
    watch_absent, /* not in the kernel's set */
    watch_installed,
    watch_always_ready,
    watch_refused, /* for now */
    watch_gone, /* the number is closed */
};

/*
 * What stands under a descriptor's number. The other pointers are only ever fetched ahead, all at once, and never looked at: where there
 * are many descriptors, none of what a report needs is at hand, and each part that has to be found by another is waited for by itself.
 */
struct watch_entry {
    struct watch *watch; /* NULL: none, and the others mean nothing */
    const void *source; /* that joined last, if it is still there */
    const void *info; /* its own */
    const void *callers_info; /* what the program has given it */
};

/* What a report needs comes first, so that it is in one cache line. */
struct watch {
    uint32_t generation; /* changes with each registration */
    enum watch_standing standing;
    struct link members; /* source_member.link; rotated, so that several sources on one descriptor take turns */
    int descriptor; /* C */
    uint32_t wanted; /* OR of the members' interests, changes included */
    uint32_t installed; /* what the kernel was told */
    bool must_verify; /* the number may stand for another file than before */
    bool is_set; /* a wait set (descriptor_source_stand_on_set) */
    int ending; /* of a set: a descriptor that is in the mode's set, too, for its end alone */
    uint64_t lingering; /* without members: the mark of the source that was the last; the next wait takes it out of the set */
    struct link dirty_link; /* wanted and installed may differ, or changes have to be looked for before each wait */
    struct link ready_link; /* in always_ready or refused while wanted */
    struct link posted_link; /* a member was posted */
};

struct watch_set {
    int set; /* epoll; -1 while it could not be made */
    uint32_t set_serial; /* counts the sets made: numbers are used again */
    bool has_event; /* the loop's eventfd is in it */
    bool is_lost; /* L; the program has closed it, or given its number to another file */
    bool wait_failed; /* O; for want of the set */
    bool has_main_queue; /* L; the main dispatch queue's descriptor is in it */
    bool lost_main_queue; /* L; or was in the set before, and belongs into the next: a wait may be under way that counts on it */
    bool sorts; /* some source has an order, or only some are sockets: reports are taken in order, sockets first (102, 254) */
    bool has_sockets; /* or has had */
    bool has_others;
    uint32_t member_count;
    struct watch_entry *table; /* by descriptor */
    uint32_t capacity; /* of `table` */
    uint32_t next_generation;
    uint64_t stale_token; /* O; the smallest token of a watch that is gone, among this wait's reports; UINT64_MAX: none */
    uint64_t last_stale_token; /* O; of the wait before */
    int alarm; /* O; in the set; -1 until needed */
    int64_t alarm_ns; /* O; when it will wake the wait; 0: it will not */
    uint32_t early_ends; /* O; waits in a row that watch_note_early_end was told of */
    struct link dirty;
    struct link always_ready;
    struct link refused;
    struct link posted;
    uint32_t posted_in_row; /* reports of posts since the kernel was asked */
    bool prefers_kernel; /* alternates, so that neither the kernel's reports nor the always ready starve */
    bool batch_is_fresh; /* not sorted yet */
    struct kernel_event batch[watch_batch_size]; /* O */
    uint32_t batch_begin; /* O */
    uint32_t batch_end; /* O */
};

/* ---- L ---- */

bool watch_add_member(CFRunLoopRef loop, struct mode *mode, struct source_member *member);
void watch_remove_member(CFRunLoopRef loop, struct source_member *member);
/* A member's interest has changed. */
void watch_interest_changed(CFRunLoopRef loop, struct source_member *member);
/* A member that is in the one mode only begins or ends its rest. */
void watch_set_resting(CFRunLoopRef loop, struct source_member *member, bool rests);
/* It has grown, perhaps to what the kernel has never been told that it was not. */
void watch_interest_raised(CFRunLoopRef loop, struct source_member *member);
/* Takes out what still lingers of a source with that mark, before its descriptor is closed. */
void watch_end_lingering(struct mode *mode, int descriptor, uint64_t mark);
/* A member was posted: it is reported as if its descriptor were ready. True if the mode is asleep and has to be told, without the lock. */
bool watch_post(CFRunLoopRef loop, struct source_member *member);
/* Its descriptor's number stands for another file now. */
void watch_file_replaced(CFRunLoopRef loop, struct source_member *member);

/* The mode has a descriptor, so its wait needs a wait set. */
static inline bool watch_is_needed(const struct mode *mode)
{
    return mode->watches && (mode->watches->member_count > 0 || mode->watches->has_main_queue);
}

/* What a wait that has ended found out about its set. */
static inline void watch_note_wait(struct watch_set *watches)
{
    if (__builtin_expect(watches->wait_failed, 0)) {
        watches->wait_failed = false;
        watches->is_lost = true;
        watches->has_event = false;
    }
}

int watch_prepare_anew(CFRunLoopRef loop, struct mode *mode);

/* Makes the wait set with the eventfd in it and tells the kernel what changed. Negative errno if there is no set to wait on. */
static inline int watch_prepare(CFRunLoopRef loop, struct mode *mode)
{
    const struct watch_set *watches = mode->watches;

    if (watches->has_event && list_is_empty(&watches->dirty) && list_is_empty(&watches->refused)) {
        return 0;
    }
    return watch_prepare_anew(loop, mode);
}

/* Adds or removes the main dispatch queue's descriptor. */
void watch_main_queue(CFRunLoopRef loop, struct mode *mode, int descriptor, bool wanted);

/* Reports of an earlier wait are left. */
static inline bool watch_has_batch(const struct mode *mode)
{
    return mode->watches && mode->watches->batch_begin != mode->watches->batch_end;
}

/* How many. */
static inline uint32_t watch_batch_count(const struct mode *mode)
{
    return mode->watches ? mode->watches->batch_end - mode->watches->batch_begin : 0;
}

bool watch_batch_begins_with_socket(struct watch_set *watches);

/* The first of them is for a source of version 0. */
static inline bool watch_begins_with_socket(const struct mode *mode)
{
    return watch_has_batch(mode) && watch_batch_begins_with_socket(mode->watches);
}

/* Something is known to be ready without asking the kernel. */
static inline bool watch_has_kept(const struct mode *mode)
{
    return watch_has_batch(mode) ||
           (mode->watches && (!list_is_empty(&mode->watches->always_ready) || !list_is_empty(&mode->watches->posted)));
}

/* The kernel has to be asked before what is kept is served, for fairness. */
static inline bool watch_must_poll(const struct mode *mode)
{
    return watch_has_kept(mode) && !watch_has_batch(mode) &&
           (!list_is_empty(&mode->watches->always_ready) || mode->watches->posted_in_row >= watch_posted_in_row);
}

/* Some descriptor that the kernel refused has to be polled. */
static inline bool watch_must_retry(const struct mode *mode)
{
    return mode->lacks_main_queue || (mode->watches && !list_is_empty(&mode->watches->refused));
}

/* Nothing is kept, and a wait as it stands would end for whatever is wanted: the kernel knows of all that. */
bool watch_is_settled(const struct mode *mode);

/*
 * For a wait that is for one resting source, lingering and alone on its descriptor, and for whatever else the kernel knows of: it is wanted
 * from now on, until watch_stop_waking. NULL: it is not as it was left by a wait; it still rests.
 */
struct watch *watch_start_waking(struct mode *mode, CFRunLoopSourceRef source);
/* It rests again. True if it, and nothing else, was reported, and that may be taken; then it is. Otherwise it is left for a pass. */
bool watch_stop_waking(struct mode *mode, struct watch *watch, bool may_take);

/* From what is kept: the next source to perform (cause_port; without a reference), or cause_main_queue, or cause_none. */
enum wake_cause watch_next(CFRunLoopRef loop, struct mode *mode, struct watch_report *ret_report);

/* A counter that was reported ready had nothing: its number may stand for another file by now, or for none. The kernel is asked before the
 * next wait. */
void watch_doubt(struct mode *mode, CFRunLoopSourceRef source);

/*
 * A new set: for the child of a fork, to be rid of registrations that cannot be taken out, and in the place of one that the program has
 * closed, whose number is left alone, and that of its alarm, if it has gone, too.
 */
void watch_rebuild(CFRunLoopRef loop, struct mode *mode, bool close_old);
void watch_set_free(struct mode *mode);

/*
 * The program has closed a descriptor of the loop's, as one does that closes all that it has not opened itself: so all others are looked
 * at, before a new one may get an old one's number. Those that have gone are let go of; new ones are made when they are needed. L
 */
void watch_forget_lost(CFRunLoopRef loop);
/* The same, if that is so: before the sets are closed. L */
void watch_look_for_losses(CFRunLoopRef loop);

/* ---- O, without the lock ---- */

/* A wait until `limit_ns` may as well be without a limit: the alarm ends it before. */
static inline bool watch_has_alarm_before(const struct watch_set *watches, int64_t limit_ns)
{
    return watches->alarm_ns != 0 && watches->alarm_ns <= limit_ns;
}

/* A wait that was begun at `now_ns`, and would have ended at `limit_ns`, has ended before. */
void watch_note_early_end(struct watch_set *watches, int64_t now_ns, int64_t limit_ns);

/* Fills the empty batch: waits in the set until a report comes or `deadline_ns`; 0 asks without waiting. */
void watch_wait(struct watch_set *watches, int64_t deadline_ns);
/*
 * The same, and not late by the thread's timer slack, for one call more: the alarm ends the wait. Without the means for one it may be late.
 */
void watch_wait_out(struct watch_set *watches, int64_t limit_ns);
/* An alarm of a wait that has ended wakes nobody any more. */
void watch_silence_alarm(struct watch_set *watches);

/* ---- shared by watch.c and watch_reports.c; L ---- */

static const uint64_t watch_no_token = UINT64_MAX;

static inline uint32_t watch_interest_of(CFRunLoopSourceRef source)
{
    const struct source_port_part *part = source_port_part(source);

    if (source_kind(source) == source_port) {
        return kernel_readable;
    }
    return part->rests ? 0 : atomic_load_explicit(part->interest, memory_order_relaxed) & descriptor_wanted;
}

/* The kinds that are wanted as changes only. */
static inline uint32_t watch_changes_of(CFRunLoopSourceRef source)
{
    const struct source_port_part *part = source_port_part(source);

    if (source_kind(source) == source_port || part->rests) {
        return 0;
    }
    return atomic_load_explicit(part->interest, memory_order_relaxed) >> descriptor_changes_shift & descriptor_wanted;
}

static inline CFRunLoopSourceRef watch_source_of(const struct link *link)
{
    return container_of(link, const struct source_member, link)->slot->source;
}

static inline struct watch *watch_find(const struct watch_set *watches, uint32_t descriptor)
{
    return descriptor < watches->capacity ? watches->table[descriptor].watch : NULL;
}

/* Only changes are wanted: nobody's callback waits for what is the case. */
static inline bool watch_is_for_changes(const struct watch *watch)
{
    return !(watch->wanted & descriptor_wanted);
}

/* The kinds that are wanted, be it as changes. */
static inline uint32_t watch_kinds_of(const struct watch *watch)
{
    return (watch->wanted | watch->wanted >> descriptor_changes_shift) & descriptor_wanted;
}

/* Takes the interests of a watch's members together, and has the kernel told before the next wait, or at once if the mode is waited on. */
void watch_recompute(CFRunLoopRef loop, struct mode *mode, struct watch *watch);

void watch_close_alarm(struct watch_set *watches);

#endif
