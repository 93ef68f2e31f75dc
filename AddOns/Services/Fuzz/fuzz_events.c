/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that says anything of a tree: which folders are where, what can be opened and watched, and records of any watch, mask and name.
 * Each answer is a byte of the input; where it has ended, nothing is there. What is told lies in the roots, a flag of every kind of event
 * is known, and in the end no descriptor, node or watch is left.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "Events/stream_roots.h"
#include "File/notify_kernel.h"
#include "check.h"

enum { descriptor_first = 1000, watches_most = 24, rounds_most = 64, records_most = 16, buffer_size = 4096 };

static const uint8_t *input;
static size_t left;
static int open_descriptors;
static ssize_t pending;

static unsigned draw(unsigned limit)
{
    unsigned drawn = 0;

    if (left > 0) {
        drawn = *input++ % limit;
        left--;
    }
    return drawn;
}

/* 0: nothing is there. */
static int draw_result(int result)
{
    static const int errors[] = {ENOENT, ENOTDIR, EACCES, ENOSPC, ENOMEM, EMFILE, ENAMETOOLONG, ELOOP, EPERM};

    return left == 0 ? -ENOENT : (draw(4) == 0 ? -errors[draw(sizeof errors / sizeof *errors)] : result);
}

static int open_any(void)
{
    int result = draw_result(0);

    if (result < 0) {
        return result;
    }
    open_descriptors++;
    return descriptor_first + open_descriptors;
}

/* ---- the kernel ---- */

static int fake_notify_create(void)
{
    return open_any();
}

static int fake_watch_add(int notify, const char *path, uint32_t mask)
{
    (void)path;
    CHECK(notify >= descriptor_first && mask != 0);
    return draw_result(1 + (int)draw(watches_most));
}

static int fake_watch_remove(int notify, int watch)
{
    (void)notify;
    CHECK(watch >= 1 && watch <= watches_most);
    return 0;
}

static int fake_file_open(const char *path)
{
    CHECK(path[0] == '/');
    return open_any();
}

static int draw_status(struct stat *ret_status)
{
    int result = draw_result(0);

    memset(ret_status, 0, sizeof *ret_status);
    ret_status->st_mode = draw(4) == 0 ? S_IFREG : S_IFDIR;
    ret_status->st_ino = draw(4);
    ret_status->st_nlink = draw(3);
    return result;
}

static int fake_file_status(int file, struct stat *ret_status)
{
    CHECK(file >= descriptor_first);
    return draw_status(ret_status);
}

static int fake_close(int descriptor)
{
    CHECK(descriptor >= descriptor_first && open_descriptors > 0);
    open_descriptors--;
    return 0;
}

static int fake_folder_open(int folder, const char *path, bool follows)
{
    (void)follows;
    CHECK((folder >= descriptor_first) == (path[0] != '/'));
    return open_any();
}

static const char *draw_name(void)
{
    static const char *const names[] = {"a", "b", "c", "tree", "one", "\xff", "out", "a longer name of a file or folder"};

    return names[draw(sizeof names / sizeof *names)];
}

static int fake_folder_list(int folder, bool (*each)(void *info, const char *name, unsigned char type), void *info)
{
    static const unsigned char types[] = {DT_DIR, DT_DIR, DT_REG, DT_UNKNOWN, DT_LNK};

    CHECK(folder >= descriptor_first);
    for (unsigned i = draw(6); i > 0 && left > 0; i--) {
        const char *name = draw_name();

        if (!each(info, name, types[draw(sizeof types)])) {
            return 0;
        }
    }
    return draw(8) == 1 ? -ENOMEM : 0;
}

static int fake_name_status(int folder, const char *name, struct stat *ret_status)
{
    (void)folder;
    (void)name;
    return draw_status(ret_status);
}

static int fake_set_add(int set, int descriptor)
{
    (void)set;
    (void)descriptor;
    return draw(16) == 1 ? -ENOSPC : 0;
}

static int fake_notify_pending(int notify)
{
    (void)notify;
    return (int)pending;
}

