/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks moved by hand in the place of the kernel's. The kernel beneath is a fake one, whose waits end at once: what happens meanwhile is
 * the n-th look of the wait.
 */
#include <errno.h>

#include "Kernel/kernel.h"
#include "Loop/Core/loop.h"
#include "Loop/loop_trace.h"
#include "Overlay/overlay.h"

static const int64_t second_ns = 1000000000;
static const int64_t hour_ns = INT64_C(3600) * 1000000000;
static const int64_t look_ns = 1000000;

/* The clocks moved by hand, of the thread that has them. */
static __thread bool has_hand_clocks;
static int64_t hand_ns;
static int64_t hand_suspended_ns;
static int64_t hand_step_ns;

static int64_t hand_monotonic_ns(void)
{
    return has_hand_clocks ? hand_ns : kernel_linux.monotonic_ns();
}

static int64_t hand_elapsed_ns(void)
{
    return has_hand_clocks ? hand_ns + hand_suspended_ns : kernel_linux.elapsed_ns();
}

static int64_t hand_wall_ns(void)
{
    return has_hand_clocks ? INT64_C(1767225600) * second_ns + hand_ns + hand_suspended_ns + hand_step_ns : kernel_linux.wall_ns();
}

static int64_t hand_tick_ns(int64_t *ret_wall_ns)
{
    int64_t tick_ns = kernel_linux.tick_ns(ret_wall_ns);

    if (!has_hand_clocks) {
        return tick_ns;
    }
    *ret_wall_ns = hand_wall_ns();
    return hand_ns;
}

static bool is_by_hand(void)
{
    return has_hand_clocks;
}

static bool is_in_a_hurry;
static int64_t skipped_to_ns;

static bool skips_waits(void)
{
    return is_in_a_hurry;
}

static void skip_to(int64_t deadline_ns)
{
    skipped_to_ns = deadline_ns;
}

/* The kernel beneath. Its clock is a real one that stands still. */
static const int64_t real_now_ns = INT64_C(77) * 1000000000;
static int looks;
static int64_t looked_until_ns; /* the deadline of the last look */
static int looks_at_past; /* at a deadline that the clock has reached */
static int look_result; /* what a look that is not interrupted returns */
static int eventful_look; /* in which look it happens */
static int eventful_result;
static void (*event)(void);
static int yields;
static int64_t real_slack_ns;
static int64_t alarm_deadline_ns;

static int64_t real_monotonic_ns(void)
{
    return real_now_ns;
}

static int look(int64_t deadline_ns)
{
    enum { too_many = 100 };

    looks++;
    looked_until_ns = deadline_ns;
    looks_at_past += deadline_ns == 0 ? 1 : 0;
    if (looks == too_many) {
        return -EINTR; /* a wait that nothing ends */
    }
    if (looks != eventful_look) {
        return look_result;
    }
    if (event) {
        event();
    }
    return eventful_result;
}

static int look_at_word(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    (void)word;
    (void)expected;
    return look(deadline_ns);
}

static int look_at_set(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    (void)set;
    (void)events;
    (void)capacity;
    return look(deadline_ns);
}

static int note_alarm(int alarm, int64_t deadline_ns)
{
    alarm_deadline_ns = deadline_ns;
    return alarm < 0 ? -EBADF : 0;
}

static int64_t slack_of_kernel(void)
{
    return real_slack_ns;
}

static void note_yield(void)
{
    yields++;
}

static struct overlay_clock of_kernel;

static void replace_clocks(void)
{
    static const struct overlay_clock hand = {hand_monotonic_ns, hand_elapsed_ns, hand_wall_ns, hand_tick_ns,
                                              is_by_hand,        skips_waits,     skip_to};

    overlay_replace_clock(&hand, &of_kernel);
}

/* The thread has clocks moved by hand, above a fake kernel whose `result` of a look is that no more time is left. */
static void begin(int result, int in_look, int result_there, void (*what)(void))
{
    kernel.monotonic_ns = real_monotonic_ns;
    kernel.timer_slack_ns = slack_of_kernel;
    kernel.futex_wait = look_at_word;
    kernel.set_wait = look_at_set;
    kernel.alarm_set = note_alarm;
    kernel.yield = note_yield;
    look_result = result;
    eventful_look = in_look;
    eventful_result = result_there;
    event = what;
    replace_clocks();
    has_hand_clocks = true;
    hand_ns = 1000 * second_ns;
}

