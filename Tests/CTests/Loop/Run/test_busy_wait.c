/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that wait awake for a while before they sleep. On the clock that a test moves each look of the loop takes a microsecond, and what
 * another thread would do meanwhile is done between two of them.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/Core/loop.h"
#include "Loop/loop_trace.h"
#include "fake_kernel.h"

static const int64_t look_ns = 1000;
static const double look_s = 1e-6;

static int looks;
static int acting_look; /* the one at which something is done; 0: none */
static void (*act)(void);

static void look_on(void)
{
    fake_kernel_advance(look_ns);
    if (++looks == acting_look) {
        act();
    }
}

/* A loop that waits awake for `seconds`, and the function that is called while it does, at look `number`. */
static void begin(double seconds, int number, void (*function)(void))
{
    clock_start();
    kernel.yield = look_on;
    acting_look = number;
    act = function;
    probe_stage(MODE);
    CRLRunLoopSetBusyWait(LOOP, seconds);
}

static int64_t looked_for(void)
{
    return fake_kernel_elapsed_ns() / look_ns;
}

TEST(a_wait_is_awake_for_as_long_as_it_is_told_and_sleeps_then, "41 114")
{
    begin(50 * look_s, 0, NULL);
    probe_run(MODE, 1, false);
    EXPECT_LOG("E BT BS BW AW X TO");
    EXPECT_EQ(looks, 50);
    EXPECT_EQ(fake_kernel_sleeps(), 1);
    EXPECT_EQ(clock_ms(), 1000);
}

TEST(each_wait_is_awake_anew, "41 114")
{
    static struct probe timer = PROBE("T", NULL);

    begin(50 * look_s, 0, NULL);
    probe_timer_add(&timer, 0.1, 0, LOOP, MODE);
    probe_run(MODE, 1, false);
    EXPECT_LOG("E BT BS BW AW T BT BS BW AW X TO");
    EXPECT_EQ(looks, 100);
    EXPECT_EQ(fake_kernel_sleeps(), 2);
}

TEST(a_loop_sleeps_at_once_unless_it_is_told_to_stay_awake, "41")
{
    static const double none[] = {0, -1, -INFINITY, NAN};

    for (int i = 0; i < 4; i++) {
        begin(none[i], 0, NULL);
        EXPECT(CRLRunLoopGetBusyWait(LOOP) == 0);
        (void)CFRunLoopRunInMode(MODE, 0.001, false);
        EXPECT_EQ(looks, 0);
    }
    clock_start();
    EXPECT(CRLRunLoopGetBusyWait(CFRunLoopGetMain()) == 0);
}

static CFRunLoopSourceRef source;

static void signal_and_wake(void)
{
    CFRunLoopSourceSignal(source);
    CFRunLoopWakeUp(LOOP);
}

static void begin_with_source(double seconds, int number, void (*function)(void))
{
    static struct probe probe = PROBE("S", NULL);

    begin(seconds, number, function);
    EXPECT(CRLRunLoopGetBusyWait(LOOP) == seconds);
    source = probe_source_add(&probe, 0, LOOP, MODE);
}

TEST(who_wakes_a_loop_that_is_awake_calls_nobody, "61 65")
{
    begin_with_source(1, 10, signal_and_wake);
    probe_run(MODE, 5, true);
    EXPECT_LOG("E BT BS BW AW BT BS S X HS");
    EXPECT_EQ(looked_for(), 10);
    EXPECT_EQ(fake_kernel_calls(), 0);
}

static void signal_only(void)
{
    CFRunLoopSourceSignal(source);
}

TEST(a_signal_alone_does_not_end_a_wait_that_is_awake, "61 77")
{
    begin_with_source(100 * look_s, 10, signal_only);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW X TO");
    EXPECT_EQ(looks, 100);
    EXPECT_EQ(clock_ms(), 50);
}

static void stop(void)
{
    CFRunLoopStop(LOOP);
}

