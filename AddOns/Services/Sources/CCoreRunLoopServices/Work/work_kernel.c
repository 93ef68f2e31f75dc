/* SPDX-License-Identifier: Apache-2.0 */
/* See work_kernel.h. Any thread. */
#define _GNU_SOURCE
#include "Work/work_kernel.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { idle_s = 10 };

static pthread_cond_t work_call; /* of the pool's lock */

static unsigned processor_count(void)
{
    cpu_set_t usable;
    long online;

    if (sched_getaffinity(0, sizeof usable, &usable) == 0) {
        return (unsigned)CPU_COUNT(&usable);
    }
    online = sysconf(_SC_NPROCESSORS_ONLN); /* more than the set holds */
    return online > 0 ? (unsigned)online : 1;
}

static int thread_start(void *(*function)(void *info))
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    int error;

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, function, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return -error;
}

static bool idle_wait(pthread_mutex_t *mutex)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += idle_s;
    return pthread_cond_timedwait(&work_call, mutex, &until) != ETIMEDOUT;
}

static void idle_call(void)
{
    (void)pthread_cond_signal(&work_call);
}

static void idle_reset(void)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&work_call, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

struct work_kernel work_kernel = {
    .processor_count = processor_count,
    .thread_start = thread_start,
    .idle_wait = idle_wait,
    .idle_call = idle_call,
    .idle_reset = idle_reset,
};
