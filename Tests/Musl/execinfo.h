/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For `make check-musl`: musl has no backtrace, and Debian's unwinder needs glibc. The tests of the n-th failure are compiled with this,
 * and do not run.
 */
#ifndef MUSL_EXECINFO_H
#define MUSL_EXECINFO_H

static inline int backtrace(void **ret_frames, int most)
{
    (void)ret_frames;
    (void)most;
    return 0;
}

static inline void backtrace_symbols_fd(void *const *frames, int count, int file)
{
    (void)frames;
    (void)count;
    (void)file;
}

#endif
