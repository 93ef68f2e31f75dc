/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pacing of sends by itself: what follows from each outcome of an attempt. How ports use it is in test_acknowledgements.c and
 * test_sending_in_turn.c.
 */
#include "Kernel/kernel.h"
#include "Port/Channel/send_pacing.h"
#include "harness.h"

enum { straight_count = 15, queue_limit = 5 };

static const int64_t second_ns = 1000000000;
static int64_t clock_ns;
static struct lock lock;

static int64_t tell_clock(void)
{
    return clock_ns;
}

static struct send_pacing begin(void)
{
    clock_ns = 10 * second_ns;
    kernel.monotonic_ns = tell_clock;
    return (struct send_pacing){.control = -1, .queue_limit = queue_limit};
}

static struct send_attempts call_of(int64_t limit_ns)
{
    return (struct send_attempts){.deadline_ns = clock_ns + limit_ns};
}

/* Makes an attempt with that outcome, if the frame is admitted. Returns how long it may stay in the line. */
static int64_t try_with(struct send_pacing *pacing, struct send_attempts *attempts, enum send_outcome outcome)
{
    enum send_outcome admitted;

    lock_take(&lock);
    pacing_begin_attempt(pacing, attempts);
    admitted = pacing_admit(pacing, &lock, attempts);
    (void)pacing_end_attempt(pacing, attempts, admitted == outcome_none ? outcome : admitted);
    lock_drop(&lock);
    return attempts->stay_ns;
}

TEST(a_first_attempt_does_not_wait_and_the_next_stands_in_line, "226 M29")
{
    struct send_pacing pacing = begin();
    struct send_attempts attempts = call_of(second_ns);

    EXPECT_EQ(try_with(&pacing, &attempts, outcome_busy), 0);
    EXPECT_EQ(try_with(&pacing, &attempts, outcome_busy), second_ns / 2); /* the longest stay */
    clock_ns += second_ns * 6 / 10;
    EXPECT_EQ(try_with(&pacing, &attempts, outcome_sent), second_ns * 4 / 10 / 8 * 7); /* the kernel is late by an eighth */
    EXPECT(pacing.sequence == 1 && pacing.was_in_line);
}

TEST(no_attempt_stands_in_line_in_the_last_moment_of_its_limit, "226 M29")
{
    struct send_pacing pacing = begin();
    struct send_attempts attempts = call_of(second_ns / 50);

    EXPECT_EQ(try_with(&pacing, &attempts, outcome_busy), 0);
    EXPECT_EQ(try_with(&pacing, &attempts, outcome_busy), 0);
    attempts = call_of(0);
    EXPECT_EQ(try_with(&pacing, &attempts, outcome_busy), 0);
}

TEST(some_messages_go_straight_after_an_attempt_in_vain, "226 M29")
{
    struct send_pacing pacing = begin();
    struct send_attempts attempts = call_of(second_ns);

    EXPECT_EQ(try_with(&pacing, &attempts, outcome_busy), 0);
    EXPECT(try_with(&pacing, &attempts, outcome_sent) > 0);
    for (int i = 1; i < straight_count; i++) {
        attempts = call_of(second_ns);
        EXPECT(try_with(&pacing, &attempts, outcome_sent) > 0);
    }
    attempts = call_of(second_ns);
    EXPECT_EQ(try_with(&pacing, &attempts, outcome_sent), 0);
    EXPECT(!pacing.was_in_line);
}

TEST(an_attempt_that_ends_gives_a_turn_to_those_behind, "226 M29")
{
    struct send_pacing pacing = begin();
    struct send_attempts first = call_of(second_ns);
    struct send_attempts second = call_of(second_ns);
    struct send_attempts impatient = call_of(0);

    EXPECT_EQ(try_with(&pacing, &first, outcome_busy), 0);
    lock_take(&lock);
    pacing_begin_attempt(&pacing, &first);
    EXPECT_EQ(pacing_admit(&pacing, &lock, &first), outcome_none);
    pacing_enter_line(&pacing);
    lock_drop(&lock);
    (void)try_with(&pacing, &second, outcome_sent);
    (void)try_with(&pacing, &impatient, outcome_sent);
    EXPECT(second.last == outcome_behind && second.is_behind && impatient.last == outcome_behind && !impatient.is_behind);
    EXPECT_EQ(pacing.behind_count, 1);
    lock_take(&lock);
    pacing_leave_line(&pacing);
    EXPECT(pacing_end_attempt(&pacing, &first, outcome_sent));
    lock_drop(&lock);
    EXPECT_EQ(pacing.turns, second.turns + 1);
    EXPECT(try_with(&pacing, &second, outcome_sent) > 0);
    EXPECT(second.last == outcome_sent && pacing.behind_count == 0 && pacing.sequence == 2);
}

TEST(a_sender_that_stood_in_line_wants_no_control_channel, "226 M29")
{
    struct send_pacing pacing = begin();
    struct send_attempts attempts;

    for (int i = 0; i < 2; i++) {
        EXPECT(!pacing_wants_control(&pacing));
        attempts = call_of(second_ns);
        (void)try_with(&pacing, &attempts, outcome_sent);
    }
    EXPECT(pacing_wants_control(&pacing));
    pacing_confirm(&pacing, 2);
    EXPECT(!pacing_wants_control(&pacing) && pacing_is_idle(&pacing));
    pacing_confirm(&pacing, 1);
    pacing_confirm(&pacing, 3);
    EXPECT_EQ(pacing.confirmed, 2);
    pacing.confirmed = 0;
    pacing.was_in_line = true;
    EXPECT(!pacing_wants_control(&pacing));
}
