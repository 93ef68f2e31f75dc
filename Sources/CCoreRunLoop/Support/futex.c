/* SPDX-License-Identifier: Apache-2.0 */
/* The two futex calls the library makes. */
#include "Support/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    const int64_t second_ns = 1000000000;
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / second_ns), .tv_nsec = (long)(deadline_ns % second_ns)};
    const struct timespec *limit = deadline_ns == INT64_MAX ? NULL : &deadline;
    int saved = errno;
    long result;

    if (deadline_ns < 0) {
        deadline = (struct timespec){0, 0};
    }
    /* WAIT_BITSET takes an absolute instant of CLOCK_MONOTONIC, so an interrupted wait can be repeated as it is. */
    result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, limit, NULL, FUTEX_BITSET_MATCH_ANY);
    if (result < 0) {
        result = -errno;
    }
    errno = saved;
    return (int)result;
}

int futex_wake(_Atomic uint32_t *word)
{
    int saved = errno;
    long result = syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);

    if (result < 0) {
        result = -errno;
    }
    errno = saved;
    return (int)result;
}
