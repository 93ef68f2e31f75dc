/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of a mode: one wait set (epoll) for each mode that has any, and one watch for each descriptor, however many sources it has.
 *
 * A change of interest is made in memory, and the kernel is told when the mode next waits. So a callback that re-arms its source costs no
 * system call. If the loop sleeps in the mode, the kernel is told at once. A report names its watch by the descriptor and a generation, so
 * that a report for a watch that is gone is recognised. The loop's lock guards everything, except for the batch of reports, which belongs
 * to the loop's thread.
 *
 * The module stands in three files, which call each other: watch.c has the watches and their members, watch_registration.c tells the
 * kernel, watch_reports.c hears it. If one of the latter finds that a set is lost, watch.c rebuilds it.
 *
 * Errors of the kernel:
 *   EPERM           regular files, directories, /dev/null: always ready, as poll reports them
 *   EEXIST, ENOENT  the number stands for another file now: the watch is registered again
 *   EBADF           the number is closed: logged, and reported once as a failure to sources with a descriptor, so that their owner knows
 *   others          no memory, or no room in the set: logged once; the descriptor is polled at short intervals until the kernel takes it
 */
#ifndef CRL_LOOP_WATCH_H
#define CRL_LOOP_WATCH_H

#include "Loop/link_names.h"

#include "Kernel/kernel.h"
#include "Loop/Signal/descriptor_interest.h"
#include "Loop/Signal/source.h"
#include "Support/invariant.h"

enum {
    watch_batch_size = 64,
    watch_retry_ns = 20000000, /* the longest wait between two looks at descriptors that the kernel does not watch */
    watch_retry_first_ns = 100000, /* the first wait after something has come; each doubles until the longest */
};

/* Bits of a report besides enum kernel_readiness. */
enum watch_report_bits {
    watch_posted = 1 << 8, /* the source was posted; then there is no readiness */
    watch_still_installed = 1 << 9, /* the kernel goes on watching until the loop is told otherwise, so a re-arm can be deferred */
};

/* After so many posted sources in a row the kernel is asked about the others. */
enum { watch_posted_in_row = 4 };

/* Tokens of reports that are for no watch. */
enum watch_token { watch_token_event = 0, watch_token_main_queue = 1, watch_token_alarm = 2, watch_token_resume = 3 };

enum watch_standing {
    watch_absent, /* not in the kernel's set */
    watch_installed,
    watch_always_ready,
    watch_refused, /* for now: polled, and tried again before each wait */
    watch_gone, /* the number is closed */
};

/* The fields that a report needs come first, so that they share a cache line. */
struct watch {
    uint32_t generation; /* changes with each registration */
    enum watch_standing standing;
    struct link members; /* source_member.link; rotated, so that several sources on one descriptor take turns */
    int descriptor; /* constant */
    uint32_t wanted; /* the OR of the members' interests, changes included */
    uint32_t installed GUARDED_BY(the_loop_lock); /* the interest that the kernel was told */
    bool must_recheck GUARDED_BY(the_loop_lock); /* the number may stand for another file than before */
    bool is_set; /* the descriptor is a wait set (descriptor_source_stand_on_set) */
    int ending; /* with is_set: a descriptor that is in the mode's set, too, for its hang-up alone */
    uint64_t kept_id GUARDED_BY(the_loop_lock); /* of the last source, which left, while epoll keeps the watch; otherwise 0 */
    struct link dirty_link GUARDED_BY(the_loop_lock); /* wanted and installed may differ, or may have to be compared before each wait */
    struct link ready_link GUARDED_BY(the_loop_lock); /* in always_ready or refused while wanted */
    struct link posted_link GUARDED_BY(the_loop_lock); /* a member was posted */
};

struct watch_set {
    /* The set in the kernel. */
    int set; /* epoll; -1 while it could not be made */
    uint32_t set_serial; /* counts the sets made, because the number of a closed one is used again */
    bool has_event; /* the loop's eventfd is in the set */
    bool has_resume; /* the loop's descriptor `resume` is in the set */
    bool is_lost GUARDED_BY(the_loop_lock); /* the program has closed the set, or its number stands for another file */
    bool wait_failed; /* loop's thread: the last wait found no set */
    bool has_main_queue; /* written with the lock: the main dispatch queue's descriptor is in the set */
    bool lost_main_queue
        GUARDED_BY(the_loop_lock); /* ... was in a set that is gone, and belongs into the next one: a wait under way may count on it */

