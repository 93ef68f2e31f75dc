/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of the loop that a program cannot bring about at will: a signaller that has stopped between winning a binding's queued bit and the
 * push, whose source leaves (a zombie) or whose loop ends (limbo); equality functions that change the set that asks them; and the limit
 * of many tolerant timers against a search through all of them.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CoreFoundation/CFMessagePort.h"
#include "Kernel/kernel.h"
#include "Loop/Core/loop.h"
#include "Loop/loop_trace.h"
#include "Loop/Signal/source.h"
#include "Loop/Timer/timer_firing.h"
#include "Loop/Timer/timer_membership.h"
#include "fake_kernel.h"

static const uintptr_t queued_bit = 1;

/* ---- a signaller that stands still ---- */

/* Does what source_signal does before the push. */
static struct binding *signal_halfway(CFRunLoopSourceRef source)
{
    struct binding *binding = &source->first_binding;
    uint32_t mark = atomic_load(&source->mark);

    REQUIRE((mark & mark_state_mask) == mark_clear);
    atomic_store(&source->mark, mark | mark_busy);
    REQUIRE(atomic_load(&binding->word) != 0 && !(atomic_load(&binding->word) & queued_bit));
    atomic_fetch_or(&binding->word, queued_bit);
    return binding;
}

/* Does the rest of source_signal: the push. A loop may have taken the mark meanwhile. */
static void finish_push(struct binding *binding, struct waker *waker)
{
    binding->queue_next = atomic_load(&waker->queue);
    atomic_store(&waker->queue, binding);
}

static void finish_mark(CFRunLoopSourceRef source)
{
    uint32_t mark = atomic_load(&source->mark);

    if ((mark & mark_state_mask) == mark_busy || (mark & mark_state_mask) == mark_contested) {
        atomic_store(&source->mark, (mark & ~(uint32_t)mark_state_mask) | mark_set);
    }
}

static void keep_the_mode(void)
{
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};

    probe_source_add(&idle, 0, LOOP, MODE);
}

TEST(a_removed_source_lives_until_its_push_is_met, "75 95 L9")
{
    struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);
    struct binding *binding = signal_halfway(source);

    keep_the_mode();
    CFRunLoopRemoveSource(LOOP, source, MODE); /* drops the last reference except the binding's */
    EXPECT_EQ(probe.releases, 0);
    EXPECT(atomic_load(&binding->word) & queued_bit);
    probe_run(MODE, 0, false);
    EXPECT_EQ(probe.releases, 0);
    finish_push(binding, LOOP->waker);
    finish_mark(source);
    EXPECT_EQ(probe.releases, 0);
    probe_run(MODE, 0, false); /* the drain finds the zombie */
    EXPECT_EQ(probe.releases, 1);
    EXPECT_LOG("TO TO");
}

TEST(a_zombie_that_is_added_again_is_performed, "75 79 95")
{
    struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);
    struct binding *binding = signal_halfway(source);

    keep_the_mode();
    CFRunLoopRemoveSource(LOOP, source, MODE);
    CFRunLoopAddSource(LOOP, source, MODE); /* uses its old binding again */
    EXPECT(CFRunLoopContainsSource(LOOP, source, MODE));
    EXPECT(source->first_binding.next == NULL);
    finish_push(binding, LOOP->waker);
    finish_mark(source);
    probe_run(MODE, 0, false);
    probe_run(MODE, 0, false);
    EXPECT_LOG("S0 TO TO");
    CFRunLoopSourceInvalidate(source);
    EXPECT_EQ(probe.releases, 1);
}

TEST(a_zombie_may_be_invalidated, "88 L15")
{
    struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);
    struct binding *binding = signal_halfway(source);

    keep_the_mode();
    CFRunLoopRemoveSource(LOOP, source, MODE);
    CFRunLoopSourceInvalidate(source);
    EXPECT_EQ(probe.releases, 0);
    finish_push(binding, LOOP->waker);
    probe_run(MODE, 0, false);
    EXPECT_LOG("TO");
    EXPECT_EQ(probe.releases, 1);
}

static struct probe orphan = PROBE("S0", NULL);
static struct binding *half_pushed;
static struct waker *waker_of_the_dead;

