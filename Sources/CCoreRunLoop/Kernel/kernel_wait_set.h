/* SPDX-License-Identifier: Apache-2.0 */
/* The table's entries on wait sets, as Linux fills them; what each does is said in kernel.h. Only kernel.c includes this. */
#ifndef CRL_KERNEL_KERNEL_WAIT_SET_H
#define CRL_KERNEL_KERNEL_WAIT_SET_H

#include "Kernel/link_names.h"

#include "Kernel/kernel.h"

int kernel_set_create(void);
int kernel_set_add(int set, int descriptor, uint32_t interest, uint64_t token);
int kernel_set_add_edge(int set, int descriptor, uint64_t token);
int kernel_set_change(int set, int descriptor, uint32_t interest, uint64_t token);
int kernel_set_remove(int set, int descriptor);
bool kernel_set_holds(int set, int descriptor);
int kernel_set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns);

#endif