static void a_second_passes(void)
{
    hand_ns += second_ns;
}

static void system_is_suspended(void)
{
    hand_suspended_ns += hour_ns;
}

static void wall_clock_is_set_back(void)
{
    hand_step_ns -= hour_ns;
}

static void suspended_and_set_back(void)
{
    system_is_suspended();
    wall_clock_is_set_back();
}

static int wait_for_word(int64_t deadline_ns)
{
    static _Atomic uint32_t word;

    return kernel.futex_wait(&word, 0, deadline_ns);
}

static int wait_for_set(int64_t deadline_ns)
{
    struct kernel_event reports[1];

    return kernel.set_wait(5, reports, 1, deadline_ns);
}

/* ---- whose clocks they are ---- */

TEST(a_thread_without_clocks_of_its_own_has_the_kernels, "")
{
    begin(-ETIMEDOUT, 0, 0, NULL);
    has_hand_clocks = false;
    EXPECT(!overlay_clock_is_by_hand());
    EXPECT_EQ(wait_for_word(real_now_ns + hour_ns), -ETIMEDOUT);
    EXPECT_EQ(looked_until_ns, real_now_ns + hour_ns);
    EXPECT_EQ(wait_for_set(real_now_ns + 2 * hour_ns), -ETIMEDOUT);
    EXPECT_EQ(looked_until_ns, real_now_ns + 2 * hour_ns);
    EXPECT_EQ(looks, 2);
    EXPECT_EQ(kernel.alarm_set(3, real_now_ns + hour_ns), 0);
    EXPECT_EQ(alarm_deadline_ns, real_now_ns + hour_ns);
    kernel.yield();
    EXPECT_EQ(yields, 1);
    real_slack_ns = 50000;
    EXPECT_EQ(kernel.timer_slack_ns(), 50000);
    EXPECT(kernel.elapsed_ns() <= kernel_linux.elapsed_ns());
}

TEST(a_wait_that_is_skipped_looks_once_and_moves_the_clocks, "")
{
    begin(-ETIMEDOUT, 0, 0, NULL);
    is_in_a_hurry = true;
    EXPECT_EQ(wait_for_word(hand_ns + hour_ns), -ETIMEDOUT);
    EXPECT_EQ(skipped_to_ns, hand_ns + hour_ns);
    EXPECT_EQ(looks_at_past, 1);
    look_result = 0;
    EXPECT_EQ(wait_for_word(hand_ns + 2 * hour_ns), 0); /* woken meanwhile */
    EXPECT_EQ(wait_for_set(hand_ns + second_ns), 0);
    EXPECT_EQ(skipped_to_ns, hand_ns + second_ns);
    look_result = 1;
    EXPECT_EQ(wait_for_set(hand_ns + 2 * hour_ns), 1);
    EXPECT_EQ(skipped_to_ns, hand_ns + second_ns);
    EXPECT_EQ(looks, 4);
    EXPECT_EQ(kernel.alarm_set(3, hand_ns + second_ns), 0);
    EXPECT_EQ(alarm_deadline_ns, kernel_never);
    kernel.yield();
    EXPECT_EQ(yields, 1);
}

TEST(the_kernels_clocks_are_given_back, "")
{
    EXPECT(!overlay_clock_is_by_hand()); /* nobody has replaced them yet */
    begin(-ETIMEDOUT, 0, 0, NULL);
    EXPECT(overlay_clock_is_by_hand());
    EXPECT_EQ(of_kernel.monotonic_ns(), real_now_ns);
    EXPECT(of_kernel.elapsed_ns == kernel_linux.elapsed_ns && of_kernel.wall_ns == kernel_linux.wall_ns);
    EXPECT(of_kernel.tick_ns == kernel_linux.tick_ns && !of_kernel.is_by_hand && !of_kernel.skips_waits && !of_kernel.skip_to);
    EXPECT_EQ(kernel.monotonic_ns(), hand_ns);
    EXPECT_EQ(kernel.elapsed_ns(), hand_ns);
    EXPECT_EQ(kernel.wall_ns(), hand_wall_ns());
    EXPECT_NEAR(CFAbsoluteTimeGetCurrent(), (double)(hand_wall_ns() / second_ns - 978307200), 1e-3);
}

