/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version-1 sources on descriptors: rules 98 to 108. Readiness is that of real descriptors, also under the virtual clock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/loop_trace.h"
#include "fake_kernel.h"

static int asked_descriptor;
static int asked_count;

static int counts_asking(void *info)
{
    (void)info;
    asked_count++;
    return asked_descriptor;
}

TEST(get_port_is_asked_at_each_add_and_remove, "98 107")
{
    clock_start();
    CFRunLoopSourceContext1 context = {.version = 1, .getPort = counts_asking};
    asked_descriptor = probe_event();
    CFRunLoopSourceRef p = CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context);
    CFRunLoopAddSource(LOOP, p, MODE);
    EXPECT(asked_count >= 1);
    int after_add = asked_count;
    probe_event_post(asked_descriptor);
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, true);
    EXPECT_EQ(asked_count, after_add);
    CFRunLoopRemoveSource(LOOP, p, MODE);
    CFRelease(p);
    close(asked_descriptor);
    EXPECT_LOG("HS TO");
}

TEST(a_source_without_a_descriptor_never_fires, "98 101")
{
    clock_start();
    static struct probe port = PROBE("P", NULL);
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, -1, LOOP, MODE);
    CFRunLoopSourceSignal(p);
    probe_run(MODE, 0.05, true);
    EXPECT_LOG("TO");
    CFRunLoopSourceInvalidate(p);
}

TEST(a_source_without_get_port_never_fires, "98")
{
    clock_start();
    CFRunLoopSourceContext1 context = {.version = 1};
    CFRunLoopSourceRef p = CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context);
    CFRunLoopAddSource(LOOP, p, MODE);
    probe_run(MODE, 0.05, true);
    EXPECT_LOG("TO");
    CFRunLoopSourceInvalidate(p);
    CFRelease(p);
}

TEST(eventfds_and_timerfds_are_read_by_the_loop, "99")
{
    static struct probe event_port = PROBE("P", NULL);
    static struct probe alarm_port = PROBE("T", NULL);
    uint64_t count;
    int event = probe_event();
    int alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    CFRunLoopSourceRef p = probe_port_source_add(&event_port, 0, event, LOOP, MODE);
    CFRunLoopSourceRef t = probe_port_source_add(&alarm_port, 0, alarm, LOOP, MODE);
    probe_event_post(event);
    probe_run(MODE, 0, true);
    EXPECT(read(event, &count, sizeof count) < 0);
    timerfd_settime(alarm, 0, &(struct itimerspec){.it_value = {.tv_nsec = 1000000}}, NULL);
    probe_run(MODE, 1000, true);
    EXPECT(read(alarm, &count, sizeof count) < 0);
    EXPECT_LOG("P HS T HS");
    CFRunLoopSourceInvalidate(p);
    CFRunLoopSourceInvalidate(t);
    close(event);
    close(alarm);
}

static void empties_another(struct probe *probe)
{
    uint64_t count;

    EXPECT_EQ(read(*(int *)probe->context, &count, sizeof count), sizeof count);
}

TEST(a_blocking_counter_that_somebody_has_emptied_meanwhile_blocks_no_loop, "99")
{
    static struct probe first = PROBE("P", empties_another);
    static struct probe second = PROBE("Q", NULL);
    int event = probe_event();
    int blocking = eventfd(0, EFD_CLOEXEC);

    first.context = &blocking;
    CFRunLoopSourceRef p = probe_port_source_add(&first, -1, event, LOOP, MODE);
    CFRunLoopSourceRef q = probe_port_source_add(&second, 0, blocking, LOOP, MODE);
    probe_event_post(event);
    probe_event_post(blocking);
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, true);
    probe_event_post(blocking);
    probe_run(MODE, 0, true);
    EXPECT_LOG("P HS TO Q HS");
    CFRunLoopSourceInvalidate(p);
    CFRunLoopSourceInvalidate(q);
    close(event);
    close(blocking);
}

static int asked_kind_count;

static enum kernel_descriptor_kind counts_asking_for_kind(int descriptor)
{
    asked_kind_count++;
    return kernel_linux.descriptor_kind(descriptor);
}

