/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What file sources and event streams ask the kernel for, in a table that tests replace. Functions return a negative errno where they fail.
 * None is a cancellation point.
 */
#ifndef CRL_SERVICES_NOTIFY_KERNEL_H
#define CRL_SERVICES_NOTIFY_KERNEL_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct notify_kernel {
    /* An inotify instance, whose reads do not wait. */
    int (*notify_create)(void);
    ssize_t (*notify_read)(int notify, void *bytes, size_t size);
    int (*watch_add)(int notify, const char *path, uint32_t mask);
    int (*watch_remove)(int notify, int watch);
    /* A descriptor that stands for the file and cannot read it (O_PATH). */
    int (*file_open)(const char *path);
    int (*file_status)(int file, struct stat *ret_status);
    int (*close)(int descriptor);
    /* How many bytes a read would find at most. */
    int (*notify_pending)(int notify);
    /* The folder, to be listed; a `folder` of -1 is none that the path begins at. The path's last part is no link, unless `follows`. */
    int (*folder_open)(int folder, const char *path, bool follows);
    /* Calls `each` for all that is in the folder, with a type of <dirent.h>, until it returns false. */
    int (*folder_list)(int folder, bool (*each)(void *info, const char *name, unsigned char type), void *info);
    /* Of the name in the folder, without following a link; a folder of -1 is no folder, but the name a path. */
    int (*name_status)(int folder, const char *name, struct stat *ret_status);
    /* A wait set, to be watched by a loop, that is readable as soon as one of its descriptors is. */
    int (*set_create)(void);
    int (*set_add)(int set, int descriptor);
    /* A timer, readable from a moment of the clock below until it is set again. 0: never. */
    int (*alarm_create)(void);
    int (*alarm_set)(int alarm, int64_t when_ns);
    int64_t (*now_ns)(void);
    /* Mounts: always readable, and with high priority when some have changed. Any poll takes that away, of its own descriptor alone: of two
     * that a stream opens, one wakes the set, which polls it when it likes, and the other says whether there is something to look for. */
    int (*mounts_open)(void);
    int (*set_add_mounts)(int set, int mounts);
    bool (*mounts_have_changed)(int mounts);
    /* How many descriptors the process may have: the limit that all it opens stays below. */
    int (*descriptors_most)(void);
};

/* The one in use: Linux's, except in tests, which replace it before anything else runs. */
extern struct notify_kernel notify_kernel;
extern const struct notify_kernel notify_kernel_linux;

#endif