/* ---- waits ---- */

static void expect_looks(int (*wait)(int64_t deadline_ns), int at_last)
{
    EXPECT_EQ(wait(hand_ns + second_ns), at_last);
    EXPECT_EQ(looks, 3); /* the clock has come there in the third */
    EXPECT_EQ(looked_until_ns, real_now_ns + look_ns);
}

TEST(a_wait_looks_again_until_the_clock_has_come_to_the_deadline, "")
{
    begin(-ETIMEDOUT, 3, -ETIMEDOUT, a_second_passes);
    expect_looks(wait_for_word, -ETIMEDOUT);
}

TEST(a_wait_in_a_set_does_so_too, "")
{
    begin(0, 3, 0, a_second_passes);
    expect_looks(wait_for_set, 0);
}

TEST(a_wait_whose_deadline_has_come_only_looks_once, "")
{
    begin(-ETIMEDOUT, 0, 0, NULL);
    EXPECT_EQ(wait_for_word(hand_ns), -ETIMEDOUT);
    EXPECT_EQ(looked_until_ns, 0);
    look_result = 0;
    EXPECT_EQ(wait_for_set(hand_ns), 0);
    EXPECT_EQ(looked_until_ns, 0);
    EXPECT_EQ(wait_for_set(0), 0); /* asks without waiting */
    EXPECT_EQ(looks, 3);
}

TEST(a_wait_without_a_limit_is_the_kernels, "")
{
    begin(-EINTR, 0, 0, NULL);
    EXPECT_EQ(wait_for_word(kernel_never), -EINTR);
    EXPECT_EQ(looked_until_ns, kernel_never);
    EXPECT_EQ(wait_for_set(kernel_never), -EINTR);
    EXPECT_EQ(looked_until_ns, kernel_never);
    EXPECT_EQ(looks, 2);
}

static void expect_end(int (*wait)(int64_t deadline_ns), int in_look, int result)
{
    looks = 0;
    eventful_look = in_look;
    eventful_result = result;
    EXPECT_EQ(wait(hand_ns + second_ns), result);
    EXPECT_EQ(looks, in_look);
}

TEST(what_ends_a_look_ends_the_wait, "")
{
    begin(-ETIMEDOUT, 0, 0, NULL);
    for (int in_look = 1; in_look < 4; in_look++) { /* woken, the word was another, interrupted, no memory */
        expect_end(wait_for_word, in_look, 0);
        expect_end(wait_for_word, in_look, -EAGAIN);
        expect_end(wait_for_word, in_look, -EINTR);
        expect_end(wait_for_word, in_look, -ENOMEM);
    }
    look_result = 0;
    for (int in_look = 1; in_look < 4; in_look++) { /* reports, interrupted, the set is gone */
        expect_end(wait_for_set, in_look, 2);
        expect_end(wait_for_set, in_look, -EINTR);
        expect_end(wait_for_set, in_look, -EBADF);
    }
}

/* ---- clocks that part ---- */

static void expect_parted(void (*parts)(void))
{
    looks = 0;
    eventful_look = 2;
    event = parts;
    eventful_result = -ETIMEDOUT;
    look_result = -ETIMEDOUT;
    EXPECT_EQ(wait_for_word(hand_ns + 2 * hour_ns), 0); /* woken, not out of time */
    EXPECT_EQ(looks, 2);
    looks = 0;
    look_result = eventful_result = 0;
    EXPECT_EQ(wait_for_set(hand_ns + 2 * hour_ns), 0);
    EXPECT_EQ(looks, 2);
}

