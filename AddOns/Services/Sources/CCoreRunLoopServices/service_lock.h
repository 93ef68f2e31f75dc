/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of one object of this wing, or of all of a kind: a pthread mutex, with which no thread can be cancelled. A thread holds one at
 * most, and none over the program's code. In the child of a fork an object that was made before it is not used any more, so its lock is not
 * taken there; a lock of all, as that of children and of work, is taken by the fork itself.
 */
#ifndef CRL_SERVICES_SERVICE_LOCK_H
#define CRL_SERVICES_SERVICE_LOCK_H

#include "services_link_names.h"

#include <pthread.h>

#include "Support/guard.h"

extern struct lock_role the_service_lock;

struct service_lock {
    pthread_mutex_t mutex;
    int cancel_state; /* of the thread that holds it, from before */
};

static inline void service_lock_init(struct service_lock *lock)
{
    (void)pthread_mutex_init(&lock->mutex, NULL);
}

static inline void service_lock_destroy(struct service_lock *lock)
{
    (void)pthread_mutex_destroy(&lock->mutex);
}

/* clang does not know a pthread mutex (NOT_CHECKED), here and in the next. */
ACQUIRES(the_service_lock) NOT_CHECKED static inline void service_lock_take(struct service_lock *lock)
{
    int cancel_state;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    (void)pthread_mutex_lock(&lock->mutex);
    lock->cancel_state = cancel_state;
}

RELEASES(the_service_lock) NOT_CHECKED static inline void service_lock_drop(struct service_lock *lock)
{
    int cancel_state = lock->cancel_state;

    (void)pthread_mutex_unlock(&lock->mutex);
    (void)pthread_setcancelstate(cancel_state, NULL);
}

#endif
