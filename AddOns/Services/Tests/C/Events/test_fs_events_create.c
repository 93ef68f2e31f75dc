/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of events: what they make of what they are given, and what they say of themselves. */
#define _GNU_SOURCE
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Events/event_batch.h"
#include "Events/mount_points.h"
#include "events_probe.h"
#include "harness.h"
#include "scratch_folder.h"

static const FSEventStreamCreateFlags of_files = kFSEventStreamCreateFlagFileEvents;

/* ---- what is told ---- */

struct told {
    size_t count;
    char last[PATH_MAX];
    FSEventStreamEventFlags flags; /* of all */
};

static void note_events(ConstFSEventStreamRef stream, void *info, size_t count, void *paths, const FSEventStreamEventFlags *flags,
                        const FSEventStreamEventId *ids)
{
    struct told *told = info;

    for (size_t i = 0; i < count; i++) {
        told->flags |= flags[i];
        (void)snprintf(told->last, sizeof told->last, "%s", ((char **)paths)[i]);
    }
    told->count += count;
    EXPECT(count > 0 && FSEventStreamGetLatestEventId(stream) == ids[count - 1]);
}

static CFArrayRef copy_paths(const char *const *texts, CFIndex count)
{
    CFMutableArrayRef paths = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);

    for (CFIndex i = 0; i < count; i++) {
        CFStringRef path = CFStringCreateWithCString(NULL, texts[i], kCFStringEncodingUTF8);

        CFArrayAppendValue(paths, path);
        CFRelease(path);
    }
    return paths;
}

static void start(FSEventStreamRef stream)
{
    REQUIRE(stream);
    FSEventStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    REQUIRE(FSEventStreamStart(stream));
}

static void give_up(FSEventStreamRef stream)
{
    FSEventStreamInvalidate(stream);
    FSEventStreamRelease(stream);
}

static FSEventStreamRef create(struct told *told, const char *const *texts, CFIndex count)
{
    FSEventStreamContext context = {.info = told};
    CFArrayRef paths = copy_paths(texts, count);
    FSEventStreamRef stream = FSEventStreamCreate(NULL, note_events, &context, paths, kFSEventStreamEventIdSinceNow, 0, of_files);

    CFRelease(paths);
    return stream;
}

/* ---- paths ---- */

TEST(paths_in_other_paths_are_watched_once, "")
{
    const char *texts[] = {"one/deep", "./one//./", "two", "one/deep/er", "one"};
    char folder[scratch_size];
    char wanted[PATH_MAX + 16];
    char current[PATH_MAX];
    struct told told = {0};
    CFArrayRef paths;
    FSEventStreamRef stream;

    scratch_enter(folder);
    REQUIRE(getcwd(current, sizeof current));
    scratch_make_folder("one");
    scratch_make_folder("one/deep");
    scratch_make_folder("two");
    stream = create(&told, texts, 5);
    start(stream);
    paths = FSEventStreamCopyPathsBeingWatched(stream);
    EXPECT_EQ(CFArrayGetCount(paths), 5);
    CFRelease(paths);
    scratch_make_file("one/deep/file");
    FSEventStreamFlushSync(stream);
    (void)snprintf(wanted, sizeof wanted, "%s/one/deep/file", current);
    EXPECT_EQ(told.count, 1);
    EXPECT_STR(told.last, wanted);
    scratch_make_file("two/file");
    scratch_make_file("three");
    FSEventStreamFlushSync(stream);
    (void)snprintf(wanted, sizeof wanted, "%s/two/file", current);
    EXPECT_EQ(told.count, 2);
    EXPECT_STR(told.last, wanted);
    give_up(stream);
    scratch_leave(folder);
}

static void give_up_in_callback(ConstFSEventStreamRef stream, void *info, size_t count, void *paths, const FSEventStreamEventFlags *flags,
                                const FSEventStreamEventId *ids)
{
    (void)count;
    (void)paths;
    (void)flags;
    (void)ids;
    give_up((FSEventStreamRef)(uintptr_t)stream);
    EXPECT_EQ(*(int *)info, 0); /* it is there until this returns */
}

