/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks that a test suite moves by hand, in the place of the kernel's.
 *
 * The kernel table is replaced once and stays so. A thread whose clock is moved by hand would sleep in the kernel until a deadline of the
 * wrong clock: so its waits look again every millisecond whether the clock has reached the deadline. Both records are constant once
 * written, and written before a function of the new table is called.
 */
#include <errno.h>

#include "Kernel/kernel.h"
#include "Overlay/overlay.h"
#include "Runtime/Value/wall_clock.h"

static struct kernel replaced;
static struct overlay_clock clock_by_hand;

/* The real instant at which a wait for `deadline_ns` of the hand-moved clock looks again. */
static int64_t look_again(int64_t deadline_ns)
{
    return deadline_ns <= clock_by_hand.monotonic_ns() ? 0 : replaced.monotonic_ns() + 1000000;
}

/*
 * How far the hand-moved clocks were apart when the thread last looked at the time of its timers, or waited. If they have parted since, its
 * next wait ends at once, and one during which they part ends then: the kernel would tell of it likewise.
 */
struct apart {
    int64_t elapsed_ns; /* ahead of the monotonic clock; INT64_MIN: the thread has not looked */
    int64_t wall_ns;
};
static __thread struct apart seen_apart = {.elapsed_ns = INT64_MIN};

/* A suspension and a step of the wall clock may cancel each other out for one of the clocks, but not for both. */
static bool have_parted(void)
{
    struct apart before = seen_apart;
    int64_t monotonic_ns = clock_by_hand.monotonic_ns();

    seen_apart.elapsed_ns = clock_by_hand.elapsed_ns() - monotonic_ns;
    seen_apart.wall_ns = clock_by_hand.wall_ns() - monotonic_ns;
    return before.elapsed_ns != INT64_MIN && (seen_apart.elapsed_ns != before.elapsed_ns || seen_apart.wall_ns != before.wall_ns);
}

static int64_t elapsed_by_hand(void)
{
    if (clock_by_hand.is_by_hand()) {
        (void)have_parted(); /* before the reading: if they part between the two, a wait ends for nothing */
    }
    return clock_by_hand.elapsed_ns();
}

/* A wait that is asked to end a little early ends then, however long the clock stands still there: nothing is to be asked for early. */
static int64_t timer_slack_by_hand(void)
{
    return clock_by_hand.is_by_hand() ? 0 : replaced.timer_slack_ns();
}

static bool skips_waits(void)
{
    return clock_by_hand.is_by_hand() && clock_by_hand.skips_waits();
}

static int futex_wait_by_hand(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    int error;

    if (deadline_ns != kernel_never && skips_waits()) {
        error = replaced.futex_wait(word, expected, 0);
        if (error == -ETIMEDOUT) {
            clock_by_hand.skip_to(deadline_ns);
        }
        return error;
    }
    if (!clock_by_hand.is_by_hand() || deadline_ns == kernel_never) {
        return replaced.futex_wait(word, expected, deadline_ns);
    }
    do {
        error = replaced.futex_wait(word, expected, look_again(deadline_ns));
        if (error == -ETIMEDOUT && have_parted()) {
            error = 0; /* woken, not out of time */
        }
    } while (error == -ETIMEDOUT && deadline_ns > clock_by_hand.monotonic_ns());
    return error;
}

static int set_wait_by_hand(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    int count;

    if (!clock_by_hand.is_by_hand() || deadline_ns == kernel_never || deadline_ns <= 0) {
        return replaced.set_wait(set, events, capacity, deadline_ns);
    }
    if (clock_by_hand.skips_waits()) {
        count = replaced.set_wait(set, events, capacity, 0);
        if (count == 0) {
            clock_by_hand.skip_to(deadline_ns);
        }
        return count;
    }
    do {
        count = replaced.set_wait(set, events, capacity, look_again(deadline_ns));
    } while (count == 0 && deadline_ns > clock_by_hand.monotonic_ns() && !have_parted());
    return count;
}

/*
 * The kernel's alarms follow its own clock: one for a hand-moved clock goes off when a wait would look again. A thread that skips its waits
 * knows without an alarm when the clock is there.
 */
static int alarm_set_by_hand(int alarm, int64_t deadline_ns)
{
    bool looks_again = clock_by_hand.is_by_hand() && deadline_ns != kernel_never;

    if (looks_again && clock_by_hand.skips_waits()) {
        return replaced.alarm_set(alarm, kernel_never);
    }
    return replaced.alarm_set(alarm, looks_again ? look_again(deadline_ns) : deadline_ns);
}

/* A loop that waits awake yields between its looks. By a clock that stands still it would do so for ever, so it sleeps. */
static void yield_by_hand(void)
{
    _Atomic uint32_t word = 0;

    if (clock_by_hand.is_by_hand() && !clock_by_hand.skips_waits()) {
        (void)replaced.futex_wait(&word, 0, replaced.monotonic_ns() + 1000000);
    } else {
        replaced.yield();
    }
}

void overlay_replace_clock(const struct overlay_clock *clock, struct overlay_clock *ret_kernel)
{
    replaced = kernel;
    clock_by_hand = *clock;
    *ret_kernel = (struct overlay_clock){
        .monotonic_ns = replaced.monotonic_ns,
        .elapsed_ns = replaced.elapsed_ns,
        .wall_ns = replaced.wall_ns,
        .tick_ns = replaced.tick_ns,
        .is_by_hand = NULL,
    };
    kernel.monotonic_ns = clock->monotonic_ns;
    kernel.elapsed_ns = elapsed_by_hand;
    kernel.wall_ns = clock->wall_ns;
    kernel.tick_ns = clock->tick_ns;
    runtime_wall_clock = clock->wall_ns;
    kernel.timer_slack_ns = timer_slack_by_hand;
    kernel.futex_wait = futex_wait_by_hand;
    kernel.set_wait = set_wait_by_hand;
    kernel.alarm_set = alarm_set_by_hand;
    kernel.yield = yield_by_hand;
}

bool overlay_clock_is_by_hand(void)
{
    return clock_by_hand.is_by_hand && clock_by_hand.is_by_hand();
}
