/* SPDX-License-Identifier: Apache-2.0 */
/* What the pool of work asks the system for, behind one table that tests replace before threads start. */
#ifndef CRL_SERVICES_WORK_KERNEL_H
#define CRL_SERVICES_WORK_KERNEL_H

#include "services_link_names.h"

#include <pthread.h>
#include <stdbool.h>

struct work_kernel {
    unsigned (*processor_count)(void); /* that the process may use */
    int (*thread_start)(void *(*function)(void *info)); /* with all signals blocked; nobody joins it. 0 or a negative errno */
    bool (*idle_wait)(pthread_mutex_t *mutex); /* for a call, without the mutex; false after ten seconds */
    void (*idle_call)(void); /* one that waits */
    void (*idle_reset)(void); /* nobody waits */
};

extern struct work_kernel work_kernel;

#endif