static void note_release(const void *info)
{
    ++*(int *)(uintptr_t)info;
}

/* The sanitizer sees what is used after it was freed. */
TEST(a_flush_may_tell_what_gives_the_stream_up, "")
{
    int releases = 0;
    FSEventStreamContext context = {.info = &releases, .release = note_release};
    char folder[scratch_size];
    CFArrayRef paths;
    FSEventStreamRef stream;

    scratch_enter(folder);
    paths = copy_paths((const char *[]){"."}, 1);
    stream = FSEventStreamCreate(NULL, give_up_in_callback, &context, paths, kFSEventStreamEventIdSinceNow, 0, of_files);
    start(stream);
    scratch_make_file("file");
    FSEventStreamFlushSync(stream);
    EXPECT_EQ(releases, 1);
    CFRelease(paths);
    scratch_leave(folder);
}

TEST(a_stream_relative_to_a_device_tells_so, "")
{
    char folder[scratch_size];
    struct stat status;
    struct told told = {0};
    FSEventStreamContext context = {.info = &told};
    const char *relative;
    char *base;
    char wanted[PATH_MAX];
    CFArrayRef paths;
    FSEventStreamRef stream;

    scratch_enter(folder);
    REQUIRE(stat(folder, &status) == 0);
    base = mount_point_of_device(status.st_dev);
    if (!base || strncmp(folder, base, strlen(base)) != 0) {
        free(base);
        scratch_leave(folder);
        SKIP("no file system has the device of /tmp as a whole");
    }
    relative = folder + strlen(base) + (folder[strlen(base)] == '/');
    paths = copy_paths(&relative, 1);
    stream =
        FSEventStreamCreateRelativeToDevice(NULL, note_events, &context, status.st_dev, paths, kFSEventStreamEventIdSinceNow, 0, of_files);
    start(stream);
    EXPECT_EQ(FSEventStreamGetDeviceBeingWatched(stream), status.st_dev);
    scratch_make_file("file");
    FSEventStreamFlushSync(stream);
    (void)snprintf(wanted, sizeof wanted, "%s/file", relative);
    EXPECT_STR(told.last, wanted);
    EXPECT(!FSEventStreamCreateRelativeToDevice(NULL, NULL, &context, status.st_dev, paths, 0, 0, 0));
    EXPECT(!FSEventStreamCreateRelativeToDevice(NULL, note_events, &context, status.st_dev, NULL, 0, 0, 0));
    give_up(stream);
    CFRelease(paths);
    free(base);
    scratch_leave(folder);
}

TEST(of_excluded_paths_nothing_is_told, "")
{
    const char *texts[] = {"."};
    const char *excluded[] = {"out/", "all/out"};
    char folder[scratch_size];
    struct told told = {0};
    CFTypeRef number = kCFBooleanTrue;
    CFArrayRef numbers = CFArrayCreate(NULL, &number, 1, &kCFTypeArrayCallBacks);
    CFArrayRef paths = copy_paths(excluded, 2);
    FSEventStreamRef stream;

    scratch_enter(folder);
    scratch_make_folder("out");
    stream = create(&told, texts, 1);
    REQUIRE(stream);
    EXPECT(!FSEventStreamSetExclusionPaths(stream, numbers));
    EXPECT(FSEventStreamSetExclusionPaths(stream, paths));
    start(stream);
    scratch_make_file("out/file");
    EXPECT_EQ(rmdir("out") < 0 && chmod("out", 0750) == 0, true);
    FSEventStreamFlushSync(stream);
    EXPECT_EQ(told.count, 0);
    scratch_make_folder("all");
    scratch_make_folder("all/out");
    scratch_make_file("all/out/file");
    FSEventStreamFlushSync(stream);
    EXPECT_EQ(told.count, 1);
    EXPECT(told.flags & kFSEventStreamEventFlagItemIsDir);
    give_up(stream);
    CFRelease(paths);
    CFRelease(numbers);
    scratch_leave(folder);
}

