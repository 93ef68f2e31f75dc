/* SPDX-License-Identifier: Apache-2.0 */
/* The table's entries on clocks, as Linux fills them; what each does is said in kernel.h. */
#ifndef CRL_KERNEL_KERNEL_CLOCKS_H
#define CRL_KERNEL_KERNEL_CLOCKS_H

#include "Kernel/link_names.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static const int64_t kernel_second_ns = 1000000000;

static inline int64_t kernel_clock_read(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * kernel_second_ns + now.tv_nsec;
}

int64_t kernel_monotonic_ns(void);
int64_t kernel_elapsed_ns(void);
int64_t kernel_wall_ns(void);
int64_t kernel_tick_ns(int64_t *ret_wall_ns);
int64_t kernel_timer_slack_ns(void);
bool kernel_is_niced(void);

#endif
