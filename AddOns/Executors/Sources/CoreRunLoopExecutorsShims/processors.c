/* SPDX-License-Identifier: Apache-2.0 */
/* The processors of a thread. */
#define _GNU_SOURCE
#include "executors_shims.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

int executors_processor_count(void)
{
    cpu_set_t processors;
    long online;

    if (sched_getaffinity(0, sizeof processors, &processors) == 0) {
        return CPU_COUNT(&processors);
    }
    online = sysconf(_SC_NPROCESSORS_ONLN); /* more than a cpu_set_t has room for */
    return online < 1 ? 1 : (int)online;
}

int executors_use_processors(const int *processors, long count)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (long i = 0; i < count; i++) {
        if (processors[i] < 0 || processors[i] >= CPU_SETSIZE) {
            return EINVAL;
        }
        CPU_SET(processors[i], &set);
    }
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void executors_yield(void)
{
    (void)sched_yield();
}
