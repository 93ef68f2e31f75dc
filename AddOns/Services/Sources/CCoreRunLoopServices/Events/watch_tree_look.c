/* SPDX-License-Identifier: Apache-2.0 */
/* How folders are found and listed: see watch_tree.h. No function recurses; a tree is as deep as whoever makes it likes. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "Events/watch_tree.h"
#include "File/notify_kernel.h"
#include "Support/invariant.h"

enum { fd_path_size = 40 + 4 * NAME_MAX, told_most = 1 << 16, kept_most = 64 };

const uint32_t watch_folder_mask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF |
                                   IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK;

void watch_tree_note_incomplete(struct watch_tree *tree, struct watch_node *node)
{
    if (node->is_incomplete || node->watch < 0) {
        return;
    }
    if (tree->incomplete_count == tree->incomplete_size) {
        size_t size = tree->incomplete_size * 2 + 16;
        int *larger = realloc(tree->incomplete, size * sizeof(int));

        if (!larger) {
            tree->must_rescan = true;
            return;
        }
        tree->incomplete = larger;
        tree->incomplete_size = size;
    }
    node->is_incomplete = true;
    tree->incomplete[tree->incomplete_count++] = node->watch;
}

/* ---- a folder that is known to be the node's ---- */

static int watch_at(const struct watch_tree *tree, int folder, const char *name)
{
    char path[fd_path_size];
    int length = snprintf(path, sizeof path, "/proc/self/fd/%d/%s", folder, name);

    return length < (int)sizeof path ? notify_kernel.watch_add(tree->notify, path, watch_folder_mask) : -ENAMETOOLONG;
}

/* Returns false if it is another folder than the node's, and no error that comes again. */
static bool is_folder_of(struct watch_tree *tree, const struct watch_node *node, int folder)
{
    int watch = watch_at(tree, folder, ".");

    if (watch != node->watch && watch >= 0 && !watch_tree_find_watch(tree, watch)) {
        (void)notify_kernel.watch_remove(tree->notify, watch);
    }
    return watch >= 0 && watch == node->watch;
}

/* Returns the open folder, or a negative errno. */
static int open_node(struct watch_tree *tree, struct watch_node *node)
{
    const char *path = watch_tree_path(tree, node, NULL);
    int folder = path ? notify_kernel.folder_open(-1, path, node->is_root) : -ENOENT;

    if (folder >= 0 && !is_folder_of(tree, node, folder)) {
        (void)notify_kernel.close(folder);
        folder = -ENOENT;
    }
    if (folder == -ENOENT || folder == -ENOTDIR || folder == -ELOOP) {
        watch_tree_note_incomplete(tree, node);
    } else if (folder == -EACCES) {
        node->is_denied = true;
    } else if (folder < 0) {
        watch_tree_tell_lost(tree, node);
        if (folder != -ENAMETOOLONG) { /* which does not pass */
            watch_tree_note_incomplete(tree, node);
        }
    }
    return folder;
}

/* ---- a folder in it ---- */

