/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ports: from strings to bytes, and from bytes to the leaves of files. No state. */
#ifndef CRL_PORT_PORT_NAME_H
#define CRL_PORT_PORT_NAME_H

#include "Support/link_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "CoreFoundation/CFString.h"
#include "Port/wire.h"

enum { port_leaf_size = 64 + 1 };

struct port_name {
    uint16_t length;
    char bytes[wire_name_max + 1]; /* terminated */
};

/* UTF-8, cut at a character boundary to what a name may have (191). False: empty, with a zero, or not text. */
bool port_name_of(CFStringRef string, struct port_name *ret_name);

bool port_name_of_bytes(const char *bytes, size_t length, struct port_name *ret_name);
bool port_name_equal(const struct port_name *one, const struct port_name *other);
CFStringRef port_name_string(const struct port_name *name);

/*
 * The leaf that stands for the name, without a suffix: letters, digits, '-', '_' and '.', all else as %XX; where that is longer than a leaf
 * may be, its beginning, '~' and a hash. Two names may have one leaf only by a collision of the hash; whoever finds a file compares the
 * name in it.
 */
void port_name_leaf(const struct port_name *name, char ret_leaf[port_leaf_size]);

#endif
