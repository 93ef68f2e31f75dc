/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that threads leave unblocked although a source waits for them, and threads; entries of the table in kernel.h.
 *
 * A signalfd hears only what waits, so only what every thread blocks. A thread that was started before the source, or by another library,
 * may not block the signal. For such threads a handler stands in: it makes the thread block the signal from then on, and sends the signal
 * to the process again, with all that the sender said. After each thread has had it once at most, it waits, and the signalfd has it.
 *
 * The handler takes the place of the default action and of SIG_IGN only, and stays. Once no source waits for the signal it does what the
 * former action did. Atomic counters are all the state, because the handler runs on any thread at any moment.
 */
#ifndef CRL_KERNEL_KERNEL_SIGNALS_H
#define CRL_KERNEL_KERNEL_SIGNALS_H

#include "Kernel/link_names.h"

#include <sys/types.h>

/*
 * A source waits for the signal from now on. Signals that say what the thread itself has done wrong are left alone (SIGSEGV and its like,
 * SIGABRT), and so are a handler of the program's own and an ignored SIGCHLD, by which children are not waited for.
 */
void kernel_signal_expect(int signal);
/* A source that waited does so no longer. */
void kernel_signal_unexpect(int signal);

/* Begins a thread that blocks all signals and that nobody joins. Returns 0 or a negative errno. */
int kernel_thread_start(void *(*function)(void *info), const char *name);

/*
 * Returns the end of a pipe that is readable once the child has ended, or a negative errno. A thread waits for the child, because a handler
 * of SIGCHLD is the program's. It ends with the child, also if the descriptor was closed before.
 */
int kernel_process_await(pid_t pid);

#endif
