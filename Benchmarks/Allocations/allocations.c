/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own malloc comes before the C library's, also for the shared libraries that it uses. */
#include "Allocations.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static atomic_ulong count;

unsigned long allocations_so_far(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed);
}

static unsigned long time_ns(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (unsigned long)now.tv_sec * 1000000000UL + (unsigned long)now.tv_nsec;
}

unsigned long thread_time_ns(void)
{
    return time_ns(CLOCK_THREAD_CPUTIME_ID);
}

unsigned long process_time_ns(void)
{
    return time_ns(CLOCK_PROCESS_CPUTIME_ID);
}

#if defined(__GLIBC__)

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t number, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static void note(void)
{
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

void *malloc(size_t size)
{
    note();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    note();
    return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size)
{
    note();
    return __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    note();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **ret_block, size_t alignment, size_t size)
{
    note();
    *ret_block = __libc_memalign(alignment, size);
    return *ret_block ? 0 : ENOMEM;
}

#endif
