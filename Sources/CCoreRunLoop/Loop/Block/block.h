/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queued blocks: what CFRunLoopPerformBlock and CRLRunLoopPerformFunction leave for the loop. Each runs once, in the first matching mode
 * that runs.
 *
 * A loop has one queue for each mode, one for the common modes, and one for lists of modes, which has to be searched. Sequence numbers,
 * which rise in each queue, give the order across the three (rule 163). While a block is queued, the loop's lock guards it. Afterwards it
 * belongs to the loop's thread, which has detached it, and runs it without the lock.
 */
#ifndef CRL_LOOP_BLOCK_BLOCK_H
#define CRL_LOOP_BLOCK_BLOCK_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"

/* One queued block, or one spare node that waits for the next block. */
struct block {
    struct block *next;
    uint64_t sequence;
    CFTypeRef modes; /* the library's own CFArray of mode names; NULL unless the block is in the queue for lists */
    void (*function)(void *info); /* NULL once it has returned */
    void (*release)(void *info); /* NULL: nothing to release */
    void *info;
};

/* Queues a block for the mode of that name, or for each mode of a list. Releases `info` at once if the request is ignored. */
EXCLUDES(the_loop_lock)
void block_enqueue(CFRunLoopRef loop, CFTypeRef mode, void (*function)(void *info), void *info, void (*release)(void *info));

/* Returns true if some queued block could run in `mode`, which then is not empty (rules 25, 26). */
REQUIRES(the_loop_lock) bool blocks_are_queued(CFRunLoopRef loop, const struct mode *mode);

/* Returns how many blocks are queued, for whichever modes. */
REQUIRES(the_loop_lock) __attribute__((cold)) uint32_t blocks_count(CFRunLoopRef loop);

/*
 * Runs the blocks that were queued for the run's mode before the call; blocks queued by these wait for the next time (rule 166). If one of
 * them makes the mode common, blocks queued before the call for the common modes run as well. Drops the lock while the blocks run.
 */
REQUIRES(the_loop_lock) void blocks_run_queued(CFRunLoopRef loop, struct run *run);

REQUIRES(the_loop_lock) static inline void blocks_run(CFRunLoopRef loop, struct run *run)
{
    if (run->mode->blocks.head || loop->common_blocks.head || loop->listed_blocks.head) {
        blocks_run_queued(loop, run);
    }
}

/*
 * The clean-up of a pass that a block left by a jump or by ending its thread. Frees the chain, and releases what the block under way and
 * the blocks that did not run still hold.
 */
EXCLUDES(the_loop_lock) void blocks_give_back(const void *chain);

/* Destroys all queued blocks of a loop that ends, without running them (rule 167). */
EXCLUDES(the_loop_lock) void blocks_discard_all(CFRunLoopRef loop);

#endif
