/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks at random moments while eight threads use what a test lists, without a pause; the child uses all of it once. A child that hangs is
 * told by what it was doing.
 */
#ifndef CRL_TESTS_FORK_PROBE_H
#define CRL_TESTS_FORK_PROBE_H

#include <stdbool.h>

struct fork_use {
    const char *name; /* what the child does: "reads a file" */
    bool (*function)(void); /* any thread; whether it worked */
};

/* The list ends with an entry without a name. Forks 50 times, 1,000 times in the soak. Skips the test under sanitizers. */
void fork_probe_run(const struct fork_use *uses);

#endif
