/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls for children, behind one table, as the library has one (Kernel/kernel.h): tests replace entries.
 *
 * Written before threads start, and only read afterwards. Functions return 0 or a value, or a negative errno, and leave errno as it is.
 */
#ifndef CRL_SERVICES_CHILD_KERNEL_H
#define CRL_SERVICES_CHILD_KERNEL_H

#include "services_link_names.h"

#include <stdbool.h>

#include "CRLChild.h"

struct child_plan;

enum child_look { child_look_keeps, child_look_reaps };
enum { pipe_waits = -1 }; /* as `without_wait` */

struct child_kernel {
    /* A pipe, close-on-exec, above the numbers of standard streams. The end of the index `without_wait` is non-blocking. */
    int (*pipe_create)(int ret_ends[2], int without_wait);
    int (*null_open)(void); /* /dev/null, for reading and writing */
    void (*close)(int descriptor);
    pid_t (*start)(struct child_plan *plan); /* child_exec.h */
    ssize_t (*report_read)(int descriptor, void *bytes, size_t size); /* waits, and goes on after signals */
    int (*process_open)(pid_t pid); /* a pidfd; -ENOSYS before Linux 5.3, -ESRCH for one that is gone */
    /* 1: it has ended, with `*ret_end`; 0: not yet; -ECHILD: somebody else knows. `process` is its pidfd, or -1. */
    int (*process_look)(pid_t pid, int process, enum child_look look, CRLChildEnd *ret_end);
    int (*process_await)(pid_t pid); /* waits until it has ended, or is none of the program's; does not reap it */
    int (*process_signal)(pid_t pid, int process, int signal);
    int (*group_signal)(pid_t group, int signal);
    int (*event_create)(bool is_posted); /* an eventfd */
    int (*event_copy)(int event);
    void (*event_post)(int event);
    int (*thread_start)(void *(*function)(void *info), void *info); /* with all signals blocked; nobody joins it */
    int (*close_on_exec)(unsigned first, unsigned last); /* also in a child, before exec; -EINVAL or -ENOSYS before Linux 5.11 */
};

extern struct child_kernel child_kernel;

#endif
