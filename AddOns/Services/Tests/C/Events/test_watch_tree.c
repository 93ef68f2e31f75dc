/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of watched folders: those that are found again elsewhere, that may not be listed, and of which the kernel told too little. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "File/notify_kernel.h"
#include "events_probe.h"
#include "harness.h"
#include "scratch_folder.h"

static const FSEventStreamCreateFlags of_files = kFSEventStreamCreateFlagFileEvents;
static const FSEventStreamEventFlags must_scan = kFSEventStreamEventFlagMustScanSubDirs;

/* The path of the name in the folder, until the next call. */
static const char *in(const char *folder, const char *name)
{
    static char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- folders that are found again ---- */

/* What happened in a folder while it was not in the tree has no path; all of it is told when it comes back. */
TEST(a_folder_that_was_away_is_told_to_be_scanned, "")
{
    char folder[scratch_size];
    char tree[scratch_size + 8];
    struct events_probe probe;

    scratch_enter(folder);
    scratch_make_folder("tree");
    scratch_make_folder("tree/one");
    scratch_make_folder("out");
    (void)snprintf(tree, sizeof tree, "%s/tree", folder);
    REQUIRE(events_probe_start(&probe, tree, kFSEventStreamEventIdSinceNow, of_files));
    EXPECT_EQ(rename("tree/one", "out/one"), 0);
    scratch_make_file("out/one/file");
    EXPECT_EQ(rename("out/one", "tree/two"), 0);
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(tree, "one")) & kFSEventStreamEventFlagItemRenamed);
    EXPECT(events_probe_flags(&probe, in(tree, "two")) & kFSEventStreamEventFlagItemRenamed);
    EXPECT(events_probe_flags(&probe, in(tree, "two")) & must_scan);
    events_probe_forget(&probe);
    scratch_make_file("tree/two/other");
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(tree, "two/other")) & kFSEventStreamEventFlagItemCreated);
    events_probe_end(&probe);
    scratch_leave(folder);
}

/* The root by its link has the watch, and the other root finds it taken. */
TEST(a_folder_of_two_roots_is_told_at_one_place, "")
{
    char folder[scratch_size];
    CFTypeRef texts[2];
    CFArrayRef paths;
    struct events_probe probe = {0};
    char path[PATH_MAX];
    bool is_told;

    scratch_enter(folder);
    scratch_make_folder("tree");
    scratch_make_folder("tree/sub");
    REQUIRE(symlink("tree/sub", "link") == 0);
    (void)snprintf(path, sizeof path, "%s/link", folder);
    REQUIRE(events_probe_start(&probe, path, kFSEventStreamEventIdSinceNow, of_files));
    events_probe_end(&probe);
    texts[0] = CFStringCreateWithCString(NULL, path, kCFStringEncodingUTF8);
    (void)snprintf(path, sizeof path, "%s/tree", folder);
    texts[1] = CFStringCreateWithCString(NULL, path, kCFStringEncodingUTF8);
    paths = CFArrayCreate(NULL, texts, 2, &kCFTypeArrayCallBacks);
    REQUIRE(events_probe_start_all(&probe, paths, kFSEventStreamEventIdSinceNow, of_files));
    scratch_make_file("tree/sub/file");
    events_probe_flush(&probe);
    is_told = events_probe_flags(&probe, in(folder, "link/file")) & kFSEventStreamEventFlagItemCreated;
    EXPECT(is_told);
    EXPECT_EQ(rename("tree/sub", "tree/moved"), 0);
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "tree/moved")) & kFSEventStreamEventFlagItemRenamed);
    EXPECT(events_probe_flags(&probe, in(folder, "link")) & kFSEventStreamEventFlagItemRemoved);
    events_probe_end(&probe);
    CFRelease(paths);
    CFRelease(texts[0]);
    CFRelease(texts[1]);
    scratch_leave(folder);
}

TEST(a_root_of_folder_events_is_told_as_a_folder, "")
{
    char folder[scratch_size];
    char path[PATH_MAX];
    struct events_probe probe;

    scratch_enter(folder);
    (void)snprintf(path, sizeof path, "%s/tree", folder);
    REQUIRE(events_probe_start(&probe, path, kFSEventStreamEventIdSinceNow, 0));
    (void)strcat(path, "/");
    for (int i = 0; i < 2; i++) {
        scratch_make_folder("tree");
        events_probe_flush(&probe);
        EXPECT(probe.count == 1 && strcmp(probe.paths[0], path) == 0 && probe.flags[0] == 0);
        events_probe_forget(&probe);
        EXPECT_EQ(rmdir("tree"), 0);
        events_probe_flush(&probe);
        EXPECT(probe.count > 0 && strcmp(probe.paths[0], path) == 0);
        events_probe_forget(&probe);
    }
    events_probe_end(&probe);
    scratch_leave(folder);
}

