/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders of a stream, each a node with its watch. All is guarded by the stream's lock.
 *
 * Events are not trusted to say where folders are: when one is read, its folder may have another name, and another folder its name. They
 * say where to look again (watch_tree_look). Only what the kernel says of an open folder counts: its watch is the same as long as the
 * folder is the same, wherever it is. A folder that cannot be looked at, as it is not where its node is, is incomplete: its node is about
 * to be moved by events that are still to be read. It is looked at again when all have been read (watch_tree_settle).
 *
 * A node whose folder is not at its place any more is detached, with all below it. It keeps its watches until events have been read twice,
 * since another event may say where it is now.
 */
#ifndef CRL_SERVICES_WATCH_TREE_H
#define CRL_SERVICES_WATCH_TREE_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>

#include "Events/name_table.h"
#include "Events/pending_events.h"

struct watch_node {
    struct watch_node *parent; /* NULL: a root, or detached */
    struct watch_node *first_child;
    struct watch_node *next; /* of the parent, or detached */
    struct watch_node *previous;
    struct watch_node *next_work; /* in the list of those to be listed */
    struct name_entry by_name; /* with the parent as owner */
    struct name_entry by_watch;
    char *name; /* of a root: its path */
    int watch; /* -1: the kernel has ended it */
    uint32_t stamp; /* of the last listing that has found it */
    bool is_root;
    bool is_to_list; /* in the list of those to be listed */
    bool tells; /* the listing to come tells what it finds */
    bool is_incomplete; /* its watch is in `incomplete` */
    bool is_denied; /* it could not be listed */
    bool has_untold; /* while it was detached, something happened in it */
    uint8_t age; /* detached: how often all events were read since */
};

/* What a listing tells. */
enum scan_kind { scan_quiet, scan_new_folders, scan_all };

struct watch_tree {
    int notify; /* -1: not started */
    bool tells_files; /* else folders */
    struct name_table by_name;
    struct name_table by_watch;
    struct name_table told; /* names that a listing has told, and whose events may still be to be read; each with its node as owner */
    struct watch_node *detached;
    struct untold_events *pending;
    char *path; /* of watch_tree_path */
    size_t path_size;
    int *incomplete; /* watches */
    size_t incomplete_count;
    size_t incomplete_size;
    uint32_t stamp;
    uint32_t cookie; /* of the move that is being told; else 0 */
    FSEventStreamEventFlags lost; /* to be told of all roots */
    bool must_rescan; /* all has to be listed again */
    bool must_check_roots; /* something happened to a root itself */
    char *const *excluded; /* paths without "/" at the end */
    size_t excluded_count;
};

/* Returns false without memory. */
bool watch_tree_init(struct watch_tree *tree);
/* Without nodes. */
void watch_tree_deinit(struct watch_tree *tree);

/* ---- nodes ---- */

/* Makes the node of a root, for a watch that no node has. NULL: there is no memory. */
struct watch_node *watch_tree_add_root(struct watch_tree *tree, const char *path, int watch);
struct watch_node *watch_tree_find_watch(const struct watch_tree *tree, int watch);
struct watch_node *watch_tree_find_child(const struct watch_tree *tree, const struct watch_node *parent, const char *name);
/* Makes a child; there is none of that name, and no node has the watch. NULL: there is no memory. */
struct watch_node *watch_tree_add_child(struct watch_tree *tree, struct watch_node *parent, const char *name, int watch);
/* Gives a node that is no root another place, where there is no other. False: there is no memory, and it is where it was. */
bool watch_tree_move(struct watch_tree *tree, struct watch_node *node, struct watch_node *parent, const char *name);
void watch_tree_detach(struct watch_tree *tree, struct watch_node *node);
/* The kernel has ended the watch. */
void watch_tree_forget_watch(struct watch_tree *tree, struct watch_node *node);
/* Frees the node and all below it, and ends their watches. */
void watch_tree_drop(struct watch_tree *tree, struct watch_node *node);
void watch_tree_drop_detached(struct watch_tree *tree, uint8_t from_age);
bool watch_node_is_attached(const struct watch_node *node);
/* Returns the path of the node, or of the name in it, until the next call; NULL: it is detached, or there is no memory. */
const char *watch_tree_path(struct watch_tree *tree, const struct watch_node *node, const char *name);

/* ---- telling ---- */

/* Something happened to the name in the node's folder, or with NULL to the folder itself. */
void watch_tree_tell(struct watch_tree *tree, const struct watch_node *node, const char *name, FSEventStreamEventFlags flags);
/* Of the folder, and all below it. */
void watch_tree_tell_lost(struct watch_tree *tree, const struct watch_node *node);
/* A line on standard error, once: the user has no watch left. */
void watch_tree_complain(void);

/* ---- looking ---- */

/* Nothing is told of the name in the node's folder. */
bool watch_tree_excludes(struct watch_tree *tree, const struct watch_node *node, const char *name);

/* Lists the node's folder and all that is new in it, and watches them. With `goes_down`, all that is in it. */
void watch_tree_scan(struct watch_tree *tree, struct watch_node *node, enum scan_kind kind, bool goes_down);
/* Looks what folder has the name in the node's. */
void watch_tree_look(struct watch_tree *tree, struct watch_node *node, const char *name, enum scan_kind kind);
/* The folder is to be looked at again when all events have been read. */
void watch_tree_note_incomplete(struct watch_tree *tree, struct watch_node *node);

/* ---- events ---- */

extern const uint32_t watch_folder_mask;
void watch_tree_take_event(struct watch_tree *tree, const struct inotify_event *event);
/* Before a node is freed whose events may still be to be read. */
void watch_tree_forget_told(struct watch_tree *tree);
/* All events have been read. */
void watch_tree_settle(struct watch_tree *tree);

#endif
