/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of names: finds it, and makes sure that only this user can enter it.
 *
 * The directory is chosen when it is first needed, and again when it is gone. A handle is counted. The caller of these functions holds the
 * registry's lock.
 */
#ifndef CRL_PORT_NAMES_PORT_DIRECTORY_H
#define CRL_PORT_NAMES_PORT_DIRECTORY_H

#include "Port/link_names.h"

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

/* Returns the directory with a reference, and makes it if need be. Returns NULL, and logs for `function`, if none is safe to use. */
struct port_directory *port_directory_open(const char *function);
void port_directory_release(struct port_directory *directory);

/* Writes a path for bind and connect that reaches `leaf` in the directory, through /proc if that is mounted. */
void port_directory_path(const struct port_directory *directory, const char *leaf, char *ret_path, size_t size);

#endif
