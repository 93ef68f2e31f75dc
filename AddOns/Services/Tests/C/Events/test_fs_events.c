/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of events: what they tell of paths that come, go and are no folders, of a kernel that has no room, and in the child of a fork. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "File/notify_kernel.h"
#include "events_probe.h"
#include "harness.h"
#include "scratch_folder.h"

static const FSEventStreamEventFlags must_scan = kFSEventStreamEventFlagMustScanSubDirs;

/* The path of the name in the folder, until the next call. */
static const char *in(const char *folder, const char *name)
{
    static char path[PATH_MAX];
    size_t length = strlen(folder);

    REQUIRE(length + strlen(name) + 2 <= sizeof path);
    memcpy(path, folder, length);
    path[length] = '/';
    memcpy(path + length + 1, name, strlen(name) + 1);
    return path;
}

/* ---- what is given ---- */

static void ignore_events(ConstFSEventStreamRef stream, void *info, size_t count, void *paths, const FSEventStreamEventFlags *flags,
                          const FSEventStreamEventId *ids)
{
    (void)stream;
    (void)info;
    (void)count;
    (void)paths;
    (void)flags;
    (void)ids;
}

static FSEventStreamRef create(CFArrayRef paths)
{
    return FSEventStreamCreate(NULL, ignore_events, NULL, paths, kFSEventStreamEventIdSinceNow, 0, 0);
}

TEST(a_stream_of_what_is_no_path_is_refused, "")
{
    FSEventStreamContext later = {.version = 1};
    CFTypeRef number = kCFBooleanTrue;
    CFArrayRef none = CFArrayCreate(NULL, NULL, 0, &kCFTypeArrayCallBacks);
    CFArrayRef numbers = CFArrayCreate(NULL, &number, 1, &kCFTypeArrayCallBacks);
    CFArrayRef nothing = CFArrayCreate(NULL, (const void *[]){NULL}, 1, NULL);
    CFArrayRef root = events_probe_copy_paths("/");
    CFArrayRef empty = events_probe_copy_paths("");
    char text[PATH_MAX + 2];
    CFArrayRef longest;

    memset(text, 'a', sizeof text - 1);
    text[0] = '/';
    text[sizeof text - 1] = '\0';
    longest = events_probe_copy_paths(text);
    EXPECT(!create(NULL) && !create(none) && !create(numbers) && !create(nothing) && !create(empty) && !create(longest));
    EXPECT(!FSEventStreamCreate(NULL, NULL, NULL, root, 0, 0, 0));
    EXPECT(!FSEventStreamCreate(NULL, ignore_events, &later, root, 0, 0, 0));
    EXPECT(!FSEventStreamCreateRelativeToDevice(NULL, ignore_events, NULL, (dev_t)-1, root, 0, 0, 0));
    CFRelease(none);
    CFRelease(numbers);
    CFRelease(nothing);
    CFRelease(root);
    CFRelease(empty);
    CFRelease(longest);
}

TEST(a_stream_is_started_once_and_where_it_is_scheduled, "")
{
    CFArrayRef paths = events_probe_copy_paths("/nowhere/at/all");
    CFTypeRef many[9];
    CFArrayRef nine;
    FSEventStreamRef stream = create(paths);

    for (size_t i = 0; i < 9; i++) {
        many[i] = CFArrayGetValueAtIndex(paths, 0);
    }
    nine = CFArrayCreate(NULL, many, 9, &kCFTypeArrayCallBacks);
    REQUIRE(stream);
    EXPECT(!FSEventStreamStart(stream));
    EXPECT(!FSEventStreamSetExclusionPaths(stream, nine));
    EXPECT(FSEventStreamSetExclusionPaths(stream, paths) && FSEventStreamSetExclusionPaths(stream, NULL));
    FSEventStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT(FSEventStreamStart(stream) && !FSEventStreamStart(stream));
    EXPECT(!FSEventStreamSetExclusionPaths(stream, NULL));
    FSEventStreamFlushSync(stream);
    EXPECT_EQ(FSEventStreamFlushAsync(stream), 0);
    FSEventStreamShow(stream);
    FSEventStreamStop(stream);
    FSEventStreamUnscheduleFromRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT(!FSEventStreamStart(stream));
    FSEventStreamInvalidate(stream);
    FSEventStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT(!FSEventStreamStart(stream));
    FSEventStreamRelease(stream);
    CFRelease(nine);
    CFRelease(paths);
}

