/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mutex for calls of c-ares and OpenSSL: see fork_gate.h. Never held over the program's code, nor over a fork.
 */
#ifndef CRL_NET_PLAIN_LOCK_H
#define CRL_NET_PLAIN_LOCK_H

#include "net_link_names.h"

#include <pthread.h>
#include <stdbool.h>

#include "Support/guard.h"
#include "Support/uncancelled.h"
#include "fork_gate.h"

extern struct lock_role the_plain_lock; /* of a session or a query: no thread holds two */

struct plain_lock {
    pthread_mutex_t mutex;
};

static inline void plain_lock_init(struct plain_lock *lock)
{
    (void)pthread_mutex_init(&lock->mutex, NULL);
}

static inline void plain_lock_destroy(struct plain_lock *lock)
{
    (void)pthread_mutex_destroy(&lock->mutex);
}

/* Returns the thread's cancel state from before, which the drop sets again. clang does not know a pthread mutex (NOT_CHECKED). */
ACQUIRES(the_plain_lock) NOT_CHECKED static inline int plain_lock_take(struct plain_lock *lock)
{
    int cancel_state = fork_gate_enter();

    (void)pthread_mutex_lock(&lock->mutex);
    return cancel_state;
}

RELEASES(the_plain_lock) NOT_CHECKED static inline void plain_lock_drop(struct plain_lock *lock, int cancel_state)
{
    (void)pthread_mutex_unlock(&lock->mutex);
    fork_gate_leave(cancel_state);
}

/* Waits for the condition without the lock, and outside the gate: a fork need not wait for it. */
REQUIRES(the_plain_lock) NOT_CHECKED static inline void plain_lock_wait(struct plain_lock *lock, pthread_cond_t *told, int *cancel_state)
{
    int state_inside;

    fork_gate_leave(*cancel_state);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_inside);
    (void)pthread_cond_wait(told, &lock->mutex);
    (void)pthread_mutex_unlock(&lock->mutex);
    (void)pthread_setcancelstate(state_inside, NULL);
    *cancel_state = plain_lock_take(lock);
}

#endif
