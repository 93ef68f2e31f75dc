/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that the loop performs when a descriptor is ready: what CFFileDescriptor, CFSocket, signal and child sources are made of. To the
 * program they are version-1 sources, unless they say otherwise.
 */
#ifndef CRL_LOOP_DESCRIPTOR_SOURCE_H
#define CRL_LOOP_DESCRIPTOR_SOURCE_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFRunLoop.h"
#include "Kernel/kernel.h"

/*
 * The word that says what is wanted. An owner that has such a word of its own leaves the other bits to itself.
 *
 * A callout that may well ask for the kinds again that it is told of can put them off: it takes them out of the wanted ones in one update
 * with setting them here, and whoever wants a kind that is put off takes it out of here in the same update; then no loop has to be told, as
 * the loops still watch for it. A loop that stops watching takes them out of here first (watch_recompute), so that an update that comes
 * later finds that loops have to be told.
 *
 * What is not yet what it is to become is ready in a way that nobody wants to hear of, for as long as it stays so. The kinds may be asked
 * for as changes instead: what is the case is told once, and then again each time that something has changed; whoever wants a kind as it
 * is, on the same descriptor, goes first. Changes that the kernel does not report are looked for before each wait.
 */
enum descriptor_interest {
    descriptor_wanted = kernel_readable | kernel_writable,
    descriptor_put_off_shift = 2,
    descriptor_put_off = descriptor_wanted << descriptor_put_off_shift,
    descriptor_changes_shift = 4,
    descriptor_changes = descriptor_wanted << descriptor_changes_shift,
    descriptor_unreported = 1 << 6, /* with changes: the kernel does not report that it can be written */
    descriptor_interest_end = 1 << 7, /* from here the bits are the owner's */
};

struct activation;

struct descriptor_source_context {
    void *info; /* handed over */
    const void *callers_info; /* of the program: fetched ahead, and not looked at, so that it may be gone by then; may be NULL */
    _Atomic uint32_t *interest; /* in what the info stands for, as long as the source is there; NULL: descriptor_source_set_interest */
    void (*release)(const void *info); /* when the source is freed */
    /* The source is being freed: the last moment to forget a weak reference to it, under the lock that guards it. May be NULL. */
    void (*forget)(void *info, CFRunLoopSourceRef source);
    /* On the loop's thread, no lock held; `ready` is of enum kernel_readiness, failures included, and what watch.h adds. Called again as
     * long as it stays ready and wanted. */
    void (*perform)(void *info, CFRunLoopSourceRef source, uint32_t ready);
    CFStringRef (*copy_description)(const void *info); /* may be NULL */
    /* For each mode that the source has joined, or left; no lock held. What is ready may be performed before that. May be NULL. */
    void (*schedule)(void *info, CFRunLoopRef loop, CFStringRef mode);
    void (*cancel)(void *info, CFRunLoopRef loop, CFStringRef mode);
    bool is_version_0; /* what the source calls itself; it is performed as any other of these */
};

/* NULL if there is no memory, and then the info stays the caller's. The descriptor stays the caller's, who must invalidate the source
 * before closing it. Interest is none at first where the source keeps it. */
CFRunLoopSourceRef descriptor_source_create(CFAllocatorRef allocator, CFIndex order, int descriptor,
                                            const struct descriptor_source_context *context);

/* Any thread: some loop holds the source. */
bool descriptor_source_is_held(CFRunLoopSourceRef source);

/* Any thread; a loop asleep in a mode of the source takes note at once. `interest` is of descriptor_wanted, descriptor_changes, and
 * descriptor_unreported. */
void descriptor_source_set_interest(CFRunLoopSourceRef source, uint32_t interest);

/* Any thread, for owners of the word, after a sequentially consistent update of it: kinds are wanted that were not, nor put off. */
void descriptor_source_interest_raised(CFRunLoopSourceRef source);
/* The same: kinds are no longer wanted, or the callout that has put them off is over. */
void descriptor_source_interest_lowered(CFRunLoopSourceRef source);

/*
 * The source with that info in whose callout the calling thread is, held until the callout ends; NULL if it is in none, or in another, or
 * if the source is invalid, so that its owner may have another by now.
 */
CFRunLoopSourceRef descriptor_source_performing(const void *info);

/*
 * The number of the innermost run on the calling thread, if that has a limit of 0: no other run has it, and it is never 0. Else 0. What is
 * wanted again before that run has looked, because it has been told before, may be told by the next: who has it told by each, and runs the
 * loop so again and again as long as a source is handled, would never come to an end.
 */
uint64_t descriptor_source_poll_number(void);

/* For `perform`, instead of telling anything: the run has not handled a source by this. It is called again while that stays ready. */
void descriptor_source_put_by(struct activation *run);

/* Invalidates the source and wakes the loops it was in, which may have nothing left to wait for. */
void descriptor_source_invalidate(CFRunLoopSourceRef source);

/* Adds `timer` to the modes of the calling thread's loop that the source is in. False: there is no memory for one of them. */
bool descriptor_source_add_timer(CFRunLoopSourceRef source, CFRunLoopTimerRef timer);

/*
 * For a source that is added and removed again and again, before anybody else knows it: nobody else has a descriptor of the same file.
 * Between a removal and the mode's next wait the kernel may still watch it. Before the descriptor is closed, or watched by another loop,
 * it is to be taken out of where it was last.
 */
void descriptor_source_make_lingering(CFRunLoopSourceRef source);

/*
 * A lingering source that has been added to one mode, of the calling thread's loop: while it rests there it is in the mode for nobody, and
 * is neither watched nor performed; the end of the rest costs less than adding it. False if it is not in that mode.
 */
bool descriptor_source_set_resting(CFRunLoopSourceRef source, CFRunLoopRef loop, CFStringRef mode_name, bool rests);
void descriptor_source_end_lingering(CFRunLoopSourceRef source, CFRunLoopRef loop, CFStringRef mode_name);

/*
 * For a source of one thread's, while it is in no mode and lingers in none: from now on it stands on a wait set of its owner's, and is
 * performed each time that something in that set becomes ready, and perhaps without; what is ready there may stay so. When what it stood on
 * before has been hung up, it is performed as long as that is open.
 */
void descriptor_source_stand_on_set(CFRunLoopSourceRef source, int set);

/*
 * Any thread, no lock held: the source is performed with watch_posted, once, in some loop that it is in or comes to be in, even if its
 * descriptor is not ready. It is posted until descriptor_source_take_post, which is for `perform`; then it may be posted again.
 */
void descriptor_source_post(CFRunLoopSourceRef source);
void descriptor_source_take_post(CFRunLoopSourceRef source);

/* Any thread: the descriptor's number stands for another file than before, which is watched from now on. */
void descriptor_source_file_replaced(CFRunLoopSourceRef source);

#endif
