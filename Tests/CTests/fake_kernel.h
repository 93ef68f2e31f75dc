/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel table with clocks that a test moves by hand.
 *
 * A wait that would sleep ends at once: with what is ready, or else with both clocks moved on to its deadline. A wait without a deadline
 * and with nothing ready would sleep for ever: it ends the test with a message. Descriptors, eventfds and wait sets are the real ones;
 * alarms go off by the clock that is moved. For tests that run their loop on one thread.
 */
#ifndef CRL_TESTS_FAKE_KERNEL_H
#define CRL_TESTS_FAKE_KERNEL_H

#include <stdint.h>

/* Replaces the table; first line of a test. The monotonic clock starts at 1,000 s, the wall clock at 2026-01-01. */
void fake_kernel_install(void);

/* Moves both clocks on. */
void fake_kernel_advance(int64_t ns);

/* Shifts the wall clock alone. */
void fake_kernel_step_wall(int64_t ns);

/* The system is suspended for so long: the monotonic clock stands still, the others do not. */
void fake_kernel_suspend(int64_t ns);

/* Does one of these two, not now but in the first sleep that lasts till then. */
void fake_kernel_in(int64_t from_now_ns, void (*parts)(int64_t ns), int64_t ns);

/* Monotonic time since installation. */
int64_t fake_kernel_elapsed_ns(void);

/* How often the library asked to sleep (a wait on a futex, or in a wait set with a deadline in the future), and how often for anything of
 * the kernel at all. */
uint64_t fake_kernel_sleeps(void);
uint64_t fake_kernel_calls(void);

/* What the kernel says that it may be late; 0 at first. */
void fake_kernel_set_slack(int64_t ns);
/* How late it is; 0 at first. An alarm never is. */
void fake_kernel_be_late(int64_t ns);
/* The thread is niced, and its waits in sets are stretched more. Nobody is until then. */
void fake_kernel_be_nice(void);

/* The next `count` waits end this much before their deadline, as a kernel that wakes early. */
void fake_kernel_wake_early(int count, int64_t ns);

#endif