/*
 * To whom only folders are told, what is in a folder that came is not. It is told itself: as one in which something may have been and gone
 * before it was watched, or, if it was moved here from elsewhere, as one to be scanned.
 */
TEST(of_folder_events_a_folder_that_comes_is_told_itself, "")
{
    char folder[scratch_size];
    char tree[scratch_size + 8];
    struct events_probe probe;

    scratch_enter(folder);
    scratch_make_folder("tree");
    scratch_make_folder("out");
    scratch_make_folder("out/moved");
    (void)snprintf(tree, sizeof tree, "%s/tree", folder);
    REQUIRE(events_probe_start(&probe, tree, kFSEventStreamEventIdSinceNow, 0));
    scratch_make_folder("tree/new");
    EXPECT_EQ(rename("out/moved", "tree/moved"), 0);
    events_probe_flush(&probe);
    EXPECT_EQ(probe.count, 3);
    for (size_t i = 0; i < 3; i++) {
        bool is_moved = strcmp(probe.paths[i], in(tree, "moved/")) == 0;

        EXPECT(is_moved || strcmp(probe.paths[i], in(tree, "")) == 0 || strcmp(probe.paths[i], in(tree, "new/")) == 0);
        EXPECT_EQ(probe.flags[i], is_moved ? must_scan : 0);
    }
    events_probe_end(&probe);
    scratch_leave(folder);
}

/* ---- a kernel that refuses ---- */

static int refusal; /* of what is named "refused" */

static bool is_refused(const char *path)
{
    const char *end = strrchr(path, '/');

    return refusal != 0 && strcmp(end ? end + 1 : path, "refused") == 0;
}

static int folder_open_refusing(int folder, const char *path, bool follows)
{
    return is_refused(path) ? -refusal : notify_kernel_linux.folder_open(folder, path, follows);
}

static int watch_add_refusing(int notify, const char *path, uint32_t mask)
{
    return refusal != 0 && mask & IN_EXCL_UNLINK ? -refusal : notify_kernel_linux.watch_add(notify, path, mask);
}

TEST(a_folder_that_may_be_watched_and_not_listed_is_listed_when_it_gets_rights, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    notify_kernel.folder_open = folder_open_refusing;
    refusal = EACCES;
    scratch_enter(folder);
    scratch_make_folder("refused");
    scratch_make_folder("refused/sub");
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, of_files));
    EXPECT_EQ(chmod("refused", 0755), 0);
    events_probe_flush(&probe);
    EXPECT_EQ(events_probe_flags(&probe, in(folder, "refused")) & must_scan, 0);
    events_probe_forget(&probe);
    refusal = 0;
    EXPECT_EQ(chmod("refused", 0750), 0);
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "refused")) & must_scan);
    events_probe_forget(&probe);
    scratch_make_file("refused/sub/file");
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "refused/sub/file")) & kFSEventStreamEventFlagItemCreated);
    events_probe_end(&probe);
    scratch_leave(folder);
}

TEST(a_folder_that_cannot_be_opened_is_told_to_be_scanned, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    notify_kernel.folder_open = folder_open_refusing;
    refusal = EMFILE;
    scratch_enter(folder);
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, of_files));
    scratch_make_folder("refused");
    scratch_make_folder("refused/sub");
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "refused")) & must_scan);
    refusal = 0;
    events_probe_flush(&probe); /* it is looked at again */
    events_probe_forget(&probe);
    scratch_make_file("refused/sub/file");
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "refused/sub/file")) & kFSEventStreamEventFlagItemCreated);
    events_probe_end(&probe);
    scratch_leave(folder);
}

static int few_descriptors(void)
{
    return 40;
}

static int highest; /* of the folders that are open at a time */
static int open_folders;

static int folder_open_counting(int folder, const char *path, bool follows)
{
    int opened = notify_kernel_linux.folder_open(folder, path, follows);

    open_folders += opened >= 0;
    highest = highest > open_folders ? highest : open_folders;
    return opened;
}