static void ends_with_a_push_under_way(void *context)
{
    (void)context;
    CFRunLoopSourceRef source = probe_source_add(&orphan, 0, LOOP, MODE);

    half_pushed = signal_halfway(source);
    waker_of_the_dead = LOOP->waker;
}

static void has_a_loop(void *context)
{
    (void)context;
    EXPECT(LOOP->waker != waker_of_the_dead || orphan.releases == 1);
}

TEST(a_loop_that_ends_under_a_push_waits_in_limbo, "170 172 L9")
{
    probe_on_thread(ends_with_a_push_under_way, NULL);
    EXPECT_EQ(orphan.releases, 0);
    probe_on_thread(has_a_loop, NULL); /* does not get the waker of the loop that ended, because the push is still to come */
    EXPECT_EQ(orphan.releases, 0);
    finish_push(half_pushed, waker_of_the_dead);
    probe_on_thread(has_a_loop, NULL); /* sweeps */
    EXPECT_EQ(orphan.releases, 1);
}

static int ports_made;

static void makes_a_port(void)
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NULL, NULL, NULL, NULL);

    ports_made++;
    CFMessagePortInvalidate(port);
    CFRelease(port);
}

static void makes_a_port_on_release(const void *info)
{
    (void)info;
    makes_a_port();
}

static void ends_with_a_source_that_makes_a_port(void *context)
{
    CFRunLoopSourceContext source_context = {.info = context, .release = makes_a_port_on_release};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &source_context);

    CFRunLoopAddSource(LOOP, source, MODE);
    CFRelease(source);
    half_pushed = signal_halfway(source);
    waker_of_the_dead = LOOP->waker;
}

static void makes_the_first_port(void *context)
{
    (void)context;
    makes_a_port();
    (void)LOOP; /* sweeps, if making the port has not */
}

/* The limbo is swept, and a user's release called, when a thread gets its loop: no preparation of ports may be under way then. */
TEST(what_is_released_at_the_first_port_may_make_ports, "6 172")
{
    probe_on_thread(ends_with_a_source_that_makes_a_port, NULL);
    finish_push(half_pushed, waker_of_the_dead);
    probe_on_thread(makes_the_first_port, NULL);
    EXPECT_EQ(ports_made, 2);
}

TEST(a_signal_halfway_is_visible_and_cannot_be_lost, "65 77 L2")
{
    struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);
    struct binding *binding = signal_halfway(source);

    keep_the_mode();
    EXPECT(CFRunLoopSourceIsSignalled(source));
    CFRunLoopSourceSignal(source); /* a second signaller leaves at once, and says that it was there */
    EXPECT_EQ(atomic_load(&source->mark) & mark_state_mask, mark_contested);
    CFRunLoopSourceSignal(source);
    probe_run(MODE, 0, false); /* nothing is in the queue yet */
    EXPECT_LOG("TO");
    finish_push(binding, LOOP->waker);
    probe_run(MODE, 0, false);
    EXPECT_LOG("S0 TO");
    EXPECT_EQ(atomic_load(&source->mark) & mark_state_mask, mark_clear);
    CFRunLoopSourceInvalidate(source);
}

static pid_t forked_child = -1;

static void forks(struct probe *probe)
{
    (void)probe;
    forked_child = fork();
    if (forked_child != 0) {
        CFRunLoopStop(LOOP);
    }
}