    /* The watches. */
    bool sorts; /* some source has an order, or only some are sockets: reports are sorted, sockets first (rules 102 and 254) */
    bool has_sockets; /* the set has a socket, or has had one */
    bool has_others;
    uint32_t member_count; /* members that are not suspended */
    struct watch **table; /* by descriptor; NULL: none */
    uint32_t capacity; /* of `table` */
    uint32_t next_generation;
    struct link dirty; /* watches that the kernel has to be told of before the next wait */
    struct link always_ready; /* watches that the kernel does not watch because they are always ready, or gone */
    struct link refused; /* watches that are polled */
    int64_t retry_ns GUARDED_BY(the_loop_lock); /* the next wait between two looks at them; 0: the longest */
    struct link posted; /* watches with a posted member */

    /* The reports. */
    uint64_t stale_token; /* loop's thread: the smallest token in this batch of a watch that is gone; UINT64_MAX: none */
    uint64_t last_stale_token; /* loop's thread: stale_token of the batch before */
    int alarm; /* loop's thread: a timerfd in the set; -1 until it is needed */
    int64_t alarm_ns; /* loop's thread: when the alarm ends the wait; 0: it is not set */
    uint32_t posted_in_row; /* posts that were reported since the kernel was asked */
    bool prefers_kernel; /* alternates, so that neither the kernel's reports nor the watches that are always ready starve */
    bool batch_is_fresh; /* the batch is not sorted yet */
    struct kernel_event batch[watch_batch_size]; /* loop's thread */
    uint32_t batch_begin; /* loop's thread */
    uint32_t batch_end; /* loop's thread */
};

/* ---- for those who add sources: members and their interest ---- */

/* Watches the descriptor of a source that has joined `mode`. Returns false if there is no memory. */
REQUIRES(the_loop_lock) bool watch_add_member(CFRunLoopRef loop, struct mode *mode, struct source_member *member);
/* Stops watching for a member that leaves its mode. */
REQUIRES(the_loop_lock) void watch_remove_member(CFRunLoopRef loop, struct source_member *member);
/* Takes note that a member's interest has changed. */
REQUIRES(the_loop_lock) void watch_interest_changed(CFRunLoopRef loop, struct source_member *member);
/* Suspends or resumes a member that is in one mode only. */
REQUIRES(the_loop_lock) void watch_set_suspended(CFRunLoopRef loop, struct source_member *member, bool suspended);
/* Takes note that a member's interest has grown. Does nothing if the kernel still watches for all of it, after a deferred re-arm. */
REQUIRES(the_loop_lock) void watch_interest_raised(CFRunLoopRef loop, struct source_member *member);
/* Takes a watch out of the set that is kept in epoll with this id, because its descriptor is to be closed. */
REQUIRES(the_loop_lock) void watch_remove_kept(struct mode *mode, int descriptor, uint64_t kept_id);
/* Reports a posted member as if its descriptor were ready. If it returns true, the loop sleeps in the mode: retime it without the lock. */
REQUIRES(the_loop_lock) bool watch_post(CFRunLoopRef loop, struct source_member *member);
/* Takes note that the number of a member's descriptor stands for another file now. */
REQUIRES(the_loop_lock) void watch_file_replaced(CFRunLoopRef loop, struct source_member *member);

/* ---- for those who wait ---- */

/* Returns true if the mode has a descriptor, so that its wait needs a wait set. */
REQUIRES(the_loop_lock) static inline bool watch_is_needed(const struct mode *mode)
{
    return mode->watches && (mode->watches->member_count > 0 || mode->watches->has_main_queue);
}

/* Takes note, after a wait, that the wait found no set. */
REQUIRES(the_loop_lock) static inline void watch_note_wait(struct watch_set *watches)
{
    if (__builtin_expect(watches->wait_failed, 0)) {
        watches->wait_failed = false;
        watches->is_lost = true;
        watches->has_event = watches->has_resume = false;
    }
}

