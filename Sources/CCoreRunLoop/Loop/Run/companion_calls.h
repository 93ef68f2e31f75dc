/* SPDX-License-Identifier: Apache-2.0 */
/* What another event loop has to do to be the companion of this library's loops; see companion.h. */
#ifndef CRL_LOOP_RUN_COMPANION_CALLS_H
#define CRL_LOOP_RUN_COMPANION_CALLS_H

#include "Loop/link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CFRunLoop.h"

/* No lock is held at these calls. `serve` and `is_empty` are called on the loop's own thread. */
struct companion {
    /* Returns true if the calling thread has such a loop; with `is_main` the main thread. Makes none. Any thread. */
    bool (*exists)(bool is_main);
    /* A loop was just made for this thread, or for the main thread. A run of the companion there has to take it in. Any thread. */
    void (*join)(bool is_main);
    /*
     * Serves the companion's items of a mode, which calls the program. With `descriptor` -1: those that are ready. Otherwise until the
     * descriptor is readable. With `ends_after_source` it also ends when it has handled a source, and with `ends_when_empty` when it has
     * handled the last item that it had. Returns true if `ends_after_source` is true and it has handled a source of its own.
     */
    bool (*serve)(CFRunLoopMode mode, int descriptor, bool ends_after_source, bool ends_when_empty);
    /* Returns true if the companion has nothing in the mode that a run could wait for. */
    bool (*is_empty)(CFRunLoopMode mode);
};

#endif
