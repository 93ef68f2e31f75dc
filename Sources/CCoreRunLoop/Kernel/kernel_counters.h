/* SPDX-License-Identifier: Apache-2.0 */
/* The table's entries on eventfds and timerfds, as Linux fills them; what each does is said in kernel.h. Only kernel.c includes this. */
#ifndef CRL_KERNEL_KERNEL_COUNTERS_H
#define CRL_KERNEL_KERNEL_COUNTERS_H

#include "Kernel/link_names.h"

#include "Kernel/kernel.h"

int kernel_event_create(void);
int kernel_event_post(int event);
int kernel_event_renew(int event);
int kernel_counter_drain(int descriptor);
int kernel_counter_take(int descriptor);
int kernel_alarm_create(void);
int kernel_alarm_set(int alarm, int64_t deadline_ns);
bool kernel_alarm_is_own(int alarm);
int kernel_resume_open(void);

#endif