static int close_counting(int descriptor)
{
    struct stat status;

    open_folders -= fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode) && !(fcntl(descriptor, F_GETFL) & O_PATH);
    return notify_kernel_linux.close(descriptor);
}

/* The program's own files need them, too. */
TEST(a_scan_leaves_half_of_the_descriptors, "")
{
    enum { wide = 60 };
    char folder[scratch_size];
    char path[64];
    struct events_probe probe;

    notify_kernel.descriptors_most = few_descriptors;
    notify_kernel.folder_open = folder_open_counting;
    notify_kernel.close = close_counting;
    scratch_enter(folder);
    scratch_make_folder("tree");
    for (int i = 0; i < wide; i++) {
        (void)snprintf(path, sizeof path, "tree/%d", i);
        scratch_make_folder(path);
        (void)strcat(path, "/sub");
        scratch_make_folder(path);
    }
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, of_files));
    EXPECT_EQ(open_folders, 0);
    EXPECT(highest <= few_descriptors() / 2);
    for (int i = 0; i < wide; i++) {
        (void)snprintf(path, sizeof path, "tree/%d/sub/file", i);
        scratch_make_file(path);
    }
    events_probe_flush(&probe);
    for (int i = 0; i < wide; i++) {
        (void)snprintf(path, sizeof path, "tree/%d/sub/file", i);
        EXPECT(events_probe_flags(&probe, in(folder, path)) & kFSEventStreamEventFlagItemCreated);
    }
    events_probe_end(&probe);
    scratch_leave(folder);
}

/* A root without a watch is told to be scanned, and watched as soon as something happens around it. */
TEST(a_root_gets_its_watch_when_there_is_one, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    notify_kernel.watch_add = watch_add_refusing;
    refusal = ENOMEM;
    scratch_enter(folder);
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, of_files));
    events_probe_flush(&probe);
    EXPECT_EQ(events_probe_flags(&probe, folder), must_scan | kFSEventStreamEventFlagUserDropped);
    events_probe_forget(&probe);
    refusal = 0;
    EXPECT_EQ(chmod(folder, 0755), 0);
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, folder) & must_scan);
    events_probe_forget(&probe);
    scratch_make_file("file");
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "file")) & kFSEventStreamEventFlagItemCreated);
    events_probe_end(&probe);
    scratch_leave(folder);
}

/* ---- a kernel that forgets ---- */

static bool swallows;

/* All that has happened is one record of a full queue. */
static ssize_t read_swallowing(int notify, void *bytes, size_t size)
{
    const struct inotify_event full = {.wd = -1, .mask = IN_Q_OVERFLOW};
    ssize_t count = notify_kernel_linux.notify_read(notify, bytes, size);

    if (!swallows || count <= 0) {
        return count;
    }
    memcpy(bytes, &full, sizeof full);
    return sizeof full;
}

TEST(what_a_full_queue_has_hidden_is_found_by_listing, "")
{
    char folder[scratch_size];
    struct events_probe probe;

    notify_kernel.notify_read = read_swallowing;
    scratch_enter(folder);
    scratch_make_folder("gone");
    scratch_make_folder("gone/sub");
    scratch_make_folder("moved");
    REQUIRE(events_probe_start(&probe, folder, kFSEventStreamEventIdSinceNow, of_files));
    swallows = true;
    scratch_remove("gone");
    EXPECT_EQ(rename("moved", "elsewhere"), 0);
    scratch_make_folder("new");
    scratch_make_folder("new/sub");
    events_probe_flush(&probe);
    EXPECT_EQ(events_probe_flags(&probe, folder) & (must_scan | kFSEventStreamEventFlagKernelDropped),
              must_scan | kFSEventStreamEventFlagKernelDropped);
    events_probe_forget(&probe);
    swallows = false;
    scratch_make_file("new/sub/file");
    scratch_make_file("elsewhere/file");
    scratch_make_folder("gone");
    scratch_make_file("gone/file");
    events_probe_flush(&probe);
    EXPECT(events_probe_flags(&probe, in(folder, "new/sub/file")) & kFSEventStreamEventFlagItemCreated);
    EXPECT(events_probe_flags(&probe, in(folder, "elsewhere/file")) & kFSEventStreamEventFlagItemCreated);
    EXPECT(events_probe_flags(&probe, in(folder, "gone/file")) & kFSEventStreamEventFlagItemCreated);
    events_probe_end(&probe);
    scratch_leave(folder);
}
