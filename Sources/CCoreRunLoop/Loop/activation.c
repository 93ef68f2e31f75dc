/* SPDX-License-Identifier: Apache-2.0 */
/* Where the state of a run is; see activation.h. */
#include "Loop/activation.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/block.h"
#include "Loop/held.h"
#include "Loop/hosting.h"
#include "Loop/observer.h"
#include "Loop/watch.h"

struct activation *activation_create(struct activation *without_memory)
{
    struct activation *run = malloc(sizeof *run);

    return run ? run : without_memory;
}

void activation_discard(struct activation *run)
{
    if (run->is_allocated) {
        free(run);
    }
}

/*
 * What its wait has found, or the signalled source that it has called, and nobody has given back. Below what its source's callout has put
 * there, which counts on it. A change is reported once, so that the kernel is asked again.
 */
static void keep_report(CFRunLoopRef loop, const struct activation *run, uint32_t place)
{
    const struct watch_report *report = &run->report;

    if (!report->source) {
        return;
    }
    if (source_kind(report->source) != source_manual) {
        watch_doubt(run->mode, report->source);
    }
    if (report->is_borrowed && loop->borrowed == report->source) {
        object_retain(report->source);
        loop->borrowed = NULL;
    }
    (void)held_insert(loop, place, (struct held){object_release, report->source});
}

/*
 * Of an abandoned run: what its callout was about goes onto the loop's stack of what callouts hold, to what is the run's own there, which
 * ends at `end`. Returns where that begins.
 */
static uint32_t keep(CFRunLoopRef loop, struct activation *run, uint32_t end)
{
    uint32_t begin = run->held_count < end ? run->held_count : end; /* callouts around it may have ended before it is left */
    struct held callouts[] = {run->in_hand,
                              {run->calling ? observer_end_left_callout : NULL, run->calling},
                              {run->blocks ? blocks_give_back : NULL, run->blocks}};

    for (size_t i = 0; i < sizeof callouts / sizeof callouts[0]; i++) {
        if (callouts[i].give_back) {
            end += held_insert(loop, end, callouts[i]) ? 1 : 0;
        }
    }
    keep_report(loop, run, begin);
    return begin;
}

void activations_forget(CFRunLoopRef loop)
{
    uint32_t end = loop->held.count;

    while (loop->activation) {
        struct activation *run = loop->activation;

        loop->activation = run->outer;
        end = keep(loop, run, end);
        activation_discard(run);
    }
}

/* ---- beginning and end ---- */

/*
 * The run was nested where the outer one has collected its sources and is about to sleep: the wake-up that it took, the outer one must not
 * miss (64). It is given back when that sleeps, so that it ends no wait of another run before (46). What it dropped is owed by the wake
 * word itself.
 */
static void owe_token(const struct activation *run)
{
    struct activation *outer = run->outer;

    outer->took_token |= run->took_token;
    outer->is_owed_token |= outer->is_before_waiting && run->took_token;
}

void run_leave_nested(CFRunLoopRef loop, struct activation *run)
{
    owe_token(run);
    loop->activation = run->outer;
    mailbox_leave(loop->mailbox, run->outer_word, run->outer->is_hosted_asleep);
    activation_discard(run);
}

/* The innermost run, which was abandoned. */
static void leave_abandoned(CFRunLoopRef loop)
{
    struct activation *run = loop->activation;
    uint32_t height;

    loop->activation = run->outer;
    if (run->outer) {
        owe_token(run);
        mailbox_resume(loop->mailbox, run->outer_word, run->outer->is_hosted_asleep);
    } else {
        mailbox_leave(loop->mailbox, run->outer_word, false);
    }
    hosting_note_abandoned(loop, run);
    height = keep(loop, run, loop->held.count);
    activation_discard(run);
    held_give_back_left(loop, height);
}

void run_leave_abandoned(CFRunLoopRef loop, const struct activation *run)
{
    while (loop->activation != run) {
        leave_abandoned(loop);
    }
}

/*
 * The run's function has returned, or it was jumped out of: what it would call stands below it on the stack. That says something only where
 * both are on the thread's own stack, and not on one that a program has made for itself.
 */
static bool is_gone(const struct activation *run, uintptr_t frame)
{
    return run->frame != 0 && frame >= run->frame && kernel.is_on_stack(run->frame) && kernel.is_on_stack(frame);
}

void runs_leave_gone(CFRunLoopRef loop, uintptr_t frame)
{
    while (loop->activation && is_gone(loop->activation, frame)) {
        leave_abandoned(loop);
    }
}
