/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of watch_tree.h, their paths, and what is told of them. */
#include "Events/watch_tree.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "File/notify_kernel.h"
#include "Support/invariant.h"

#define NODE_OF(entry, field) ((struct watch_node *)(void *)((char *)(uintptr_t)(entry) - offsetof(struct watch_node, field)))

bool watch_tree_init(struct watch_tree *tree)
{
    tree->notify = -1;
    return name_table_init(&tree->by_name) && name_table_init(&tree->by_watch) && name_table_init(&tree->told);
}

void watch_tree_deinit(struct watch_tree *tree)
{
    invariant(tree->by_watch.count == 0 && !tree->detached);
    name_table_deinit(&tree->by_name);
    name_table_deinit(&tree->by_watch);
    name_table_deinit(&tree->told);
    free(tree->path);
    free(tree->incomplete);
}

/* ---- nodes ---- */

static const void *owner_of_watch(int watch)
{
    return (const void *)(uintptr_t)(unsigned)watch; /* NOLINT(performance-no-int-to-ptr) */
}

struct watch_node *watch_tree_find_watch(const struct watch_tree *tree, int watch)
{
    struct name_entry *entry = name_table_find(&tree->by_watch, owner_of_watch(watch), "");

    return entry ? NODE_OF(entry, by_watch) : NULL;
}

struct watch_node *watch_tree_find_child(const struct watch_tree *tree, const struct watch_node *parent, const char *name)
{
    struct name_entry *entry = name_table_find(&tree->by_name, parent, name);

    return entry ? NODE_OF(entry, by_name) : NULL;
}

static void link_node(struct watch_node **first, struct watch_node *node)
{
    node->previous = NULL;
    node->next = *first;
    if (*first) {
        (*first)->previous = node;
    }
    *first = node;
}

static void unlink_node(struct watch_node **first, struct watch_node *node)
{
    *(node->previous ? &node->previous->next : first) = node->next;
    if (node->next) {
        node->next->previous = node->previous;
    }
    node->previous = node->next = NULL;
}

static struct watch_node *make_node(struct watch_tree *tree, const char *name, int watch)
{
    struct watch_node *node = calloc(1, sizeof *node);

    if (node) {
        node->name = strdup(name);
    }
    if (!node || !node->name) {
        free(node);
        return NULL;
    }
    node->watch = watch;
    name_table_add(&tree->by_watch, &node->by_watch, owner_of_watch(watch), "");
    return node;
}

struct watch_node *watch_tree_add_root(struct watch_tree *tree, const char *path, int watch)
{
    struct watch_node *node = make_node(tree, path, watch);

    if (node) {
        node->is_root = true;
    }
    return node;
}

static void attach_node(struct watch_tree *tree, struct watch_node *node, struct watch_node *parent)
{
    node->parent = parent;
    link_node(&parent->first_child, node);
    name_table_add(&tree->by_name, &node->by_name, parent, node->name);
}

static void unattach_node(struct watch_tree *tree, struct watch_node *node)
{
    if (node->parent) {
        name_table_remove(&tree->by_name, &node->by_name);
        unlink_node(&node->parent->first_child, node);
        node->parent = NULL;
    } else if (!node->is_root) {
        unlink_node(&tree->detached, node);
    }
}

struct watch_node *watch_tree_add_child(struct watch_tree *tree, struct watch_node *parent, const char *name, int watch)
{
    struct watch_node *node = make_node(tree, name, watch);

    if (node) {
        attach_node(tree, node, parent);
    }
    return node;
}

bool watch_tree_move(struct watch_tree *tree, struct watch_node *node, struct watch_node *parent, const char *name)
{
    char *copy = strdup(name);

    invariant(!node->is_root);
    if (copy) {
        unattach_node(tree, node);
        free(node->name);
        node->name = copy;
        attach_node(tree, node, parent);
    }
    return copy;
}

void watch_tree_detach(struct watch_tree *tree, struct watch_node *node)
{
    unattach_node(tree, node);
    node->age = 0;
    link_node(&tree->detached, node);
}

void watch_tree_forget_watch(struct watch_tree *tree, struct watch_node *node)
{
    if (node->watch >= 0) {
        name_table_remove(&tree->by_watch, &node->by_watch);
        node->watch = -1;
    }
}

static void free_node(struct watch_tree *tree, struct watch_node *node)
{
    invariant(!node->first_child);
    unattach_node(tree, node);
    if (node->watch >= 0) {
        (void)notify_kernel.watch_remove(tree->notify, node->watch);
        watch_tree_forget_watch(tree, node);
    }
    free(node->name);
    free(node);
}