/* ---- objects ---- */

static CFArrayRef last_objects;

static void keep_objects(ConstFSEventStreamRef stream, void *info, size_t count, void *paths, const FSEventStreamEventFlags *flags,
                         const FSEventStreamEventId *ids)
{
    (void)stream;
    (void)info;
    (void)flags;
    (void)ids;
    EXPECT_EQ(CFArrayGetCount(paths), count);
    if (last_objects) {
        CFRelease(last_objects);
    }
    last_objects = CFArrayCreateCopy(NULL, paths);
}

/* Of the events that were told last, counted from the end. */
static SInt64 file_from_end(CFIndex place, const char *wanted_end)
{
    CFDictionaryRef data = CFArrayGetValueAtIndex(last_objects, CFArrayGetCount(last_objects) - place);
    CFStringRef path = CFDictionaryGetValue(data, kFSEventStreamEventExtendedDataPathKey);
    CFNumberRef file = CFDictionaryGetValue(data, kFSEventStreamEventExtendedFileIDKey);
    char text[PATH_MAX] = "";
    SInt64 number = 0;

    EXPECT(CFStringGetCString(path, text, sizeof text, kCFStringEncodingUTF8) && strcmp(strrchr(text, '/'), wanted_end) == 0);
    EXPECT(!file || CFNumberGetValue(file, kCFNumberSInt64Type, &number));
    return number;
}

TEST(extended_data_has_the_path_and_the_number_of_the_file, "")
{
    const char *texts[] = {"."};
    char folder[scratch_size];
    struct stat status;
    CFArrayRef paths;
    FSEventStreamRef stream;

    scratch_enter(folder);
    paths = copy_paths(texts, 1);
    stream = FSEventStreamCreate(NULL, keep_objects, NULL, paths, kFSEventStreamEventIdSinceNow, 0,
                                 of_files | kFSEventStreamCreateFlagUseCFTypes | kFSEventStreamCreateFlagUseExtendedData);
    start(stream);
    scratch_make_file("file");
    FSEventStreamFlushSync(stream);
    REQUIRE(last_objects && stat("file", &status) == 0);
    EXPECT_EQ(file_from_end(1, "/file"), status.st_ino);
    EXPECT_EQ(rename("file", "moved"), 0);
    FSEventStreamFlushSync(stream);
    EXPECT_EQ(file_from_end(2, "/file"), status.st_ino); /* by which a program sees where it went */
    EXPECT_EQ(file_from_end(1, "/moved"), status.st_ino);
    EXPECT_EQ(unlink("moved"), 0);
    FSEventStreamFlushSync(stream);
    EXPECT_EQ(file_from_end(1, "/moved"), 0);
    give_up(stream);
    CFRelease(last_objects);
    CFRelease(paths);
    scratch_leave(folder);
}

static void expect_object(const char *path, const char *wanted, FSEventStreamEventFlags wanted_flags)
{
    struct untold_events events;
    struct event_batch batch;
    struct pending_event *list;
    char text[64] = "";

    REQUIRE(pending_events_init(&events) && pending_events_note(&events, path, kFSEventStreamEventFlagItemRemoved, event_of_path, false));
    list = pending_events_take(&events);
    REQUIRE(event_batch_make(&batch, list, kFSEventStreamCreateFlagUseCFTypes, NULL));
    EXPECT(CFStringGetCString(CFArrayGetValueAtIndex(batch.paths, 0), text, sizeof text, kCFStringEncodingUTF8));
    EXPECT_STR(text, wanted);
    EXPECT_EQ(batch.flags[0], wanted_flags);
    event_batch_free(&batch);
    pending_event_list_free(list);
    pending_events_deinit(&events);
}

