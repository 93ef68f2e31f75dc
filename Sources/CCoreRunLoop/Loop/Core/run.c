/* SPDX-License-Identifier: Apache-2.0 */
/* The end of nested and of abandoned runs; see run.h. On the loop's own thread, with the loop's lock. */
#include "Loop/Core/run.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/Core/callout_cleanup.h"

struct run *run_create(struct run *without_memory)
{
    struct run *run = malloc(sizeof *run);

    return run ? run : without_memory;
}

void run_discard(struct run *run)
{
    if (run->is_allocated) {
        free(run);
    }
}

void runs_forget(CFRunLoopRef loop)
{
    invariant_held(&loop->lock);
    invariant(loop->is_dead);
    while (loop->innermost_run) {
        struct run *run = loop->innermost_run;

        loop->innermost_run = run->outer;
        if (run->callout.object) { /* an observer or block was being called: its clean-up joins those on the stack */
            (void)cleanup_push(loop, run->callout.function, run->callout.object);
        }
        run_discard(run);
    }
}

/* ---- beginning and end ---- */

static void trace_mode_name(const struct mode *mode)
{
    char name[trace_name_most + 1];

    if (CFStringGetCString(mode->name, name, sizeof name, kCFStringEncodingUTF8)) {
        trace_write_name(mode, name);
    }
}

void mode_trace_joining(const struct mode *mode, enum trace_callout kind, void (*function)(void))
{
    trace_mode_name(mode);
    trace_write(trace_item_joins, kind, (uintptr_t)function, (uintptr_t)mode);
}

void run_trace_beginning(CFRunLoopRef loop, const struct run *run)
{
    trace_note_loop(loop, loop->waker);
    trace_mode_name(run->mode);
    trace_write(trace_run_begins, 0, (uintptr_t)run, (uintptr_t)run->mode);
}

/*
 * Notes for the outer run that a nested run took a wake-up. A nested run inside the BeforeWaiting observers takes it after the outer run
 * has collected its sources. The outer run must not miss it, and gets it back just before it sleeps (rule 64). Given back earlier, it would
 * end the wait of another nested run (rule 46). Wake-ups that a nested run dropped are noted in the wake word itself.
 */
static void owe_token_to_outer(const struct run *run)
{
    struct run *outer = run->outer;

    invariant(outer != NULL);
    invariant(outer != run);
    outer->took_token |= run->took_token;
    outer->is_owed_token |= outer->is_before_waiting && run->took_token;
}

void run_leave_nested(CFRunLoopRef loop, struct run *run)
{
    invariant_held(&loop->lock);
    invariant(loop->innermost_run == run);
    owe_token_to_outer(run);
    loop->innermost_run = run->outer;
    waker_leave(loop->waker, run->outer_word, run->outer->is_hosted_asleep);
    run_discard(run);
}

/* Leaves the innermost run, which was abandoned, and runs its clean-ups. Drops the lock meanwhile, because clean-ups call the program. */
REQUIRES(the_loop_lock) static void leave_abandoned(CFRunLoopRef loop)
{
    struct run *run = loop->innermost_run;
    uint32_t height = run->cleanup_base;
    struct cleanup callout = run->callout;

    invariant_held(&loop->lock);
    trace_event(trace_run_ends, 1, run, 0);
    loop->innermost_run = run->outer;
    if (run->outer) {
        owe_token_to_outer(run);
        waker_resume(loop->waker, run->outer_word, run->outer->is_hosted_asleep);
    } else {
        waker_leave(loop->waker, run->outer_word, false);
    }
    if (loop->host_waits) {
        loop->host_wait_hooks->run_abandoned(loop, run);
    }
    run_discard(run);
    loop_unlock(loop);
    /* The observer or block was called last, so its clean-up comes first. */
    if (callout.object) {
        callout.function(callout.object);
    }
    cleanup_unwind(loop, height);
    loop_lock(loop);
}

void run_leave_abandoned(CFRunLoopRef loop, const struct run *run)
{
    while (loop->innermost_run != run) {
        invariant(loop->innermost_run != NULL); /* `run` has not left: it is found further out */
        leave_abandoned(loop);
    }
}

/*
 * Returns true if the run's function is no longer on the stack: it was jumped out of. Whatever a living function calls has a lower frame,
 * as stacks grow downwards. Frames can be compared only if both are on the thread's own stack, and not on one that the program has made.
 */
static bool run_is_gone(const struct run *run, uintptr_t frame)
{
    return run->frame != 0 && frame >= run->frame && kernel.is_on_stack(run->frame) && kernel.is_on_stack(frame);
}

void runs_leave_gone(CFRunLoopRef loop, uintptr_t frame)
{
    while (loop->innermost_run && run_is_gone(loop->innermost_run, frame)) {
        leave_abandoned(loop);
    }
}
