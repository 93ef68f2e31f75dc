/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of sockets in a pass. They count as version-0 sources (rules 49, 50, 254). After them, the same pass handles one other kind of
 * cause (rules 30, 34, 35).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "Socket/socket_recorder.h"
#include "Kernel/kernel.h"
#include "Loop/Watch/watch.h"

enum { socket_count = 4 };

static struct {
    struct recorder recorders[watch_batch_size + socket_count];
    int peers[watch_batch_size + socket_count];
    int count;
} sockets;

static void add_sockets(int count)
{
    static const char *const names[socket_count] = {"1", "2", "3", "4"};

    sockets.count = count;
    for (int i = 0; i < count; i++) {
        int ends[2];

        pair_open(ends);
        sockets.recorders[i] = (struct recorder)RECORDER(.name = i < socket_count ? names[i] : "more", .drains = true);
        sockets.peers[i] = ends[1];
        recorder_add(&sockets.recorders[i], ends[0], reads);
    }
}

/* Writes to the first socket first. The kernel reports first the one that became ready first. */
static void tell_all(void)
{
    for (int i = 0; i < sockets.count; i++) {
        tell(sockets.peers[i], "x");
    }
}

static void free_sockets(void)
{
    for (int i = 0; i < sockets.count; i++) {
        recorder_free(&sockets.recorders[i]);
        close(sockets.peers[i]);
    }
    sockets.count = 0;
}

static CFRunLoopObserverRef log_activities(void)
{
    return probe_activities_add(LOOP, MODE);
}

static void forget(CFRunLoopObserverRef observer)
{
    CFRunLoopObserverInvalidate(observer);
}

/* ---- all of a look, and one cause besides ---- */

TEST(ready_sockets_are_performed_in_one_pass_before_due_timers, "50 254")
{
    struct probe timer = PROBE("T", NULL);

    add_sockets(socket_count);
    CFRunLoopObserverRef observer = log_activities();
    probe_timer_add(&timer, -1, 0, LOOP, MODE);
    tell_all();
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS 1:read 2:read 3:read 4:read T X TO");
    forget(observer);
    free_sockets();
}

TEST(a_timer_that_stops_the_run_comes_after_sockets_that_are_ready, "50 254")
{
    struct probe timer = PROBE("T", probe_stops_loop);

    add_sockets(socket_count);
    CFRunLoopObserverRef observer = log_activities();
    probe_timer_add(&timer, -1, 0, LOOP, MODE);
    tell_all();
    probe_run(MODE, 10, false);
    EXPECT_LOG("E BT BS BW AW 1:read 2:read 3:read 4:read T X S");
    forget(observer);
    free_sockets();
}

TEST(a_run_that_returns_after_a_source_performs_one_socket, "49 254")
{
    struct probe timer = PROBE("T", NULL);

    add_sockets(2);
    CFRunLoopObserverRef observer = log_activities();
    probe_timer_add(&timer, -1, 0, LOOP, MODE);
    tell_all();
    probe_run(MODE, 10, true);
    EXPECT_LOG("E BT BS BW AW 1:read T X HS");
    probe_run(MODE, 10, true);
    EXPECT_LOG("E BT BS BW AW 2:read X HS");
    probe_run(MODE, 0, true);
    EXPECT_LOG("E BT BS X TO");
    forget(observer);
    free_sockets();
}

/* Each pass looks at signalled sources first. If a socket then waited for the next pass, such a source could delay it for ever. */
TEST(a_run_that_returns_after_a_source_performs_one_socket_besides, "49 254")
{
    struct probe source = PROBE("S", NULL);
    struct probe timer = PROBE("T", NULL);

    add_sockets(2);
    probe_source_add(&source, 0, LOOP, MODE);
    CFRunLoopObserverRef observer = log_activities();
    probe_timer_add(&timer, -1, 0, LOOP, MODE);
    tell_all();
    CFRunLoopSourceSignal(probe_source_of(&source));
    probe_run(MODE, 10, true);
    EXPECT_LOG("E BT BS S 1:read T X HS");
    CFRunLoopSourceSignal(probe_source_of(&source));
    probe_run(MODE, 0, true);
    EXPECT_LOG("E BT BS S 2:read X HS");
    forget(observer);
    probe_invalidate(&source);
    free_sockets();
}

static void logs_block(void *info)
{
    (void)info;
    probe_log("B");
}

