/* SPDX-License-Identifier: Apache-2.0 */
/* See fork_gate.h. Who forks closes the door first, so that threads that come and go without a pause do not keep it waiting. */
#include "fork_gate.h"

#include <pthread.h>

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t inside = PTHREAD_RWLOCK_INITIALIZER; /* for reading by each thread inside */

int fork_gate_enter(void)
{
    int cancel_state;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    (void)pthread_mutex_lock(&door);
    (void)pthread_rwlock_rdlock(&inside);
    (void)pthread_mutex_unlock(&door);
    return cancel_state;
}

void fork_gate_leave(int cancel_state)
{
    (void)pthread_rwlock_unlock(&inside);
    (void)pthread_setcancelstate(cancel_state, NULL);
}

static void before_fork(void)
{
    (void)pthread_mutex_lock(&door);
    (void)pthread_rwlock_wrlock(&inside);
}

static void after_fork_in_parent(void)
{
    (void)pthread_rwlock_unlock(&inside);
    (void)pthread_mutex_unlock(&door);
}

/* The thread has another number here, so that it cannot unlock what it has locked. */
static void after_fork_in_child(void)
{
    (void)pthread_rwlock_init(&inside, NULL);
    (void)pthread_mutex_init(&door, NULL);
}

/* Handlers before a fork run in the reverse order, and those of loops are registered first: threads inside may take the locks of loops. */
static __attribute__((constructor)) void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
