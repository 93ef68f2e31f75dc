/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another event loop beside this library's, for tests: it has no items of its own but the actions that a test gives it.
 *
 * The companion of the process is set once by fake_companion_begin. Each test runs in a process of its own.
 */
#ifndef CRL_TESTS_FAKE_COMPANION_H
#define CRL_TESTS_FAKE_COMPANION_H

#include <stdbool.h>

#include "Loop/Run/companion.h"

struct fake_companion {
    /* Called in each turn, as the companion's callbacks would be. Returns true if it stands for a source. NULL: nothing happens. */
    bool (*action)(CFRunLoopMode mode, bool sleeps);
    bool has_items; /* it is not empty */
    _Atomic int sleeps; /* turns with a descriptor, and without one */
    _Atomic int looks;
    _Atomic int joins;
};

extern struct fake_companion fake_companion;

/* Sets the companion. With `appears` the calling thread has it from now on. */
void fake_companion_begin(bool appears);

/* Ends it again. */
void fake_companion_end(void);

#endif
