/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that others may write, or may change while they are read. They are copied and never mapped: a file that is cut then ends early, and
 * a number that was judged stays as it was. No call waits for a writer, and no device is opened. Any thread.
 */
#ifndef REGULAR_FILE_H
#define REGULAR_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Opens a file to read it. Returns its descriptor, or -1 with the reason in words, which is valid until the next call. */
int regular_file_open(const char *path, struct stat *ret_status, const char **ret_reason);

/* Copies what the file has at a place, and returns how many bytes that were: fewer than `size` at its end or after an error. */
size_t regular_file_copy(int file, uint64_t at, void *ret_bytes, size_t size);
/* Where the file has something at or behind a place, as far as it is known: what is before that is zeros that take no room. */
uint64_t regular_file_skip(int file, uint64_t at);

#endif
