/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences that C11 has no cheap words for, or no words at all.
 *
 * barrier_full: no later load passes an earlier store. On x86-64 a locked addition of zero 64 bytes below the stack pointer costs 2.4 ns
 * where mfence costs 16; at the stack pointer itself it collides with the return address (6.8 ns).
 *
 * barrier_after_update: no later load passes an earlier atomic read-modify-write. On x86-64 the hardware promises that, so only the
 * compiler must be told; on arm64 a later load may pass the store half of the update.
 *
 * barrier_everywhere: every thread of the process passes a full fence, wherever it is, before this returns. So of two threads that each
 * store and then load what the other has stored, one may do without a fence if the other calls this in between. It takes microseconds.
 *
 * barrier_pause: not a fence, but a moment's rest between two looks at what another processor is about to write.
 *
 * barrier_before_end, barrier_at_end: tell the thread sanitizer of an order that a count makes and that it cannot see. What came before the
 * first comes before what follows the second. Without the sanitizer they do nothing.
 */
#ifndef CRL_SUPPORT_BARRIER_H
#define CRL_SUPPORT_BARRIER_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>

#if defined(__has_feature)
#define CRL_HAS_FEATURE(_feature) __has_feature(_feature)
#else
#define CRL_HAS_FEATURE(_feature) 0
#endif

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

static inline void barrier_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/*
 * Call barrier_enable_everywhere before the first barrier_everywhere. It is cheap while the process has one thread. Both return false where
 * the kernel or a filter does not allow the call.
 */
bool barrier_enable_everywhere(void);
bool barrier_everywhere(void);

#if defined(__SANITIZE_THREAD__) || CRL_HAS_FEATURE(thread_sanitizer)
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#else
#define __tsan_acquire(_address) ((void)(_address))
#define __tsan_release(_address) ((void)(_address))
#endif

static inline void barrier_before_end(void *address)
{
    __tsan_release(address);
}

static inline void barrier_at_end(void *address)
{
    __tsan_acquire(address);
}

#endif
