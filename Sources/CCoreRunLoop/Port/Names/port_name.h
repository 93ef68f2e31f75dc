/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ports: from strings to bytes, and from bytes to the leaves of files. No state. */
#ifndef CRL_PORT_NAMES_PORT_NAME_H
#define CRL_PORT_NAMES_PORT_NAME_H

#include "Port/link_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "CoreFoundation/CFString.h"
#include "Port/Wire/wire.h"

enum { port_leaf_size = 64 + 1 };

struct port_name {
    uint16_t length;
    char bytes[wire_name_max + 1]; /* terminated */
};

/*
 * Makes a name of a string: UTF-8, cut to 128 bytes at a character boundary (rule 191). Returns false if the string is empty, has a zero
 * byte, or is no text.
 */
bool port_name_of(CFStringRef string, struct port_name *ret_name);

bool port_name_of_bytes(const char *bytes, size_t length, struct port_name *ret_name);
bool port_name_equal(const struct port_name *one, const struct port_name *other);
CFStringRef port_name_string(const struct port_name *name);

/*
 * Writes the file name for a port's name, without a suffix. Letters, digits, '-', '_' and '.' stand for themselves, all else is %XX. If
 * that is too long, the leaf is its beginning, '~' and a hash. Two names share a leaf only if their hashes collide, so the reader of a
 * file compares the name in it.
 */
void port_name_leaf(const struct port_name *name, char ret_leaf[port_leaf_size]);

#endif
