/* SPDX-License-Identifier: Apache-2.0 */
/* Registering and finding names; see name_registry.h. */
#define _GNU_SOURCE
#include "Port/Names/name_registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Names/port_directory.h"
#include "Port/Wire/port_log.h"
#include "Support/lock.h"

enum {
    leaf_size = port_leaf_size + sizeof ".lock",
    path_size = PATH_MAX + leaf_size,
    removed_at_once = 256, /* names of the dead that one sweep removes: 100,000 of them would hold up a registration for seconds */
    swept_for_each = 8, /* names that a registration checks on average; with fewer names every registration sweeps */
    respite_max = 4096,
    respite_size = 16,
};

/*
 * A process that starts, ends or cleans up holds a name's lock for a moment only. A lock held for longer means that the name is taken. On a
 * busy machine the moment is longer, and so are the pauses between the tries.
 */
enum { lock_tries = 30 };
static const int64_t retry_ns = 1000000;

static struct lock name_registry_lock; /* guards the directory handle and its count */

static void file_leaf(const struct port_name *name, const char *suffix, char ret_leaf[leaf_size])
{
    port_name_leaf(name, ret_leaf);
    (void)snprintf(ret_leaf + strlen(ret_leaf), leaf_size - strlen(ret_leaf), "%s", suffix);
}

/* ---- sockets by path ---- */

/* Connects `socket` to the file that `owner_fd` was opened on, or, without /proc, to the path itself. */
static int connect_to(int socket, int owner_fd, const struct port_directory *directory, const char *leaf)
{
    char path[path_size];
    int result;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", owner_fd);
    result = kernel_ports.datagram_connect(socket, path);
    if (result == -ENOENT && directory) {
        port_directory_path(directory, leaf, path, sizeof path);
        result = kernel_ports.datagram_connect(socket, path);
    }
    return result;
}

/* Opens a socket's file without following links, and only if it is this user's. */
static int open_owner_fd(const struct port_directory *directory, const char *leaf)
{
    struct stat status;
    int owner_fd = kernel_ports.file_open(directory->descriptor, leaf, O_PATH);
    int result = owner_fd < 0 ? owner_fd : kernel_ports.file_status(owner_fd, &status);

    if (result >= 0 && (!S_ISSOCK(status.st_mode) || status.st_uid != kernel_ports.effective_uid())) {
        result = -ENOTSOCK;
    }
    if (owner_fd >= 0 && result < 0) {
        (void)kernel.close(owner_fd);
    }
    return result < 0 ? result : owner_fd;
}

static bool socket_answers(const struct port_directory *directory, const char *leaf)
{
    int owner_fd = open_owner_fd(directory, leaf);
    int socket = owner_fd < 0 ? -1 : kernel_ports.datagram_create(false);
    bool result = socket >= 0 && connect_to(socket, owner_fd, directory, leaf) == 0;

    if (socket >= 0) {
        (void)kernel.close(socket);
    }
    if (owner_fd >= 0) {
        (void)kernel.close(owner_fd);
    }
    return result;
}

/* Without /proc: connects `socket` to the path of `name`, if the file of `owner_fd` is there; a file that nobody can find has no owner. */
static int connect_to_file(int socket, const struct port_name *name, int owner_fd)
{
    char leaf[leaf_size];
    struct stat own = {.st_nlink = 1};
    struct stat found;
    struct port_directory *directory;
    int result = 0;

    file_leaf(name, ".sock", leaf);
    lock_take(&name_registry_lock);
    directory = port_directory_open("CFMessagePortIsValid");
    (void)kernel_ports.file_status(owner_fd, &own);
    if (own.st_nlink == 0) {
        result = -ECONNREFUSED;
    } else if (directory && kernel_ports.path_status(directory->descriptor, leaf, &found) == 0 && found.st_ino == own.st_ino &&
               found.st_dev == own.st_dev) {
        result = connect_to(socket, owner_fd, directory, leaf);
    }
    if (directory) {
        port_directory_release(directory);
    }
    lock_drop(&name_registry_lock);
    return result;
}

bool name_registry_probe(const struct port_name *name, int owner_fd)
{
    int socket = kernel_ports.datagram_create(false);
    int result;

    if (socket < 0) {
        return true; /* not known to be dead */
    }
    result = connect_to(socket, owner_fd, NULL, NULL);
    if (result == -ENOENT) {
        result = connect_to_file(socket, name, owner_fd);
    }
    (void)kernel.close(socket);
    return result != -ECONNREFUSED;
}

/* ---- owning a name ---- */