TEST(a_wait_ends_when_the_system_is_suspended_or_the_wall_clock_is_set, "1201 1209")
{
    begin(-ETIMEDOUT, 0, 0, NULL);
    (void)kernel.elapsed_ns();
    expect_parted(system_is_suspended);
    expect_parted(wall_clock_is_set_back);
    expect_parted(suspended_and_set_back); /* which leaves the wall clock where it was */
}

TEST(clocks_that_have_parted_since_the_last_look_end_the_next_wait, "1201")
{
    begin(-ETIMEDOUT, 0, 0, NULL);
    (void)kernel.elapsed_ns();
    system_is_suspended();
    EXPECT_EQ(wait_for_word(hand_ns + 2 * hour_ns), 0);
    EXPECT_EQ(looks, 1);
    system_is_suspended();
    (void)kernel.elapsed_ns(); /* the thread knows of it */
    eventful_look = 4;
    eventful_result = -EINTR;
    EXPECT_EQ(wait_for_word(hand_ns + 2 * hour_ns), -EINTR);
    EXPECT_EQ(looks, 4);
}

TEST(clocks_that_nobody_has_looked_at_have_not_parted, "1201")
{
    begin(-ETIMEDOUT, 3, -EINTR, NULL);
    system_is_suspended();
    EXPECT_EQ(wait_for_word(hand_ns + 2 * hour_ns), -EINTR);
    EXPECT_EQ(looks, 3);
}

/* ---- alarms, and waiting awake ---- */

TEST(an_alarm_rings_when_a_wait_would_look_again, "")
{
    begin(-ETIMEDOUT, 0, 0, NULL);
    EXPECT_EQ(kernel.alarm_set(3, hand_ns + hour_ns), 0);
    EXPECT_EQ(alarm_deadline_ns, real_now_ns + look_ns);
    EXPECT_EQ(kernel.alarm_set(3, hand_ns), 0);
    EXPECT_EQ(alarm_deadline_ns, 0);
    EXPECT_EQ(kernel.alarm_set(3, kernel_never), 0);
    EXPECT_EQ(alarm_deadline_ns, kernel_never);
    EXPECT_EQ(kernel.alarm_set(-1, hand_ns + hour_ns), -EBADF);
}

TEST(a_loop_that_waits_awake_sleeps_between_its_looks, "")
{
    begin(-ETIMEDOUT, 0, 0, NULL);
    kernel.yield();
    EXPECT_EQ(yields, 0);
    EXPECT_EQ(looks, 1);
    EXPECT_EQ(looked_until_ns, real_now_ns + look_ns);
}

/* ---- a loop ---- */

static struct probe timer = {.name = "T", .logging = probe_is_silent};

static void minutes_pass(void)
{
    hand_ns += 600 * second_ns;
}

static int refuses(void)
{
    return -EMFILE;
}

/* The loop's timer is due in ten minutes. In the third look of its wait something happens. */
static void expect_timer_after(void (*what)(void))
{
    begin(-ETIMEDOUT, 3, -ETIMEDOUT, what);
    kernel.resume_open = refuses; /* so the loop waits on its word, and without help from the kernel */
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 3600, false), kCFRunLoopRunFinished);
    EXPECT_EQ(timer.calls, 1);
    EXPECT_EQ(looks, 3);
}

TEST(a_timer_fires_when_the_clock_is_moved_to_its_date, "")
{
    expect_timer_after(minutes_pass);
}

TEST(a_timer_fires_when_a_suspension_has_passed_its_date, "1200 1201")
{
    expect_timer_after(system_is_suspended);
}

static void moment_passes(void)
{
    hand_ns += 1000000;
}

/* The loop was made on a thread with a slack. The timer, and then the run's limit, are nearer than that. */
TEST(a_clock_that_stands_still_keeps_nobody_awake, "44 44a T9")
{
    begin(-ETIMEDOUT, 5, -ETIMEDOUT, moment_passes);
    real_slack_ns = LOOP->slack_ns = 50000;
    probe_timer_add(&timer, 20e-6, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 500e-6, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(timer.calls, 1);
    EXPECT_EQ(looks, 5);
    EXPECT_EQ(looks_at_past, 0);
}
