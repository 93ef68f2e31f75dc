/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wake word, transition by transition, and what each costs: calls of the kernel are counted, none is made that could be left out.
 * What the transitions are for is tested with whole loops in test_wakeups.c and test_hosting.c.
 */
#include "Loop/mailbox.h"

#include "Kernel/kernel.h"
#include "harness.h"

static int futex_wakes;
static int posts;
static uint32_t word_while_posting;
static struct mailbox *posted;

static int count_futex_wake(_Atomic uint32_t *word)
{
    (void)word;
    futex_wakes++;
    return 0;
}

static int count_post(int event)
{
    EXPECT_EQ(event, 77);
    posts++;
    word_while_posting = mailbox_word(posted);
    return 0;
}

/* A mailbox whose word is as given, and a kernel that counts. */
static struct mailbox *mailbox_with(uint32_t word)
{
    struct mailbox *mailbox = mailbox_create();

    REQUIRE(mailbox != NULL);
    atomic_store(&mailbox->word, word);
    atomic_store(&mailbox->event, 77);
    posted = mailbox;
    futex_wakes = posts = 0;
    kernel.futex_wake = count_futex_wake;
    kernel.event_post = count_post;
    return mailbox;
}

static void done(struct mailbox *mailbox)
{
    atomic_store(&mailbox->word, wake_idle);
    atomic_store(&mailbox->event, -1);
    mailbox_recycle(mailbox);
}

struct transition {
    uint32_t before;
    uint32_t after;
    int futex_wakes;
    int posts;
};

static void expect_transitions(const struct transition *transitions, size_t count, void (*function)(struct mailbox *mailbox))
{
    for (size_t i = 0; i < count; i++) {
        const struct transition *expected = &transitions[i];
        struct mailbox *mailbox = mailbox_with(expected->before);

        function(mailbox);
        if (mailbox_word(mailbox) != expected->after || futex_wakes != expected->futex_wakes || posts != expected->posts) {
            test_failed(__FILE__, __LINE__, "from %x to %x, not %x; %d futex wakes, %d posts", expected->before, mailbox_word(mailbox),
                        expected->after, futex_wakes, posts);
        }
        done(mailbox);
    }
}

TEST(a_fresh_mailbox_is_idle_and_alone_on_its_line, "62")
{
    struct mailbox *mailbox = mailbox_create();

    REQUIRE(mailbox != NULL);
    EXPECT_EQ(mailbox_word(mailbox), wake_idle);
    EXPECT_EQ(atomic_load(&mailbox->event), -1);
    EXPECT(atomic_load(&mailbox->queue) == NULL);
    EXPECT_EQ((uintptr_t)mailbox % 64, 0);
    EXPECT(!mailbox_is_waiting(mailbox));
    mailbox_recycle(mailbox);
}

TEST(mailboxes_are_used_again, "172 L9")
{
    struct mailbox *mailbox = mailbox_create();
    struct mailbox *other = mailbox_create();

    EXPECT(mailbox != other);
    mailbox_recycle(mailbox);
    EXPECT(mailbox_create() == mailbox);
    mailbox_wake(other); /* of nobody any more: harmless */
    mailbox_recycle(mailbox);
    mailbox_recycle(other);
}

TEST(a_wake_up_is_dropped_kept_or_delivered, "46 61 62 64")
{
    static const struct transition transitions[] = {
        {wake_idle, wake_idle, 0, 0},
        {wake_run, wake_run, 0, 0}, /* between passes: one follows */
        {wake_armed | wake_run, wake_armed | wake_run | wake_token, 0, 0},
        {wake_armed | wake_run | wake_token, wake_armed | wake_run | wake_token, 0, 0},
        {wake_futex | wake_run, wake_futex | wake_run | wake_token, 1, 0},
        {wake_futex | wake_run | wake_token, wake_futex | wake_run | wake_token, 0, 0}, /* on its way already */
        {wake_futex | wake_run | wake_retime, wake_futex | wake_run | wake_retime | wake_token, 1, 0},
        {wake_epoll | wake_run, wake_epoll | wake_run | wake_token, 0, 1},
        {wake_epoll | wake_run | wake_token, wake_epoll | wake_run | wake_token, 0, 0},
        {wake_epoll | wake_run | wake_writer, wake_epoll | wake_run | wake_token | wake_writer, 0, 1}, /* beside another writer */
    };

    expect_transitions(transitions, sizeof transitions / sizeof transitions[0], mailbox_wake);
}

TEST(a_writer_is_counted_while_it_writes, "172 L9")
{
    struct mailbox *mailbox = mailbox_with(wake_epoll | wake_run);

    mailbox_wake(mailbox);
    EXPECT_EQ(word_while_posting, wake_epoll | wake_run | wake_token | wake_writer);
    done(mailbox);
}

