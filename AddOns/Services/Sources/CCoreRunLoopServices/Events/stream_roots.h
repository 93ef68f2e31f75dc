/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The given paths of a stream. A second inotify instance watches the folders around each, so that the stream hears when the path is gone,
 * comes, or stands for another file; and the mounts tell when a file system covers a folder. Guarded by the stream's lock.
 */
#ifndef CRL_SERVICES_STREAM_ROOTS_H
#define CRL_SERVICES_STREAM_ROOTS_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "Events/watch_tree.h"

struct stream_root {
    char *path; /* absolute, without "/" at the end; constant while the stream lives */
    struct watch_node *node; /* NULL: none is there, it may not be watched, or the node is of another root */
    bool is_there;
    dev_t device; /* with the next, which file is there */
    ino_t inode;
};

struct stream_roots {
    struct stream_root *roots;
    size_t count;
    struct watch_tree tree;
    int around; /* the second inotify instance; -1: not started */
    int mounts; /* -1: there is no /proc/self/mountinfo */
    int mounts_waker; /* in the set; -1 with it */
    char **mount_points; /* in or around the roots; sorted */
    size_t mount_count;
    int set; /* the wait set that the instances are in */
    bool tells_root_changes;
};

/* Begins to watch; tells nothing. Returns false if there is no inotify instance or no memory. */
bool stream_roots_start(struct stream_roots *roots);
void stream_roots_stop(struct stream_roots *roots);
/* Reads up to `most` bytes of events and what else there is, into the buffer, and tells it. */
void stream_roots_read(struct stream_roots *roots, void *buffer, size_t size, size_t most);
/* Tells of each root that all has to be looked at. False: there is no memory. */
bool stream_roots_tell(struct stream_roots *roots, FSEventStreamEventFlags flags);

#endif
