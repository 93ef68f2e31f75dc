/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that the loop performs when a descriptor is ready. CFFileDescriptor, CFSocket, signal and child sources are built on them. They
 * tell the program that they are version-1 sources, unless is_version_0 is set.
 *
 * A higher layer creates a source with the descriptor and an interest, which any thread may change later. The loop calls `perform` as long
 * as the descriptor is ready for a kind that is wanted.
 */
#ifndef CRL_LOOP_DESCRIPTOR_SOURCE_H
#define CRL_LOOP_DESCRIPTOR_SOURCE_H

#include "Loop/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFRunLoop.h"
#include "Loop/Signal/descriptor_interest.h"

struct run;

struct descriptor_source_context {
    void *info; /* the source owns it from now on */
    _Atomic uint32_t
        *interest; /* lives as long as the source; NULL: the source has a word of its own, see descriptor_source_set_interest */
    void (*release)(const void *info); /* called when the source is freed */
    /* Called when the source is being freed: the owner clears its weak reference, under the lock that guards that. May be NULL. */
    void (*forget)(void *info, CFRunLoopSourceRef source);
    /* Called on the loop's thread without a lock, as long as the descriptor is ready and wanted. `ready` has bits of enum
     * kernel_readiness, failures included, and of enum watch_report_bits. */
    void (*perform)(void *info, CFRunLoopSourceRef source, uint32_t ready);
    CFStringRef (*copy_description)(const void *info); /* may be NULL */
    /* Called without a lock for each mode that the source joins or leaves. `perform` may be called before `schedule`. May be NULL. */
    void (*schedule)(void *info, CFRunLoopRef loop, CFStringRef mode);
    void (*cancel)(void *info, CFRunLoopRef loop, CFStringRef mode);
    bool is_version_0; /* the version that the source tells the program; it is performed the same way */
};

/* ---- life ---- */

/*
 * Returns NULL if there is no memory; then the caller still owns the info. The caller keeps the descriptor, and must invalidate the source
 * before closing it. The interest of a source with a word of its own is none at first.
 */
CFRunLoopSourceRef descriptor_source_create(CFAllocatorRef allocator, CFIndex order, int descriptor,
                                            const struct descriptor_source_context *context);

/*
 * The same with `object`, which performs, for info: the source has a reference of its own to it, and its description. Returns NULL also if
 * the descriptor is below 0.
 */
CFRunLoopSourceRef descriptor_source_create_of(CFTypeRef object, CFAllocatorRef allocator, CFIndex order, int descriptor,
                                               struct descriptor_source_context context);

/* Returns true if some loop holds the source. Any thread. */
bool descriptor_source_is_held(CFRunLoopSourceRef source);

/* ---- interest ---- */

/*
 * Sets the interest of a source with a word of its own: bits of descriptor_wanted, descriptor_changes and descriptor_unreported. Any
 * thread. A loop that sleeps in a mode of the source takes note at once.
 */
void descriptor_source_set_interest(CFRunLoopSourceRef source, uint32_t interest);
/*
 * Sets the interest to what `interest` holds, a word that the owner writes under its own lock. Any thread, which does not hold that lock.
 * The owner calls it after each change of the word; calls at once from several threads leave the source with the latest interest.
 */
void descriptor_source_publish_interest(CFRunLoopSourceRef source, const _Atomic uint32_t *interest);

/*
 * For owners of the interest word, on any thread, after a sequentially consistent update of it: kinds are wanted that were neither wanted
 * nor deferred before.
 */
void descriptor_source_interest_raised(CFRunLoopSourceRef source);
/* As above: kinds are no longer wanted, or the callout that deferred their re-arm is over. */
void descriptor_source_interest_lowered(CFRunLoopSourceRef source);

/* ---- inside a callout ---- */

/*
 * Returns the source of the calling thread's innermost callout if its info is `info`; the source lives until the callout ends. NULL if
 * there is no callout, if it belongs to another info, or if the source is invalid, because its owner may have another source by now.
 */
CFRunLoopSourceRef descriptor_source_performing(const void *info);

/*
 * Returns the number of the calling thread's innermost run if that run polls (its limit is 0), otherwise 0. The number is unique and never
 * 0. A kind of readiness that was reported before, and is wanted again, may have to wait for the run after the polling one. If every
 * polling run reported it, a program that polls as long as a source is handled would never stop.
 */
uint64_t descriptor_source_poll_number(void);

/*
 * Declines the report: `perform` calls this when it has nothing to do for it. The run then counts no source as handled, and the next source
 * has the turn. `perform` is called again while the descriptor is ready.
 */
void descriptor_source_decline(struct run *run);

/* ---- invalidation and timers ---- */

/* Invalidates the source and wakes the loops it was in, because they may have nothing left to wait for. */
void descriptor_source_invalidate(CFRunLoopSourceRef source);

/* Adds `timer` to the modes of the calling thread's loop that the source is in. Returns false if there is no memory for one of them. */
bool descriptor_source_add_timer(CFRunLoopSourceRef source, CFRunLoopTimerRef timer);

/*
 * Makes the source one that keeps no run going: a mode that has nothing else is empty, and its run finishes. Call it before a loop or
 * another thread knows the source. It must not be one that is suspended.
 */
void descriptor_source_let_runs_finish(CFRunLoopSourceRef source);

/* ---- sources that stay in epoll ---- */

/*
 * For a source that is added and removed again and again: a removed source stays in epoll until the mode's next wait. Call it before
 * another thread knows the source. No other descriptor may stand for the same file. Before the descriptor is closed, or watched by another
 * loop, the owner calls descriptor_source_remove_from_epoll for the mode that the source was last in.
 */
void descriptor_source_keep_in_epoll(CFRunLoopSourceRef source);

/*
 * Suspends a source that is kept in epoll and was added to one mode only, of the calling thread's loop; or resumes it. A suspended source
 * is neither watched nor performed, and others see it as not in the mode. Resuming costs less than adding. False if it is not in that mode.
 */
bool descriptor_source_set_suspended(CFRunLoopSourceRef source, CFRunLoopRef loop, CFStringRef mode_name, bool suspended);
void descriptor_source_remove_from_epoll(CFRunLoopSourceRef source, CFRunLoopRef loop, CFStringRef mode_name);

/* ---- sources on a wait set, posts, replaced files ---- */

/*
 * Puts a source on a wait set of its owner in place of its descriptor. The source must be used by one thread, be in no mode and be kept in
 * no epoll set. It is performed each time that something in the set becomes ready, and perhaps without a cause; things in the set may stay
 * ready. Once the former descriptor has been hung up, the source is performed as long as that descriptor is open.
 */
void descriptor_source_stand_on_set(CFRunLoopSourceRef source, int set);

/*
 * Posts the source: it is performed once with watch_posted, in some loop that it is in or joins later, even if its descriptor is not ready.
 * Any thread, no lock held. The source is posted until its `perform` calls descriptor_source_take_post; then it can be posted again.
 */
void descriptor_source_post(CFRunLoopSourceRef source);
void descriptor_source_take_post(CFRunLoopSourceRef source);

/* Says that the descriptor's number stands for another file than before. That file is watched from now on. Any thread. */
void descriptor_source_file_replaced(CFRunLoopSourceRef source);

#endif
