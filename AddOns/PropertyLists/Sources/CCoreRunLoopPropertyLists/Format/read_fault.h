/* SPDX-License-Identifier: Apache-2.0 */
/* Why bytes could not be read: what the readers fill in, and CFPropertyList.c makes an error of. It belongs to one call. */
#ifndef CRL_PLIST_READ_FAULT_H
#define CRL_PLIST_READ_FAULT_H

#include "plist_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { tree_depth_max = 512 };

struct read_fault {
    char words[200]; /* in UTF-8; empty as long as nothing is wrong */
};

/* Each keeps what is there already, and returns false. */
bool read_fault_set(struct read_fault *fault, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool read_fault_set_no_memory(struct read_fault *fault);
/* The words are followed by the line of `at`, which lies in a text that begins at `start`. */
bool read_fault_set_at(struct read_fault *fault, const uint8_t *start, const uint8_t *at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