TEST(a_stop_ends_a_wait_that_is_awake, "55")
{
    begin(1, 10, stop);
    probe_run(MODE, 5, false);
    EXPECT_LOG("E BT BS BW AW X S");
    EXPECT_EQ(looked_for(), 10);
    EXPECT_EQ(fake_kernel_sleeps(), 0);
}

TEST(a_time_limit_ends_a_wait_that_is_awake, "43")
{
    begin(1, 0, NULL);
    probe_run(MODE, 30 * look_s, false);
    EXPECT_LOG("E BT BS BW AW X TO");
    EXPECT_EQ(looked_for(), 30);
    EXPECT_EQ(fake_kernel_sleeps(), 0);
}

TEST(a_poll_looks_once, "30")
{
    begin(1, 0, NULL);
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS X TO");
    EXPECT_EQ(looks, 0);
}

static struct probe timer = PROBE("T", probe_stops_loop);

TEST(a_timer_fires_on_its_date_in_a_wait_that_is_awake, "34 114")
{
    begin(1, 0, NULL);
    probe_timer_add(&timer, 20 * look_s, 0, LOOP, MODE);
    probe_run(MODE, 5, false);
    EXPECT_LOG("E BT BS BW AW T X S");
    EXPECT(looked_for() == 20 || looked_for() == 21);
    EXPECT_EQ(fake_kernel_sleeps(), 0);
}

static void add_timer(void)
{
    probe_timer_add(&timer, 20 * look_s, 0, LOOP, MODE);
}

TEST(a_timer_that_is_added_to_a_wait_that_is_awake_counts, "68")
{
    begin(1, 10, add_timer);
    probe_run(MODE, 5, false);
    EXPECT_LOG("E BT BS BW AW T X S");
    EXPECT(looked_for() == 30 || looked_for() == 31); /* a date is exact to an eighth of a microsecond */
    EXPECT_EQ(fake_kernel_sleeps(), 0);
}

/* What is added at the last look is in the limit of the sleep. */
TEST(a_timer_that_is_added_before_the_sleep_counts, "68 114")
{
    begin(10 * look_s, 10, add_timer);
    probe_run(MODE, 5, false);
    EXPECT_LOG("E BT BS BW AW T X S");
    EXPECT(looked_for() == 30 || looked_for() == 31);
    EXPECT_EQ(fake_kernel_sleeps(), 1);
}

static int event;

static void post_event(void)
{
    probe_event_post(event);
}

TEST(a_descriptor_is_seen_by_a_wait_that_is_awake, "35 99")
{
    static struct probe port = PROBE("P", NULL);
    CFRunLoopSourceRef p;

    begin(1, 10, post_event);
    event = probe_event();
    p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_run(MODE, 5, true);
    EXPECT_LOG("E BT BS BW AW P X HS");
    EXPECT_EQ(looked_for(), 10);
    EXPECT_EQ(fake_kernel_sleeps(), 0);
    CFRunLoopSourceInvalidate(p);
    (void)close(event);
}

static struct probe late_port = PROBE("P", NULL);

static void add_ready_port(void)
{
    event = probe_event();
    probe_event_post(event);
    (void)probe_port_source_add(&late_port, 0, event, LOOP, MODE);
}

TEST(a_descriptor_that_is_added_to_a_wait_that_is_awake_is_seen, "70 99")
{
    begin(1, 10, add_ready_port);
    probe_run(MODE, 5, true);
    EXPECT_LOG("E BT BS BW AW P X HS");
    EXPECT_EQ(looked_for(), 10);
    CFRunLoopSourceInvalidate(probe_source_of(&late_port));
    (void)close(event);
}

static bool was_waiting;

static void ask_whether_it_waits(void)
{
    was_waiting = CFRunLoopIsWaiting(LOOP);
}