TEST(a_stop_reaches_a_run_and_nothing_else, "55 56 57")
{
    static const struct transition transitions[] = {
        {wake_idle, wake_idle, 0, 0},
        {wake_run, wake_run | wake_stop, 0, 0},
        {wake_run | wake_stop, wake_run | wake_stop, 0, 0},
        {wake_run | wake_armed, wake_run | wake_armed | wake_stop | wake_token, 0, 0},
        {wake_run | wake_armed | wake_token, wake_run | wake_armed | wake_token | wake_stop, 0, 0},
        {wake_run | wake_futex, wake_run | wake_futex | wake_stop, 1, 0},
        {wake_run | wake_futex | wake_stop, wake_run | wake_futex | wake_stop, 0, 0},
        {wake_run | wake_futex | wake_token, wake_run | wake_futex | wake_token | wake_stop, 0, 0},
        {wake_run | wake_epoll, wake_run | wake_epoll | wake_stop, 0, 1},
        {wake_run | wake_epoll | wake_token | wake_stop, wake_run | wake_epoll | wake_token | wake_stop, 0, 0},
    };

    expect_transitions(transitions, sizeof transitions / sizeof transitions[0], mailbox_stop);
}

TEST(a_changed_deadline_is_told_to_sleepers_only, "68 69 71")
{
    static const struct transition transitions[] = {
        {wake_idle, wake_idle, 0, 0},
        {wake_run | wake_armed, wake_run | wake_armed, 0, 0},
        {wake_run | wake_futex, wake_run | wake_futex | wake_retime, 1, 0},
        {wake_run | wake_futex | wake_retime, wake_run | wake_futex | wake_retime, 0, 0},
        {wake_run | wake_futex | wake_token, wake_run | wake_futex | wake_token, 0, 0}, /* it will look anyway */
        {wake_run | wake_epoll, wake_run | wake_epoll | wake_retime, 0, 1},
    };

    expect_transitions(transitions, sizeof transitions / sizeof transitions[0], mailbox_retime);
}

static void arm(struct mailbox *mailbox)
{
    mailbox_arm(mailbox);
}

static void sleep_on_futex(struct mailbox *mailbox)
{
    uint32_t word = 0;
    bool sleeps = mailbox_sleep(mailbox, wake_futex, &word);

    EXPECT_EQ(sleeps, !(mailbox_word(mailbox) & (wake_token | wake_stop)));
    EXPECT(!sleeps || word == mailbox_word(mailbox));
}

static void disarm(struct mailbox *mailbox)
{
    bool had_token = (mailbox_word(mailbox) & wake_token) != 0;

    EXPECT_EQ(mailbox_disarm(mailbox), had_token);
}

TEST(the_owner_goes_through_a_pass, "46 63 64")
{
    static const struct transition arming[] = {
        {wake_run, wake_run | wake_armed, 0, 0},
        {wake_run | wake_stop, wake_run | wake_stop | wake_armed, 0, 0},
    };
    static const struct transition sleeping[] = {
        {wake_run | wake_armed, wake_run | wake_futex, 0, 0},
        {wake_run | wake_armed | wake_token, wake_run | wake_armed | wake_token, 0, 0}, /* refused */
        {wake_run | wake_armed | wake_stop, wake_run | wake_armed | wake_stop, 0, 0}, /* refused: it came between two passes */
    };
    static const struct transition waking[] = {
        {wake_run | wake_futex | wake_retime, wake_run | wake_armed, 0, 0},
        {wake_run | wake_epoll | wake_token | wake_writer, wake_run | wake_armed | wake_token | wake_writer, 0, 0},
    };
    static const struct transition ending[] = {
        {wake_run | wake_armed, wake_run, 0, 0},
        {wake_run | wake_armed | wake_token | wake_retime, wake_run, 0, 0},
        {wake_run | wake_armed | wake_stop | wake_token, wake_run | wake_stop, 0, 0},
    };

    expect_transitions(arming, 2, arm);
    expect_transitions(sleeping, 3, sleep_on_futex);
    expect_transitions(waking, 2, mailbox_rearm);
    expect_transitions(ending, 3, disarm);
}

/* Enters with `before`, lets `during` happen, leaves. */
static uint32_t word_after_a_run(uint32_t before, uint32_t during, bool give_back)
{
    struct mailbox *mailbox = mailbox_with(before);
    uint32_t outer = mailbox_enter(mailbox);
    uint32_t after;

    EXPECT_EQ(outer, before);
    EXPECT_EQ(mailbox_word(mailbox) & (wake_run | wake_phase | wake_stop | wake_retime), wake_run | wake_armed);
    EXPECT_EQ(mailbox_word(mailbox) & wake_token, before & wake_token); /* carried in */
    atomic_store(&mailbox->word, during);
    mailbox_leave(mailbox, outer, give_back);
    after = mailbox_word(mailbox);
    done(mailbox);
    return after;
}

