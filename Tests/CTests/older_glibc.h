/* SPDX-License-Identifier: Apache-2.0 */
/* What tests ask of glibc and its older versions lack. */
#ifndef OLDER_GLIBC_H
#define OLDER_GLIBC_H

#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

#if defined(__GLIBC__)
#define OLDER_GLIBC(major, minor) (!__GLIBC_PREREQ(major, minor))
#else
#define OLDER_GLIBC(major, minor) 0
#endif

/* A fork that runs no handlers. */
static inline pid_t fork_without_handlers(void)
{
#if !OLDER_GLIBC(2, 34)
    return _Fork();
#elif defined(SYS_fork)
    return (pid_t)syscall(SYS_fork);
#else
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}

/* Bytes that are allocated now; 0 where the allocator does not tell. mallinfo counts to 4 GB. */
static inline size_t allocated_bytes(void)
{
#if !defined(__GLIBC__)
    return 0;
#elif OLDER_GLIBC(2, 33)
    return (unsigned)mallinfo().uordblks;
#else
    return mallinfo2().uordblks;
#endif
}

#endif
