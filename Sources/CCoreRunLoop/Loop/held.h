/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the callouts that are under way hold: references and memory of the passes around them. It stands in the loop, not on the stack of
 * the thread, for whoever comes after a callback that does not return: the run around it, or the end of the thread, gives all back.
 *
 * Each run has one thing in its hand, which the callout is about, and puts what is to come later onto the loop's stack; from there it is
 * gone before the run ends. O.
 */
#ifndef CRL_LOOP_HELD_H
#define CRL_LOOP_HELD_H

#include "Support/link_names.h"

#include "Loop/loop.h"
#include "Loop/thread_loop.h"

/* Frees the stack, whatever is on it. */
__attribute__((cold)) void held_free(CFRunLoopRef loop);

/* Makes room for `count` more. False if there is no memory. */
__attribute__((cold)) bool held_grow(struct held_stack *held, uint32_t count);

static inline bool held_reserve(CFRunLoopRef loop, uint32_t count)
{
    struct held_stack *held = &loop->held;

    return __builtin_expect(held->capacity - held->count >= count, 1) || held_grow(held, count);
}

/* False if there is no memory: if a callback does not return then, the thing is left. */
static inline bool held_push(CFRunLoopRef loop, void (*give_back)(const void *thing), const void *thing)
{
    bool is_kept = held_reserve(loop, 1);

    if (is_kept) {
        loop->held.items[loop->held.count++] = (struct held){give_back, thing};
    }
    return is_kept;
}

static inline const void *held_thing(CFRunLoopRef loop, uint32_t place)
{
    return loop->held.items[place].thing;
}

/* The thing at a place is its holder's again. */
static inline void held_take(CFRunLoopRef loop, uint32_t place)
{
    loop->held.items[place].give_back = NULL;
}

/* What the callout of a run is about, until held_put_down. */
static inline void held_in_hand(struct activation *run, void (*give_back)(const void *thing), const void *thing)
{
    run->in_hand = (struct held){give_back, thing};
}

static inline void held_put_down(struct activation *run)
{
    run->in_hand.give_back = NULL;
}

/* Gives back what is above a height, the latest first. Without locks. */
void held_give_back(CFRunLoopRef loop, uint32_t height);

/* The same with L, which is dropped meanwhile: what a run has left there to whose callout another one did not return. */
__attribute__((cold)) void held_give_back_left(CFRunLoopRef loop, uint32_t height);

/* Puts one in below what is at `place` and above. False if there is no memory. */
__attribute__((cold)) bool held_insert(CFRunLoopRef loop, uint32_t place, struct held item);

/* Around callouts. The result is where what is held ends, for held_let_go; 0: there is no memory. */
static inline uint32_t held_hold(CFRunLoopRef loop, void (*give_back)(const void *thing), const void *thing)
{
    return held_push(loop, give_back, thing) ? loop->held.count : 0;
}

static inline void held_let_go(CFRunLoopRef loop, uint32_t end)
{
    if (end > 0) {
        held_give_back(loop, end); /* of runs to which something in the callout has not returned */
        loop->held.count = end - 1;
    }
}

/* The run that has called the layers above, for what their callout is about: its hand is empty. */
static inline struct activation *held_caller(void)
{
    return thread_loop_if_any()->activation;
}

/* The same where it may be a dispatch queue that has called: NULL if there is no run on this thread, or its hand is not empty. */
static inline struct activation *held_caller_if_any(void)
{
    CFRunLoopRef loop = thread_loop_if_any();
    struct activation *run = loop ? loop->activation : NULL;

    return run && !run->in_hand.give_back ? run : NULL;
}

/* All from `height` to `end`, which is all that the holder has pushed, has been taken. L */
static inline void held_cut(CFRunLoopRef loop, uint32_t height, uint32_t end)
{
    const uint32_t most_kept = 256;

    if (__builtin_expect(loop->held.count != end, 0)) {
        held_give_back_left(loop, end);
    }
    loop->held.count = height;
    if (__builtin_expect(height == 0 && loop->held.capacity > most_kept, 0)) {
        held_free(loop);
    }
}

#endif