TEST(a_stream_that_begins_in_the_past_has_no_history, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    scratch_enter(folder);
    REQUIRE(events_probe_start(&probe, folder, 1, kFSEventStreamCreateFlagFileEvents));
    events_probe_flush(&probe);
    EXPECT_EQ(probe.count, 2);
    EXPECT_EQ(probe.flags[0], must_scan);
    EXPECT_EQ(probe.flags[1], kFSEventStreamEventFlagHistoryDone);
    EXPECT(FSEventStreamGetLatestEventId(probe.stream) == probe.ids[1] && probe.ids[1] > probe.ids[0]);
    events_probe_end(&probe);
    scratch_leave(folder);
}

/* ---- paths ---- */

TEST(a_path_that_is_not_there_is_told_when_it_comes_and_goes, "")
{
    char folder[scratch_size];
    struct events_probe probe;
    const FSEventStreamCreateFlags flags = kFSEventStreamCreateFlagFileEvents | kFSEventStreamCreateFlagWatchRoot;
    char path[PATH_MAX];

    scratch_enter(folder);
    (void)snprintf(path, sizeof path, "%s", in(folder, "one/two"));
    REQUIRE(events_probe_start(&probe, path, kFSEventStreamEventIdSinceNow, flags));
    for (int i = 0; i < 3; i++) { /* it is made and removed again and again; the second one is a file, and the third lies behind a link */
        scratch_make_folder("other");
        scratch_make_folder("other/two");
        EXPECT_EQ(i == 2 ? symlink("other", "one") : rename("other", "one"), 0);
        if (i == 1) {
            EXPECT(rmdir("one/two") == 0);
            scratch_make_file("one/two");
        }
        events_probe_flush(&probe);
        EXPECT(events_probe_flags(&probe, path) & kFSEventStreamEventFlagRootChanged);
        EXPECT(events_probe_flags(&probe, path) & kFSEventStreamEventFlagItemCreated);
        events_probe_forget(&probe);
        if (i != 1) {
            scratch_make_file("one/two/file");
            events_probe_flush(&probe);
            EXPECT(events_probe_flags(&probe, in(path, "file")) & kFSEventStreamEventFlagItemCreated);
            events_probe_forget(&probe);
        }
        scratch_remove("one");
        scratch_remove("other");
        events_probe_flush(&probe);
        EXPECT(events_probe_flags(&probe, path) & kFSEventStreamEventFlagRootChanged);
        EXPECT(events_probe_flags(&probe, path) & kFSEventStreamEventFlagItemRemoved);
        EXPECT_EQ(FSEventStreamGetLatestEventId(probe.stream) > 0, true);
        events_probe_forget(&probe);
    }
    events_probe_end(&probe);
    scratch_leave(folder);
}

TEST(a_stream_of_which_nothing_is_told_lets_its_loop_sleep, "")
{
    char folder[scratch_size];
    struct events_probe probe;
    int passes = 0;

    scratch_enter(folder);
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    while (passes < 1000 && CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true) == kCFRunLoopRunHandledSource) {
        passes++;
    }
    EXPECT(passes < 1000); /* a few where others mount something */
    events_probe_end(&probe);
    scratch_leave(folder);
}

TEST(links_in_circles_are_not_followed, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    scratch_enter(folder);
    EXPECT(symlink(".", "self") == 0 && symlink("two", "one") == 0 && symlink("one", "two") == 0);
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    scratch_make_file("self/file");
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "file")) & kFSEventStreamEventFlagItemIsFile);
    EXPECT_EQ(probe.count, 1);
    events_probe_end(&probe);
    REQUIRE(events_probe_start(&probe, in(folder, "one"), kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    EXPECT_EQ(unlink("one"), 0);
    scratch_make_folder("one");
    scratch_make_file("one/file");
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "one/file")) & kFSEventStreamEventFlagItemCreated);
    events_probe_end(&probe);
    scratch_leave(folder);
}

