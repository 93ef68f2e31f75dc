/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of the stacks of a program and its children, and when each of their threads ran, slept, and waited for a processor: what the
 * kernel tells by perf_event, written into a file beside the trace. One thread.
 */
#ifndef RUNLOOP_SAMPLING_H
#define RUNLOOP_SAMPLING_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* What the kernel tells of one processor. */
struct sampled_processor {
    int event;
    void *ring; /* a page that tells how far the ring is written, and then the ring */
};

struct sampling {
    struct sampled_processor *processors;
    size_t count;
    FILE *file;
    const char *path;
    uint64_t written; /* bytes */
    uint64_t lost; /* records, since the last one that says so */
};

/*
 * Opens the events of a process that has not become its program yet, and the file. Returns an exit status, after a line on standard error
 * that says which setting forbids it.
 */
int sampling_begin(struct sampling *sampling, pid_t process, const char *path);
/* Writes what comes until the process can be waited for. It is not waited for. */
void sampling_follow(struct sampling *sampling, pid_t process);
/* Writes the rest. Returns an exit status, after a line on standard error. */
int sampling_end(struct sampling *sampling);

#endif
