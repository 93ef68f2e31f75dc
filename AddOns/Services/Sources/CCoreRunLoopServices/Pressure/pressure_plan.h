/* SPDX-License-Identifier: Apache-2.0 */
/* What a pressure source listens to. What comes from outside, the environment and texts of the kernel, is judged here. No state. */
#ifndef CRL_SERVICES_PRESSURE_PLAN_H
#define CRL_SERVICES_PRESSURE_PLAN_H

#include "services_link_names.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { pressure_request_size = 768 };

struct pressure_plan {
    bool is_given; /* by the service manager: there is no other path to try */
    char paths[2][PATH_MAX]; /* of what tells of pressure; the second is for when the first cannot be watched. "": none */
    unsigned char request[pressure_request_size]; /* what is written there */
    size_t size;
    char events[PATH_MAX]; /* the control group's memory.events; "": none */
};

/*
 * Makes the plan of the variables MEMORY_PRESSURE_WATCH and MEMORY_PRESSURE_WRITE, which may be NULL, and the text of /proc/self/cgroup.
 * Returns 0, or a negative errno if the variables are not as they should be.
 */
int pressure_plan_make(struct pressure_plan *plan, const char *watch, const char *write, const char *groups);
/* The sum of the counters in the text of memory.events whose growth is critical. */
unsigned long long pressure_events_sum(const char *text);

#endif