TEST(a_path_that_is_no_text_is_told_as_the_nearest_folder_that_is, "")
{
    expect_object("/no/such", "/no/such", kFSEventStreamEventFlagItemRemoved);
    expect_object("/no/\xff/such", "/no", kFSEventStreamEventFlagMustScanSubDirs);
    expect_object("/\xff/such", "/", kFSEventStreamEventFlagMustScanSubDirs);
    expect_object("/\xff", "/", kFSEventStreamEventFlagMustScanSubDirs);
    expect_object("\xff", "", kFSEventStreamEventFlagMustScanSubDirs);
}

/* ---- what it says of itself ---- */

static int references;

static const void *count_retain(const void *info)
{
    references++;
    return info;
}

static void count_release(const void *info)
{
    (void)info;
    references--;
}

static CFStringRef copy_word(const void *info)
{
    return CFStringCreateWithCString(NULL, info, kCFStringEncodingUTF8);
}

static void expect_description(FSEventStreamRef stream, const char *part)
{
    CFStringRef description = FSEventStreamCopyDescription(stream);
    char text[1024] = "";

    EXPECT(description && CFStringGetCString(description, text, sizeof text, kCFStringEncodingUTF8) && strstr(text, part));
    CFRelease(description);
}

TEST(a_stream_keeps_its_context_and_describes_itself, "")
{
    FSEventStreamContext context = {.info = "what it says", .retain = count_retain, .release = count_release, .copyDescription = copy_word};
    CFArrayRef paths = events_probe_copy_paths("/nowhere/at/all");
    FSEventStreamRef stream = FSEventStreamCreate(NULL, note_events, &context, paths, 7, INFINITY, of_files);

    REQUIRE(stream);
    EXPECT_EQ(references, 1);
    EXPECT_EQ(FSEventStreamGetLatestEventId(stream), 7);
    expect_description(stream, "info = what it says");
    expect_description(stream, "/nowhere/at/all");
    FSEventStreamRetain(stream);
    FSEventStreamSetDispatchQueue(stream, NULL);
    EXPECT(!FSEventStreamStart(stream));
    give_up(stream);
    EXPECT_EQ(references, 1);
    expect_description(stream, "started = 0");
    FSEventStreamRelease(stream);
    EXPECT_EQ(references, 0);
    CFRelease(paths);
}

TEST(ids_of_events_are_times, "")
{
    FSEventStreamEventId now = FSEventsGetCurrentEventId();
    FSEventStreamEventId day_ago = FSEventsGetLastEventIdForDeviceBeforeTime(0, CFAbsoluteTimeGetCurrent() - 86400);

    EXPECT(now != 0 && FSEventsGetCurrentEventId() >= now && day_ago != 0 && day_ago < now);
    EXPECT_EQ(FSEventsGetLastEventIdForDeviceBeforeTime(0, -1e12), 0);
    EXPECT_EQ(FSEventsGetLastEventIdForDeviceBeforeTime(0, NAN), 0);
    EXPECT(FSEventsGetLastEventIdForDeviceBeforeTime(0, INFINITY) >= FSEventsGetLastEventIdForDeviceBeforeTime(0, 1e11));
    EXPECT(!FSEventsCopyUUIDForDevice(0));
    EXPECT(!FSEventsPurgeEventsForDeviceUpToEventId(0, now));
}

TEST(a_stream_that_is_null_stops_the_program, "")
{
    EXPECT_STOPS("FSEventStreamRelease: the stream is NULL", { FSEventStreamRelease(NULL); });
    EXPECT_STOPS("FSEventStreamStart: the stream is NULL", { FSEventStreamStart(NULL); });
    EXPECT_STOPS("FSEventStreamGetLatestEventId: the stream is NULL", { FSEventStreamGetLatestEventId(NULL); });
    EXPECT_STOPS("FSEventStreamSetExclusionPaths: the stream is NULL", { FSEventStreamSetExclusionPaths(NULL, NULL); });
}
