/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a process's statistics, which the library keeps in a file in the user's runtime directory and `runloop top` reads.
 *
 * The directory is `corerunloop.top`, only for its owner. The file's name is the process's number. The process holds a lock on its file, so
 * that a reader can tell a file that a killed process has left. Only the thread of a loop writes the loop's place, and totals only grow.
 * Numbers are in the byte order of the machine.
 */
#ifndef CRL_LOOP_TRACE_STATISTICS_FILE_H
#define CRL_LOOP_TRACE_STATISTICS_FILE_H

#include "Loop/link_names.h"

#include <stdatomic.h>
#include <stdint.h>

enum statistics_limits {
    statistics_version = 2,
    statistics_order = 0x01020304, /* other bytes: of the other byte order */
    statistics_loops_most = 64,
    statistics_program_size = 256,
    statistics_file_size = 131072,
    statistics_callouts_most = 16, /* of a loop, told apart by function and descriptor; the last counts all that have no place */
    statistics_ports_most = 8,
    statistics_port_size = 64, /* of a port's name; the rest is cut off */
};

#define STATISTICS_DIRECTORY "corerunloop.top"

static const char statistics_magic[8] = {'C', 'R', 'L', 's', 't', 'a', 't', 's'};

/* The callouts of one function. */
struct callout_statistics {
    _Atomic uint64_t function;
    _Atomic uint64_t count;
    _Atomic int64_t total_ns; /* of those that have ended */
    _Atomic int64_t longest_ns;
    _Atomic int32_t descriptor; /* of the item; -1: it has none */
    _Atomic uint32_t kind; /* enum trace_callout */
};

/* Relaxed: a reader may see some of the numbers of one moment and some of the next. */
struct loop_statistics {
    _Atomic int32_t thread; /* 0: the place is free. Stored last when a loop takes it */
    _Atomic uint32_t queued; /* blocks that waited when the last pass began */
    char name[16]; /* of the thread; not terminated if it fills the room */
    _Atomic uint64_t passes;
    _Atomic uint64_t sleeps;
    _Atomic uint64_t callouts;
    _Atomic uint64_t timers; /* that were fired */
    _Atomic int64_t busy_ns; /* awake in runs, up to the last sleep */
    _Atomic int64_t awake_since_ns; /* monotonic; 0: it sleeps, or does not run */
    _Atomic int64_t longest_ns; /* callout that has ended */
    _Atomic uint64_t longest_function; /* its address */
    _Atomic int64_t late_ns; /* all timers together */
    _Atomic int64_t latest_ns; /* the latest one */
    _Atomic int64_t asked_ns; /* monotonic; since when it waits for the reply to a request; 0: it does not */
    _Atomic uint32_t message; /* of that request */
    _Atomic uint32_t callout_count; /* places of the table below that are taken */
    char asked[statistics_port_size]; /* the port of that request */
    char ports[statistics_ports_most][statistics_port_size]; /* that it answers for */
    struct callout_statistics functions[statistics_callouts_most];
};

struct statistics_page {
    char magic[8]; /* stored last */
    uint32_t version;
    uint32_t order;
    int32_t process;
    uint32_t loops; /* places: statistics_loops_most */
    int64_t began_ns; /* monotonic */
    char program[statistics_program_size]; /* terminated */
    struct loop_statistics places[statistics_loops_most];
};

_Static_assert(sizeof(struct statistics_page) <= statistics_file_size, "it fits");

#endif