TEST(a_name_that_is_no_text_is_told_as_it_is_or_as_its_folder, "")
{
    char folder[scratch_size];
    struct events_probe texts;
    struct events_probe objects;
    const FSEventStreamCreateFlags flags = kFSEventStreamCreateFlagFileEvents;

    scratch_enter(folder);
    REQUIRE(events_probe_start(&texts, folder, kFSEventStreamEventIdSinceNow, flags));
    REQUIRE(events_probe_start(&objects, folder, kFSEventStreamEventIdSinceNow, flags | kFSEventStreamCreateFlagUseCFTypes));
    scratch_make_folder("\xff\xfe");
    scratch_make_file("\xff\xfe/file");
    events_probe_flush(&texts);
    events_probe_flush(&objects);
    EXPECT(events_probe_flags(&texts, in(folder, "\xff\xfe/file")) & kFSEventStreamEventFlagItemCreated);
    EXPECT_EQ(events_probe_flags(&objects, folder), must_scan);
    events_probe_end(&texts);
    events_probe_end(&objects);
    scratch_leave(folder);
}

/* Of what lies deeper than a path can say, nothing but that it is there. */
TEST(a_tree_that_is_deeper_than_a_path_is_told_to_be_scanned, "")
{
    char folder[scratch_size];
    struct events_probe probe;
    char name[NAME_MAX];
    bool is_lost = false;

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    scratch_enter(folder);
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    for (int i = 0; i < 40; i++) {
        scratch_make_folder(name);
        REQUIRE(chdir(name) == 0);
    }
    events_probe_flush(&probe);
    for (size_t i = 0; i < probe.count && i < probe_events_most; i++) {
        is_lost = is_lost || probe.flags[i] & must_scan;
    }
    EXPECT(is_lost);
    events_probe_forget(&probe);
    events_probe_flush(&probe);
    EXPECT_EQ(probe.count, 0);
    events_probe_end(&probe);
    for (int i = 0; i < 40; i++) {
        REQUIRE(chdir("..") == 0);
        EXPECT_EQ(rmdir(name), 0);
    }
    scratch_leave(folder);
}

/* ---- a kernel that refuses ---- */

static int refusal; /* of the folder "refused" */

static int watch_add_refusing(int notify, const char *path, uint32_t mask)
{
    char real[PATH_MAX]; /* as a path may end in "." */
    const char *end = realpath(path, real) ? strrchr(real, '/') : "";

    return refusal != 0 && strcmp(end, "/refused") == 0 ? -refusal : notify_kernel_linux.watch_add(notify, path, mask);
}

TEST(without_a_watch_the_folder_around_is_told_to_be_scanned, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    notify_kernel.watch_add = watch_add_refusing;
    refusal = ENOSPC;
    scratch_enter(folder);
    scratch_make_folder("refused");
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    events_probe_flush(&probe);
    EXPECT_EQ(events_probe_flags(&probe, folder), must_scan | kFSEventStreamEventFlagUserDropped);
    events_probe_end(&probe);
    scratch_leave(folder);
}

TEST(a_folder_that_gets_rights_is_told_to_be_scanned, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    notify_kernel.watch_add = watch_add_refusing;
    refusal = EACCES;
    scratch_enter(folder);
    scratch_make_folder("refused");
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    scratch_make_file("refused/file");
    events_probe_flush(&probe);
    EXPECT_EQ(probe.count, 0);
    refusal = 0;
    EXPECT_EQ(chmod("refused", 0755), 0);
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "refused")) & must_scan);
    events_probe_forget(&probe);
    scratch_make_file("refused/other");
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "refused/other")) & kFSEventStreamEventFlagItemCreated);
    events_probe_end(&probe);
    scratch_leave(folder);
}

/* ---- floods ---- */

static int flood_reads; /* how many are still to come */
static unsigned flood_name;
static int flood_notify;

static size_t make_record(char *place, int watch, uint32_t mask, const char *name)
{
    struct inotify_event event = {.wd = watch, .mask = mask, .len = name ? NAME_MAX + 1 : 0};

    memcpy(place, &event, sizeof event);
    if (name) {
        memset(place + sizeof event, 'f', NAME_MAX);
        memcpy(place + sizeof event, name, strlen(name));
        place[sizeof event + NAME_MAX] = '\0';
    }
    return sizeof event + event.len;
}

/* The first instance, which watches the tree. */
static int create_and_note(void)
{
    int notify = notify_kernel_linux.notify_create();

    flood_notify = flood_notify == 0 ? notify : flood_notify;
    return notify;
}

static ssize_t read_overflow(int notify, void *bytes, size_t size)
{
    return notify == flood_notify && flood_reads > 0 && flood_reads-- > 0 ? (ssize_t)make_record(bytes, -1, IN_Q_OVERFLOW, NULL)
                                                                          : notify_kernel_linux.notify_read(notify, bytes, size);
}

