/* SPDX-License-Identifier: Apache-2.0 */
/* The wall clock as the system has it. No locks; any thread, and signal handlers. */
#include "Runtime/Value/wall_clock.h"

#include <time.h>

static int64_t system_wall_clock(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t (*runtime_wall_clock)(void) = system_wall_clock;