static void queues_block(struct recorder *recorder)
{
    (void)recorder;
    CRLRunLoopPerformFunction(LOOP, MODE, logs_block, NULL, NULL);
}

TEST(blocks_come_between_sockets_and_timers, "30 254")
{
    struct probe timer = PROBE("T", NULL);

    add_sockets(2);
    CFRunLoopObserverRef observer = log_activities();
    sockets.recorders[0].action = queues_block;
    probe_timer_add(&timer, -1, 0, LOOP, MODE);
    tell_all();
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS 1:read 2:read B T X TO");
    forget(observer);
    free_sockets();
}

static void stops(struct recorder *recorder)
{
    (void)recorder;
    CFRunLoopStop(LOOP);
}

TEST(stopping_in_a_sockets_callback_leaves_none_of_the_others_out, "51 254")
{
    add_sockets(3);
    CFRunLoopObserverRef observer = log_activities();
    sockets.recorders[0].action = stops;
    tell_all();
    probe_run(MODE, 10, false);
    EXPECT_LOG("E BT BS BW AW 1:read 2:read 3:read X S");
    forget(observer);
    free_sockets();
}

/* ---- beside version-1 sources ---- */

TEST(a_version_1_source_comes_after_the_sockets_of_its_look, "34 254")
{
    struct probe first = PROBE("P", NULL);
    struct probe second = PROBE("Q", NULL);
    int one = probe_event();
    int other = probe_event();

    probe_event_post(one);
    probe_event_post(other);
    probe_port_source_add(&first, 0, one, LOOP, MODE);
    add_sockets(2);
    probe_port_source_add(&second, 0, other, LOOP, MODE);
    tell_all();
    CFRunLoopObserverRef observer = log_activities();
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS 1:read 2:read P X TO");
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS Q X TO");
    forget(observer);
    probe_invalidate(&first);
    probe_invalidate(&second);
    close(one);
    close(other);
    free_sockets();
}

static int refused_descriptor;

static int refuse_one(int set, int descriptor, uint32_t interest, uint64_t token)
{
    return descriptor == refused_descriptor ? -ENOSPC : kernel_linux.set_add(set, descriptor, interest, token);
}

TEST(a_source_that_the_kernel_does_not_watch_comes_after_the_sockets_of_a_look, "34 254 F13")
{
    struct probe port = PROBE("P", NULL);

    kernel.set_add = refuse_one;
    refused_descriptor = probe_event();
    probe_event_post(refused_descriptor);
    probe_port_source_add(&port, 0, refused_descriptor, LOOP, MODE);
    add_sockets(2);
    tell_all();
    CFRunLoopObserverRef observer = log_activities();
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS 1:read 2:read P X TO");
    forget(observer);
    probe_invalidate(&port);
    close(refused_descriptor);
    free_sockets();
}

static void reports_again(struct probe *port)
{
    probe_event_post(port->descriptor);
}

TEST(sockets_timers_and_version_1_sources_that_are_always_ready_take_turns, "35 254")
{
    struct probe port = PROBE("P", reports_again);
    struct probe timer = PROBE("T", NULL);
    int event = probe_event();

    probe_event_post(event);
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_timer_add(&timer, 0, 1e-9, LOOP, MODE); /* always due */
    add_sockets(1);
    sockets.recorders[0].drains = false;
    tell_all();
    for (int i = 0; i < 4; i++) {
        probe_run(MODE, 0, false);
    }
    EXPECT_LOG("1:read T TO P TO 1:read T TO P TO"); /* the loop handles all reports of one look before it looks again */
    probe_invalidate(&timer);
    probe_invalidate(&port);
    close(event);
    free_sockets();
}

static void counts_calls(struct probe *timer)
{
    if (timer->calls == 50) {
        CFRunLoopStop(LOOP);
    }
}

TEST(a_timer_that_is_always_due_keeps_no_socket_waiting, "35 254")
{
    struct probe timer = PROBE("T", counts_calls);

    timer.logging = probe_is_silent;
    add_sockets(1);
    sockets.recorders[0].drains = false;
    sockets.recorders[0].is_silent = true;
    tell_all();
    probe_timer_add(&timer, 0, 1e-9, LOOP, MODE);
    probe_run(MODE, 30, false);
    EXPECT_LOG("S");
    EXPECT(sockets.recorders[0].calls >= 50);
    probe_invalidate(&timer);
    free_sockets();
}

