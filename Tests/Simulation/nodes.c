/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of directories and files, and what the library reads of /proc; see files.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "scheduler.h"

static struct node root;
static ino_t last_inode;

/* ---- the tree ---- */

static struct node *entry_of(struct node *directory, const char *leaf)
{
    for (struct node *node = directory->entries; node; node = node->next) {
        if (strcmp(node->leaf, leaf) == 0) {
            return node;
        }
    }
    return NULL;
}

static struct node *add(struct node *directory, const char *leaf, mode_t mode)
{
    struct node *node = calloc(1, sizeof *node);
    struct node **last;

    if (!node || strlen(leaf) >= name_max) {
        scheduler_fail("the simulation cannot make the file %s", leaf);
    }
    node->mode = mode;
    node->inode = ++last_inode;
    node->references = 1;
    node->parent = directory;
    node->changed_ns = scheduler_now_ns();
    (void)snprintf(node->leaf, sizeof node->leaf, "%s", leaf);
    for (last = &directory->entries; *last; last = &(*last)->next) {
    }
    *last = node;
    return node;
}

static void unlink_node(struct node *node)
{
    struct node **place = &node->parent->entries;

    while (*place != node) {
        place = &(*place)->next;
    }
    *place = node->next;
    node->parent = NULL;
    node->next = NULL;
    node_release(node);
}

void node_release(struct node *node)
{
    if (--node->references == 0) {
        free(node);
    }
}

/* ---- paths ---- */

/* The node of an open descriptor. */
static struct node *node_of(int descriptor)
{
    const struct file *file = file_of(descriptor);

    return file ? file->node : NULL;
}

/* "/a/b" from the root. */
static struct node *walk(const char *path, struct node **ret_parent, char ret_leaf[name_max])
{
    struct node *node = &root;

    while (*path == '/') {
        size_t length = strcspn(path + 1, "/");

        if (!node) {
            *ret_parent = NULL;
            return NULL;
        }
        (void)snprintf(ret_leaf, name_max, "%.*s", (int)length, path + 1);
        *ret_parent = node;
        node = entry_of(node, ret_leaf);
        path += length + 1;
    }
    return node;
}

/* The node at a path, and where it is or would be. */
static struct node *find(int directory, const char *path, struct node **ret_parent, char ret_leaf[name_max])
{
    int descriptor;
    int length = 0;

    *ret_parent = NULL;
    if (path[0] != '/') {
        *ret_parent = directory == AT_FDCWD ? NULL : node_of(directory);
        (void)snprintf(ret_leaf, name_max, "%s", path);
        return *ret_parent ? entry_of(*ret_parent, path) : NULL;
    }
    if (sscanf(path, "/proc/self/fd/%d%n", &descriptor, &length) == 1) {
        return path[length] == '/' ? find(descriptor, path + length + 1, ret_parent, ret_leaf) : node_of(descriptor);
    }
    return walk(path, ret_parent, ret_leaf);
}

struct node *node_find(const char *path)
{
    struct node *parent;
    char leaf[name_max];
    struct node *node = find(AT_FDCWD, path, &parent, leaf);

    return node && S_ISSOCK(node->mode) ? node : NULL;
}

struct node *node_bind(const char *path, struct file *socket)
{
    struct node *parent;
    char leaf[name_max];
    struct node *node = find(AT_FDCWD, path, &parent, leaf);

    if (node || !parent) {
        return NULL;
    }
    node = add(parent, leaf, S_IFSOCK | 0600);
    node->socket = socket;
    node->references++;
    return node;
}

/* ---- descriptors ---- */

static int open_node(struct node *node)
{
    struct file *file = file_create(file_node);

    file->node = node;
    node->references++;
    return file_install(file);
}

int node_open(int directory, const char *path, bool makes, bool is_place)
{
    struct node *parent;
    char leaf[name_max];
    struct node *node = find(directory, path, &parent, leaf);

    if (!node && makes && parent) {
        node = add(parent, leaf, S_IFREG | 0600);
    }
    if (!node) {
        return -ENOENT;
    }
    return S_ISSOCK(node->mode) && !is_place ? -ENXIO : open_node(node);
}