void watch_tree_drop(struct watch_tree *tree, struct watch_node *node)
{
    struct watch_node *top = node;

    for (;;) {
        struct watch_node *up = node->parent;

        if (node->first_child) {
            node = node->first_child;
            continue;
        }
        free_node(tree, node);
        if (node == top) {
            return;
        }
        node = up;
    }
}

void watch_tree_drop_detached(struct watch_tree *tree, uint8_t from_age)
{
    for (struct watch_node *node = tree->detached, *next; node; node = next) {
        next = node->next;
        if (node->age >= from_age) {
            watch_tree_drop(tree, node);
        } else {
            node->age++;
        }
    }
}

static const struct watch_node *top_of(const struct watch_node *node)
{
    while (node->parent) {
        node = node->parent;
    }
    return node;
}

bool watch_node_is_attached(const struct watch_node *node)
{
    return top_of(node)->is_root;
}

/* ---- paths ---- */

static bool make_room(struct watch_tree *tree, size_t size)
{
    char *larger = size <= tree->path_size ? tree->path : realloc(tree->path, size * 2);

    if (!larger) {
        return false;
    }
    tree->path_size = larger == tree->path ? tree->path_size : size * 2;
    tree->path = larger;
    return true;
}

static size_t part_length(const struct watch_node *node)
{
    return node->is_root && strcmp(node->name, "/") == 0 ? 0 : strlen(node->name) + (node->is_root ? 0 : 1);
}

const char *watch_tree_path(struct watch_tree *tree, const struct watch_node *node, const char *name)
{
    size_t length = name ? strlen(name) + 1 : 0;
    char *end;

    for (const struct watch_node *one = node; one; one = one->parent) {
        length += part_length(one);
    }
    if (!watch_node_is_attached(node) || !make_room(tree, length + 2)) {
        return NULL;
    }
    end = tree->path + length;
    *end = '\0';
    if (name) {
        end -= strlen(name);
        memcpy(end, name, strlen(name));
        *--end = '/';
    }
    for (; node; node = node->parent) {
        size_t part = part_length(node);

        end -= part;
        memcpy(end + (part > 0 && !node->is_root), node->name, part - (part > 0 && !node->is_root));
        if (part > 0 && !node->is_root) {
            *end = '/';
        }
    }
    invariant(end == tree->path);
    if (length == 0) {
        memcpy(tree->path, "/", sizeof "/");
    }
    return tree->path;
}

/* ---- telling ---- */

static void note(struct watch_tree *tree, const char *path, FSEventStreamEventFlags flags, bool is_looked_at)
{
    if (!path || !pending_events_note(tree->pending, path, flags, event_of_path, is_looked_at)) {
        tree->lost |= kFSEventStreamEventFlagMustScanSubDirs | kFSEventStreamEventFlagUserDropped;
    } else if (tree->cookie != 0) {
        tree->pending->last->cookie = tree->cookie;
    }
}

/* With "/" at its end. */
static const char *folder_path(struct watch_tree *tree, const struct watch_node *node)
{
    const char *path = watch_tree_path(tree, node, NULL);
    size_t length = path ? strlen(path) : 0;

    if (!path || path[length - 1] == '/' || !make_room(tree, length + 2)) {
        return path && path[length - 1] == '/' ? path : NULL;
    }
    memcpy(tree->path + length, "/", sizeof "/");
    return tree->path;
}

void watch_tree_tell(struct watch_tree *tree, const struct watch_node *node, const char *name, FSEventStreamEventFlags flags)
{
    const FSEventStreamEventFlags of_folders =
        kFSEventStreamEventFlagMustScanSubDirs | kFSEventStreamEventFlagUserDropped | kFSEventStreamEventFlagKernelDropped;

    if (tree->tells_files) {
        note(tree, watch_tree_path(tree, node, name), flags, (flags & ~of_folders) != 0);
    } else {
        note(tree, folder_path(tree, node), flags & of_folders, false);
    }
}

void watch_tree_tell_lost(struct watch_tree *tree, const struct watch_node *node)
{
    watch_tree_tell(tree, node, NULL, kFSEventStreamEventFlagMustScanSubDirs | kFSEventStreamEventFlagUserDropped);
}

void watch_tree_complain(void)
{
    static atomic_flag has_complained = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&has_complained)) {
        (void)fprintf(stderr, "CoreRunLoop: FSEvents: there is no watch left for a folder: fs.inotify.max_user_watches is too small\n");
    }
}
