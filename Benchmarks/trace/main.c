/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a trace costs: the time of a block's callout without one, and of an event with one. Each figure is the least of many short rounds,
 * in the thread's own time, so that other programs of the machine do not count.
 *
 * usage: trace [FILE]     FILE for the trace, which must not exist; by default one in the working directory, which is removed
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "CRLTrace.h"

enum { rounds = 400, blocks = 1000 };

static void nothing(void *info)
{
    (void)info;
}

static int64_t own_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Nanoseconds that one block takes to be queued and called. */
static double block_ns(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    int64_t least = INT64_MAX;

    for (int round = 0; round < rounds; round++) {
        int64_t begin = own_ns();
        int64_t took;

        for (int i = 0; i < blocks; i++) {
            CRLRunLoopPerformFunction(loop, kCFRunLoopDefaultMode, nothing, NULL, NULL);
        }
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
        took = own_ns() - begin;
        least = took < least ? took : least;
    }
    return (double)least / blocks;
}

int main(int count, char **words)
{
    const int events = 3; /* of a block: queued, begins, ends */
    const char *path = count > 1 ? words[1] : "bench.crltrace";
    double off = block_ns();
    double on;
    int error = CRLTraceStart(path, 0);

    if (error != 0) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(error));
        return 1;
    }
    on = block_ns();
    CRLTraceStop();
    (void)unlink(path);
    (void)printf("a block is queued and called: %.1f ns without a trace, %.1f ns with one; an event: %.1f ns\n", off, on,
                 (on - off) / events);
    return 0;
}