TEST(the_kind_of_a_descriptor_is_asked_once_when_it_is_first_ready, "98 99")
{
    CFRunLoopSourceContext1 context = {.version = 1, .getPort = counts_asking};
    char bytes[16];
    int ends[2];
    int event = probe_event();

    kernel.descriptor_kind = counts_asking_for_kind;
    asked_descriptor = event;
    CFRunLoopSourceRef p = CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context);
    CFRunLoopAddSource(LOOP, p, MODE);
    EXPECT_EQ(asked_kind_count, 0); /* most of the time of an add would be this question */
    for (int i = 0; i < 3; i++) {
        probe_event_post(event);
        EXPECT_EQ(probe_run(MODE, 0, true), kCFRunLoopRunHandledSource);
        EXPECT_EQ(asked_kind_count, 1);
    }
    CFRunLoopRemoveSource(LOOP, p, MODE);

    /* A pipe takes the eventfd's number. Its bytes are not the loop's to read, though those of the eventfd were. */
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_EQ(dup3(ends[0], event, O_CLOEXEC), event);
    EXPECT_EQ(write(ends[1], "ten bytes.", 10), 10);
    CFRunLoopAddSource(LOOP, p, MODE);
    EXPECT_EQ(probe_run(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(asked_kind_count, 2);
    EXPECT_EQ(read(event, bytes, sizeof bytes), 10);
    CFRunLoopSourceInvalidate(p);
    CFRelease(p);
    close(ends[0]);
    close(ends[1]);
    close(event);
}

struct mover {
    CFRunLoopRef loop;
    CFRunLoopSourceRef source;
    int descriptors[2];
    atomic_bool is_done;
};

static void *moves_between_descriptors(void *info)
{
    struct mover *mover = info;

    for (int i = 0; i < 2000; i++) {
        asked_descriptor = mover->descriptors[i % 2];
        CFRunLoopAddSource(mover->loop, mover->source, MODE);
        CFRunLoopRemoveSource(mover->loop, mover->source, MODE);
    }
    atomic_store(&mover->is_done, true);
    return NULL;
}

TEST(a_source_that_gets_another_descriptor_while_it_is_performed_reads_no_byte_of_it, "98 99")
{
    CFRunLoopSourceContext1 context = {.version = 1, .getPort = counts_asking};
    static struct probe idle = PROBE("idle", NULL);
    struct mover mover = {.loop = LOOP};
    char bytes[16];
    pthread_t thread;
    int ends[2];

    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_EQ(write(ends[1], "ten bytes.", 10), 10);
    mover.descriptors[0] = probe_event();
    mover.descriptors[1] = ends[0];
    mover.source = CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context);
    probe_source_add(&idle, 0, LOOP, MODE); /* the mode is never empty */
    EXPECT_EQ(pthread_create(&thread, NULL, moves_between_descriptors, &mover), 0);
    while (!atomic_load(&mover.is_done)) {
        probe_event_post(mover.descriptors[0]);
        CFRunLoopRunInMode(MODE, 0, false);
    }
    pthread_join(thread, NULL);
    EXPECT_EQ(read(ends[0], bytes, sizeof bytes), 10);
    CFRunLoopSourceInvalidate(mover.source);
    CFRelease(mover.source);
    CFRunLoopSourceInvalidate(probe_source_of(&idle));
    close(mover.descriptors[0]);
    close(ends[0]);
    close(ends[1]);
}

static void reads_four(struct probe *probe)
{
    char bytes[4];
    probe_note("got%ld", (long)read(probe->descriptor, bytes, sizeof bytes));
}

static int is_cancelled(int descriptor)
{
    int result = kernel_linux.counter_take(descriptor);

    return result < 0 ? result : -ECANCELED;
}

/* One of the wall clock that is to end when the clock is set (TFD_TIMER_CANCEL_ON_SET) says so by this error. */
TEST(the_end_of_a_timerfd_by_a_set_clock_is_an_event, "99")
{
    static struct probe port = PROBE("P", NULL);
    int event = probe_event();

    kernel.counter_take = is_cancelled;
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_event_post(event);
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, true);
    EXPECT_LOG("P HS TO");
    CFRunLoopSourceInvalidate(probe_source_of(&port));
    close(event);
}

TEST(other_descriptors_are_left_to_perform, "99 108")
{
    clock_start();
    static struct probe port = PROBE("P", reads_four);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_EQ(write(ends[1], "ten bytes.", 10), 10);
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, ends[0], LOOP, MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("P got4 P got4 P got2 TO");
    close(ends[1]);
    probe_run(MODE, 0, true); /* a hang-up counts as readable */
    EXPECT_LOG("P got0 HS");
    CFRunLoopSourceInvalidate(p);
    close(ends[0]);
}

