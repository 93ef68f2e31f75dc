/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_roots.h. */
#include "Events/stream_roots.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "Events/mount_points.h"
#include "File/notify_kernel.h"
#include "Support/invariant.h"

enum { fd_path_size = 40 };

static const uint32_t around_mask =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
static const uint32_t file_mask = IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;

/* ---- the folders around ---- */

static void watch_around(const struct stream_root *root, int around)
{
    char path[PATH_MAX];
    size_t length = strlen(root->path);

    for (size_t end = 0; end < length && end < sizeof path - 1; end++) {
        if (root->path[end] == '/') {
            memcpy(path, root->path, end + 1);
            path[end > 0 ? end : 1] = '\0';
            (void)notify_kernel.watch_add(around, path, around_mask);
        }
    }
}

/* A new instance, since folders may have others around them. Without one the last stays. */
static bool renew_around(struct stream_roots *roots)
{
    int around = notify_kernel.notify_create();

    if (around < 0) {
        return roots->around >= 0;
    }
    if (notify_kernel.set_add(roots->set, around) < 0) {
        (void)notify_kernel.close(around);
        return roots->around >= 0;
    }
    for (size_t i = 0; i < roots->count; i++) {
        watch_around(&roots->roots[i], around);
    }
    if (roots->around >= 0) {
        (void)notify_kernel.close(roots->around);
    }
    roots->around = around;
    return true;
}

