/* SPDX-License-Identifier: Apache-2.0 */
/* See fork_lock.h. clang does not know a pthread mutex (NOT_CHECKED). */
#include "fork_lock.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

NOT_CHECKED int fork_lock_take(void)
{
    int cancel_state;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    (void)pthread_mutex_lock(&mutex);
    return cancel_state;
}

NOT_CHECKED void fork_lock_drop(int cancel_state)
{
    (void)pthread_mutex_unlock(&mutex);
    (void)pthread_setcancelstate(cancel_state, NULL);
}

static void before_fork(void)
{
    (void)pthread_mutex_lock(&mutex);
}

static void after_fork_in_parent(void)
{
    (void)pthread_mutex_unlock(&mutex);
}

/* The thread has another number here, so that it cannot unlock what it has locked. */
static void after_fork_in_child(void)
{
    (void)pthread_mutex_init(&mutex, NULL);
}

static __attribute__((constructor)) void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
