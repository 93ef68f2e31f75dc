/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of events on dispatch queues, which are those of fake_dispatch.h. */
#include <stdint.h>
#include <string.h>

#include "events_probe.h"
#include "fake_dispatch.h"
#include "harness.h"
#include "scratch_folder.h"

#if defined(HAS_FAKE_DISPATCH)

static int queue; /* any object will do */

static void note_event(ConstFSEventStreamRef stream, void *info, size_t count, void *paths, const FSEventStreamEventFlags *flags,
                       const FSEventStreamEventId *ids)
{
    (void)stream;
    (void)flags;
    (void)ids;
    for (size_t i = 0; i < count; i++) {
        *(int *)info += strstr(((char **)paths)[i], "/file") != NULL;
    }
}

static FSEventStreamRef create(const char *path, int *told)
{
    FSEventStreamContext context = {.info = told};
    CFArrayRef paths = events_probe_copy_paths(path);
    FSEventStreamRef stream =
        FSEventStreamCreate(NULL, note_event, &context, paths, kFSEventStreamEventIdSinceNow, 0, kFSEventStreamCreateFlagFileEvents);

    CFRelease(paths);
    REQUIRE(stream);
    return stream;
}

TEST(a_stream_on_a_queue_is_served_by_it, "")
{
    char folder[scratch_size];
    int told = 0;
    FSEventStreamRef stream;

    scratch_enter(folder);
    stream = create(folder, &told);
    FSEventStreamSetDispatchQueue(stream, &queue);
    EXPECT_EQ(fake_source_count, 1);
    EXPECT(fake_sources[0].queue == &queue && fake_sources[0].is_resumed);
    REQUIRE(FSEventStreamStart(stream));
    fake_dispatch_run();
    EXPECT_EQ(told, 0);
    scratch_make_file("file");
    fake_dispatch_run();
    EXPECT_EQ(told, 1);
    FSEventStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode); /* it has a queue */
    scratch_make_file("file2");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
    FSEventStreamStop(stream);
    fake_dispatch_run();
    EXPECT_EQ(told, 1);
    FSEventStreamInvalidate(stream);
    EXPECT(fake_sources[0].is_cancelled && fake_sources[0].is_released);
    FSEventStreamRelease(stream);
    fake_dispatch_run(); /* which had the last reference */
    scratch_leave(folder);
}

TEST(a_stream_leaves_its_queue_for_another_one, "")
{
    char folder[scratch_size];
    int told = 0;
    int other_queue;
    FSEventStreamRef stream;

    scratch_enter(folder);
    stream = create(folder, &told);
    FSEventStreamSetDispatchQueue(stream, &queue);
    FSEventStreamSetDispatchQueue(stream, &other_queue);
    EXPECT(fake_source_count == 2 && fake_sources[0].is_cancelled && !fake_sources[1].is_cancelled &&
           fake_sources[1].queue == &other_queue);
    REQUIRE(FSEventStreamStart(stream));
    scratch_make_file("file");
    fake_dispatch_run();
    EXPECT_EQ(told, 1);
    FSEventStreamStop(stream);
    FSEventStreamSetDispatchQueue(stream, NULL);
    EXPECT(fake_sources[1].is_cancelled && !FSEventStreamStart(stream));
    fake_dispatch_refuses = true;
    FSEventStreamSetDispatchQueue(stream, &queue);
    EXPECT(fake_source_count == 2 && !FSEventStreamStart(stream));
    FSEventStreamInvalidate(stream);
    FSEventStreamRelease(stream);
    fake_dispatch_run();
    scratch_leave(folder);
}

TEST(a_stream_is_on_a_loop_or_on_a_queue, "")
{
    char folder[scratch_size];
    int told = 0;
    FSEventStreamRef stream;

    scratch_enter(folder);
    stream = create(folder, &told);
    FSEventStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    FSEventStreamSetDispatchQueue(stream, &queue);
    EXPECT(fake_source_count == 1 && fake_sources[0].is_cancelled);
    REQUIRE(FSEventStreamStart(stream));
    scratch_make_file("file");
    fake_dispatch_run();
    EXPECT_EQ(told, 0);
    FSEventStreamFlushSync(stream);
    EXPECT_EQ(told, 1);
    FSEventStreamInvalidate(stream);
    FSEventStreamSetDispatchQueue(stream, &queue);
    EXPECT(fake_source_count == 2 && fake_sources[1].is_cancelled);
    FSEventStreamRelease(stream);
    fake_dispatch_run();
    scratch_leave(folder);
}

#endif
