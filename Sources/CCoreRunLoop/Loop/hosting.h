/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop whose waiting another loop does: the same pass, cut at the sleep. The state of a hosted run between the host's calls.
 *
 * The host polls one descriptor: a wait set that holds the loop's eventfd, an alarm for its timers, and the wait set of the hosted mode.
 * All functions run on the loop's own thread; the structure is O.
 */
#ifndef CRL_LOOP_HOSTING_H
#define CRL_LOOP_HOSTING_H

#include "Support/link_names.h"

#include "Loop/loop.h"

struct hosting {
    struct activation run;
    int descriptor; /* the set the host polls; -1 until asked for */
    int alarm; /* in it; -1 until then */
    int nested_set; /* the mode's wait set, in it; -1 if it has none */
    uint32_t nested_serial; /* which of the mode's sets that is */
    bool lacks_nested; /* the kernel had no room for it: the mode's set is looked at again and again */
    bool is_running; /* between the first Prepare and Leave */
    bool is_calling; /* inside Prepare, Dispatch or Leave: callbacks may not start another hosted run */
    bool is_prepared; /* steps 2 to 6 are done */
    bool sleeps; /* BeforeWaiting was sent, and the wake word says EPOLL */
    bool is_ready; /* Dispatch is wanted at once */
    enum wake_cause first_cause; /* found by the look that goes before the sleep */
    int64_t limit_ns;
};

/* A run was abandoned (activation.h): if it is the hosted one, the host has to begin anew. L. */
void hosting_note_abandoned(CFRunLoopRef loop, const struct activation *run);

/* Closes what it holds and frees it; the loop's thread ends. */
void hosting_free(CFRunLoopRef loop);

/* If the program has closed them, or given their numbers to other files. L */
void hosting_forget_lost_descriptors(CFRunLoopRef loop);

/* In the child of a fork: the descriptors are the parent's. */
void hosting_forget_descriptors(CFRunLoopRef loop);

#endif
