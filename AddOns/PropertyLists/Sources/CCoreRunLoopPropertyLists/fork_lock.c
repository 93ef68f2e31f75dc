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

/*
 * In the parent and in the child, whose one thread is the one that locked. It is an ordinary mutex, which knows no owner. To initialize a
 * locked one would leave it locked for ThreadSanitizer, which then sees no order between those who take it.
 */
static void after_fork(void)
{
    (void)pthread_mutex_unlock(&mutex);
}

static __attribute__((constructor)) void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}
