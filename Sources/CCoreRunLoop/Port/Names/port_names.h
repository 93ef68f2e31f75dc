/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of message ports, for programs that list them, such as messageport(1): all that such a program may know of this folder.
 *
 * Any thread. No user code is called with a lock held.
 */
#ifndef CRL_PORT_PORT_NAMES_H
#define CRL_PORT_PORT_NAMES_H

#include "Port/link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { port_names_longest = 128 }; /* bytes of a name */

/* A registered name. */
struct port_names_entry {
    char name[port_names_longest + 1]; /* UTF-8, terminated */
    size_t length; /* of the name, in bytes */
    pid_t pid; /* of the owner */
    uint32_t queue_limit; /* messages that the port queues from one process */
    int64_t age_s; /* seconds since the registration */
    bool is_alive; /* the owner still exists; the next process that registers a name removes the others */
};

/*
 * Calls `each` for every registered name of the calling user, in no particular order. 0, or a negative errno: -ENOENT when there is no
 * directory of names. Failures are logged.
 */
int port_names_list(void (*each)(void *info, const struct port_names_entry *entry), void *info);

/* Stores the path of the directory of names and returns it; NULL when there is no usable one. */
const char *port_names_directory(char *buffer, size_t size);

#endif
