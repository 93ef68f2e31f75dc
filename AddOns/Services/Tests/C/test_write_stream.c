/* SPDX-License-Identifier: Apache-2.0 */
/* Write queues before streams. */
#include <errno.h>
#include <unistd.h>

#include "write_probe.h"

enum { large = 1 << 20 };

TEST(a_write_queue_before_a_stream_keeps_order, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin_stream(&probe, large, 1000);
    EXPECT_EQ(write_probe_ask(&probe, 10), kCRLWriteTaken); /* waits until it is open */
    EXPECT_EQ(write_probe_counts(&probe).waiting, 10);
    EXPECT(CFWriteStreamOpen(probe.stream));
    for (size_t size = 1; size < 1000; size++) {
        EXPECT_EQ(write_probe_ask(&probe, size), kCRLWriteTaken);
    }
    EXPECT(write_probe_counts(&probe).waiting > 400000);
    write_probe_read_all(&probe);
    write_probe_run();
    EXPECT_TRACE(&probe.told, "room");
    write_probe_fill(&probe);
    EXPECT_EQ(write_probe_ask(&probe, 99000), kCRLWriteTaken);
    write_probe_read_all(&probe);
    write_probe_end(&probe);
}

TEST(a_stream_is_closed_once_its_queue_has_finished, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin_stream(&probe, large, 0);
    EXPECT(CFWriteStreamOpen(probe.stream));
    write_probe_fill(&probe);
    CRLWriteQueueFinish(probe.queue);
    EXPECT_EQ(CFWriteStreamGetStatus(probe.stream), kCFStreamStatusOpen);
    write_probe_read_all(&probe);
    write_probe_run();
    EXPECT_EQ(CFWriteStreamGetStatus(probe.stream), kCFStreamStatusClosed);
    EXPECT(write_probe_read(&probe, 1));
    EXPECT_TRACE(&probe.told, "room finished");
    write_probe_end(&probe);
}

TEST(an_empty_queue_closes_its_stream_at_once, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin_stream(&probe, large, 0);
    EXPECT(CFWriteStreamOpen(probe.stream));
    CRLWriteQueueFinish(probe.queue);
    EXPECT_EQ(CFWriteStreamGetStatus(probe.stream), kCFStreamStatusClosed);
    write_probe_end(&probe);
}

TEST(a_stream_whose_reader_is_gone_fails, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin_stream(&probe, large, 0);
    EXPECT(CFWriteStreamOpen(probe.stream));
    write_probe_fill(&probe);
    close(probe.peer);
    probe.peer = dup(0);
    write_probe_run();
    EXPECT_TRACE(&probe.told, "failed:32");
    EXPECT_EQ(write_probe_ask(&probe, 1), kCRLWriteFailed);
    EXPECT_EQ(errno, EPIPE);
    write_probe_end(&probe);
}

TEST(a_stream_that_has_failed_before_takes_nothing, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin_stream(&probe, large, 0);
    EXPECT(CFWriteStreamOpen(probe.stream));
    close(probe.peer);
    probe.peer = dup(0);
    EXPECT_EQ(CFWriteStreamWrite(probe.stream, (const UInt8 *)"x", 1), -1);
    EXPECT_EQ(write_probe_ask(&probe, 1), kCRLWriteFailed);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(write_probe_counts(&probe).error, EPIPE);
    write_probe_end(&probe);
}

TEST(a_closed_stream_takes_nothing, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin_stream(&probe, large, 0);
    EXPECT(CFWriteStreamOpen(probe.stream));
    CFWriteStreamClose(probe.stream);
    EXPECT_EQ(write_probe_ask(&probe, 1), kCRLWriteFailed);
    EXPECT_EQ(errno, EPIPE);
    write_probe_end(&probe);
}

TEST(a_stream_on_another_loop_goes_on, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin_stream(&probe, large, 0);
    EXPECT(CFWriteStreamOpen(probe.stream));
    CRLWriteQueueUnscheduleFromRunLoop(probe.queue, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    write_probe_fill(&probe);
    EXPECT(CRLWriteQueueScheduleWithRunLoop(probe.queue, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    write_probe_read_all(&probe);
    write_probe_end(&probe);
}