static ssize_t read_flood(int notify, void *bytes, size_t size)
{
    size_t used = 0;

    if (notify != flood_notify || flood_reads == 0) {
        return notify_kernel_linux.notify_read(notify, bytes, size);
    }
    flood_reads--;
    while (size - used > sizeof(struct inotify_event) + NAME_MAX + 1) {
        char name[16];

        (void)snprintf(name, sizeof name, "%08u", flood_name++);
        used += make_record((char *)bytes + used, 1, IN_CREATE, name);
    }
    return (ssize_t)used;
}

static int much_pending(int notify)
{
    return notify == flood_notify ? 1 << 27 : notify_kernel_linux.notify_pending(notify);
}

TEST(a_full_queue_is_told_once_and_the_stream_goes_on, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    notify_kernel.notify_read = read_overflow;
    notify_kernel.notify_pending = much_pending;
    notify_kernel.notify_create = create_and_note;
    scratch_enter(folder);
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    flood_reads = 100;
    events_probe_flush(&probe);
    EXPECT(probe.count == 1 && probe.flags[0] == (must_scan | kFSEventStreamEventFlagKernelDropped));
    events_probe_forget(&probe);
    scratch_make_file("file");
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "file")) & kFSEventStreamEventFlagItemCreated);
    events_probe_end(&probe);
    scratch_leave(folder);
}

static bool moves_while_listed;

/* The folder "one" gets another name while the folder around it is listed, and is found under both. */
static int list_moving(int folder, bool (*each)(void *info, const char *name, unsigned char type), void *info)
{
    if (moves_while_listed && access("one", F_OK) == 0) {
        moves_while_listed = false;
        (void)(each(info, "one", DT_DIR) && rename("one", "two") == 0 && each(info, "two", DT_DIR));
        return 0;
    }
    return notify_kernel_linux.folder_list(folder, each, info);
}

TEST(a_folder_that_is_moved_while_all_is_listed_is_listed_once, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    notify_kernel.notify_read = read_overflow;
    notify_kernel.notify_pending = much_pending;
    notify_kernel.notify_create = create_and_note;
    notify_kernel.folder_list = list_moving;
    scratch_enter(folder);
    scratch_make_folder("one");
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    moves_while_listed = true;
    flood_reads = 1;
    events_probe_flush(&probe);
    EXPECT(!moves_while_listed && events_probe_flags(&probe, folder) & must_scan);
    events_probe_forget(&probe);
    scratch_make_file("two/file");
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "two/file")) & kFSEventStreamEventFlagItemCreated);
    events_probe_end(&probe);
    scratch_leave(folder);
}

/* Each event takes memory for its path; beyond 32 MiB all of them become one. */
TEST(more_events_than_may_wait_become_one, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    notify_kernel.notify_read = read_flood;
    notify_kernel.notify_pending = much_pending;
    notify_kernel.notify_create = create_and_note;
    scratch_enter(folder);
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    flood_reads = 600;
    events_probe_flush(&probe);
    EXPECT_EQ(flood_reads, 0);
    EXPECT(events_probe_flags(&probe, folder) & must_scan && events_probe_flags(&probe, folder) & kFSEventStreamEventFlagUserDropped);
    EXPECT_EQ(probe.count, 1);
    events_probe_end(&probe);
    scratch_leave(folder);
}

/* ---- forks ---- */

static bool child_hears_nothing(struct events_probe *probe)
{
    bool result;

    events_probe_flush(probe);
    result = !FSEventStreamStart(probe->stream) && FSEventStreamFlushAsync(probe->stream) == 0;
    /* Its source ends as soon as it is performed, and the mode is empty then. */
    result = result && CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false) == kCFRunLoopRunFinished && probe->count == 0;
    events_probe_end(probe);
    return result;
}

TEST(the_child_of_a_fork_leaves_its_parents_events_alone, "")
{
    char folder[scratch_size];
    struct events_probe probe;
    pid_t child;
    int status;

    scratch_enter(folder);
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    scratch_make_file("file");
    child = fork();
    if (child == 0) {
        _exit(child_hears_nothing(&probe) ? 0 : 1);
    }
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "file")) & kFSEventStreamEventFlagItemCreated);
    events_probe_end(&probe);
    scratch_leave(folder);
}
