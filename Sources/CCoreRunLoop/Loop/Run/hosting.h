/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosting: another event loop, the host, does the waiting for this loop. The pass is the same, cut in two at the sleep. `struct hosting` is
 * the state of the hosted run between the host's calls.
 *
 * host_wait.h has the sleep. All functions run on the loop's own thread, which alone uses the structure.
 */
#ifndef CRL_LOOP_RUN_HOSTING_H
#define CRL_LOOP_RUN_HOSTING_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"
#include "Loop/Run/host_wait.h"

struct hosting {
    struct host_wait wait; /* its `run` is &run between the first Prepare and Leave; `is_due`: steps 2 to 6 are done */
    struct run run;
    bool is_calling; /* inside Prepare, Dispatch or Leave: callbacks may not start another hosted run; means nothing without a run */
    enum wake_cause first_cause; /* found by the look that goes before the sleep */
};

/* Frees the structure, because the loop's thread ends. Its descriptors are closed. */
void hosting_free(CFRunLoopRef loop);

#endif
