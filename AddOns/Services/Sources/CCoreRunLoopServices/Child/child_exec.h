/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a child by vfork, and makes it what the plan says until it executes its program.
 *
 * posix_spawn cannot set limits or say which step failed, and a fork copies the tables of a large program. So the child borrows the memory
 * and the stack of the thread, which waits. Between vfork and exec it makes system calls and nothing else, by syscall(): what wraps them in
 * the C library or in a sanitizer keeps books, which are the program's.
 */
#ifndef CRL_SERVICES_CHILD_EXEC_H
#define CRL_SERVICES_CHILD_EXEC_H

#include "services_link_names.h"

#include "Child/child_plan.h"

/*
 * Returns the child's number, or a negative errno if there is none. A child that could not execute its program has written its error to the
 * plan's pipe, and exits. With all signals blocked meanwhile: no handler of the program runs in the child.
 */
pid_t child_exec_start(struct child_plan *plan);

#endif
