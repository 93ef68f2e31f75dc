/* SPDX-License-Identifier: Apache-2.0 */
/* Where the state of a run is; see activation.h. */
#include "Loop/activation.h"

#include <stdlib.h>

#include "Loop/held.h"
#include "Loop/hosting.h"
#include "Loop/performing.h"

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

/* What its wait has found, and nobody has given back. */
static void keep_report(CFRunLoopRef loop, const struct watch_report *report)
{
    if (report->source && !(report->is_borrowed && loop->borrowed == report->source)) {
        (void)held_push(loop, object_release, report->source);
    }
}

void activations_forget(CFRunLoopRef loop)
{
    while (loop->activation) {
        struct activation *run = loop->activation;

        loop->activation = run->outer;
        keep_report(loop, &run->report);
        held_keep_hand(loop, run);
        activation_discard(run);
    }
}

/* ---- beginning and end ---- */

/*
 * The run was nested where the outer one has collected its sources and is about to sleep: the wake-up that it took, the outer one must not
 * miss (64). What it dropped is owed by the wake word itself.
 */
static bool owes_token(const struct activation *run)
{
    const struct activation *outer = run->outer;

    return outer->is_hosted_asleep || (outer->is_before_waiting && run->took_token);
}

void run_leave_nested(CFRunLoopRef loop, struct activation *run)
{
    run->outer->took_token |= run->took_token;
    loop->activation = run->outer;
    mailbox_leave(loop->mailbox, run->outer_word, owes_token(run));
    activation_discard(run);
}

void run_leave_abandoned(CFRunLoopRef loop, const struct activation *run)
{
    while (loop->activation != run) {
        struct activation *abandoned = loop->activation;

        abandoned->outer->took_token |= abandoned->took_token;
        loop->activation = abandoned->outer;
        mailbox_resume(loop->mailbox, abandoned->outer_word, owes_token(abandoned));
        if (abandoned->report.source) {
            report_drop(loop, &abandoned->report);
        }
        hosting_note_abandoned(loop, abandoned);
        held_give_back_all(loop, abandoned);
        activation_discard(abandoned);
    }
}