bool watch_tree_excludes(struct watch_tree *tree, const struct watch_node *node, const char *name)
{
    const char *path = tree->excluded_count > 0 ? watch_tree_path(tree, node, name) : NULL;

    for (size_t i = 0; path && i < tree->excluded_count; i++) {
        if (strcmp(path, tree->excluded[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_in(const struct watch_node *node, const struct watch_node *around)
{
    while (node && node != around) {
        node = node->parent;
    }
    return node;
}

/*
 * A folder that was found has a node elsewhere. It has been moved, unless it is still there as well: then it is one that is mounted in two
 * places, and stays where it was found first.
 */
static bool has_moved(struct watch_tree *tree, const struct watch_node *node, const struct watch_node *parent, int folder, const char *name)
{
    struct stat here;
    struct stat there;
    int around;
    bool is_still_there;

    if (node->is_root || is_in(parent, node)) {
        return false;
    }
    around = node->parent ? open_node(tree, node->parent) : -1;
    if (around < 0) {
        return true;
    }
    is_still_there = notify_kernel.name_status(around, node->name, &there) >= 0 && notify_kernel.name_status(folder, name, &here) >= 0 &&
                     here.st_dev == there.st_dev && here.st_ino == there.st_ino;
    (void)notify_kernel.close(around);
    return !is_still_there || (node->parent == parent && strcmp(node->name, name) == 0);
}

static void note_no_watch(struct watch_tree *tree, struct watch_node *parent, struct watch_node *child, int error)
{
    if (error == -ENOENT || error == -ENOTDIR) {
        if (child) {
            watch_tree_detach(tree, child);
        }
    } else if (error != -EACCES) {
        watch_tree_tell_lost(tree, parent);
        if (error == -ENOSPC) {
            watch_tree_complain();
        }
    }
}

enum placing { placed_nothing, placed_as_before, placed_moved, placed_new };

/*
 * Watches the folder of that name, if it is one, and sees to it that its node is here. Given `ret_own`, one that has no node here is
 * opened, if it can be, and the caller closes it: what is watched through itself is the node's folder, and needs no look to be sure.
 */
static struct watch_node *place_child(struct watch_tree *tree, struct watch_node *parent, int folder, const char *name, int *ret_own,
                                      enum placing *ret_placing)
{
    struct watch_node *child = watch_tree_find_child(tree, parent, name);
    struct watch_node *found;
    int watch;

    *ret_placing = placed_nothing;
    if (watch_tree_excludes(tree, parent, name)) {
        return NULL;
    }
    if (ret_own && !child) {
        *ret_own = notify_kernel.folder_open(folder, name, false);
    }
    watch = ret_own && *ret_own >= 0 ? watch_at(tree, *ret_own, ".") : watch_at(tree, folder, name);
    if (watch < 0) {
        note_no_watch(tree, parent, child, watch);
        return NULL;
    }
    found = watch_tree_find_watch(tree, watch);
    if (found && found == child) {
        *ret_placing = placed_as_before;
        return child;
    }
    if (found && !has_moved(tree, found, parent, folder, name)) {
        *ret_placing = placed_moved; /* for what is told */
        return NULL;
    }
    if (child) {
        watch_tree_detach(tree, child);
    }
    if (found) {
        if (!watch_tree_move(tree, found, parent, name)) {
            watch_tree_tell_lost(tree, parent);
            watch_tree_note_incomplete(tree, parent);
            return NULL;
        }
        *ret_placing = placed_moved;
        return found;
    }
    found = watch_tree_add_child(tree, parent, name, watch);
    if (!found) {
        (void)notify_kernel.watch_remove(tree->notify, watch);
        watch_tree_tell_lost(tree, parent);
        watch_tree_note_incomplete(tree, parent);
    }
    *ret_placing = found ? placed_new : placed_nothing;
    return found;
}

/* ---- listing ---- */

/*
 * The folders that were put last on the stack of those to be listed, open. The first of them are closed when there are too many, and those
 * whose number is in the upper half of what the process may have are not kept: there is always room for what the program opens meanwhile.
 */
struct kept_folder {
    struct watch_node *node; /* NULL: none */
    int folder;
};

struct listing {
    struct watch_tree *tree;
    struct watch_node *node;
    struct watch_node *work; /* a stack of folders to be listed */
    struct kept_folder kept[kept_most]; /* of a number the rest by the size is the place */
    size_t kept_next; /* the number of the next */
    int kept_below; /* the descriptors that may be kept */
    int folder;
    enum scan_kind kind; /* of the first folder */
    bool is_first;
    bool goes_down;
};

/* An entry of the table of told names. */
struct told_name {
    struct name_entry entry;
    char name[];
};

static void note_told(struct watch_tree *tree, const struct watch_node *node, const char *name)
{
    size_t size = strlen(name) + 1;
    bool has_room = tree->told.count < told_most && !name_table_find(&tree->told, node, name);
    struct told_name *told = has_room ? malloc(sizeof *told + size) : NULL;

    if (told) { /* else it is told twice */
        memcpy(told->name, name, size);
        name_table_add(&tree->told, &told->entry, node, told->name);
    }
}

static bool is_folder(int folder, const char *name, unsigned char type)
{
    struct stat status;

    return type == DT_DIR || (type == DT_UNKNOWN && notify_kernel.name_status(folder, name, &status) == 0 && S_ISDIR(status.st_mode));
}

static void close_if_open(int folder)
{
    if (folder >= 0) {
        (void)notify_kernel.close(folder);
    }
}

/* A folder that is moved while others are listed is found again. */
static void add_work(struct listing *listing, struct watch_node *node, int folder)
{
    struct kept_folder *kept = &listing->kept[listing->kept_next % kept_most];

    if (node->is_to_list) {
        close_if_open(folder);
        return;
    }
    node->is_to_list = true;
    node->next_work = listing->work;
    listing->work = node;
    if (folder >= listing->kept_below) {
        close_if_open(folder);
    } else if (folder >= 0) {
        close_if_open(kept->node ? kept->folder : -1);
        *kept = (struct kept_folder){node, folder};
        listing->kept_next++;
    }
}

/* Returns the folder of the node that was taken from the stack, or a negative errno. */
static int open_work(struct listing *listing)
{
    struct kept_folder *kept = &listing->kept[(listing->kept_next - 1) % kept_most];
    const char *path;
    int folder;

    if (listing->kept_next == 0 || kept->node != listing->node) {
        return open_node(listing->tree, listing->node);
    }
    folder = kept->folder;
    *kept = (struct kept_folder){NULL, -1};
    listing->kept_next--;
    path = watch_tree_path(listing->tree, listing->node, NULL);
    if (!path || strlen(path) >= PATH_MAX) {
        (void)notify_kernel.close(folder);
        return open_node(listing->tree, listing->node); /* which notes it */
    }
    return folder;
}

static bool list_name(void *info, const char *name, unsigned char type)
{
    struct listing *listing = info;
    struct watch_tree *tree = listing->tree;
    bool is_dir = is_folder(listing->folder, name, type);
    enum placing placing = placed_nothing;
    int own = -1;
    struct watch_node *child = is_dir ? place_child(tree, listing->node, listing->folder, name, &own, &placing) : NULL;
    bool tells = listing->kind == scan_all || (listing->kind == scan_new_folders && placing > placed_as_before);
    FSEventStreamEventFlags flags = kFSEventStreamEventFlagItemCreated;

    if (child) {
        child->stamp = tree->stamp;
        if (placing == placed_new || listing->goes_down) {
            child->tells = tells;
            add_work(listing, child, own);
            own = -1;
        }
    }
    close_if_open(own);
    if (tells && !watch_tree_excludes(tree, listing->node, name)) {
        flags |= placing == placed_moved ? kFSEventStreamEventFlagItemRenamed : 0; /* what is in it is not told */
        watch_tree_tell(tree, listing->node, name, flags | (is_dir ? kFSEventStreamEventFlagItemIsDir : 0));
        note_told(tree, listing->node, name);
    }
    return true;
}

/* An event of the folder itself, in streams of folder events. Streams of file events have told it as a name in the folder around it. */
static void tell_new_folder(struct watch_tree *tree, const struct watch_node *node, FSEventStreamEventFlags flags)
{
    if (!tree->tells_files) {
        watch_tree_tell(tree, node, NULL, flags);
    }
}

static void list_node(struct listing *listing)
{
    struct watch_tree *tree = listing->tree;
    int result;

    listing->folder = open_work(listing);
    if (listing->folder < 0) {
        return;
    }
    if (listing->kind == scan_all) {
        tell_new_folder(tree, listing->node, 0); /* the program may know of files that have gone before the folder was watched */
    }
    tree->stamp++;
    result = notify_kernel.folder_list(listing->folder, list_name, listing);
    (void)notify_kernel.close(listing->folder);
    if (result < 0) {
        watch_tree_tell_lost(tree, listing->node);
        watch_tree_note_incomplete(tree, listing->node);
        return;
    }
    for (struct watch_node *child = listing->node->first_child, *next; child; child = next) {
        next = child->next;
        if (child->stamp != tree->stamp) {
            watch_tree_detach(tree, child);
        }
    }
}

void watch_tree_scan(struct watch_tree *tree, struct watch_node *node, enum scan_kind kind, bool goes_down)
{
    struct listing listing = {.tree = tree, .kind = kind, .is_first = true, .goes_down = goes_down};

    listing.kept_below = notify_kernel.descriptors_most() / 2;
    add_work(&listing, node, -1);
    while (listing.work) {
        listing.node = listing.work;
        listing.work = listing.node->next_work;
        listing.node->is_to_list = false;
        if (!listing.is_first) {
            listing.kind = listing.node->tells ? scan_all : scan_quiet;
        }
        listing.is_first = false;
        list_node(&listing);
    }
}

void watch_tree_look(struct watch_tree *tree, struct watch_node *node, const char *name, enum scan_kind kind)
{
    enum placing placing;
    int folder = open_node(tree, node);
    struct watch_node *child;

    if (folder < 0) {
        return;
    }
    child = place_child(tree, node, folder, name, NULL, &placing);
    (void)notify_kernel.close(folder);
    if (placing == placed_new) {
        watch_tree_scan(tree, child, kind, false);
        if (kind == scan_quiet) { /* the program may know this folder from before it was moved away, and it may have changed elsewhere */
            tell_new_folder(tree, child, kFSEventStreamEventFlagMustScanSubDirs);
        }
    }
}
