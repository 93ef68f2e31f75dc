/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of message ports' table, as Linux fills them; what each does is said in kernel_ports.h. Only kernel_ports.c includes this. */
#ifndef CRL_KERNEL_KERNEL_PORT_FILES_H
#define CRL_KERNEL_KERNEL_PORT_FILES_H

#include "Kernel/link_names.h"

#include "Kernel/Ports/kernel_ports.h"

int kernel_port_directory_open(int directory, const char *path);
int kernel_port_directory_make(int directory, const char *path);
int kernel_port_directory_list(int directory, bool (*each)(void *info, const char *leaf), void *info);
int kernel_port_file_open(int directory, const char *leaf, int flags);
int kernel_port_file_status(int descriptor, struct stat *ret_status);
int kernel_port_path_status(int directory, const char *leaf, struct stat *ret_status);
int kernel_port_file_lock(int directory, const char *leaf);
int kernel_port_file_replace(int descriptor, const void *bytes, size_t size);
ssize_t kernel_port_file_read(int descriptor, void *bytes, size_t size, off_t offset);
int kernel_port_file_rename(int directory, const char *from, const char *to);
int kernel_port_file_unlink(int directory, const char *leaf);
int kernel_port_memory_create(uint64_t size, bool reserve);
int kernel_port_memory_write(int descriptor, const void *bytes, uint64_t size);
bool kernel_port_memory_is_fixed(int descriptor, uint64_t size, bool unchangeable);
int kernel_port_memory_size(int descriptor, uint64_t *ret_size);
int kernel_port_memory_map(int descriptor, uint64_t size, bool touch, void **ret_address);
void kernel_port_memory_unmap(void *address, uint64_t size);

#endif