TEST(writes_coalesce_in_an_eventfd, "100")
{
    clock_start();
    static struct probe port = PROBE("P", NULL);
    int event = probe_event();
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    for (int i = 0; i < 5; i++) {
        probe_event_post(event);
    }
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("P TO");
    CFRunLoopSourceInvalidate(p);
    close(event);
}

TEST(a_signal_does_nothing_to_a_port_source, "101")
{
    clock_start();
    static struct probe port = PROBE("P", NULL);
    int event = probe_event();
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    CFRunLoopSourceSignal(p);
    EXPECT(!CFRunLoopSourceIsSignalled(p));
    probe_run(MODE, 0, true);
    EXPECT_LOG("TO");
    CFRunLoopSourceInvalidate(p);
    close(event);
}

TEST(ready_ports_are_served_one_in_a_pass_and_all, "102 34")
{
    clock_start();
    enum { count = 40 };
    static struct probe ports[count];
    int events[count];
    probe_stage(MODE);
    for (int i = 0; i < count; i++) {
        ports[i] = (struct probe)PROBE("P", NULL);
        events[i] = probe_event();
        probe_port_source_add(&ports[i], count - i, events[i], LOOP, MODE);
        probe_event_post(events[i]);
    }
    for (int i = 0; i < count; i++) {
        probe_run(MODE, 0, false);
        EXPECT_LOG("E BT BS P X TO");
    }
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS X TO");
    for (int i = 0; i < count; i++) {
        EXPECT_EQ(ports[i].calls, 1);
        CFRunLoopSourceInvalidate(probe_source_of(&ports[i]));
        close(events[i]);
    }
}

TEST(readiness_before_the_add_is_noticed, "103")
{
    clock_start();
    static struct probe port = PROBE("P", NULL);
    int event = probe_event();
    probe_event_post(event);
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_run(MODE, 0, true);
    EXPECT_LOG("P HS");
    CFRunLoopSourceInvalidate(p);
    close(event);
}

TEST(a_port_in_two_modes_has_no_phantom, "104")
{
    clock_start();
    static struct probe port = PROBE("P", NULL);
    int event = probe_event();
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    CFRunLoopAddSource(LOOP, p, CFSTR("M"));
    for (int i = 0; i < 3; i++) {
        probe_event_post(event);
        probe_run(i % 2 ? MODE : CFSTR("M"), 0, true);
        probe_run(i % 2 ? CFSTR("M") : MODE, 0.01, true);
        EXPECT_LOG("P HS TO");
    }
    CFRunLoopRemoveSource(LOOP, p, MODE);
    probe_event_post(event);
    probe_run(CFSTR("M"), 0, true);
    EXPECT_LOG("P HS");
    CFRunLoopSourceInvalidate(p);
    close(event);
}

static void drains(struct probe *probe)
{
    char bytes[64];
    while (read(probe->descriptor, bytes, sizeof bytes) > 0) {
    }
}

TEST(two_ports_on_one_descriptor_lose_nothing, "105")
{
    clock_start();
    static struct probe first = PROBE("P", drains);
    static struct probe second = PROBE("P", drains);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    CFRunLoopSourceRef p = probe_port_source(&first, 0, ends[0]);
    CFRunLoopSourceRef q = probe_port_source(&second, 0, ends[0]);
    CFRunLoopAddSource(LOOP, p, MODE);
    CFRunLoopAddSource(LOOP, q, MODE);
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    probe_run(MODE, 0, true);
    EXPECT_EQ(first.calls + second.calls, 1);
    CFRunLoopSourceInvalidate(first.calls ? p : q); /* the other one is still watched */
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    probe_run(MODE, 0, true);
    EXPECT_EQ(first.calls, 1);
    EXPECT_EQ(second.calls, 1);
    EXPECT_LOG("P HS P HS");
    CFRunLoopSourceInvalidate(p);
    CFRunLoopSourceInvalidate(q);
    CFRelease(p);
    CFRelease(q);
    close(ends[0]);
    close(ends[1]);
}

static void may_not_spin(struct probe *probe)
{
    if (probe->calls > 1000) {
        FAIL("the loop spins");
    }
}

