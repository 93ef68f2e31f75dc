/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls by which a thread that is stuck is interrupted and looked at, in a table beside that of kernel.h.
 *
 * The same promises as kernel.h: 0, a value or a negative errno; errno stays the caller's.
 */
#ifndef CRL_KERNEL_KERNEL_STALL_H
#define CRL_KERNEL_KERNEL_STALL_H

#include "Kernel/link_names.h"

#include <signal.h>
#include <stdint.h>
#include <time.h>

typedef void kernel_signal_handler(int signal, siginfo_t *info, void *context);

struct kernel_stall {
    /*
     * Makes `handler` that of SIGURG, and returns its number. It is ignored by default: one on its way ends no process that resets its
     * signals. System calls that the signal interrupts go on where the kernel can do that. -EBUSY if the process has a handler for it.
     * Makes `backtrace` safe in the handler.
     */
    int (*signal_claim)(kernel_signal_handler *handler);
    /*
     * NULL while the claimed signal comes to the handler in the calling thread. Otherwise why it does not: what the program did. One that
     * the program has reset or ignores, as it does with all, is taken back.
     */
    const char *(*signal_loss)(int signal, kernel_signal_handler *handler);
    int (*signal_admit)(int signal); /* no longer blocks it in the calling thread */
    /* An alarm that sends `signal` with `value` to the calling thread. A child of a fork does not have it. -EAGAIN: no room for one. */
    int (*alarm_create)(int signal, void *value, timer_t *ret_alarm);
    int (*alarm_set)(timer_t alarm, int64_t after_ns); /* once; 0: not at all. Safe in the handler */
    int (*alarm_delete)(timer_t alarm);
    /*
     * In the handler, with its context: the addresses in the functions that were active, from the one that was interrupted outwards.
     * Returns how many there are.
     */
    int (*backtrace)(const void *context, const void **ret_frames, int most);
};

extern struct kernel_stall kernel_stall;

/* The table as it is for production, for tests, which copy it back; only where they are built. */
extern const struct kernel_stall kernel_stall_linux;

#endif
