/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wake word, transition by transition, and what each costs: calls of the kernel are counted, none is made that could be left out.
 * What the transitions are for is tested with whole loops in test_wakeups.c and test_hosting.c.
 */
#include "Loop/Wake/waker.h"

#include "Kernel/kernel.h"
#include "harness.h"

static int futex_wakes;
static int posts;
static uint32_t word_while_posting;
static struct waker *posted;

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
    word_while_posting = waker_word(posted);
    return 0;
}

/* A waker whose word is as given, and a kernel that counts. */
static struct waker *waker_with(uint32_t word)
{
    struct waker *waker = waker_create();

    REQUIRE(waker != NULL);
    atomic_store(&waker->word, word);
    atomic_store(&waker->event, 77);
    posted = waker;
    futex_wakes = posts = 0;
    kernel.futex_wake = count_futex_wake;
    kernel.event_post = count_post;
    return waker;
}

static void done(struct waker *waker)
{
    atomic_store(&waker->word, wake_idle);
    atomic_store(&waker->event, -1);
    waker_recycle(waker);
}

struct transition {
    uint32_t before;
    uint32_t after;
    int futex_wakes;
    int posts;
};

static void expect_transitions(const struct transition *transitions, size_t count, void (*function)(struct waker *waker))
{
    for (size_t i = 0; i < count; i++) {
        const struct transition *expected = &transitions[i];
        struct waker *waker = waker_with(expected->before);

        function(waker);
        if (waker_word(waker) != expected->after || futex_wakes != expected->futex_wakes || posts != expected->posts) {
            test_failed(__FILE__, __LINE__, "from %x to %x, not %x; %d futex wakes, %d posts", expected->before, waker_word(waker),
                        expected->after, futex_wakes, posts);
        }
        done(waker);
    }
}

TEST(a_fresh_waker_is_idle_and_alone_on_its_line, "62")
{
    struct waker *waker = waker_create();

    REQUIRE(waker != NULL);
    EXPECT_EQ(waker_word(waker), wake_idle);
    EXPECT_EQ(atomic_load(&waker->event), -1);
    EXPECT(atomic_load(&waker->queue) == NULL);
    EXPECT_EQ((uintptr_t)waker % 64, 0);
    EXPECT(!waker_is_waiting(waker));
    waker_recycle(waker);
}

TEST(wakers_are_used_again, "172 L9")
{
    struct waker *waker = waker_create();
    struct waker *other = waker_create();

    EXPECT(waker != other);
    waker_recycle(waker);
    EXPECT(waker_create() == waker);
    waker_wake(other); /* of nobody any more: harmless */
    waker_recycle(waker);
    waker_recycle(other);
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

    expect_transitions(transitions, sizeof transitions / sizeof transitions[0], waker_wake);
}

TEST(a_writer_is_counted_while_it_writes, "172 L9")
{
    struct waker *waker = waker_with(wake_epoll | wake_run);

    waker_wake(waker);
    EXPECT_EQ(word_while_posting, wake_epoll | wake_run | wake_token | wake_writer);
    done(waker);
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

    expect_transitions(transitions, sizeof transitions / sizeof transitions[0], waker_stop);
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

    expect_transitions(transitions, sizeof transitions / sizeof transitions[0], waker_retime);
}

static void arm(struct waker *waker)
{
    waker_arm(waker);
}

static void sleep_on_futex(struct waker *waker)
{
    uint32_t word = 0;
    bool sleeps = waker_sleep(waker, wake_futex, &word);

    EXPECT_EQ(sleeps, !(waker_word(waker) & (wake_token | wake_stop)));
    EXPECT(!sleeps || word == waker_word(waker));
}

static void disarm(struct waker *waker)
{
    bool had_token = (waker_word(waker) & wake_token) != 0;

    EXPECT_EQ(waker_disarm(waker), had_token);
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
    expect_transitions(waking, 2, waker_rearm);
    expect_transitions(ending, 3, disarm);
}

/* Enters with `before`, lets `during` happen, leaves. */
static uint32_t word_after_a_run(uint32_t before, uint32_t during, bool ends_host_wait)
{
    struct waker *waker = waker_with(before);
    uint32_t outer = waker_enter(waker);
    uint32_t after;

    EXPECT_EQ(outer, before);
    EXPECT_EQ(waker_word(waker) & (wake_run | wake_phase | wake_stop | wake_retime), wake_run | wake_armed);
    EXPECT_EQ(waker_word(waker) & wake_token, before & wake_token); /* carried in */
    atomic_store(&waker->word, during);
    waker_leave(waker, outer, ends_host_wait);
    after = waker_word(waker);
    done(waker);
    return after;
}

TEST(a_wake_up_that_a_nested_run_drops_is_owed_to_the_pass_outside, "64 65")
{
    static const struct transition dropping[] = {
        {wake_run | wake_outer, wake_run | wake_outer | wake_owed, 0, 0},
        {wake_run | wake_outer | wake_owed, wake_run | wake_outer | wake_owed, 0, 0},
        {wake_run, wake_run, 0, 0},
    };
    struct waker *waker = waker_with(wake_run | wake_armed);
    uint32_t outermost = waker_enter(waker); /* nested in a pass that has not waited */
    uint32_t middle;

    expect_transitions(dropping, 3, waker_wake);
    (void)waker_disarm(waker); /* past its wait */
    middle = waker_enter(waker); /* and again */
    (void)waker_disarm(waker);
    waker_wake(waker);
    EXPECT(waker_word(waker) & wake_owed);
    waker_leave(waker, middle, false);
    EXPECT_EQ(waker_word(waker), wake_run | wake_outer | wake_owed); /* it is not the middle one's */
    waker_leave(waker, outermost, false);
    EXPECT_EQ(waker_word(waker), wake_run | wake_armed | wake_token);
    done(waker);
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
    struct waker *waker = waker_with(wake_writer);

    kernel.close = count_close;
    kernel.yield = writer_ends_at_the_third;
    waker_close_event(waker);
    EXPECT_EQ(yields, 3);
    EXPECT_EQ(closed, 1);
    EXPECT_EQ(atomic_load(&waker->event), -1);
    waker_close_event(waker); /* once */
    EXPECT_EQ(closed, 1);
    kernel.close = kernel_linux.close;
    done(waker);
}

TEST(an_eventfd_whose_writer_never_ends_is_given_up, "172 L9")
{
    struct waker *waker = waker_with(wake_writer);

    kernel.close = count_close;
    kernel.yield = count_yield;
    waker_close_event(waker);
    EXPECT(yields > 100);
    EXPECT_EQ(closed, 0); /* its number must not go to somebody else */
    EXPECT_EQ(atomic_load(&waker->event), -1);
    kernel.close = kernel_linux.close;
    done(waker);
}
