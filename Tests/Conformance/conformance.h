/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conformance cases: small programs that run loops and log what happens, built once against the toolchain's Core Foundation and once
 * against this library; `run` compares the two logs. A case uses public API only, and its log must not depend on how fast the machine is.
 *
 * Each case is a function in a process of its own. It runs on a secondary thread, because the main loop also serves the dispatch queue,
 * unless it says `on_main`. What its thread's exit would log is left out.
 */
#ifndef CRL_TESTS_CONFORMANCE_H
#define CRL_TESTS_CONFORMANCE_H

#include "Loop/loop_probe.h"

enum case_thread { on_thread, on_main };

struct conformance_case {
    const char *name;
    const char *group; /* the file */
    const char *rules; /* numbers of the specification */
    enum case_thread thread;
    void (*function)(void);
    struct conformance_case *next;
};

void conformance_register(struct conformance_case *one);

/* CASE(name, "rules", on_thread) { statements } */
#define CASE(name_, rules_, thread_)                                                                                 \
    static void name_##_case(void);                                                                                  \
    static struct conformance_case name_##_entry = {#name_, CONFORMANCE_GROUP, rules_, thread_, name_##_case, NULL}; \
    __attribute__((constructor)) static void name_##_register(void)                                                  \
    {                                                                                                                \
        conformance_register(&name_##_entry);                                                                        \
    }                                                                                                                \
    static void name_##_case(void)

/* Ends the process: the case cannot be tried with this build. */
_Noreturn void conformance_skip(const char *reason);

/* Forgets the log so far. */
void say_nothing_of_that(void);

/* Time in steps since the last mark, rounded down, with a millisecond of grace: to log when something fired. */
void mark_time(void);
int steps_since_mark(double step_seconds);

#endif