static bool has_part(const char *path, const char *name)
{
    size_t length = strlen(name);

    for (const char *found = strstr(path, name); found; found = strstr(found + 1, name)) {
        if (found > path && found[-1] == '/' && (found[length] == '/' || found[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool concerns_roots(const struct stream_roots *roots, const struct inotify_event *event)
{
    bool concerns = event->len == 0;

    for (size_t i = 0; i < roots->count && !concerns; i++) {
        concerns = has_part(roots->roots[i].path, event->name);
    }
    return concerns;
}

/* Reads what is there now, and no more: others may write faster than this reads. */
static bool read_around(const struct stream_roots *roots, char *buffer, size_t size)
{
    ssize_t left = roots->around < 0 ? 0 : notify_kernel.notify_pending(roots->around);
    bool concerns = false;
    ssize_t count;

    for (; left > 0 && !concerns && (count = notify_kernel.notify_read(roots->around, buffer, size)) > 0; left -= count) {
        for (ssize_t place = 0; place < count;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)&buffer[place];

            concerns = concerns || concerns_roots(roots, event);
            place += (ssize_t)(sizeof *event + event->len);
        }
    }
    return concerns;
}

/* ---- the roots ---- */

static int watch_root(struct stream_roots *roots, int file, bool is_folder)
{
    char path[fd_path_size];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d%s", file, is_folder ? "/." : "");
    return notify_kernel.watch_add(roots->tree.notify, path, is_folder ? watch_folder_mask : file_mask);
}

/* The file is there: makes its node, unless another root has it already. */
static void place_root(struct stream_roots *roots, struct stream_root *root, int file, bool is_folder, enum scan_kind kind)
{
    int watch = watch_root(roots, file, is_folder);

    if (watch == -EACCES || (watch >= 0 && watch_tree_find_watch(&roots->tree, watch))) {
        return;
    }
    root->node = watch < 0 ? NULL : watch_tree_add_root(&roots->tree, root->path, watch);
    if (!root->node) {
        roots->tree.lost |= kFSEventStreamEventFlagMustScanSubDirs | kFSEventStreamEventFlagUserDropped;
        if (watch == -ENOSPC) {
            watch_tree_complain();
        } else if (watch >= 0) {
            (void)notify_kernel.watch_remove(roots->tree.notify, watch);
        }
    } else if (is_folder) {
        watch_tree_scan(&roots->tree, root->node, kind, false);
    }
}

static void drop_root(struct stream_roots *roots, struct stream_root *root)
{
    if (root->node) {
        watch_tree_forget_told(&roots->tree);
        watch_tree_drop(&roots->tree, root->node);
        root->node = NULL;
    }
}

static void note_root(struct stream_roots *roots, const char *path, FSEventStreamEventFlags flags, enum event_kind kind, bool is_looked_at)
{
    if (!pending_events_note(roots->tree.pending, path, flags, kind, is_looked_at)) {
        roots->tree.lost |= kFSEventStreamEventFlagMustScanSubDirs | kFSEventStreamEventFlagUserDropped;
    }
}

static void tell_root_change(struct stream_roots *roots, const struct stream_root *root, bool was_there)
{
    FSEventStreamEventFlags flags = was_there ? kFSEventStreamEventFlagItemRemoved : 0;
    char folder[PATH_MAX + 1];

    flags |= root->is_there ? kFSEventStreamEventFlagItemCreated : 0;
    if (roots->tells_root_changes) {
        note_root(roots, root->path, kFSEventStreamEventFlagRootChanged, event_of_root, false);
    }
    if (roots->tree.tells_files) {
        note_root(roots, root->path, flags, event_of_path, true);
    } else {
        (void)snprintf(folder, sizeof folder, "%s%s", root->path, strcmp(root->path, "/") == 0 ? "" : "/");
        note_root(roots, folder, 0, event_of_path, false);
    }
}

static void check_root(struct stream_roots *roots, struct stream_root *root, bool tells)
{
    int file = notify_kernel.file_open(root->path);
    struct stat status = {0};
    bool was_there = root->is_there;
    bool is_same;

    if (file >= 0 && notify_kernel.file_status(file, &status) < 0) {
        (void)notify_kernel.close(file);
        file = -1;
    }
    root->is_there = file >= 0;
    is_same = was_there == root->is_there &&
              (!was_there || (root->device == status.st_dev && root->inode == status.st_ino && (!root->node || root->node->watch >= 0)));
    root->device = status.st_dev;
    root->inode = status.st_ino;
    if (!is_same) {
        drop_root(roots, root);
        if (tells) {
            tell_root_change(roots, root, was_there);
        }
    }
    if (file >= 0) {
        if (!root->node) {
            place_root(roots, root, file, S_ISDIR(status.st_mode), tells && !is_same ? scan_all : scan_quiet);
            if (root->node && tells && is_same) { /* it may be watched now */
                roots->tree.lost |= kFSEventStreamEventFlagMustScanSubDirs;
            }
        }
        (void)notify_kernel.close(file);
    }
}

static void check_roots(struct stream_roots *roots, bool tells)
{
    (void)renew_around(roots);
    roots->tree.must_check_roots = false;
    for (size_t i = 0; i < roots->count; i++) {
        check_root(roots, &roots->roots[i], tells);
    }
}

static void rescan(struct stream_roots *roots)
{
    roots->tree.must_rescan = false;
    for (size_t i = 0; i < roots->count; i++) {
        if (roots->roots[i].node) {
            watch_tree_scan(&roots->tree, roots->roots[i].node, scan_quiet, true);
        }
    }
}

/* ---- mounts ---- */

/* The folder that has the path now is another one than before: its node is looked for again, by the one around it. */
static void look_at_mount(struct stream_roots *roots, const char *path)
{
    for (size_t i = 0; i < roots->count; i++) {
        struct watch_node *node = roots->roots[i].node;
        size_t length = strlen(roots->roots[i].path);
        char part[NAME_MAX + 1];

        length -= strcmp(roots->roots[i].path, "/") == 0;
        if (!node || strncmp(path, roots->roots[i].path, length) != 0 || path[length] != '/') {
            continue;
        }
        for (const char *rest = path + length; node && *rest == '/';) {
            size_t size = strcspn(++rest, "/");

            if (size > NAME_MAX) {
                break;
            }
            memcpy(part, rest, size);
            part[size] = '\0';
            rest += size;
            if (*rest == '\0') {
                watch_tree_look(&roots->tree, node, part, scan_quiet);
            }
            node = watch_tree_find_child(&roots->tree, node, part);
        }
    }
}

static bool is_in_root(const struct stream_roots *roots, const char *path)
{
    for (size_t i = 0; i < roots->count; i++) {
        size_t length = strlen(roots->roots[i].path);

        length -= strcmp(roots->roots[i].path, "/") == 0;
        if (strncmp(path, roots->roots[i].path, length) == 0 && (path[length] == '/' || path[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static void tell_mount(void *info, const char *path, bool is_mounted)
{
    struct stream_roots *roots = info;

    roots->tree.must_check_roots = true;
    if (is_in_root(roots, path)) {
        note_root(roots, path, is_mounted ? kFSEventStreamEventFlagMount : kFSEventStreamEventFlagUnmount, event_of_path, true);
        look_at_mount(roots, path);
    }
}

/* ---- all of it ---- */

static void close_if_open(int *descriptor)
{
    if (*descriptor >= 0) {
        (void)notify_kernel.close(*descriptor);
        *descriptor = -1;
    }
}

static void open_mounts(struct stream_roots *roots)
{
    roots->mounts_waker = notify_kernel.mounts_open();
    if (roots->mounts_waker >= 0 && notify_kernel.set_add_mounts(roots->set, roots->mounts_waker) >= 0) {
        roots->mounts = notify_kernel.mounts_open();
    }
    if (roots->mounts < 0) {
        close_if_open(&roots->mounts_waker);
    } else if (mount_points_read(&roots->mount_points, &roots->mount_count) < 0) {
        roots->mount_points = NULL;
        roots->mount_count = 0;
    }
}

bool stream_roots_start(struct stream_roots *roots)
{
    roots->tree.notify = notify_kernel.notify_create();
    roots->around = roots->mounts = roots->mounts_waker = -1;
    if (roots->tree.notify < 0 || notify_kernel.set_add(roots->set, roots->tree.notify) < 0 || !renew_around(roots)) {
        stream_roots_stop(roots);
        return false;
    }
    open_mounts(roots);
    check_roots(roots, false);
    return true;
}

void stream_roots_stop(struct stream_roots *roots)
{
    close_if_open(&roots->tree.notify); /* and with it all watches, so that none need be removed by itself */
    close_if_open(&roots->around);
    close_if_open(&roots->mounts);
    close_if_open(&roots->mounts_waker);
    for (size_t i = 0; i < roots->count; i++) {
        drop_root(roots, &roots->roots[i]);
        roots->roots[i].is_there = false;
    }
    watch_tree_forget_told(&roots->tree);
    watch_tree_drop_detached(&roots->tree, 0);
    roots->tree.incomplete_count = 0;
    roots->tree.must_rescan = roots->tree.must_check_roots = false;
    roots->tree.lost = 0;
    mount_points_free(roots->mount_points, roots->mount_count);
    roots->mount_points = NULL;
    roots->mount_count = 0;
}

static void settle(struct stream_roots *roots)
{
    if (roots->tree.must_check_roots) {
        check_roots(roots, true);
    }
    watch_tree_settle(&roots->tree);
    if (roots->tree.must_rescan) {
        rescan(roots);
    }
}

void stream_roots_read(struct stream_roots *roots, void *buffer, size_t size, size_t most)
{
    ssize_t count = 1;

    if (read_around(roots, buffer, size)) {
        roots->tree.must_check_roots = true;
    }
    while (most > 0 && (count = notify_kernel.notify_read(roots->tree.notify, buffer, size)) > 0) {
        for (ssize_t place = 0; place < count;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)((const char *)buffer + place);

            watch_tree_take_event(&roots->tree, event);
            place += (ssize_t)(sizeof *event + event->len);
        }
        most -= (size_t)count < most ? (size_t)count : most;
    }
    if (roots->mounts >= 0 && notify_kernel.mounts_have_changed(roots->mounts)) {
        mount_points_compare(&roots->mount_points, &roots->mount_count, tell_mount, roots);
    }
    if (count <= 0 || most == 0) {
        settle(roots);
    }
}

bool stream_roots_tell(struct stream_roots *roots, FSEventStreamEventFlags flags)
{
    char folder[PATH_MAX + 1];
    bool is_told = true;

    for (size_t i = 0; i < roots->count; i++) {
        const char *path = roots->roots[i].path;

        (void)snprintf(folder, sizeof folder, "%s%s", path, roots->tree.tells_files || strcmp(path, "/") == 0 ? "" : "/");
        is_told = pending_events_note(roots->tree.pending, folder, flags, event_of_path, false) && is_told;
    }
    return is_told;
}
