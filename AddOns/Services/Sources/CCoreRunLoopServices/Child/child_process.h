/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that was started: what becomes readable at its end, its status, and signals for it.
 *
 * The number of a process is its own until it is reaped. So it is reaped, and gets signals by its number, only under the lock;
 * where the kernel has process descriptors (Linux 5.3), these bring the signals. Where not, a thread waits for the end without reaping. No
 * handler for SIGCHLD is needed: the program may have its own, or ignore it; then the kernel reaps, and nobody knows the status.
 */
#ifndef CRL_SERVICES_CHILD_PROCESS_H
#define CRL_SERVICES_CHILD_PROCESS_H

#include "services_link_names.h"

#include <stdbool.h>

#include "CRLChild.h"
#include "service_lock.h"

struct child_plan;

extern struct service_lock child_lock; /* of all children, as a fork has to take it: its child may ask for those of its parent */

struct child_process {
    pid_t pid; /* constant, as the three that follow */
    int end; /* readable once the process has ended: a pidfd or an eventfd */
    bool is_pidfd;
    bool has_group; /* whose number is the process's */
    bool is_over GUARDED_BY(the_service_lock); /* reaped, or taken away; `result` is valid */
    bool kills_group GUARDED_BY(the_service_lock); /* what is left of the group does not outlive the process */
    CRLChildEnd result GUARDED_BY(the_service_lock);
};

/* Starts what the plan says, whose descriptors are open. Returns true if the program runs; else nothing is left but `*ret_error`. */
EXCLUDES(the_service_lock) bool child_process_start(struct child_process *process, struct child_plan *plan, CRLChildError *ret_error);

/* Returns whether it has ended, and how. Reaps it. */
EXCLUDES(the_service_lock) bool child_process_look(struct child_process *process, CRLChildEnd *ret_end);

/* Returns false if the process has ended, or there is no such group or signal. A group is signalled while the process is not reaped. */
EXCLUDES(the_service_lock) bool child_process_signal(struct child_process *process, int signal, bool whole_group);
EXCLUDES(the_service_lock) void child_process_kill_group_at_end(struct child_process *process);

/* Nobody asks any more: the process goes on, and is reaped in any case. */
EXCLUDES(the_service_lock) void child_process_leave(struct child_process *process);

#endif
