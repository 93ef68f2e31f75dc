/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The n-th failure: a scenario is run again and again, and in the n-th run the n-th allocation or kernel call of the library fails once.
 *
 * A scenario works through the public API, says MUST of what may not be lost, and returns true when it got all it wanted, false when the
 * library refused something in the way its header says. What it keeps with bag_keep is invalidated and released for it. Each run has a
 * process of its own, in which the scenario is run a second time without failures: that one must be complete, and then the live objects,
 * the descriptors and the blocks of memory must be those of a run without failures.
 *
 * Where a failure leads to a place that has not failed in any run, there is a run in which both fail.
 *
 * A failure is printed as `NTH_FAILURE=n.v.p`: in the environment it makes the test run that one alone, with the stack of the call that
 * failed. v picks one of the errors that a kernel call may have, p is the place of the second call that fails, or 0.
 */
#ifndef CRL_TESTS_NTH_FAILURE_H
#define CRL_TESTS_NTH_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

#include "CoreFoundation/CoreFoundation.h"
#include "harness.h"

#define NTH_FAILURE(_name, _rules)                    \
    static bool scenario_##_name(void);               \
    TEST_LIMIT(nth_failure_##_name, _rules, 120)      \
    {                                                 \
        nth_failure_run(#_name, scenario_##_name);    \
    }                                                 \
    static bool scenario_##_name(void)

/* In a scenario: refused, if there is nothing. */
#define NEED(_value)      \
    do {                  \
        if (!(_value)) {  \
            return false; \
        }                 \
    } while (0)
/* In a scenario: what no failure excuses. */
#define MUST(_condition) ((_condition) ? (void)0 : run_failed(__FILE__, __LINE__, "%s", #_condition))

void nth_failure_run(const char *name, bool (*scenario)(void));
/* In each run another scenario comes first, before anything is counted or fails: what libraries of others make once and keep. It must not
 * make the main loop. */
void nth_failure_run_primed(const char *name, bool (*scenario)(void), bool (*first_scenario)(void));
/*
 * Before, for a scenario whose runs wait: a run may take so long, 0.9 s by default. Outside the soak only one call of `step` fails, from
 * the call `first` on, and none after another.
 */
void nth_failure_be_patient(double seconds, unsigned step, unsigned first);
void run_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Gives the object back after the scenario, last kept first; returns it. NULL is passed through. */
void *bag_keep(const void *object);
/* Closes the descriptor after the scenario. */
int bag_keep_descriptor(int descriptor);

/* Runs the current loop in the mode until the counter has come to `wanted`. False: it never came, or the mode had nothing. */
bool run_until(const _Atomic int *counter, int wanted, CFStringRef mode);

/* Of nth_failure_calls.c. */

/* One call of the library that can fail, and the errors it may fail with; 0: no more. */
struct failing_call {
    const char *name;
    int errors[2];
};

/* The call counts, and gets its error if it is its turn; else 0. Any thread. */
int nth_failure_take(const struct failing_call *call);

/* Replaces the kernel's tables by those whose calls fail in their turn. */
void failing_calls_install(void);

/* Outside scenarios: no call fails, and the process is killed as it comes to its n-th. */
void nth_failure_die_at(unsigned n);

/* Of nth_failure_memory.c: allocations fail in their turn, and every block that was made since is counted until it is freed. */
void failing_memory_begin(void);
void failing_memory_end(void);
/* How many blocks are left. */
size_t failing_memory_count(void);
/* Where they come from, and the stacks of those beyond what was there before. */
enum { origins_max = 1024 };
struct memory_origins {
    size_t count;
    struct memory_origin {
        uint64_t stack;
        long blocks;
    } origins[origins_max];
};
void failing_memory_origins(struct memory_origins *ret_origins);
void failing_memory_print_beyond(const struct memory_origins *origins);

enum { stack_depth = 10 };
/* The calling stack without its innermost frames, and its hash. */
int stack_take(void *frames[stack_depth], uint64_t *ret_hash);
void stack_print(void *const frames[stack_depth], int count);

#endif
