/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of events and file systems that are mounted, in a namespace of the test's own. */
#define _GNU_SOURCE
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "Events/mount_points.h"
#include "File/notify_kernel.h"
#include "events_probe.h"
#include "harness.h"
#include "scratch_folder.h"

static void need_mounts(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 || mount("none", "/", "", MS_REC | MS_PRIVATE, NULL) < 0) {
        SKIP("this process may not mount");
    }
}

/* The path of the name in the folder, until the next call. */
static const char *in(const char *folder, const char *name)
{
    static char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

TEST(a_file_system_that_comes_and_goes_is_told, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    need_mounts();
    scratch_enter(folder);
    scratch_make_folder("a b");
    scratch_make_folder("a b/sub");
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    for (int i = 0; i < 2; i++) {
        if (mount("none", "a b/sub", "tmpfs", 0, NULL) < 0) {
            events_probe_end(&probe);
            scratch_leave(folder);
            SKIP("this process may not mount");
        }
        events_probe_flush(&probe);
        EXPECT(events_probe_flags(&probe, in(folder, "a b/sub")) & kFSEventStreamEventFlagMount);
        events_probe_forget(&probe);
        scratch_make_file("a b/sub/file");
        events_probe_flush(&probe);
        EXPECT(events_probe_flags(&probe, in(folder, "a b/sub/file")) & kFSEventStreamEventFlagItemCreated);
        events_probe_forget(&probe);
        EXPECT_EQ(umount("a b/sub"), 0);
        events_probe_flush(&probe);
        EXPECT(events_probe_flags(&probe, in(folder, "a b/sub")) & kFSEventStreamEventFlagUnmount);
        events_probe_forget(&probe);
        scratch_make_file(i == 0 ? "a b/sub/one" : "a b/sub/two");
        events_probe_flush(&probe);
        EXPECT(events_probe_flags(&probe, in(folder, i == 0 ? "a b/sub/one" : "a b/sub/two")) & kFSEventStreamEventFlagItemCreated);
        events_probe_forget(&probe);
    }
    EXPECT(mount("none", "/tmp", "tmpfs", 0, NULL) == 0); /* the root is gone with it */
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, folder) & kFSEventStreamEventFlagItemRemoved);
    events_probe_forget(&probe);
    EXPECT(umount("/tmp") == 0);
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, folder) & kFSEventStreamEventFlagItemCreated);
    events_probe_end(&probe);
    scratch_leave(folder);
}

TEST(a_file_system_that_comes_wakes_the_loop, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    need_mounts();
    struct pollfd set = {notify_kernel_linux.set_create(), POLLIN, 0};
    int mounts = notify_kernel_linux.mounts_open();

    EXPECT_EQ(notify_kernel_linux.set_add_mounts(set.fd, mounts), 0);
    EXPECT_EQ(poll(&set, 1, 0), 0);
    scratch_enter(folder);
    scratch_make_folder("sub");
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    REQUIRE(mount("none", "sub", "tmpfs", 0, NULL) == 0);
    EXPECT_EQ(poll(&set, 1, 0), 1);
    EXPECT_EQ(poll(&set, 1, 0), 0); /* it was told */
    while (!(events_probe_flags(&probe, in(folder, "sub")) & kFSEventStreamEventFlagMount) &&
           CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), true) == kCFRunLoopRunHandledSource) {
    }
    EXPECT(events_probe_flags(&probe, in(folder, "sub")) & kFSEventStreamEventFlagMount);
    EXPECT_EQ(umount("sub"), 0);
    events_probe_end(&probe);
    close(mounts);
    close(set.fd);
    scratch_leave(folder);
}

/* It has one watch for both, and stays where it was found first. */
TEST(a_folder_that_is_mounted_twice_is_told_at_one_place, "")
{
    char folder[scratch_size];
    struct events_probe probe;
    FSEventStreamEventFlags flags;

    need_mounts();
    scratch_enter(folder);
    scratch_make_folder("one");
    scratch_make_folder("two");
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, kFSEventStreamCreateFlagFileEvents));
    if (mount("one", "two", "", MS_BIND, NULL) < 0) {
        events_probe_end(&probe);
        scratch_leave(folder);
        SKIP("this process may not mount");
    }
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "two")) & kFSEventStreamEventFlagMount);
    events_probe_forget(&probe);
    scratch_make_file("two/file");
    events_probe_flush(&probe);
    flags = events_probe_flags(&probe, in(folder, "one/file"));
    EXPECT(flags & kFSEventStreamEventFlagItemCreated);
    EXPECT_EQ(umount("two"), 0);
    events_probe_end(&probe);
    scratch_leave(folder);
}

/* ---- the table of mounts ---- */

struct changes {
    int mounted;
    int unmounted;
    char last[PATH_MAX];
};

static void note_change(void *info, const char *path, bool is_mounted)
{
    struct changes *changes = info;

    changes->mounted += is_mounted;
    changes->unmounted += !is_mounted;
    (void)snprintf(changes->last, sizeof changes->last, "%s", path);
}

TEST(what_was_mounted_is_compared_with_what_is, "")
{
    struct changes changes = {0};
    char **points;
    size_t count;
    char **none = NULL;
    size_t none_count = 0;

    REQUIRE(mount_points_read(&points, &count) == 0);
    for (size_t i = 1; i < count; i++) {
        EXPECT(strcmp(points[i - 1], points[i]) <= 0);
    }
    REQUIRE(count > 0);
    mount_points_compare(&points, &count, note_change, &changes);
    EXPECT(changes.mounted == 0 && changes.unmounted == 0);
    free(points[count - 1]);
    points[count - 1] = strdup("/~/was here"); /* in place of the last, which is new then */
    mount_points_compare(&points, &count, note_change, &changes);
    EXPECT(changes.mounted == 1 && changes.unmounted == 1);
    changes = (struct changes){0};
    mount_points_compare(&none, &none_count, note_change, &changes);
    EXPECT_EQ(changes.mounted, none_count);
    EXPECT_EQ(none_count, count);
    mount_points_free(none, none_count);
    mount_points_free(points, count);
    EXPECT(!mount_point_of_device((dev_t)-1));
}
