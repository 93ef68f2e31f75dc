/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of events on dispatch queues. This file has libdispatch's functions for the whole program of tests: sources that the test itself
 * runs, when it wants, as a queue would. clang's thread sanitizer has these functions itself, which look into libdispatch's own sources.
 */
#if !defined(__has_feature)
#define __has_feature(_name) 0
#endif
#if !__has_feature(thread_sanitizer)
#include <poll.h>
#include <stdint.h>
#include <string.h>

#include "Support/libdispatch.h"
#include "events_probe.h"
#include "harness.h"
#include "scratch_folder.h"

/* ---- libdispatch ---- */

enum { sources_most = 8 };

struct fake_source {
    int descriptor;
    void *queue;
    void *context;
    void (*handle)(void *context);
    void (*end)(void *context);
    bool is_resumed;
    bool is_cancelled;
    bool is_released;
};

const char _dispatch_source_type_read[1];
static struct fake_source sources[sources_most];
static size_t source_count;
static bool refuses;

void *dispatch_source_create(const void *type, uintptr_t handle, uintptr_t mask, void *queue)
{
    EXPECT(type == _dispatch_source_type_read && mask == 0);
    REQUIRE(source_count < sources_most);
    if (refuses) {
        return NULL;
    }
    sources[source_count] = (struct fake_source){.descriptor = (int)handle, .queue = queue};
    return &sources[source_count++];
}

void dispatch_set_context(void *object, void *context)
{
    ((struct fake_source *)object)->context = context;
}

void dispatch_source_set_event_handler_f(void *source, void (*handler)(void *context))
{
    ((struct fake_source *)source)->handle = handler;
}

void dispatch_source_set_cancel_handler_f(void *source, void (*handler)(void *context))
{
    ((struct fake_source *)source)->end = handler;
}

void dispatch_resume(void *object)
{
    struct fake_source *source = object;

    EXPECT(source->context && source->handle && source->end && !source->is_resumed);
    source->is_resumed = true;
}

void dispatch_source_cancel(void *source)
{
    ((struct fake_source *)source)->is_cancelled = true;
}

void dispatch_retain(void *object)
{
    (void)object;
}

void dispatch_release(void *object)
{
    struct fake_source *source = object;

    EXPECT(source->is_cancelled && !source->is_released);
    source->is_released = true;
}

/* What the queue has to do now: it runs the source that is readable, and ends those that were cancelled. */
static void run_queue(void)
{
    for (size_t i = 0; i < source_count; i++) {
        struct fake_source *source = &sources[i];
        struct pollfd watched = {.fd = source->descriptor, .events = POLLIN};

        if (source->is_cancelled && source->end) {
            source->end(source->context);
            source->end = NULL;
        } else if (!source->is_cancelled && source->is_resumed && poll(&watched, 1, 0) > 0) {
            source->handle(source->context);
        }
    }
}

/* ---- streams ---- */

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
    EXPECT_EQ(source_count, 1);
    EXPECT(sources[0].queue == &queue && sources[0].is_resumed);
    REQUIRE(FSEventStreamStart(stream));
    run_queue();
    EXPECT_EQ(told, 0);
    scratch_make_file("file");
    run_queue();
    EXPECT_EQ(told, 1);
    FSEventStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode); /* it has a queue */
    scratch_make_file("file2");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
    FSEventStreamStop(stream);
    run_queue();
    EXPECT_EQ(told, 1);
    FSEventStreamInvalidate(stream);
    EXPECT(sources[0].is_cancelled && sources[0].is_released);
    FSEventStreamRelease(stream);
    run_queue(); /* which had the last reference */
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
    EXPECT(source_count == 2 && sources[0].is_cancelled && !sources[1].is_cancelled && sources[1].queue == &other_queue);
    REQUIRE(FSEventStreamStart(stream));
    scratch_make_file("file");
    run_queue();
    EXPECT_EQ(told, 1);
    FSEventStreamStop(stream);
    FSEventStreamSetDispatchQueue(stream, NULL);
    EXPECT(sources[1].is_cancelled && !FSEventStreamStart(stream));
    refuses = true;
    FSEventStreamSetDispatchQueue(stream, &queue);
    EXPECT(source_count == 2 && !FSEventStreamStart(stream));
    FSEventStreamInvalidate(stream);
    FSEventStreamRelease(stream);
    run_queue();
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
    EXPECT(source_count == 1 && sources[0].is_cancelled);
    REQUIRE(FSEventStreamStart(stream));
    scratch_make_file("file");
    run_queue();
    EXPECT_EQ(told, 0);
    FSEventStreamFlushSync(stream);
    EXPECT_EQ(told, 1);
    FSEventStreamInvalidate(stream);
    FSEventStreamSetDispatchQueue(stream, &queue);
    EXPECT(source_count == 2 && sources[1].is_cancelled);
    FSEventStreamRelease(stream);
    run_queue();
    scratch_leave(folder);
}

#endif
