/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What file sources and event streams ask the kernel for, in a table that tests replace. Functions return a negative errno where they fail.
 * None is a cancellation point.
 */
#ifndef CRL_SERVICES_NOTIFY_KERNEL_H
#define CRL_SERVICES_NOTIFY_KERNEL_H

#include "services_link_names.h"

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
};

/* The one in use: Linux's, except in tests, which replace it before anything else runs. */
extern struct notify_kernel notify_kernel;
extern const struct notify_kernel notify_kernel_linux;

#endif