TEST(a_descriptor_closed_while_watched_does_no_harm, "106 F1")
{
    clock_start();
    static struct probe port = {.name = "P", .action = may_not_spin, .logging = probe_is_silent};
    static struct probe idle = PROBE("idle", NULL);
    int event = probe_event();
    int copy = fcntl(event, F_DUPFD_CLOEXEC, 0); /* keeps the eventfd open behind the number */
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0.01, false);
    close(event);
    probe_event_post(copy);
    uint64_t calls = fake_kernel_calls();
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.01, false), kCFRunLoopRunTimedOut);
    }
    EXPECT(port.calls <= 5); /* it may fail, but it must not spin */
    EXPECT(fake_kernel_calls() - calls < 200);
    CFRunLoopSourceInvalidate(p);
    close(copy);
}

TEST(a_number_that_is_used_again_belongs_to_its_new_owner, "106 F1 F2")
{
    clock_start();
    static struct probe old = {.name = "old", .action = may_not_spin, .logging = probe_is_silent};
    static struct probe fresh = {.name = "new", .action = may_not_spin, .logging = probe_is_silent};
    int event = probe_event();
    int copy = fcntl(event, F_DUPFD_CLOEXEC, 0);
    int other = probe_event();
    CFRunLoopSourceRef p = probe_port_source_add(&old, 0, event, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0.01, false);
    EXPECT_EQ(dup2(other, event), event); /* closes it and gives the number to another eventfd at once */
    probe_event_post(copy);
    CFRunLoopRunInMode(MODE, 0.01, false);
    CFRunLoopSourceInvalidate(p);
    int calls = old.calls;
    CFRunLoopSourceRef q = probe_port_source_add(&fresh, 0, event, LOOP, MODE);
    for (int i = 0; i < 3; i++) {
        CFRunLoopRunInMode(MODE, 0.01, false);
    }
    EXPECT_EQ(fresh.calls, 0);
    probe_event_post(other);
    for (int i = 0; i < 5 && fresh.calls == 0; i++) {
        CFRunLoopRunInMode(MODE, 0.01, true);
    }
    EXPECT_EQ(fresh.calls, 1);
    EXPECT_EQ(old.calls, calls);
    CFRunLoopSourceInvalidate(q);
    close(copy);
    close(other);
    close(event);
}

TEST(an_unread_descriptor_is_reported_again, "108")
{
    clock_start();
    static struct probe port = PROBE("P", NULL);
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, ends[0], LOOP, MODE);
    probe_run(MODE, 0, true);
    probe_run(MODE, 0.01, true);
    probe_run(MODE, 0.01, true);
    EXPECT_LOG("P HS P HS P HS");
    CFRunLoopSourceInvalidate(p);
    close(ends[0]);
    close(ends[1]);
}

static void removes_the_other(struct probe *probe)
{
    CFRunLoopSourceInvalidate(probe_source_of(probe->context));
}

TEST(a_port_invalidated_by_another_does_not_fire, "88 102 L15")
{
    clock_start();
    static struct probe first = PROBE("P", removes_the_other);
    static struct probe second = PROBE("P", removes_the_other);
    int events[2] = {probe_event(), probe_event()};
    first.context = &second;
    second.context = &first;
    CFRunLoopSourceRef p = probe_port_source(&first, 0, events[0]);
    CFRunLoopSourceRef q = probe_port_source(&second, 0, events[1]);
    CFRunLoopAddSource(LOOP, p, MODE);
    CFRunLoopAddSource(LOOP, q, MODE);
    probe_event_post(events[0]);
    probe_event_post(events[1]);
    CFRunLoopRunInMode(MODE, 0, false);
    CFRunLoopRunInMode(MODE, 0, false);
    EXPECT_EQ(first.calls + second.calls, 1);
    CFRunLoopSourceInvalidate(p);
    CFRunLoopSourceInvalidate(q);
    CFRelease(p);
    CFRelease(q);
    close(events[0]);
    close(events[1]);
}

TEST(a_nested_run_serves_the_ports_of_its_mode, "45 104")
{
    clock_start();
    static struct probe outer = PROBE("P", probe_runs_nested);
    static struct probe inner = PROBE("Q", NULL);
    int events[2] = {probe_event(), probe_event()};
    CFRunLoopSourceRef p = probe_port_source_add(&outer, 0, events[0], LOOP, MODE);
    CFRunLoopSourceRef q = probe_port_source_add(&inner, 0, events[1], LOOP, MODE);
    probe_event_post(events[0]);
    probe_event_post(events[1]);
    CFRunLoopRunInMode(MODE, 0, false); /* one of them, and in P the other: or Q first, and P in the second run */
    CFRunLoopRunInMode(MODE, 0, false);
    EXPECT_EQ(outer.calls, 1);
    EXPECT_EQ(inner.calls, 1);
    CFRunLoopSourceInvalidate(p);
    CFRunLoopSourceInvalidate(q);
    close(events[0]);
    close(events[1]);
}