static void log_whether_it_waits(struct probe *probe)
{
    (void)probe;
    probe_note_bool("waiting", CFRunLoopIsWaiting(LOOP));
}

TEST(a_loop_that_waits_awake_is_waiting, "9")
{
    static struct probe observer = {.name = "O", .action = log_whether_it_waits, .logging = probe_is_silent};

    begin(50 * look_s, 10, ask_whether_it_waits);
    probe_observer_add(&observer, kCFRunLoopBeforeWaiting | kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS waiting=no BW waiting=no AW X TO");
    EXPECT(was_waiting);
    EXPECT(!CFRunLoopIsWaiting(LOOP));
}

static void wake(void)
{
    CFRunLoopWakeUp(LOOP);
}

TEST(a_loop_that_is_to_stay_awake_for_very_long_never_sleeps, "41")
{
    static const double long_s[] = {INFINITY, 1e300, 1e9};

    for (int i = 0; i < 3; i++) {
        begin(long_s[i], 100000, wake);
        looks = 0;
        EXPECT(CRLRunLoopGetBusyWait(LOOP) > 16 * 365 * 86400.0);
        EXPECT(CRLRunLoopGetBusyWait(LOOP) < 17 * 365 * 86400.0);
        (void)CFRunLoopRunInMode(MODE, 0.2, false);
        EXPECT_EQ(looks, 200000);
        EXPECT_EQ(fake_kernel_sleeps(), 0);
        CRLRunLoopSetBusyWait(LOOP, 0);
    }
}

TEST(a_hosted_loop_leaves_the_waiting_to_its_host, "41")
{
    begin(1, 0, NULL);
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    CRLRunLoopLeave(LOOP);
    EXPECT_LOG("E BT BS BW AW X");
    EXPECT_EQ(looks, 0);
}

/* ---- two loops that are awake, on the real clock ---- */

enum { rallies = 20000 };

struct player {
    CFRunLoopRef loop;
    CFRunLoopSourceRef racket;
    struct player *other;
    bool sleeps; /* at once */
    double until_s; /* a machine that seldom lets both threads run has shorter rallies */
    int hits;
};

static pthread_barrier_t ready;

static void hit_back(void *info)
{
    struct player *player = info;

    if (++player->hits < rallies && probe_seconds() < player->until_s) {
        CFRunLoopSourceSignal(player->other->racket);
        CFRunLoopWakeUp(player->other->loop);
    } else {
        CFRunLoopStop(player->other->loop);
        CFRunLoopStop(player->loop);
    }
}

static void *play(void *info)
{
    struct player *player = info;
    CFRunLoopSourceContext context = {.info = player, .perform = hit_back};

    player->loop = LOOP;
    player->racket = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, player->racket, MODE);
    CRLRunLoopSetBusyWait(LOOP, player->sleeps ? 0 : 0.00002);
    (void)pthread_barrier_wait(&ready);
    player->until_s = probe_seconds() + 60;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 120, false), kCFRunLoopRunStopped); /* or a wake-up was missed, and the rally stands still */
    (void)pthread_barrier_wait(&ready);
    CFRunLoopSourceInvalidate(player->racket);
    CFRelease(player->racket);
    return NULL;
}

static void play_rallies(bool first_sleeps)
{
    struct player players[2] = {{.other = &players[1], .sleeps = first_sleeps}, {.other = &players[0]}};
    pthread_t threads[2];

    (void)pthread_barrier_init(&ready, NULL, 3);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, play, &players[i]) == 0);
    }
    (void)pthread_barrier_wait(&ready);
    CFRunLoopSourceSignal(players[0].racket);
    CFRunLoopWakeUp(players[0].loop);
    (void)pthread_barrier_wait(&ready);
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)pthread_barrier_destroy(&ready);
}

TEST_LIMIT(stress_loops_that_are_awake_miss_no_wake_up, "61 65", 300)
{
    play_rallies(false);
    play_rallies(true);
}