int node_make_directory(int directory, const char *path)
{
    struct node *parent;
    char leaf[name_max];

    if (find(directory, path, &parent, leaf)) {
        return -EEXIST;
    }
    if (!parent) {
        return -ENOENT;
    }
    (void)add(parent, leaf, S_IFDIR | 0700);
    return 0;
}

int node_list(int directory, bool (*each)(void *info, const char *leaf), void *info)
{
    enum { entries_max = 64 };
    struct node *node = node_of(directory);
    char leaves[entries_max][name_max];
    int count = 0;

    if (!node || !S_ISDIR(node->mode)) {
        return -ENOTDIR;
    }
    for (const struct node *entry = node->entries; entry && count < entries_max; entry = entry->next) {
        (void)snprintf(leaves[count++], name_max, "%s", entry->leaf);
    }
    for (int i = 0; i < count; i++) {
        if (!each(info, leaves[i])) {
            break;
        }
    }
    return 0;
}

/* ---- what they are ---- */

static void fill_in(const struct node *node, struct stat *ret_status)
{
    *ret_status = (struct stat){.st_dev = 1, .st_ino = node->inode, .st_mode = node->mode, .st_uid = user_id, .st_size = (off_t)node->size};
    ret_status->st_nlink = node->parent ? 1 : 0;
    ret_status->st_ctim.tv_sec = (time_t)(node->changed_ns / simulated_second_ns);
}

int node_status(int descriptor, struct stat *ret_status)
{
    const struct node *node = node_of(descriptor);

    if (!file_of(descriptor)) {
        return -EBADF;
    }
    if (node) {
        fill_in(node, ret_status);
    } else {
        *ret_status = (struct stat){.st_dev = 2, .st_mode = S_IFREG | 0600, .st_uid = user_id};
    }
    return 0;
}

int node_path_status(int directory, const char *path, struct stat *ret_status)
{
    struct node *parent;
    char leaf[name_max];
    struct node *node;

    if (strcmp(path, "/proc/self/fd") == 0) {
        *ret_status = (struct stat){.st_dev = 3, .st_mode = S_IFDIR | 0500, .st_uid = user_id};
        return 0;
    }
    node = find(directory, path, &parent, leaf);
    if (!node) {
        return -ENOENT;
    }
    fill_in(node, ret_status);
    return 0;
}

/* ---- changing them ---- */

/* As flopenat: the file that is locked is the one that has the name. */
int node_lock(int directory, const char *leaf)
{
    int descriptor = node_open(directory, leaf, true, false);
    struct node *node = descriptor < 0 ? NULL : node_of(descriptor);

    if (!node) {
        return descriptor;
    }
    if (node->locker) {
        (void)file_close(descriptor);
        return -EWOULDBLOCK;
    }
    node->locker = file_of(descriptor);
    return descriptor;
}

int node_rename(int directory, const char *from, const char *to)
{
    struct node *parent;
    char leaf[name_max];
    struct node *node = find(directory, from, &parent, leaf);
    struct node *old = find(directory, to, &parent, leaf);

    if (!node) {
        return -ENOENT;
    }
    if (old && old != node) {
        unlink_node(old);
    }
    (void)snprintf(node->leaf, sizeof node->leaf, "%s", to);
    return 0;
}

int node_unlink(int directory, const char *leaf)
{
    struct node *parent;
    char found[name_max];
    struct node *node = find(directory, leaf, &parent, found);

    if (!node) {
        return -ENOENT;
    }
    unlink_node(node);
    return 0;
}

void nodes_begin(void)
{
    struct node *run;

    root.mode = S_IFDIR | 0755;
    root.inode = ++last_inode;
    root.references = 1;
    run = add(&root, "run", S_IFDIR | 0755);
    (void)add(run, "simulated", S_IFDIR | 0700);
}