TEST(a_wake_up_that_a_nested_run_drops_is_owed_to_the_pass_outside, "64 65")
{
    static const struct transition dropping[] = {
        {wake_run | wake_outer, wake_run | wake_outer | wake_owed, 0, 0},
        {wake_run | wake_outer | wake_owed, wake_run | wake_outer | wake_owed, 0, 0},
        {wake_run, wake_run, 0, 0},
    };
    struct mailbox *mailbox = mailbox_with(wake_run | wake_armed);
    uint32_t outermost = mailbox_enter(mailbox); /* nested in a pass that has not waited */
    uint32_t middle;

    expect_transitions(dropping, 3, mailbox_wake);
    (void)mailbox_disarm(mailbox); /* past its wait */
    middle = mailbox_enter(mailbox); /* and again */
    (void)mailbox_disarm(mailbox);
    mailbox_wake(mailbox);
    EXPECT(mailbox_word(mailbox) & wake_owed);
    mailbox_leave(mailbox, middle, false);
    EXPECT_EQ(mailbox_word(mailbox), wake_run | wake_outer | wake_owed); /* it is not the middle one's */
    mailbox_leave(mailbox, outermost, false);
    EXPECT_EQ(mailbox_word(mailbox), wake_run | wake_armed | wake_token);
    done(mailbox);
}

TEST(a_run_leaves_the_word_to_the_outer_one, "45 55 58 64")
{
    const uint32_t run = wake_run;

    EXPECT_EQ(word_after_a_run(wake_idle, run, false), wake_idle);
    EXPECT_EQ(word_after_a_run(wake_idle, run | wake_stop | wake_token, false), wake_idle); /* a stop in Exit is forgotten */
    EXPECT_EQ(word_after_a_run(wake_idle, run, true), wake_idle); /* nobody to give it back to */
    EXPECT_EQ(word_after_a_run(run, run | wake_stop, false), run); /* in a callout between passes; the outer run is not stopped */
    EXPECT_EQ(word_after_a_run(run | wake_stop, run, false), run | wake_stop); /* its own stop comes back */
    EXPECT_EQ(word_after_a_run(run | wake_armed, run | wake_token, false), run | wake_armed | wake_token);
    EXPECT_EQ(word_after_a_run(run | wake_armed, run, true), run | wake_armed | wake_token);
    EXPECT_EQ(word_after_a_run(run | wake_armed | wake_token, run | wake_token, false), run | wake_armed | wake_token);
    EXPECT_EQ(word_after_a_run(run, run | wake_token, false), run); /* a pass follows that looks at everything */
    EXPECT_EQ(posts + futex_wakes, 0);
    EXPECT_EQ(word_after_a_run(run | wake_epoll, run, true), run | wake_epoll | wake_token); /* a hosted one */
    EXPECT_EQ(posts, 1); /* whose host sees only the eventfd */
}

static int closed;
static int yields;

static int count_close(int descriptor)
{
    EXPECT_EQ(descriptor, 77);
    closed++;
    return 0;
}

static void writer_ends_at_the_third(void)
{
    if (++yields == 3) {
        (void)atomic_fetch_sub(&posted->word, wake_writer);
    }
}

static void count_yield(void)
{
    yields++;
}

TEST(an_eventfd_is_closed_when_its_writers_are_done, "172 L9")
{
    struct mailbox *mailbox = mailbox_with(wake_writer);

    kernel.close = count_close;
    kernel.yield = writer_ends_at_the_third;
    mailbox_close_event(mailbox);
    EXPECT_EQ(yields, 3);
    EXPECT_EQ(closed, 1);
    EXPECT_EQ(atomic_load(&mailbox->event), -1);
    mailbox_close_event(mailbox); /* once */
    EXPECT_EQ(closed, 1);
    kernel.close = kernel_linux.close;
    done(mailbox);
}

TEST(an_eventfd_whose_writer_never_ends_is_given_up, "172 L9")
{
    struct mailbox *mailbox = mailbox_with(wake_writer);

    kernel.close = count_close;
    kernel.yield = count_yield;
    mailbox_close_event(mailbox);
    EXPECT(yields > 100);
    EXPECT_EQ(closed, 0); /* its number must not go to somebody else */
    EXPECT_EQ(atomic_load(&mailbox->event), -1);
    kernel.close = kernel_linux.close;
    done(mailbox);
}
