/* SPDX-License-Identifier: Apache-2.0 */
/* Children for tests: a shell's, what they write, and how they end. */
#ifndef CRL_TESTS_CHILD_PROBE_H
#define CRL_TESTS_CHILD_PROBE_H

#include "CRLChild.h"
#include "CoreFoundation/CoreFoundation.h"
#include "harness.h"

struct child_probe {
    CRLChildRef child;
    CRLChildSpecification specification; /* of the next start */
    CRLChildError error; /* of the last start */
    CRLChildEnd end; /* if it was told */
    _Atomic int ends;
    _Atomic int releases; /* of the context */
    void (*action)(struct child_probe *probe); /* in the callback; NULL: none */
};

/* Starts what the specification says, scheduled in the default mode of this thread's loop. Returns NULL if it was refused. */
CRLChildRef probe_start(struct child_probe *probe);
/* The same for `sh -c script`, which writes 1 into a pipe, and reads 0 from one. The end of the test where it does not start. */
CRLChildRef probe_start_shell(struct child_probe *probe, const char *script);
/* The same where the specification has descriptors of its own. */
CRLChildRef probe_start_script(struct child_probe *probe, const char *script);
/* Runs the loop until the end was told; the test fails if that takes too long. */
void probe_run_to_end(struct child_probe *probe);
/* Reads the pipe until its end, or until `size` bytes are there, and ends them with a zero. Does not run the loop. */
const char *probe_read(const struct child_probe *probe, int number, char *text, size_t size);
/* Releases the child. */
void probe_give_up(struct child_probe *probe);
/* Starts the script, and returns all that it wrote into 1 once it has ended with 0; in memory that the next call takes. */
const char *probe_output_of(struct child_probe *probe, const char *script);
/* The program has no child, not even one that has ended. */
#define EXPECT_NO_CHILD() EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD)

#endif
