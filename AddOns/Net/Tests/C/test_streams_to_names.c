/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of streams to names, with a server of names on loopback: rules 331, 334 and 338. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CFNetwork/CFNetwork.h>

#include "Stream/stream_recorder.h"
#include "dns_server.h"
#include "harness.h"

extern void *dispatch_queue_create(const char *label, void *attributes) __attribute__((weak));
extern void dispatch_release(void *object) __attribute__((weak));
/* By their link names: the header declares them where the dispatch headers are. */
void put_writer_on(CFWriteStreamRef stream, void *queue) __asm__("crl_CFWriteStreamSetDispatchQueue");

TEST(a_pair_to_a_name_opens_in_a_loop_that_it_joins_late, "1003 334")
{
    struct stream_recorder recorder = {0};
    struct dns_server server;
    UInt32 port;
    int listener = listener_open(&port);
    struct stream_pair pair = stream_pair_to(CFSTR("late.test"), port);

    dns_server_start(&server);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    recorder_add_writer(&recorder, pair.writer);
    probe_await_count(&server.questions, 2);
    dns_server_release_late(&server);
    run_until_count(&recorder.calls, 2);
    EXPECT_TRACE(&recorder.trace, "open room");
    stream_pair_release(pair);
    close(listener);
    dns_server_stop(&server);
}

TEST(a_pair_to_a_name_opens_while_somebody_asks_or_waits, "1003 334 329")
{
    for (int waits = 0; waits < 2; waits++) {
        struct dns_server server;
        UInt32 port;
        int listener = listener_open(&port);
        struct stream_pair pair = stream_pair_to(CFSTR("late.test"), port);

        dns_server_start(&server);
        EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
        EXPECT_EQ(CFReadStreamGetStatus(pair.reader), kCFStreamStatusOpening);
        probe_await_count(&server.questions, 2);
        dns_server_release_late(&server);
        while (!waits && CFReadStreamGetStatus(pair.reader) == kCFStreamStatusOpening) {
            sched_yield();
        }
        EXPECT_EQ(write_text(pair.writer, "a"), 1);
        stream_pair_release(pair);
        close(listener);
        dns_server_stop(&server);
    }
}

TEST(a_pair_to_a_name_opens_on_a_queue, "1003 334 338")
{
    if (!dispatch_queue_create || !dispatch_release) {
        SKIP("there is no libdispatch in the process");
    }
    test_allow_left(64, 64); /* libdispatch's own, and the loops of its threads */
    for (int is_late = 0; is_late < 2; is_late++) { /* on the queue only after it was opened */
        struct stream_recorder recorder = {0};
        struct dns_server server;
        void *queue = dispatch_queue_create("streams", NULL);
        UInt32 port;
        int listener = listener_open(&port);
        struct stream_pair pair = stream_pair_to(CFSTR("late.test"), port);

        dns_server_start(&server);
        recorder_watch_writer(&recorder, pair.writer, events_all);
        if (!is_late) {
            put_writer_on(pair.writer, queue);
        }
        EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
        put_writer_on(pair.writer, queue);
        probe_await_count(&server.questions, 2);
        dns_server_release_late(&server);
        probe_await_count(&recorder.calls, 2);
        CFWriteStreamClose(pair.writer);
        EXPECT_TRACE(&recorder.trace, "open room");
        stream_pair_release(pair);
        close(listener);
        dispatch_release(queue);
        dns_server_stop(&server);
    }
}

TEST(a_limit_for_opening_covers_the_question_for_a_name, "1003 343")
{
    struct stream_recorder recorder = {0};
    struct dns_server server;
    struct stream_pair pair = stream_pair_to(CFSTR("silent.test"), 80);
    CFNumberRef limit = CFNumberCreate(NULL, kCFNumberDoubleType, &(double){0.02});

    dns_server_start(&server);
    EXPECT(CFWriteStreamSetProperty(pair.writer, kCRLStreamPropertyOpeningTimeout, limit));
    recorder_add_writer(&recorder, pair.writer);
    EXPECT(CFWriteStreamOpen(pair.writer));
    run_until_count(&recorder.calls, 1);
    EXPECT_TRACE(&recorder.trace, "error");
    EXPECT_ERRNO(CFWriteStreamGetError(pair.writer), ETIMEDOUT);
    stream_pair_release(pair);
    CFRelease(limit);
    dns_server_stop(&server);
}

/* ---- many ---- */

static long resident_pages(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long total = 0;
    long resident = 0;

    REQUIRE(file && fscanf(file, "%ld %ld", &total, &resident) == 2);
    fclose(file);
    return resident;
}

/* Connects, writes, and reads to the end; every third pair is closed while its name is being resolved. */
static void connect_once(int listener, UInt32 port, int round)
{
    struct stream_pair pair = stream_pair_to(CFSTR("both.test"), port);
    struct stream_recorder recorder = {0};
    UInt8 byte;
    int peer;

    if (round % 2) {
        recorder_add_writer(&recorder, pair.writer);
    }
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    if (round % 3) {
        if (round % 2) {
            run_until_count(&recorder.calls, 2);
        }
        EXPECT_EQ(write_text(pair.writer, "a"), 1);
        peer = accept(listener, NULL, NULL);
        while (read(peer, &byte, 1) != 1) { /* a connection of a round before, which was closed at once */
            close(peer);
            peer = accept(listener, NULL, NULL);
            REQUIRE(peer >= 0);
        }
        close(peer);
        EXPECT_EQ(CFReadStreamRead(pair.reader, &byte, 1), 0);
    }
    stream_pair_release(pair);
}

TEST_LIMIT(stress_pairs_to_names_leave_no_memory_and_no_descriptor, "1003 331 334", 600)
{
    struct dns_server server;
    UInt32 port;
    int listener = listener_open(&port);
    int count = test_is_soak() ? 10000 : 300;
    long pages = 0;
    int lowest_free = 0;

    dns_server_start(&server);
    for (int i = 0; i < count; i++) {
        int next = dup(STDERR_FILENO);

        close(next);
        if (i == count / 3) { /* by then all is there that is kept */
            pages = resident_pages();
            lowest_free = next;
        }
        EXPECT(i <= count / 3 || next == lowest_free);
        connect_once(listener, port, i);
    }
    EXPECT(test_is_instrumented() || resident_pages() <= pages + 64);
    printf("# %d connects, %ld pages more than after a third\n", count, resident_pages() - pages);
    close(listener);
    dns_server_stop(&server);
}