static int port_of_the_moment;

static int gives_the_port_of_the_moment(void *info)
{
    (void)info;
    return port_of_the_moment;
}

/* The loop's reference is the only one; a callout of this source, or two inside one another, is under way. */
static void removes_itself_at_the_depth(struct probe *probe)
{
    const int *depth = probe->context;
    int call = probe->calls;

    if (call < *depth) {
        probe_event_post(probe->descriptor);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    } else {
        CFRunLoopRemoveSource(LOOP, probe_source_of(probe), MODE);
    }
    EXPECT_EQ(probe->releases, 0);
    EXPECT(CFRunLoopSourceIsValid(probe_source_of(probe))); /* it is there to be asked */
}

static void expect_release_after_callouts(int depth)
{
    struct probe port = {.name = "P", .action = removes_itself_at_the_depth, .context = &depth};

    port.descriptor = probe_event();
    probe_event_post(port.descriptor);
    probe_port_source_add(&port, 0, port.descriptor, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(port.calls, depth);
    EXPECT_EQ(port.releases, 1);
    close(port.descriptor);
}

TEST(a_port_that_leaves_in_its_callback_is_kept_until_all_its_callbacks_have_returned, "73 45")
{
    expect_release_after_callouts(1);
    expect_release_after_callouts(2);
    expect_release_after_callouts(3);
    EXPECT_LOG("P P P P P P");
}

static void comes_and_goes(struct probe *probe)
{
    CFRunLoopSourceRef source = probe_source_of(probe);

    CFRetain(source);
    CFRunLoopRemoveSource(LOOP, source, MODE);
    CFRunLoopAddSource(LOOP, source, MODE);
    CFRelease(source);
    CFRunLoopRemoveSource(LOOP, source, MODE);
    EXPECT_EQ(probe->releases, 0);
}

TEST(a_port_that_leaves_twice_in_its_callback_is_kept_until_it_returns, "73")
{
    static struct probe port = PROBE("P", comes_and_goes);

    port.descriptor = probe_event();
    probe_event_post(port.descriptor);
    probe_port_source_add(&port, 0, port.descriptor, LOOP, MODE);
    probe_run(MODE, 0, true);
    EXPECT_EQ(port.releases, 1);
    EXPECT_LOG("P HS");
    close(port.descriptor);
}

static void removes_its_context_at_first(struct probe *probe)
{
    if (probe->calls == 1) {
        CFRunLoopRemoveSource(LOOP, probe_source_of(probe->context), MODE);
    }
}

/* Between the report and its turn: an observer takes away the last reference. */
TEST(a_port_that_an_observer_removes_after_the_wait_is_let_go, "15 73 88")
{
    static struct probe port = PROBE("P", NULL);
    static struct probe observer = {.name = "O", .action = removes_its_context_at_first, .context = &port};
    static struct probe idle = PROBE("idle", NULL);

    clock_start();
    probe_source_add(&idle, 0, LOOP, MODE);
    port.descriptor = probe_event();
    probe_event_post(port.descriptor);
    probe_port_source_add(&port, 0, port.descriptor, LOOP, MODE);
    probe_observer_add(&observer, kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    probe_run(MODE, 0.01, true);
    EXPECT_EQ(port.releases, 1);
    EXPECT_LOG("O O TO");
    probe_invalidate(&observer);
    probe_invalidate(&idle);
    close(port.descriptor);
}

TEST(get_port_that_changes_its_mind_is_not_believed_while_the_source_is_in_a_mode, "98")
{
    CFRunLoopSourceContext1 context = {.version = 1, .getPort = gives_the_port_of_the_moment};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context);
    int first = probe_event();
    int second = probe_event();

    port_of_the_moment = first;
    CFRunLoopAddSource(LOOP, source, MODE);
    port_of_the_moment = second;
    CFRunLoopAddSource(LOOP, source, CFSTR("M"));
    port_of_the_moment = -1;
    CFRunLoopAddSource(LOOP, source, CFSTR("N"));
    probe_event_post(first);
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("M"), 0, true), kCFRunLoopRunHandledSource);
    CFRunLoopSourceInvalidate(source); /* finds its watches in all three */
    CFRelease(source);
    close(first);
    close(second);
}