TEST(a_signal_that_a_fork_has_cut_off_is_met_by_the_run_that_goes_on_in_the_child, "65 176 P1")
{
    static struct probe halfway = {.name = "S0", .action = probe_stops_loop, .logging = probe_is_silent};
    static struct probe forking = {.name = "S1", .action = forks, .logging = probe_is_silent};
    CFRunLoopSourceRef source = probe_source_add(&halfway, 0, LOOP, MODE);
    struct binding *binding = signal_halfway(source);
    int status = -1;

    CFRunLoopSourceSignal(probe_source_add(&forking, 0, LOOP, MODE));
    CFRunLoopRunInMode(MODE, test_patience_s(), false);
    if (forked_child == 0) {
        _exit(halfway.calls);
    }
    EXPECT_EQ(halfway.calls, 0); /* its signaller has not finished in this process */
    EXPECT(forked_child > 0 && waitpid(forked_child, &status, 0) == forked_child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    finish_push(binding, LOOP->waker);
    finish_mark(source);
    CFRunLoopSourceInvalidate(source);
}

/* ---- equality that calls back ---- */

enum { crowd_size = 12 };

struct member {
    int number;
    bool changes_the_set;
};

static struct member crowd[crowd_size];
static CFRunLoopSourceRef crowd_sources[crowd_size];
static int comparisons;
static int changes;

static CFHashCode same_hash(const void *info)
{
    (void)info;
    return 1;
}

/* Takes members out of the set, and puts them back, while the set is searched. */
static Boolean equal_by_number(const void *one, const void *other)
{
    const struct member *first = one;
    const struct member *second = other;

    comparisons++;
    if ((first->changes_the_set || second->changes_the_set) && changes < 30) {
        int victim = changes++ % crowd_size;

        if (crowd_sources[victim] && CFRunLoopContainsSource(CFRunLoopGetCurrent(), crowd_sources[victim], MODE)) {
            CFRunLoopRemoveSource(CFRunLoopGetCurrent(), crowd_sources[victim], MODE);
        } else if (crowd_sources[victim]) {
            CFRunLoopAddSource(CFRunLoopGetCurrent(), crowd_sources[victim], MODE);
        }
    }
    return first->number == second->number;
}

static CFRunLoopSourceRef source_of(struct member *member)
{
    CFRunLoopSourceContext context = {.info = member, .equal = equal_by_number, .hash = same_hash};

    return CFRunLoopSourceCreate(NULL, 0, &context);
}

static int count_of(void)
{
    return (int)mode_find(LOOP, MODE)->sources.count;
}

TEST(equal_hashes_are_told_apart_by_equality, "93 94")
{
    struct member twin = {.number = 3};
    CFRunLoopSourceRef twin_source = source_of(&twin);

    for (int i = 0; i < crowd_size; i++) {
        crowd[i].number = i;
        crowd_sources[i] = source_of(&crowd[i]);
        CFRunLoopAddSource(LOOP, crowd_sources[i], MODE);
    }
    EXPECT_EQ(count_of(), crowd_size);
    CFRunLoopAddSource(LOOP, twin_source, MODE);
    EXPECT_EQ(count_of(), crowd_size);
    EXPECT(CFRunLoopContainsSource(LOOP, twin_source, MODE));
    CFRunLoopRemoveSource(LOOP, twin_source, MODE); /* removes its equal */
    EXPECT_EQ(count_of(), crowd_size - 1);
    EXPECT(!CFRunLoopContainsSource(LOOP, crowd_sources[3], MODE));
    EXPECT(comparisons > 0);
    CFRelease(twin_source);
    for (int i = 0; i < crowd_size; i++) {
        CFRunLoopSourceInvalidate(crowd_sources[i]);
        CFRelease(crowd_sources[i]);
    }
    EXPECT_EQ(count_of(), 0);
}

TEST(an_equality_that_changes_the_set_confuses_nobody, "6 93 94 L22")
{
    struct member restless = {.number = 1000, .changes_the_set = true};
    CFRunLoopSourceRef restless_source = source_of(&restless);

    for (int i = 0; i < crowd_size; i++) {
        crowd[i].number = i;
        crowd_sources[i] = source_of(&crowd[i]);
        CFRunLoopAddSource(LOOP, crowd_sources[i], MODE);
    }
    CFRunLoopAddSource(LOOP, restless_source, MODE);
    EXPECT(CFRunLoopContainsSource(LOOP, restless_source, MODE));
    CFRunLoopRemoveSource(LOOP, restless_source, MODE);
    EXPECT(!CFRunLoopContainsSource(LOOP, restless_source, MODE));
    EXPECT(changes > 10);
    changes = 1000; /* quiet from here on */
    for (int i = 0; i < crowd_size; i++) {
        CFRunLoopAddSource(LOOP, crowd_sources[i], MODE);
    }
    EXPECT_EQ(count_of(), crowd_size);
    for (int i = 0; i < crowd_size; i++) {
        CFRunLoopSourceInvalidate(crowd_sources[i]);
        CFRelease(crowd_sources[i]);
    }
    EXPECT_EQ(count_of(), 0);
    CFRunLoopSourceInvalidate(restless_source);
    CFRelease(restless_source);
}

static CFRunLoopSourceRef vanishing;

static Boolean equality_that_frees(const void *one, const void *other)
{
    if (vanishing) {
        CFRunLoopSourceRef source = vanishing;

        vanishing = NULL;
        CFRunLoopSourceInvalidate(source); /* the very source that is being compared: its memory must stay until we return */
        CFRelease(source);
    }
    return one == other;
}

TEST(a_source_may_go_while_it_is_compared, "6 93 L17")
{
    int infos[2];
    CFRunLoopSourceContext context = {.info = &infos[0], .equal = equality_that_frees, .hash = same_hash};
    CFRunLoopSourceRef other;

    vanishing = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, vanishing, MODE);
    context.info = &infos[1];
    other = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, other, MODE);
    EXPECT(vanishing == NULL);
    EXPECT_EQ(count_of(), 1);
    CFRunLoopSourceInvalidate(other);
    CFRelease(other);
}

