/* SPDX-License-Identifier: Apache-2.0 */
/* What a seed has chosen: which program runs in the simulation, in how many threads and processes, and what may go wrong. */
#ifndef CRL_TESTS_SIMULATION_PLAN_H
#define CRL_TESTS_SIMULATION_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "tables.h"

enum program { program_loops, program_ports, program_connections, program_pairs };

enum { names_max = 2 };

struct plan {
    enum program program;
    int processes; /* 1 for loops */
    int threads; /* actors of loops, connections and pairs, or clients of each process */
    int names; /* of ports */
    int steps; /* of each thread */
    bool has_ticker; /* timers that are always about */
    bool restarts; /* servers give their name up and take it again */
    bool has_deaths;
    bool by_socket; /* messages within a process too */
    bool hides_processes; /* each process is in a PID namespace of its own: all others have the process id 0 there */
    bool is_crowd; /* all processes send one-way messages to one server, whose queue is short */
    bool has_hostile; /* a thread passes files whose close waits */
    bool is_busy; /* many messages in a row to one server, so that channels get pages for their replies */
    int awake_us; /* how long every other loop waits awake before it sleeps; 0: none does */
    uint64_t datagrams_max;
    int descriptor_limit;
    struct fault_plan faults;
};
extern struct plan plan;

void plan_make(void);
void plan_print(void);

#endif