/* Removes the lock's file, unless that was removed before and another owner has a file of its own there. */
static void remove_lock(const struct port_directory *directory, const struct port_name *name, int lock)
{
    char leaf[leaf_size];
    struct stat own;
    struct stat found;

    file_leaf(name, ".lock", leaf);
    if (kernel_ports.file_status(lock, &own) == 0 && kernel_ports.path_status(directory->descriptor, leaf, &found) == 0 &&
        own.st_ino == found.st_ino && own.st_dev == found.st_dev) {
        (void)kernel_ports.file_unlink(directory->descriptor, leaf);
    }
}

/* Takes the lock of a name. Returns its descriptor, or -EWOULDBLOCK if another process keeps it. */
static int take_lock(const struct port_directory *directory, const struct port_name *name)
{
    char lock_leaf[leaf_size];
    char socket_leaf[leaf_size];
    struct stat status;
    int tries = 0;
    int lock;

    file_leaf(name, ".lock", lock_leaf);
    file_leaf(name, ".sock", socket_leaf);
    while ((lock = kernel_ports.file_lock(directory->descriptor, lock_leaf)) == -EWOULDBLOCK || lock == -EINTR) {
        if (socket_answers(directory, socket_leaf) || ++tries == lock_tries) {
            return -EWOULDBLOCK;
        }
        kernel_ports.pause(retry_ns);
    }
    if (lock < 0) {
        return lock;
    }
    if (kernel_ports.file_status(lock, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != kernel_ports.effective_uid()) {
        (void)kernel.close(lock);
        return -EPERM;
    }
    return lock;
}

/* Binds the socket under a second name, then renames it: a socket that can be found can be connected to. The name's lock is held. */
static int place_socket(struct publication *publication, int socket)
{
    const struct port_directory *directory = publication->directory;
    char beside[leaf_size];
    char leaf[leaf_size];
    char path[path_size];
    struct stat status;
    int result;

    file_leaf(&publication->name, ".tmp", beside);
    file_leaf(&publication->name, ".sock", leaf);
    (void)kernel_ports.file_unlink(directory->descriptor, beside);
    port_directory_path(directory, beside, path, sizeof path);
    result = kernel_ports.datagram_bind(socket, path);
    if (result < 0) {
        return result;
    }
    result = kernel_ports.path_status(directory->descriptor, beside, &status);
    if (result == 0) {
        publication->device = status.st_dev;
        publication->inode = status.st_ino;
        result = kernel_ports.file_rename(directory->descriptor, beside, leaf);
    }
    if (result < 0) {
        (void)kernel_ports.file_unlink(directory->descriptor, beside);
    }
    return result;
}

/* ---- what the dead have left ---- */

struct sweep {
    const struct port_directory *directory;
    unsigned kept; /* names that somebody has */
    unsigned removed;
};

/* Returns false once the sweep has done enough. */
static bool sweep_one(void *info, const char *leaf)
{
    struct sweep *sweep = info;
    const struct port_directory *directory = sweep->directory;
    static const char suffix[] = ".lock";
    char other[leaf_size];
    size_t length = strlen(leaf);
    int lock;

    if (length <= sizeof suffix - 1 || length >= sizeof other || strcmp(leaf + length - (sizeof suffix - 1), suffix) != 0) {
        return true;
    }
    (void)snprintf(other, sizeof other, "%.*s.sock", (int)(length - (sizeof suffix - 1)), leaf);
    lock = socket_answers(directory, other) ? -EWOULDBLOCK : kernel_ports.file_lock(directory->descriptor, leaf);
    if (lock < 0) {
        sweep->kept++;
        return true;
    }
    (void)kernel_ports.file_unlink(directory->descriptor, other);
    (void)snprintf(other, sizeof other, "%.*s.tmp", (int)(length - (sizeof suffix - 1)), leaf);
    (void)kernel_ports.file_unlink(directory->descriptor, other);
    (void)kernel_ports.file_unlink(directory->descriptor, leaf);
    (void)kernel.close(lock);
    return ++sweep->removed < removed_at_once;
}

/* Returns how many registrations may still go without a sweep. A file without a valid number counts as 0. */
static unsigned read_respite(int sweeper)
{
    char text[respite_size + 1];
    unsigned respite = 0;
    ssize_t size = kernel_ports.file_read(sweeper, text, respite_size, 0);

    if (size <= 0) {
        return 0;
    }
    text[size] = '\0';
    return sscanf(text, "%9u", &respite) == 1 && respite <= respite_max ? respite : 0;
}

/* Ignores errors: if the disk is full, nothing is written, and the next registration sweeps. */
static void write_respite(int sweeper, unsigned respite)
{
    char text[respite_size];
    int length = snprintf(text, sizeof text, "%u\n", respite);

    (void)kernel_ports.file_replace(sweeper, text, (size_t)length);
}

/*
 * Removes the files of dead processes. One process sweeps at a time, and the others skip it. A sweep checks all names, or stops when it has
 * removed many; the next sweep finds the rest. If there are many names that somebody has, the next registrations of all processes go
 * without a sweep, so that each checks only a few names on average.
 */
static void sweep_directory(const struct port_directory *directory)
{
    struct sweep info = {directory, 0, 0};
    int sweeper = kernel_ports.file_lock(directory->descriptor, ".sweep");
    unsigned old_respite;
    unsigned respite;

    if (sweeper < 0) {
        return;
    }
    old_respite = read_respite(sweeper);
    if (old_respite > 0) {
        respite = old_respite - 1;
    } else {
        (void)kernel_ports.directory_list(directory->descriptor, sweep_one, &info);
        respite = info.kept / swept_for_each < respite_max ? info.kept / swept_for_each : respite_max;
    }
    if (respite != old_respite) {
        write_respite(sweeper, respite);
    }
    (void)kernel.close(sweeper);
}

/* ---- registration ---- */

static int publish_locked(const char *function, const struct port_card *card, int socket, struct publication *ret_publication)
{
    const struct port_name *name = &card->name;
    int result;

    ret_publication->lock = -1;
    ret_publication->name = *name;
    ret_publication->directory = port_directory_open(function);
    if (!ret_publication->directory) {
        return -EACCES; /* logged */
    }
    sweep_directory(ret_publication->directory);
    result = take_lock(ret_publication->directory, name);
    if (result >= 0) {
        ret_publication->lock = result;
        result = port_card_write(ret_publication->lock, card);
    }
    if (result >= 0) {
        result = place_socket(ret_publication, socket);
    }
    if (result >= 0) {
        return 0;
    }
    if (ret_publication->lock >= 0) {
        remove_lock(ret_publication->directory, name, ret_publication->lock);
        (void)kernel.close(ret_publication->lock);
    }
    port_directory_release(ret_publication->directory);
    ret_publication->directory = NULL;
    ret_publication->lock = -1;
    if (result != -EWOULDBLOCK) {
        port_log(function, "the name cannot be registered: %s", port_error_text(result));
    }
    return result;
}

int name_registry_publish(const char *function, const struct port_card *card, int socket, struct publication *ret_publication)
{
    int result;

    lock_take(&name_registry_lock);
    result = publish_locked(function, card, socket, ret_publication);
    lock_drop(&name_registry_lock);
    return result;
}

void name_registry_update(const struct publication *publication, const struct port_card *card)
{
    (void)port_card_write(publication->lock, card);
}

/* Returns false only if the file is known to be gone or replaced. A process that lost the right to look cannot know, and gets true. */
static bool is_still(int directory, const char *path, dev_t device, ino_t inode)
{
    struct stat status;
    int result = kernel_ports.path_status(directory, path, &status);

    return result == 0 ? status.st_dev == device && status.st_ino == inode : result != -ENOENT && result != -ENOTDIR;
}

bool name_registry_is_published(const struct publication *publication)
{
    char leaf[leaf_size];
    const struct port_directory *directory = publication->directory;

    if (!directory) {
        return false;
    }
    file_leaf(&publication->name, ".sock", leaf);
    return is_still(directory->descriptor, leaf, publication->device, publication->inode) &&
           is_still(AT_FDCWD, directory->path, directory->device, directory->inode);
}

void name_registry_withdraw(struct publication *publication)
{
    char leaf[leaf_size];
    struct stat status;

    if (!publication->directory) {
        return;
    }
    lock_take(&name_registry_lock);
    file_leaf(&publication->name, ".sock", leaf);
    if (kernel_ports.path_status(publication->directory->descriptor, leaf, &status) == 0 && status.st_ino == publication->inode &&
        status.st_dev == publication->device) {
        (void)kernel_ports.file_unlink(publication->directory->descriptor, leaf);
    }
    remove_lock(publication->directory, &publication->name, publication->lock);
    (void)kernel.close(publication->lock); /* last: a process that waits for the lock then sees that the file was removed */
    port_directory_release(publication->directory);
    publication->directory = NULL;
    publication->lock = -1;
    lock_drop(&name_registry_lock);
}

void name_registry_abandon(struct publication *publication)
{
    if (publication->directory) {
        (void)kernel.close(publication->lock); /* closed, not unlocked: unlocking would free the parent's lock, too */
        port_directory_release(publication->directory);
        publication->directory = NULL;
        publication->lock = -1;
    }
}

/* Not checked: a fork handler takes the locks that the next one drops. */
NOT_CHECKED void name_registry_before_fork(void)
{
    lock_take(&name_registry_lock);
}

/* Not checked: a fork handler takes the locks that the next one drops. */
NOT_CHECKED void name_registry_after_fork(bool is_child)
{
    if (is_child) {
        lock_reset(&name_registry_lock);
    } else {
        lock_drop(&name_registry_lock);
    }
}

/* ---- lookup ---- */

static int connect_locked(const struct port_directory *directory, const struct port_name *name, int *ret_socket, int *ret_owner_fd,
                          struct port_card *ret_card)
{
    char leaf[leaf_size];
    int result;

    file_leaf(name, ".lock", leaf);
    if (!port_card_read(directory->descriptor, leaf, ret_card) || !port_name_equal(&ret_card->name, name)) {
        return -ENOENT;
    }
    file_leaf(name, ".sock", leaf);
    *ret_owner_fd = open_owner_fd(directory, leaf);
    if (*ret_owner_fd < 0) {
        return *ret_owner_fd == -ENOTSOCK || *ret_owner_fd == -ELOOP ? -ENOENT : *ret_owner_fd;
    }
    *ret_socket = kernel_ports.datagram_create(false);
    result = *ret_socket < 0 ? *ret_socket : connect_to(*ret_socket, *ret_owner_fd, directory, leaf);
    if (result == 0) {
        return 0;
    }
    if (*ret_socket >= 0) {
        (void)kernel.close(*ret_socket);
    }
    (void)kernel.close(*ret_owner_fd);
    return result == -ECONNREFUSED ? -ENOENT : result;
}

int name_registry_connect(const char *function, const struct port_name *name, int *ret_socket, int *ret_owner_fd,
                          struct port_card *ret_card)
{
    struct port_directory *directory;
    int result = -EACCES;

    lock_take(&name_registry_lock);
    directory = port_directory_open(function);
    if (directory) {
        result = connect_locked(directory, name, ret_socket, ret_owner_fd, ret_card);
        port_directory_release(directory);
        if (result < 0 && result != -ENOENT) {
            port_log(function, "the port cannot be connected to: %s", port_error_text(result));
        }
    }
    lock_drop(&name_registry_lock);
    return result;
}

/* ---- for tools ---- */

struct registry_listing {
    const struct port_directory *directory;
    void (*each)(void *info, const struct name_registry_entry *entry);
    void *info;
    int64_t now_s;
};

static bool list_one(void *info, const char *leaf)
{
    const struct registry_listing *listing = info;
    struct name_registry_entry entry = {.age_s = 0};
    char other[leaf_size];
    struct stat status;
    size_t length = strlen(leaf);

    if (length < 6 || length >= sizeof other || strcmp(leaf + length - 5, ".lock") != 0 ||
        !port_card_read(listing->directory->descriptor, leaf, &entry.card)) {
        return true;
    }
    (void)snprintf(other, sizeof other, "%.*s.sock", (int)(length - 5), leaf);
    if (kernel_ports.path_status(listing->directory->descriptor, other, &status) < 0) {
        return true; /* not yet, or no longer */
    }
    entry.is_alive = socket_answers(listing->directory, other);
    entry.age_s = listing->now_s > status.st_ctim.tv_sec ? listing->now_s - status.st_ctim.tv_sec : 0;
    listing->each(listing->info, &entry);
    return true;
}

int name_registry_list(void (*each)(void *info, const struct name_registry_entry *entry), void *info)
{
    struct registry_listing listing = {NULL, each, info, kernel.wall_ns() / 1000000000};
    struct port_directory *directory;
    int result = -ENOENT;

    lock_take(&name_registry_lock);
    directory = port_directory_open("messageport");
    listing.directory = directory;
    if (directory) {
        result = kernel_ports.directory_list(directory->descriptor, list_one, &listing);
        port_directory_release(directory);
    }
    lock_drop(&name_registry_lock);
    return result;
}

const char *name_registry_path(char *buffer, size_t size)
{
    struct port_directory *directory;

    lock_take(&name_registry_lock);
    directory = port_directory_open("messageport");
    if (directory) {
        (void)snprintf(buffer, size, "%s", directory->path);
        port_directory_release(directory);
    }
    lock_drop(&name_registry_lock);
    return directory ? buffer : NULL;
}
