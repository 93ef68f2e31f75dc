/* SPDX-License-Identifier: Apache-2.0 */
/* The table's entries on files, as Linux fills them; what each does is said in kernel.h. Nobody but kernel.c includes this. */
#ifndef CRL_KERNEL_KERNEL_FILES_H
#define CRL_KERNEL_KERNEL_FILES_H

#include "Kernel/link_names.h"

#include "Kernel/kernel.h"

int kernel_path_open(const char *path, int flags);
int kernel_file_access(int file);
bool kernel_file_is_regular(int file);
int64_t kernel_file_seek(int file, int64_t offset, int whence);
ssize_t kernel_file_read(int file, void *bytes, size_t size);
ssize_t kernel_file_write(int file, const void *bytes, size_t size);

#endif