/* ---- a callback that changes what was reported ---- */

static void invalidates_next(struct recorder *recorder)
{
    CFSocketInvalidate((recorder + 1)->object);
}

TEST(a_socket_that_an_earlier_one_has_invalidated_is_not_performed, "84 254")
{
    add_sockets(3);
    sockets.recorders[0].action = invalidates_next;
    tell_all();
    probe_run(MODE, 0, false);
    EXPECT_LOG("1:read 3:read TO");
    free_sockets();
}

static void removes_all(struct recorder *recorder)
{
    for (int i = 0; i < sockets.count; i++) {
        CFRunLoopSourceRef source = CFSocketCreateRunLoopSource(NULL, sockets.recorders[i].object, 0);

        CFRunLoopRemoveSource(LOOP, source, MODE);
        CFRelease(source);
    }
    recorder->action = NULL;
}

TEST(sockets_that_are_removed_meanwhile_are_not_performed, "88 254")
{
    add_sockets(3);
    sockets.recorders[0].action = removes_all;
    tell_all();
    probe_run(MODE, 10, false);
    EXPECT_LOG("1:read F");
    free_sockets();
}

static void runs_nested(struct recorder *recorder)
{
    (void)recorder;
    probe_log("{");
    probe_run(MODE, 0, false);
    probe_log("}");
}

TEST(a_run_inside_a_sockets_callback_performs_the_others, "50 254")
{
    add_sockets(3);
    sockets.recorders[0].action = runs_nested;
    tell_all();
    probe_run(MODE, 0, false);
    EXPECT_LOG("1:read { 2:read 3:read TO } TO");
    free_sockets();
}

static void tells_the_first(struct recorder *recorder)
{
    (void)recorder;
    tell(sockets.peers[0], "y");
}

TEST(a_socket_that_becomes_ready_meanwhile_waits_for_the_next_pass, "50 78 254")
{
    add_sockets(2);
    CFRunLoopObserverRef observer = log_activities();
    sockets.recorders[1].action = tells_the_first;
    tell_all();
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS 1:read 2:read X TO");
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS 1:read X TO");
    forget(observer);
    free_sockets();
}

static void jumps_out(struct recorder *recorder)
{
    recorder->action = NULL;
    longjmp(probe_way_out, 1);
}

TEST(a_callback_that_is_left_by_a_jump_leaves_the_others_ready, "254")
{
    add_sockets(3);
    sockets.recorders[1].action = jumps_out;
    tell_all();
    if (setjmp(probe_way_out) == 0) {
        probe_run(MODE, 0, false);
    }
    EXPECT_LOG("1:read 2:read");
    probe_run(MODE, 0, false);
    EXPECT_LOG("3:read TO");
    free_sockets();
}

/* ---- order and number ---- */

TEST(sockets_of_one_look_are_performed_by_order, "82 254")
{
    add_sockets(socket_count);
    for (int i = 0; i < socket_count; i++) {
        CFRunLoopSourceRef old = CFSocketCreateRunLoopSource(NULL, sockets.recorders[i].object, 0);
        CFRunLoopSourceRef source;

        CFRunLoopSourceInvalidate(old);
        CFRelease(old);
        source = CFSocketCreateRunLoopSource(NULL, sockets.recorders[i].object, i % 2 ? 1 : 2);
        CFRunLoopAddSource(LOOP, source, MODE);
        CFRelease(source);
    }
    tell_all();
    probe_run(MODE, 0, false);
    EXPECT_LOG("2:read 4:read 1:read 3:read TO");
    free_sockets();
}

TEST(more_sockets_than_one_look_reports_are_performed_in_several_passes, "254")
{
    int performed = 0;

    add_sockets(watch_batch_size + socket_count);
    for (int i = 0; i < sockets.count; i++) {
        sockets.recorders[i].is_silent = true;
    }
    tell_all();
    probe_run(MODE, 0, false);
    for (int i = 0; i < sockets.count; i++) {
        performed += sockets.recorders[i].calls;
    }
    EXPECT_EQ(performed, watch_batch_size);
    probe_run(MODE, 0, false);
    for (int i = 0; i < sockets.count; i++) {
        EXPECT_EQ(sockets.recorders[i].calls, 1);
    }
    EXPECT_LOG("TO TO");
    free_sockets();
}