/* The rest of watch_prepare, where the kernel has to be told something. */
REQUIRES(the_loop_lock) int watch_prepare_anew(CFRunLoopRef loop, struct mode *mode);

/* Makes the wait set, with the eventfd in it, and tells the kernel all changes. Returns a negative errno if there is no set to wait in. */
REQUIRES(the_loop_lock) static inline int watch_prepare(CFRunLoopRef loop, struct mode *mode)
{
    const struct watch_set *watches = mode->watches;

    if (watches->has_event && list_is_empty(&watches->dirty) && list_is_empty(&watches->refused)) {
        return 0;
    }
    return watch_prepare_anew(loop, mode);
}

/*
 * Has the mode's set report, for a sleep, that the system resumes or the wall clock is set. Returns true if it reports that from now on,
 * and false if it did already (watch_has_resume) or cannot, for want of a descriptor: the sleep then goes on as if neither had happened.
 */
REQUIRES(the_loop_lock) bool watch_for_resume(CFRunLoopRef loop, struct mode *mode);

/* Takes that report out of those that are left. Returns false if it is not among them. */
bool watch_take_resume(struct watch_set *watches);

/* Returns true if the mode's set reports that, even if nothing else is in it. */
static inline bool watch_has_resume(const struct mode *mode)
{
    return mode->watches && mode->watches->has_resume;
}

/* Adds or removes the main dispatch queue's descriptor. */
REQUIRES(the_loop_lock) void watch_main_queue(CFRunLoopRef loop, struct mode *mode, int descriptor, bool wanted);

/* Returns true if reports of an earlier wait are left. */
static inline bool watch_has_batch(const struct mode *mode)
{
    return mode->watches && mode->watches->batch_begin != mode->watches->batch_end;
}

/* Returns the number of reports that are left. */
static inline uint32_t watch_batch_count(const struct mode *mode)
{
    return mode->watches ? mode->watches->batch_end - mode->watches->batch_begin : 0;
}

bool watch_batch_begins_with_socket(struct watch_set *watches);

/* Returns true if the first report is for a socket, whose source calls itself version 0. */
static inline bool watch_begins_with_socket(const struct mode *mode)
{
    return watch_has_batch(mode) && watch_batch_begins_with_socket(mode->watches);
}

/* Returns true if the next post is of such a source. */
bool watch_posts_socket(const struct mode *mode);

/* Returns true if some source is known to be ready without asking the kernel. */
static inline bool watch_has_kept(const struct mode *mode)
{
    return watch_has_batch(mode) ||
           (mode->watches && (!list_is_empty(&mode->watches->always_ready) || !list_is_empty(&mode->watches->posted)));
}

/* Returns true if the kernel has to be asked before a kept report is served, for fairness. */
static inline bool watch_must_poll(const struct mode *mode)
{
    return watch_has_kept(mode) && !watch_has_batch(mode) &&
           (!list_is_empty(&mode->watches->always_ready) || mode->watches->posted_in_row >= watch_posted_in_row);
}

/* Returns true if a descriptor that the kernel refused has to be polled. */
static inline bool watch_must_retry(const struct mode *mode)
{
    return mode->lacks_main_queue || (mode->watches && !list_is_empty(&mode->watches->refused));
}

/* Returns how long to wait until those descriptors are looked at again. */
REQUIRES(the_loop_lock) int64_t watch_next_retry_ns(struct mode *mode);

/* Returns true if no report is kept and the kernel knows every interest, so that a wait can begin as it is. */
bool watch_is_settled(const struct mode *mode);

/*
 * Resumes a suspended source for one wait, until watch_stop_waking, without a system call. The source must be kept in epoll and be alone on
 * its descriptor. Returns NULL, and leaves it suspended, if the kernel does not watch it as the source wants.
 */
REQUIRES(the_loop_lock) struct watch *watch_start_waking(struct mode *mode, CFRunLoopSourceRef source);
/*
 * Suspends the source again. Returns true if its report was the only one and may_take is set; the report is then consumed. Any other report
 * stays for the next pass.
 */
REQUIRES(the_loop_lock) bool watch_stop_waking(struct mode *mode, struct watch *watch, bool may_take);

