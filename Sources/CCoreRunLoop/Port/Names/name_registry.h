/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name service: a directory that only this user can enter, and in it for each name `leaf.lock`, held by the owner, and `leaf.sock`, its
 * socket.
 *
 * The process that holds the lock owns the name, and only that process changes or removes the other files. A process that dies lets go of
 * its locks, and a later registration removes its files: the next one, or a later one if there are many names (`.sweep` counts). A socket
 * is bound as `leaf.tmp` and renamed, so that a name that can be found can be connected to. All users share the directory's descriptor; the
 * last one closes it. A lock of its own guards the registry. No user code is called.
 */
#ifndef CRL_PORT_NAMES_NAME_REGISTRY_H
#define CRL_PORT_NAMES_NAME_REGISTRY_H

#include "Port/link_names.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "Port/Names/port_card.h"
#include "Port/Names/port_name.h"

struct port_directory;

/* A name that this process owns. */
struct publication {
    struct port_directory *directory; /* NULL: none */
    int lock;
    dev_t device; /* of the socket's file */
    ino_t inode;
    struct port_name name;
};

/*
 * Registers the card's name for `socket`, which must not be bound yet. Returns 0 or a negative errno: -EWOULDBLOCK when another
 * process has the name. Other failures are logged with `function` as their source.
 */
int name_registry_publish(const char *function, const struct port_card *card, int socket, struct publication *ret_publication);

/* Changes the limits on the card. */
void name_registry_update(const struct publication *publication, const struct port_card *card);

/* Removes the name. */
void name_registry_withdraw(struct publication *publication);

/* Returns false if the files by which others find the port are gone. */
bool name_registry_is_published(const struct publication *publication);

/* In the child of a fork: closes without touching the parent's files. */
void name_registry_abandon(struct publication *publication);

/* The first takes the lock before a fork. The second drops it in the parent, or resets it in the child. */
void name_registry_before_fork(void);
void name_registry_after_fork(bool is_child);

/*
 * Looks `name` up. Gives a socket connected to the owner, and a descriptor that stands for the owner's socket, for name_registry_probe.
 * Returns 0, or -ENOENT if nobody has the name. Other failures are logged with `function` as their source.
 */
int name_registry_connect(const char *function, const struct port_name *name, int *ret_socket, int *ret_owner_fd,
                          struct port_card *ret_card);

/* Returns true if a process still receives at the socket that `owner_fd` stands for, which was looked up as `name`. */
bool name_registry_probe(const struct port_name *name, int owner_fd);

/* For tools: a name that is registered, with its card and the age of the registration. */
struct name_registry_entry {
    struct port_card card;
    int64_t age_s;
    bool is_alive;
};
/* For tools: calls `each` for every registered name. Returns 0 or a negative errno: -ENOENT if there is no directory. */
int name_registry_list(void (*each)(void *info, const struct name_registry_entry *entry), void *info);

/* For tools: returns the path of the directory, or NULL if there is none that can be used. */
const char *name_registry_path(char *buffer, size_t size);

#endif
