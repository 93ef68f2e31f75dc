/* SPDX-License-Identifier: Apache-2.0 */
/* Where the state of a run is; see activation.h. */
#include "Loop/activation.h"

#include <stdlib.h>

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

void activations_forget(CFRunLoopRef loop)
{
    while (loop->activation) {
        struct activation *run = loop->activation;

        loop->activation = run->outer;
        activation_discard(run);
    }
}
