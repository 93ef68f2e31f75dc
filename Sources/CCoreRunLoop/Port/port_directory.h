/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of names: which it is, and that nobody but this user can enter it.
 *
 * Decided at the first need, and again when the directory that was decided on is gone. A handle is counted; the caller of these functions
 * holds the registry's lock.
 */
#ifndef CRL_PORT_PORT_DIRECTORY_H
#define CRL_PORT_PORT_DIRECTORY_H

#include "Support/link_names.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct port_directory {
    int descriptor;
    uint32_t references;
    dev_t device;
    ino_t inode;
    char path[PATH_MAX];
};

/* The directory, with a reference, made if it is not there; NULL, logged as `function`'s, when there is none that is safe to use. */
struct port_directory *port_directory_open(const char *function);
void port_directory_release(struct port_directory *directory);

/* A path for bind and connect that reaches `leaf` in the directory, through /proc where there is one. */
void port_directory_path(const struct port_directory *directory, const char *leaf, char *ret_path, size_t size);

#endif
