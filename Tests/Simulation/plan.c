/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing a plan; see plan.h. */
#include "plan.h"

#include <stdio.h>

#include "scheduler.h"

struct plan plan;

static uint64_t any(uint64_t below)
{
    return scheduler_random(random_work, below);
}

static int between(int low, int high)
{
    return low + (int)any((uint64_t)(high - low + 1));
}

/* None at all, what has no consequences, or anything. */
static void plan_faults(void)
{
    uint64_t level = any(4);

    if (level >= 1) {
        plan.faults.transient_one_in = UINT64_C(8) << any(6);
        plan.faults.delay_one_in = UINT64_C(64) << any(5);
    }
    if (level >= 2 && any(2) == 0) {
        plan.faults.clock_one_in = UINT64_C(128) << any(4);
    }
    if (level >= 3) {
        plan.faults.resource_one_in = UINT64_C(8) << any(6);
    }
}

/* More processes than places in the queue would need more than there are, so each has several messages under way. */
static void plan_crowd(void)
{
    plan.is_crowd = plan.is_busy = true;
    plan.processes = processes_max;
    plan.names = 1;
    plan.by_socket = true;
    plan.datagrams_max = 4 + any(4);
}

static void plan_ports(void)
{
    plan.processes = between(1, processes_max);
    plan.threads = between(1, 2);
    plan.names = between(1, names_max);
    plan.is_busy = any(2) == 0;
    plan.steps = plan.is_busy ? between(1, 5) : between(2, 12);
    plan.restarts = any(3) == 0;
    plan.has_hostile = any(4) == 0;
    plan.by_socket = any(2) == 0;
    plan.has_deaths = plan.processes > 1 && any(3) == 0;
    for (int i = 0; plan.has_deaths && i < plan.processes - 1; i++) {
        if (any(2) == 0) {
            scheduler_processes[i].dies_at_call = 20 + any(plan.is_busy ? 3000 : 600);
        }
    }
}

void plan_make(void)
{
    plan.program = (enum program)any(3);
    if (plan.program == program_connections && any(2) == 0) {
        plan.program = program_pairs;
    }
    plan.processes = 1;
    plan.threads = between(2, 4);
    plan.steps = between(3, 25);
    plan.has_ticker = any(3) == 0;
    plan.datagrams_max = any(2) == 0 ? 11 : 5 + any(20);
    plan.descriptor_limit = any(4) == 0 ? between(24, 48) : 256;
    plan_faults();
    if (plan.program == program_ports) {
        plan_ports();
    }
    if (plan.program == program_pairs) {
        plan.steps *= 3;
    }
    plan.awake_us = any(3) == 0 ? between(1, 200) : 0;
    plan.hides_processes = plan.program == program_ports && any(4) == 0;
    if (plan.program == program_ports && any(4) == 0) {
        plan_crowd();
    }
}

static void print_one(const char *what, uint64_t one_in)
{
    if (one_in > 0) {
        (void)printf(", %s once in %llu", what, (unsigned long long)one_in);
    }
}

void plan_print(void)
{
    if (plan.program == program_loops) {
        (void)printf("loops: %d threads of %d steps%s", plan.threads, plan.steps, plan.has_ticker ? ", timers" : "");
    } else if (plan.program == program_connections) {
        (void)printf("connections: %d threads of %d steps", plan.threads, plan.steps);
    } else if (plan.program == program_pairs) {
        (void)printf("pairs of streams: %d threads of %d steps", plan.threads, plan.steps);
    } else {
        (void)printf("ports: %d processes with %d clients of %d steps, %d names%s%s", plan.processes, plan.threads, plan.steps, plan.names,
                     plan.restarts ? ", servers restart" : "", plan.has_deaths ? ", processes die" : "");
        (void)printf("%s%s%s%s%s", plan.by_socket ? ", all by socket" : "", plan.is_busy ? ", many in a row" : "",
                     plan.hides_processes ? ", processes hidden" : "", plan.is_crowd ? ", a crowd" : "",
                     plan.has_hostile ? ", one of them hostile" : "");
    }
    if (plan.awake_us > 0) {
        (void)printf(", waits of %d us awake", plan.awake_us);
    }
    print_one("transient faults", plan.faults.transient_one_in);
    print_one("delays", plan.faults.delay_one_in);
    print_one("clock steps", plan.faults.clock_one_in);
    print_one("resource faults", plan.faults.resource_one_in);
    (void)printf(", at most %d descriptors\n", plan.descriptor_limit);
}
