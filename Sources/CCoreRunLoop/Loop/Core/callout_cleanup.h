/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of clean-ups: what has to be given back if a callback does not return to the library.
 *
 * A callback may end its thread, or jump or throw past the run that called it. The caller therefore pushes a clean-up before each callout
 * and pops it afterwards. Clean-ups that nobody popped run later: when a run around the callout goes on, or when the thread ends. They run
 * from the top of the stack, without locks, on the loop's own thread. Observers and blocks are called in rows; pushing for each would cost
 * too much. They store the clean-up of the current callout in run->callout instead, and an unwind runs that one first.
 *
 * The stack belongs to the loop's thread. It stands in the loop and not on the thread's stack, which is gone by then.
 */
#ifndef CRL_LOOP_CORE_CALLOUT_CLEANUP_H
#define CRL_LOOP_CORE_CALLOUT_CLEANUP_H

#include "Loop/link_names.h"

#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFRunLoop.h"
#include "Loop/Core/loop.h"
#include "Support/invariant.h"

/* The slow half of cleanup_reserve. Makes room for `count` more clean-ups. Returns false if there is no memory. */
__attribute__((cold)) bool cleanup_grow(struct cleanup_stack *stack, uint32_t count);

static inline bool cleanup_reserve(CFRunLoopRef loop, uint32_t count)
{
    struct cleanup_stack *stack = &loop->cleanups;

    invariant(stack->count <= stack->capacity);
    return __builtin_expect(stack->capacity - stack->count >= count, 1) || cleanup_grow(stack, count);
}

/*
 * Pushes a clean-up. Returns its mark for cleanup_pop, or 0 if there is no memory. What the clean-up would give back is then lost if the
 * callback does not return.
 */
static inline uint32_t cleanup_push(CFRunLoopRef loop, void (*function)(const void *object), const void *object)
{
    if (!cleanup_reserve(loop, 1)) {
        return 0;
    }
    loop->cleanups.items[loop->cleanups.count++] = (struct cleanup){function, object};
    return loop->cleanups.count;
}

/* Runs the clean-ups above `height`, from the top. No lock is held. */
__attribute__((cold)) void cleanup_unwind(CFRunLoopRef loop, uint32_t height);

/* As cleanup_unwind, for a caller that holds the loop's lock. Drops the lock meanwhile. */
REQUIRES(the_loop_lock) __attribute__((cold)) void cleanup_unwind_locked(CFRunLoopRef loop, uint32_t height);

/* The callout has returned: takes its clean-up off without running it. Runs the clean-ups above, which abandoned runs have left. */
static inline void cleanup_pop(CFRunLoopRef loop, uint32_t mark)
{
    invariant(mark <= loop->cleanups.count);
    if (mark > 0) {
        if (__builtin_expect(loop->cleanups.count != mark, 0)) {
            cleanup_unwind(loop, mark);
        }
        loop->cleanups.count = mark - 1;
    }
}

/* Takes off the clean-ups from `height` to `end`, as cleanup_pop does. Drops the lock if there are others above, to run those. */
REQUIRES(the_loop_lock) static inline void cleanup_pop_locked(CFRunLoopRef loop, uint32_t height, uint32_t end)
{
    invariant(height <= end && end <= loop->cleanups.count);
    if (__builtin_expect(loop->cleanups.count != end, 0)) {
        cleanup_unwind_locked(loop, end);
    }
    loop->cleanups.count = height;
}

/* Returns the object of the clean-up at `place`, counted from the bottom. */
static inline const void *cleanup_object(CFRunLoopRef loop, uint32_t place)
{
    invariant(place < loop->cleanups.count);
    return loop->cleanups.items[place].object;
}

/* The clean-up at the index `place` stays on the stack and does nothing any more. The caller releases the object itself. */
static inline void cleanup_disarm(CFRunLoopRef loop, uint32_t place)
{
    invariant(place < loop->cleanups.count);
    loop->cleanups.items[place].function = NULL;
}

/* Frees the memory of an empty stack. */
__attribute__((cold)) void cleanup_free(CFRunLoopRef loop);

#endif