/* ---- the limit of many timers ---- */

enum { timers_most = 200 };

static void no_beat(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    ++*(int *)info;
}

/* Searches all timers, one after the other. */
static int64_t searched_limit(const struct mode *mode)
{
    int64_t best = kernel_never;

    for (uint32_t i = 0; i < mode->timers.count; i++) {
        const struct heap_entry *entry = &mode->timers.block->entries[i];
        CFRunLoopTimerRef timer = timer_of_node(entry->node);
        int64_t limit = entry->key + (int64_t)(CFRunLoopTimerGetTolerance(timer) * 1e9);

        best = limit < best ? limit : best;
    }
    return best;
}

TEST(the_limit_is_never_later_than_any_timer_allows, "140 T15")
{
    int calls = 0;
    CFRunLoopTimerContext context = {.info = &calls};
    CFRunLoopTimerRef timers[timers_most];
    int exact = 0;
    int rounds = 0;

    clock_start();
    srand(1);
    for (int size = 1; size <= timers_most; size += 1 + size / 4) {
        for (int i = 0; i < size; i++) {
            double date = CFAbsoluteTimeGetCurrent() + 1 + rand() % 1000 / 100.0;

            timers[i] = CFRunLoopTimerCreate(NULL, date, 100, 0, 0, no_beat, &context);
            CFRunLoopTimerSetTolerance(timers[i], rand() % 3 ? rand() % 500 / 100.0 : 0);
            CFRunLoopAddTimer(LOOP, timers[i], MODE);
        }
        struct mode *mode = mode_find(LOOP, MODE);
        int64_t limit = timers_limit(mode);
        int64_t searched = searched_limit(mode);

        EXPECT(limit <= searched + 1000); /* a rounding of the double above */
        EXPECT(limit >= mode->timers.block->entries[0].key);
        exact += limit >= searched - 1000;
        rounds++;
        for (int i = 0; i < size; i++) {
            CFRunLoopTimerInvalidate(timers[i]);
            CFRelease(timers[i]);
        }
    }
    EXPECT(exact * 4 >= rounds * 3); /* where the search gives up, the limit is early: that costs a wake-up, is no fault and is rare */
}

TEST(tolerant_timers_share_one_sleep, "140")
{
    int calls = 0;
    CFRunLoopTimerContext context = {.info = &calls};
    uint64_t sleeps;

    clock_start();
    keep_the_mode();
    for (int i = 0; i < 30; i++) {
        CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 1 + i * 0.01, 10, 0, 0, no_beat, &context);

        CFRunLoopTimerSetTolerance(timer, 0.5);
        CFRunLoopAddTimer(LOOP, timer, MODE);
        CFRelease(timer);
    }
    sleeps = fake_kernel_sleeps();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 5, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(calls, 30);
    EXPECT_EQ(fake_kernel_sleeps() - sleeps, 2); /* one for all of them at 1.5 s, and one for the end of the run */
}

TEST(timers_without_tolerance_sleep_each, "140 118")
{
    int calls = 0;
    CFRunLoopTimerContext context = {.info = &calls};
    uint64_t sleeps;

    clock_start();
    keep_the_mode();
    for (int i = 0; i < 30; i++) {
        CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 1 + i * 0.01, 10, 0, 0, no_beat, &context);

        CFRunLoopAddTimer(LOOP, timer, MODE);
        CFRelease(timer);
    }
    sleeps = fake_kernel_sleeps();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 5, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(calls, 30);
    EXPECT_EQ(fake_kernel_sleeps() - sleeps, 31);
}
