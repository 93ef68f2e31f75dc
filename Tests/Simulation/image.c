/* SPDX-License-Identifier: Apache-2.0 */
/* What joins the library to the simulation; see image.h. */
#include "image.h"

#include <pthread.h>

#include "CRLRunLoop.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Runtime/Object/object.h"
#include "Runtime/Value/wall_clock.h"
#include "Support/futex.h"
#include "plan.h"
#include "schedule_point.h"
#include "scheduler.h"
#include "tables.h"

/* In the place of Support/futex.c. */
int futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    return simulated_futex_wait(word, expected, deadline_ns);
}

int futex_wake(_Atomic uint32_t *word)
{
    return simulated_futex_wake(word);
}

/* In the place of the C library's pthread_once, by --wrap: that one would put a thread to sleep where the scheduler does not see it. */
enum once { once_not_begun, once_under_way, once_done };
_Static_assert(PTHREAD_ONCE_INIT == once_not_begun, "the word of pthread_once_t is used as ours");

static bool is_done(void *info)
{
    return *(const pthread_once_t *)info == once_done;
}

int __wrap_pthread_once(pthread_once_t *once, void (*routine)(void));
int __wrap_pthread_once(pthread_once_t *once, void (*routine)(void))
{
    if (*once == once_not_begun) {
        *once = once_under_way;
        routine();
        *once = once_done;
    } else if (*once == once_under_way) {
        (void)scheduler_wait(is_done, once, never_ns);
    }
    return 0;
}

void schedule_point(void)
{
    scheduler_point();
}

CFRunLoopRef image_loop(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    if (plan.awake_us > 0 && scheduler_random(random_work, 2) == 0) {
        CRLRunLoopSetBusyWait(loop, plan.awake_us / 1e6);
    }
    return loop;
}

static void start(int process)
{
    kernel = simulated_kernel;
    kernel_ports = simulated_kernel_ports;
    runtime_wall_clock = simulated_kernel.wall_ns;
    if (plan.program == program_loops) {
        loops_start(process);
    } else if (plan.program == program_connections) {
        connections_start(process);
    } else if (plan.program == program_pairs) {
        pairs_start(process);
    } else {
        ports_start(process);
    }
}

__attribute__((visibility("default"))) const struct image simulation_image = {.start = start, .live_objects = object_live_count};
