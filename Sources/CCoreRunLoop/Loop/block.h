/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work to be done once, in the first matching mode that runs: what CFRunLoopPerformBlock and CRLRunLoopPerformFunction queue.
 *
 * One queue for each mode, one for the common modes, one for lists of modes, which is searched. Sequence numbers give the order across the
 * three (163). Blocks are the loop's (L) while queued and belong to the thread that detached them afterwards.
 */
#ifndef CRL_LOOP_BLOCK_H
#define CRL_LOOP_BLOCK_H

#include "Support/link_names.h"

#include "Loop/loop.h"

struct block {
    struct block *next;
    uint64_t sequence;
    CFTypeRef modes; /* a CFArray or CFSet of names; NULL unless it is in the queue for lists */
    void (*function)(void *info);
    void (*release)(void *info); /* NULL: nothing */
    void *info;
};

/* Takes `info` over in any case: it is released if the request is ignored. */
void block_enqueue(CFRunLoopRef loop, CFTypeRef mode, void (*function)(void *info), void *info, void (*release)(void *info));

/* Some block could run in `mode` (25, 26). L. */
bool blocks_are_queued(CFRunLoopRef loop, const struct mode *mode);

/*
 * Runs what was queued for the run's mode before the call (166), which may be for the common modes, and the mode one since an earlier
 * block. Enters and leaves with the lock held.
 */
void blocks_run_queued(CFRunLoopRef loop, struct activation *run);

static inline void blocks_run(CFRunLoopRef loop, struct activation *run)
{
    if (run->mode->blocks.head || loop->common_blocks.head || loop->listed_blocks.head) {
        blocks_run_queued(loop, run);
    }
}

/* Of a chain that a pass went through: frees all, and what a function has not come back from, or was not run, is destroyed. */
void blocks_give_back(const void *chain);

/* Destroys all, unexecuted (167). */
void blocks_discard_all(CFRunLoopRef loop);

static inline void block_queue_init(struct block_queue *queue)
{
    queue->head = NULL;
    queue->tail = &queue->head;
}

#endif
