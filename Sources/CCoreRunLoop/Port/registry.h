/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name service: a directory that only this user can enter, and in it for each name `leaf.lock`, held by the owner, and `leaf.sock`, its
 * socket.
 *
 * Who holds the lock owns the name, and only he changes or removes the other files; a process that dies lets go of its locks, and who
 * registers anything next removes what it left, or one of the next where there are many names: `.sweep` counts those. A socket is bound as
 * `leaf.tmp` and renamed, so that a name that can be found can be connected to. The directory's descriptor is shared by all that use it and
 * closed with the last. Guarded by a lock of its own; no user code is called.
 */
#ifndef CRL_PORT_REGISTRY_H
#define CRL_PORT_REGISTRY_H

#include "Support/link_names.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "Port/port_name.h"

struct port_directory;

/* A name that this process owns. */
struct publication {
    struct port_directory *directory; /* NULL: none */
    int lock;
    dev_t device; /* of the socket's file */
    ino_t inode;
    struct port_name name;
};

/* What the owner writes into the lock, for those who look the name up. */
struct port_card {
    pid_t pid;
    uint32_t queue_limit;
    uint64_t budget;
    struct port_name name;
};

/*
 * Registers the card's name for `socket`, which must not be bound yet. 0, or a negative errno: -EWOULDBLOCK when another process has the
 * name. Failures other than that one are logged as `function`'s.
 */
int registry_publish(const char *function, const struct port_card *card, int socket, struct publication *ret_publication);

/* Changes the limits on the card. */
void registry_update(const struct publication *publication, const struct port_card *card);

/* Removes the name. */
void registry_withdraw(struct publication *publication);

/* Whether the files are still there under which others find the port. */
bool registry_is_published(const struct publication *publication);

/* In the child of a fork: closes without touching the parent's files. */
void registry_abandon(struct publication *publication);

/* Resets the lock in the child of a fork. */
void registry_before_fork(void);
void registry_after_fork(bool is_child);

/*
 * Looks `name` up: a socket connected to its owner, and a descriptor that stands for the owner's socket, for registry_probe. -ENOENT when
 * nobody has the name; other failures are logged as `function`'s.
 */
int registry_connect(const char *function, const struct port_name *name, int *ret_socket, int *ret_place, struct port_card *ret_card);

/* Whether somebody still receives at the socket that `place` stands for. */
bool registry_probe(int place);

/* For tools: every name that is registered, with its card and the age of the registration. -ENOENT when there is no directory. */
struct registry_entry {
    struct port_card card;
    int64_t age_s;
    bool is_alive;
};
int registry_list(void (*each)(void *info, const struct registry_entry *entry), void *info);

/* For tools: the path of the directory; NULL if there is none that can be used. */
const char *registry_path(char *buffer, size_t size);

#endif