/* Takes the next kept report. cause_source: `ret_report` has the source, without a reference. cause_none: nothing is ready. */
REQUIRES(the_loop_lock) enum wake_cause watch_next(CFRunLoopRef loop, struct mode *mode, struct ready_source *ret_report);

/* Has the source registered again before the next wait: its report was stale, or its report was not handled. */
REQUIRES(the_loop_lock) void watch_recheck(struct mode *mode, CFRunLoopSourceRef source);

/* ---- starting over ---- */

/*
 * Forgets the set, so that the next wait makes a new one. Needed in the child of a fork, against registrations that cannot be taken out,
 * and after the program has closed the set. In the last case `close_old` is false: the number may be the program's now, and the alarm's,
 * too.
 */
REQUIRES(the_loop_lock) void watch_rebuild(CFRunLoopRef loop, struct mode *mode, bool close_old);
void watch_set_free(struct mode *mode);

/*
 * Forgets all descriptors of the loop that the program has closed. A program that closes one has often closed all numbers that it does not
 * know. All are checked now, before a new descriptor can get the number of an old one. New ones are made when they are needed.
 */
REQUIRES(the_loop_lock) void watch_forget_lost(CFRunLoopRef loop);
/* Checks whether the program has closed descriptors of the loop, and then forgets them. Called before the loop closes its sets. */
REQUIRES(the_loop_lock) void watch_look_for_losses(CFRunLoopRef loop);

/* ---- the wait itself: loop's thread, without the lock ---- */

/* Fills the batch, which must be empty: waits in the set for reports, until `deadline_ns` at most. 0 asks without waiting. */
void watch_wait(struct watch_set *watches, int64_t deadline_ns);
/*
 * As watch_wait, but not late by the thread's timer slack: the alarm ends the wait, which costs one more system call. If there can be no
 * alarm, the wait may be late.
 */
void watch_wait_out(struct watch_set *watches, int64_t limit_ns);
/* Cancels the alarm after the wait that it was set for. */
void watch_silence_alarm(struct watch_set *watches);

/* ---- shared by the files of this directory; the loop's lock is held ---- */

static const uint64_t watch_no_token = UINT64_MAX;

/* Returns the kinds of readiness that the source wants; 0 while it is suspended. */
static inline uint32_t watch_interest_of(CFRunLoopSourceRef source)
{
    const struct source_descriptor_part *descriptor_part = source_descriptor_part(source);

    if (source_kind(source) == source_with_port) {
        return kernel_readable;
    }
    return descriptor_part->is_suspended ? 0 : atomic_load_explicit(descriptor_part->interest, memory_order_relaxed) & descriptor_wanted;
}

/* Returns the kinds of which the source wants changes only. */
static inline uint32_t watch_changes_of(CFRunLoopSourceRef source)
{
    const struct source_descriptor_part *descriptor_part = source_descriptor_part(source);

    if (source_kind(source) == source_with_port || descriptor_part->is_suspended) {
        return 0;
    }
    return atomic_load_explicit(descriptor_part->interest, memory_order_relaxed) >> descriptor_changes_shift & descriptor_wanted;
}

static inline CFRunLoopSourceRef watch_source_of(const struct link *link)
{
    return container_of(link, const struct source_member, link)->binding->source;
}

static inline struct watch *watch_find(const struct watch_set *watches, uint32_t descriptor)
{
    return descriptor < watches->capacity ? watches->table[descriptor] : NULL;
}

/* Returns true if the members want changes only, so that no callback waits for the present state. */
static inline bool watch_is_for_changes(const struct watch *watch)
{
    return !(watch->wanted & descriptor_wanted);
}

/* Returns the kinds that are wanted, as readiness or as changes. */
static inline uint32_t watch_kinds_of(const struct watch *watch)
{
    return (watch->wanted | watch->wanted >> descriptor_changes_shift) & descriptor_wanted;
}

/* Combines the interests of the members. The kernel is told before the next wait, or at once if the loop sleeps in the mode. */
REQUIRES(the_loop_lock) void watch_recompute(CFRunLoopRef loop, struct mode *mode, struct watch *watch);

void watch_close_alarm(struct watch_set *watches);

#endif
