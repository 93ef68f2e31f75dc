/* SPDX-License-Identifier: Apache-2.0 */
/* What `runloop why` has found out, and how it is written. */
#ifndef RUNLOOP_FINDINGS_H
#define RUNLOOP_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum finding_kind {
    finding_deadlock,
    finding_hangs,
    finding_no_reply,
    finding_spins,
    finding_never,
    finding_late,
    finding_stalls,
    finding_wakes_often,
    finding_kind_count
};

enum { findings_of_kind_most = 20 }; /* more of one kind say nothing new */

struct finding {
    enum finding_kind kind;
    int32_t process;
    int32_t thread;
    char *sentence;
    char *evidence; /* what it was made of; "" if the sentence has all */
};

struct findings {
    struct finding *all;
    size_t count, capacity;
    size_t by_kind[finding_kind_count];
};

/* Adds a finding, unless there are many of its kind. Returns true if it was added. */
__attribute__((format(printf, 5, 6))) bool findings_add(struct findings *findings, enum finding_kind kind, int32_t process, int32_t thread,
                                                        const char *sentence, ...);
/* Adds a sentence to the evidence of the last finding. */
__attribute__((format(printf, 2, 3))) void findings_prove(struct findings *findings, const char *sentence, ...);
/* Writes all, the gravest first. Returns the exit status. */
int findings_write(const struct findings *findings, const char *what, bool is_json);

#endif
