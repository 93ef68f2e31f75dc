/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of traces, in a table beside that of kernel.h: a file that is written through shared memory.
 *
 * The same promises as kernel.h: 0, a value or a negative errno; errno stays the caller's. All of it may be called in a signal handler.
 */
#ifndef CRL_KERNEL_KERNEL_TRACE_H
#define CRL_KERNEL_KERNEL_TRACE_H

#include "Kernel/link_names.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { kernel_thread_name_size = 16 };

/* Tells one file from all others that are there at the same time. */
struct kernel_file_identity {
    uint64_t device;
    uint64_t number;
};

struct kernel_trace {
    /* Makes a file for its owner only, close-on-exec. -EEXIST if something has the name, even a link. */
    int (*file_create)(const char *path, struct kernel_file_identity *ret_identity);
    bool (*file_is)(int file, const struct kernel_file_identity *identity); /* the number has not become another file's */
    /*
     * Makes the file at least that long, and takes the room on the disk, so that no later store fails. -ENOSPC, or -EFBIG if the process
     * may not make so large a file.
     */
    int (*file_reserve)(int file, int64_t offset, size_t size);
    int (*file_map)(int file, int64_t offset, size_t size, void **ret_memory); /* shared, for reading and writing */
    void (*file_unmap)(void *memory, size_t size);
    void (*file_remove)(const char *path);
    int (*file_lock)(int file); /* for this process alone, until it ends or closes the file; not for its children */
    /* Makes the directory if it is not there. -EACCES unless it is one, belongs to this user, and nobody else may do anything in it. */
    int (*private_directory)(const char *path);
    int (*directory)(char *ret_path, size_t size); /* the working one */
    int64_t (*thread_usage)(uint64_t *ret_waits); /* the calling thread's processor time, and how often it has given that up to wait */
    int32_t (*thread_id)(void);
    int32_t (*process_id)(void);
    void (*thread_name)(char ret_name[kernel_thread_name_size]);
    void (*name_of_thread)(pthread_t thread, char ret_name[kernel_thread_name_size]); /* of any living one; empty if that cannot be told */
    void (*program)(char *ret_path, size_t size); /* of the process; empty if that cannot be told */
};

extern struct kernel_trace kernel_trace;

/* The table as it is for production, for tests, which copy it back; only where they are built. */
extern const struct kernel_trace kernel_trace_linux;

#endif
