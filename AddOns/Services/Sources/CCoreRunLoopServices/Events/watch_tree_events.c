/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of the kernel's events: see watch_tree.h. */
#include <stdlib.h>
#include <string.h>

#include "Events/watch_tree.h"
#include "Support/invariant.h"

enum { age_of_gone = 1 };

static const uint32_t structure_mask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;

/* ---- names that were told already ---- */

static bool forget_told(struct watch_tree *tree, const struct watch_node *node, const char *name)
{
    struct name_entry *entry = name_table_find(&tree->told, node, name);

    if (entry) {
        name_table_remove(&tree->told, entry);
        free(entry); /* it stands first in its structure */
    }
    return entry;
}

void watch_tree_forget_told(struct watch_tree *tree)
{
    size_t from = 0;
    struct name_entry *entry;

    while (tree->told.count > 0 && (entry = name_table_take(&tree->told, &from))) {
        free(entry);
    }
}

/* ---- events ---- */

static FSEventStreamEventFlags flags_of(uint32_t mask)
{
    FSEventStreamEventFlags flags = mask & IN_CREATE ? kFSEventStreamEventFlagItemCreated : 0;

    flags |= mask & IN_DELETE ? kFSEventStreamEventFlagItemRemoved : 0;
    flags |= mask & (IN_MOVED_FROM | IN_MOVED_TO) ? kFSEventStreamEventFlagItemRenamed : 0;
    flags |= mask & IN_MODIFY ? kFSEventStreamEventFlagItemModified : 0;
    flags |= mask & IN_ATTRIB ? kFSEventStreamEventFlagItemInodeMetaMod : 0;
    return flags | (mask & IN_ISDIR ? kFSEventStreamEventFlagItemIsDir : 0);
}

/* The folder may have got the rights to be listed. What happened in it before is not known. */
static void look_at_denied(struct watch_tree *tree, struct watch_node *node)
{
    if (node->is_denied) {
        node->is_denied = false;
        watch_tree_scan(tree, node, scan_quiet, false);
        if (!node->is_denied) {
            watch_tree_tell(tree, node, NULL, kFSEventStreamEventFlagMustScanSubDirs);
        }
    }
}

/* As before, of a folder in the node's, which may have had no watch. */
static void look_at_rights(struct watch_tree *tree, struct watch_node *node, const char *name)
{
    struct watch_node *child = watch_tree_find_child(tree, node, name);

    if (child) {
        look_at_denied(tree, child);
        return;
    }
    watch_tree_look(tree, node, name, scan_quiet);
    child = watch_tree_find_child(tree, node, name);
    if (child) {
        watch_tree_tell(tree, child, NULL, kFSEventStreamEventFlagMustScanSubDirs);
    }
}

/* The folder itself. Only of roots: of another folder the one around it tells. */
static void take_own_event(struct watch_tree *tree, struct watch_node *node, uint32_t mask)
{
    if (!node->is_root) {
        return;
    }
    if (mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) {
        tree->must_check_roots = true;
    }
    if (mask & (IN_MODIFY | IN_ATTRIB)) {
        watch_tree_tell(tree, node, NULL, flags_of(mask));
    }
    if (mask & IN_ATTRIB) {
        look_at_denied(tree, node);
    }
}

static void take_named_event(struct watch_tree *tree, struct watch_node *node, const struct inotify_event *event)
{
    bool was_told = event->mask & structure_mask && forget_told(tree, node, event->name);

    if (!watch_node_is_attached(node)) {
        node->has_untold = true;
        watch_tree_note_incomplete(tree, node);
        return;
    }
    if (watch_tree_excludes(tree, node, event->name)) {
        return;
    }
    if (!was_told || !(event->mask & IN_CREATE)) {
        tree->cookie = event->cookie;
        watch_tree_tell(tree, node, event->name, flags_of(event->mask));
        tree->cookie = 0;
    }
    if (event->mask & IN_ISDIR && event->mask & structure_mask &&
        (event->mask & (IN_CREATE | IN_MOVED_TO) || watch_tree_find_child(tree, node, event->name))) {
        /* Of one that was moved here the program looks at all. What took the place of one that went was made, as far as is known. */
        watch_tree_look(tree, node, event->name, event->mask & IN_MOVED_TO ? scan_quiet : scan_all);
    } else if (event->mask & IN_ISDIR && event->mask & IN_ATTRIB) {
        look_at_rights(tree, node, event->name);
    }
}

void watch_tree_take_event(struct watch_tree *tree, const struct inotify_event *event)
{
    struct watch_node *node = watch_tree_find_watch(tree, event->wd);

    if (event->mask & IN_Q_OVERFLOW) {
        tree->must_rescan = true;
        tree->lost |= kFSEventStreamEventFlagMustScanSubDirs | kFSEventStreamEventFlagKernelDropped;
    }
    if (!node) {
        return;
    }
    if (event->mask & IN_IGNORED) {
        tree->must_check_roots = tree->must_check_roots || node->is_root;
        watch_tree_forget_watch(tree, node);
    } else if (event->len == 0) {
        take_own_event(tree, node, event->mask);
    } else {
        take_named_event(tree, node, event);
    }
}

/* ---- all have been read ---- */

static void look_at_incomplete(struct watch_tree *tree, int watch)
{
    struct watch_node *node = watch_tree_find_watch(tree, watch);

    if (!node) {
        return;
    }
    node->is_incomplete = false;
    if (!watch_node_is_attached(node)) {
        watch_tree_note_incomplete(tree, node);
        return;
    }
    if (node->has_untold) {
        node->has_untold = false;
        watch_tree_tell(tree, node, NULL, kFSEventStreamEventFlagMustScanSubDirs);
    }
    watch_tree_scan(tree, node, scan_new_folders, false);
}

void watch_tree_settle(struct watch_tree *tree)
{
    size_t count = tree->incomplete_count;

    watch_tree_forget_told(tree);
    for (size_t i = 0; i < count; i++) {
        look_at_incomplete(tree, tree->incomplete[i]);
    }
    if (count > 0) {
        tree->incomplete_count -= count;
        memmove(tree->incomplete, tree->incomplete + count, tree->incomplete_count * sizeof(int));
    }
    watch_tree_drop_detached(tree, age_of_gone);
}
