/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls on the files of background streams, behind one table that tests replace before threads start. Functions return a
 * negative errno where they fail, and leave errno as it is. Each may wait for a disk. None is a cancellation point.
 */
#ifndef CRL_SERVICES_FILE_KERNEL_H
#define CRL_SERVICES_FILE_KERNEL_H

#include "services_link_names.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct file_kernel {
    int (*open)(const char *path, int flags); /* close-on-exec, above the standard streams; a file that is made has the mode 0666 */
    int64_t (*seek)(int file, int64_t offset); /* from the start */
    ssize_t (*read)(int file, void *bytes, size_t size);
    ssize_t (*write)(int file, const void *bytes, size_t size);
    int (*sync)(int file); /* fsync */
    int (*close)(int file); /* the file is closed also if this fails */
};

extern struct file_kernel file_kernel;

#endif
