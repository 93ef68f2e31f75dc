/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two fences that C11 has no cheap words for.
 *
 * barrier_full: no later load passes an earlier store. On x86-64 a locked addition of zero 64 bytes below the stack pointer costs 2.4 ns
 * where mfence costs 16; at the stack pointer itself it collides with the return address (6.8 ns).
 *
 * barrier_after_update: no later load passes an earlier atomic read-modify-write. On x86-64 the hardware promises that, so only the
 * compiler must be told; on arm64 a later load may pass the store half of the update.
 */
#ifndef CRL_SUPPORT_BARRIER_H
#define CRL_SUPPORT_BARRIER_H

#include "Support/link_names.h"

#include <stdatomic.h>

static inline void barrier_full(void)
{
#if defined(__x86_64__)
    __asm__ volatile("lock addl $0, -64(%%rsp)" ::: "memory", "cc");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

static inline void barrier_after_update(void)
{
#if defined(__x86_64__)
    atomic_signal_fence(memory_order_seq_cst);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