static size_t put_record(char *place)
{
    static const uint32_t masks[] = {IN_CREATE,      IN_DELETE,    IN_MOVED_FROM, IN_MOVED_TO, IN_MODIFY,    IN_ATTRIB,
                                     IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT,    IN_IGNORED,  IN_Q_OVERFLOW};
    const char *name = draw(4) == 0 ? NULL : draw_name();
    struct inotify_event event = {.wd = (int)draw(watches_most + 2) - 1, .len = name ? 48 : 0};

    event.mask = masks[draw(sizeof masks / sizeof *masks)] | (draw(4) == 0 ? masks[draw(sizeof masks / sizeof *masks)] : 0);
    event.mask |= draw(2) == 0 ? IN_ISDIR : 0;
    memset(place, 0, sizeof event + event.len);
    memcpy(place, &event, sizeof event);
    if (name) {
        memcpy(place + sizeof event, name, strlen(name));
    }
    return sizeof event + event.len;
}

static ssize_t fake_notify_read(int notify, void *bytes, size_t size)
{
    size_t used = 0;

    CHECK(notify >= descriptor_first && size >= buffer_size);
    for (unsigned i = draw(records_most); i > 0 && left > 0; i--) {
        used += put_record((char *)bytes + used);
    }
    return used > 0 ? (ssize_t)used : -EAGAIN;
}

static int fake_mounts_open(void)
{
    return -ENOENT;
}

static void install(void)
{
    notify_kernel.notify_create = fake_notify_create;
    notify_kernel.notify_read = fake_notify_read;
    notify_kernel.watch_add = fake_watch_add;
    notify_kernel.watch_remove = fake_watch_remove;
    notify_kernel.file_open = fake_file_open;
    notify_kernel.file_status = fake_file_status;
    notify_kernel.close = fake_close;
    notify_kernel.notify_pending = fake_notify_pending;
    notify_kernel.folder_open = fake_folder_open;
    notify_kernel.folder_list = fake_folder_list;
    notify_kernel.name_status = fake_name_status;
    notify_kernel.set_add = fake_set_add;
    notify_kernel.mounts_open = fake_mounts_open;
}

/* ---- what is told ---- */

static void check_told(struct untold_events *events)
{
    struct pending_event *list = pending_events_take(events);
    FSEventStreamEventId last = 0;

    for (const struct pending_event *event = list; event; event = event->next) {
        CHECK(strncmp(event->path, "/tree", 5) == 0 || strncmp(event->path, "/one/link", 9) == 0);
        CHECK((event->flags & ~(FSEventStreamEventFlags)0x7fffff) == 0);
        CHECK(event->id == 0 || event->id > last);
        last = event->id != 0 ? event->id : last;
    }
    pending_event_list_free(list);
}

static void run_rounds(struct stream_roots *roots, struct untold_events *events)
{
    char buffer[buffer_size];

    for (int i = 0; i < rounds_most && left > 0; i++) {
        pending = (ssize_t)draw(3) * 100;
        stream_roots_read(roots, buffer, sizeof buffer, 1 + draw(4) * (size_t)1000);
        CHECK(roots->tree.by_watch.count <= watches_most);
        if (draw(4) == 0) {
            check_told(events);
        }
        if (draw(8) == 1) {
            (void)stream_roots_tell(roots, roots->tree.lost);
            roots->tree.lost = 0;
        }
    }
    check_told(events);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *excluded[] = {"/tree/out"};
    char *paths[] = {"/tree", "/one/link"};
    struct stream_root given[] = {{.path = paths[0]}, {.path = paths[1]}};
    struct untold_events events;
    struct stream_roots roots = {.roots = given, .count = 2, .around = -1, .mounts = -1, .mounts_waker = -1};

    install();
    input = bytes;
    left = size;
    CHECK(watch_tree_init(&roots.tree) && pending_events_init(&events));
    roots.tree.pending = &events;
    roots.tree.tells_files = draw(2) == 0;
    roots.tells_root_changes = draw(2) == 0;
    roots.tree.excluded = excluded;
    roots.tree.excluded_count = draw(2);
    while (left > 0) {
        if (stream_roots_start(&roots)) {
            run_rounds(&roots, &events);
            stream_roots_stop(&roots);
        }
        CHECK(open_descriptors == 0 && roots.tree.by_watch.count == 0 && roots.tree.by_name.count == 0 && !roots.tree.detached);
    }
    pending_events_deinit(&events);
    watch_tree_deinit(&roots.tree);
    return 0;
}
