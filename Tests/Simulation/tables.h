/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's two tables as a simulation fills them: each call takes a little time, may be where another thread goes on, where the process
 * dies, and where a fault strikes; what it does is files.c's.
 *
 * Not simulated, and NULL: signals and child processes.
 */
#ifndef CRL_TESTS_SIMULATION_TABLES_H
#define CRL_TESTS_SIMULATION_TABLES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"

extern const struct kernel simulated_kernel;
extern const struct kernel_ports simulated_kernel_ports;

/* What the seed lets happen; 0: never, else once in so many calls. */
struct fault_plan {
    uint64_t transient_one_in; /* EINTR, EAGAIN, early ends of waits */
    uint64_t resource_one_in; /* EMFILE, ENOMEM, ENOSPC, ENOBUFS */
    uint64_t delay_one_in; /* held up, late ends of waits, a process stopped for a while */
    uint64_t clock_one_in; /* steps of the wall clock, and suspensions of the system */
};
void tables_begin(const struct fault_plan *plan);

/* The system is suspended for so long: the monotonic clock stands still, the others go on. */
void tables_suspend(int64_t ns);
/* When the last suspension ended, on the clock that goes on in it. */
int64_t tables_resumed_ns(void);

/* What the calling thread does itself, rather than the library for it, meets no faults. Counts. */
void tables_spare(bool is_spared);
/* The calling thread is spared, or one that the library started: nobody waits for it. */
bool tables_may_close_slowly(void);
/* How many resource faults have struck so far. */
uint64_t tables_resource_faults(void);

/* For the locks of Support, which do not go through the table. */
int simulated_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns);
int simulated_futex_wake(_Atomic uint32_t *word);

#endif
