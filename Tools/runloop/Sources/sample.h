/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the statistics of the user's processes say at one moment, and what the kernel says of their threads.
 *
 * Whatever is in the directory may have been written by anybody who runs as this user, so nothing of it is believed: files are copied, not
 * mapped, sizes are checked, text is made plain, and a number that has become smaller counts as unchanged. A file whose process has ended
 * is removed.
 */
#ifndef RUNLOOP_SAMPLE_H
#define RUNLOOP_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "Loop/Trace/statistics_file.h"

/* The callouts of one function. */
struct seen_function {
    uint64_t function;
    uint64_t count;
    int64_t total_ns, longest_ns;
    int32_t descriptor;
    uint32_t kind;
};

/* One loop at one moment, as it was read. */
struct seen {
    int32_t process;
    uint32_t place;
    int32_t thread;
    int64_t began_ns; /* when the statistics began: it tells the process from a later one of the same number */
    char program[statistics_program_size];
    char name[17];
    bool is_here; /* the process has this number here, too, and not only in a container of its own */
    uint32_t queued;
    uint64_t passes, sleeps, callouts, timers;
    int64_t busy_ns; /* includes the time since the loop last woke */
    int64_t awake_since_ns; /* 0: it sleeps */
    int64_t longest_ns, late_ns, latest_ns;
    uint64_t longest_function;
    int64_t asked_ns; /* since when it waits for a reply; 0: it does not */
    int32_t message;
    char asked[statistics_port_size];
    char ports[statistics_ports_most][statistics_port_size];
    struct seen_function functions[statistics_callouts_most];
    uint32_t function_count;
    /* of the kernel; 0 if the process is not here */
    int64_t processor_ns;
    int64_t delay_ns; /* ready, without a processor */
    uint64_t waits; /* how often the thread has given up the processor by itself */
};

struct sample {
    int64_t time_ns;
    struct seen *loops; /* by process and place */
    size_t count, capacity;
};

/* What a loop did between two samples. */
struct figures {
    double passes, sleeps, callouts, timers; /* per second */
    double busy; /* share of the time, 0 to 1 */
    double processor; /* likewise */
    double futile; /* share of the sleeps that returned at once */
    double late_us; /* mean of the timers that fired */
};

int take_sample(struct sample *sample);
/* The same loop in an earlier sample, or NULL. */
const struct seen *find_before(const struct sample *before, const struct seen *seen);
struct figures figures_of(const struct seen *before, const struct seen *after, double seconds);
/* The function at an address of the loop's process, or NULL. Reads the process's map of memory for it. */
const char *function_name(const struct seen *seen, uint64_t address);
/* The loop that answers for a port: in the same process, or in another one. NULL: none that is known. */
const struct seen *find_server(const struct sample *sample, const struct seen *asker, const char *port);
/* Writes who the loop waits for in words, "waits for a reply from a, which waits for b: a deadlock". Returns true if it is a deadlock. */
bool describe_wait(const struct sample *sample, const struct seen *seen, char *ret_text, size_t size);
void copy_plain(char *ret_text, size_t size, const char *text);
void pause_for(double seconds);

#endif
