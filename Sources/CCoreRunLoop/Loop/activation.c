/* SPDX-License-Identifier: Apache-2.0 */
/* Where the state of a run is; see activation.h. */
#include "Loop/activation.h"

#include <stdlib.h>

#include "Loop/held.h"

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
