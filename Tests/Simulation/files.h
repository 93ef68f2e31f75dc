/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind a simulated process's descriptors: counters, alarms, wait sets, sockets, memory, and the files of one directory tree.
 *
 * As Linux does it, as far as the library can tell. Nothing here waits, fails for any other reason than its arguments, or takes time; that
 * is tables.c's. Results are 0, a value or a negative errno.
 */
#ifndef CRL_TESTS_SIMULATION_FILES_H
#define CRL_TESTS_SIMULATION_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "Kernel/kernel.h"

enum { descriptors_max = 256, first_descriptor = 3, name_max = 128, contents_max = 512, passed_max = 2, user_id = 1000 };

enum file_kind { file_counter, file_alarm, file_set, file_datagram, file_channel, file_memory, file_node, file_stream, file_slow };

/* What poll would say. */
enum file_status { status_in = 1, status_out = 2, status_hang_up = 4, status_error = 8, status_half_closed = 16 };

struct file;
struct stream;
struct waiter;

/* One packet in a queue. */
struct message {
    struct message *next;
    size_t size;
    int pid;
    int count;
    struct file *passed[passed_max]; /* each a reference */
    unsigned char bytes[];
};

/* A name's file, directory or socket; lives while it is linked or open. */
struct node {
    mode_t mode;
    ino_t inode;
    int references;
    struct node *parent; /* NULL: not linked, or the root */
    struct node *next; /* the next entry of the same directory */
    struct node *entries; /* of a directory */
    char leaf[name_max];
    char contents[contents_max];
    size_t size;
    struct file *locker; /* who holds the lock; no reference */
    struct file *socket; /* who is bound; no reference */
    int64_t changed_ns;
};

struct watch_item {
    struct watch_item *next;
    struct file *file; /* no reference: it leaves with the file */
    int descriptor;
    uint32_t interest;
    uint64_t token;
    bool is_edge;
    uint32_t seen;
};

struct file {
    enum file_kind kind;
    int references;
    uint32_t edges; /* how often something has happened */
    uint64_t count; /* counter */
    int64_t deadline_ns; /* alarm */
    bool is_resume; /* alarm: it goes off when the clocks part */
    struct watch_item *items; /* set */
    struct file *next_set;
    struct file *peer; /* channel: the other end; no reference */
    struct message *queue; /* sockets */
    struct message **tail;
    size_t queued;
    size_t queued_bytes;
    uint64_t puts; /* into the queue, ever */
    struct waiter *waiters; /* of turns.c */
    bool is_shut;
    bool takes_no_packets; /* its owner reads no more */
    bool refuses_descriptors;
    bool peer_has_gone; /* a datagram socket finds out when it sends */
    bool was_reset; /* channel: the other end was closed with packets unread */
    bool takes_credentials;
    int owner; /* the process that made it */
    struct node *node; /* a reference; of a datagram socket: where it is bound, or what it is connected to */
    unsigned char *bytes; /* memory */
    uint64_t size;
    bool is_fixed, is_unchangeable;
    struct stream *stream; /* of streams.c */
    int64_t changed_ns;
};

/* As net.unix.max_dgram_qlen says, and one. */
extern size_t datagrams_max;
/* How many datagrams wait at most, as net.unix.max_dgram_qlen says; and how many descriptors a process may have. */
void files_begin(size_t datagrams_max, int descriptor_limit);

/* ---- descriptors of the calling thread's process ---- */

struct file *file_of(int descriptor); /* NULL: not open */
int file_close(int descriptor);
int file_duplicate(int descriptor);
int file_replace_number(int from, int number);
int descriptor_limit(void);
bool descriptor_is_left(void);
/*
 * A file whose last close waits, as that of a socket that lingers. It fails the simulation, unless a thread that is there for it closes it:
 * one that the library started, one that is spared, or the end of a process.
 */
int slow_make(void);
/* From now on the simulated kernel closes such files itself: of a dead process, and what a process has no number left for. Or not so. */
void slow_allow(bool may_be_closed);
/* How many such closes the calling thread has made and not waited for yet; none from then on. */
int slow_take_closes(void);
/* Closes one more descriptor of a process that has died. False: there is none. */
bool files_drain_dead(void);
/* How many are open in a process, and what the first of them is. */
int files_open(int process, const char **ret_first);
/* The earliest instant at which an alarm goes off that has not yet. */
int64_t files_next_alarm_ns(void);

/* ---- making them ---- */

int counter_create(void);
int counter_add(int descriptor);
int counter_renew(int descriptor);
int counter_take(int descriptor);
int alarm_make(void);
int resume_make(void);
/* The clocks have parted: every process hears of it that wants to. */
void files_resume(void);
int alarm_arm(int descriptor, int64_t deadline_ns);

uint32_t file_ready(const struct file *file, uint32_t interest); /* of enum kernel_readiness */

int set_make(void);
int set_insert(int set, int descriptor, uint32_t interest, uint64_t token, bool is_edge);
int set_alter(int set, int descriptor, uint32_t interest, uint64_t token);
int set_delete(int set, int descriptor);
bool set_has_ready(const struct file *set);
int set_collect(struct file *set, struct kernel_event *events, int capacity);

/* ---- sockets.c ---- */

int datagram_make(bool takes_credentials);
int datagram_name(int descriptor, const char *path);
int datagram_join(int descriptor, const char *path);
int channel_make(int ret_ends[2]);
bool channel_is(int descriptor);
/* Who would receive from it, if it is a datagram socket without room for more; else NULL. */
struct file *datagram_full(int descriptor);
ssize_t socket_put(int descriptor, const struct msghdr *message);
ssize_t socket_take(int descriptor, struct msghdr *message);
int socket_shut(int descriptor);
bool socket_stop_receiving(int descriptor);
int socket_refuse_descriptors(int descriptor);
void socket_closed(struct file *file);
int socket_status(const struct file *file);

/* ---- turns.c ---- */

/* Waits in the receiver's line. False: the deadline came first. The receiver may be gone then. */
bool turns_wait(struct file *receiver, int64_t deadline_ns);
void turns_wake_next(struct file *receiver);
void turns_wake_all(struct file *receiver);
/* The calling thread finds the receiver's queue full; puts a packet there; will not. */
void turns_note_full(const struct file *receiver);
void turns_note_put(const struct file *receiver);
void turns_give_up(void);
void turns_forget(const struct file *receiver);

/* ---- streams.c ---- */

int stream_make(void);
bool stream_is(int descriptor);
int stream_bind(int descriptor, const void *address, size_t length);
int stream_listen(int descriptor);
/* -EINPROGRESS: it is connected, or refused, after so long. */
int stream_connect(int descriptor, const void *address, size_t length, int64_t duration_ns);
bool stream_has_settled(const struct file *file);
int stream_take_error(const struct file *file);
int stream_accept(int descriptor, struct kernel_address *ret_peer);
/* Neither listening nor connecting, and never connected. */
bool stream_is_unused(int descriptor);
int stream_address(int descriptor, bool is_of_peer, struct kernel_address *ret_address);
/* False: it is no stream. */
bool stream_sets_blocking(int descriptor, bool is_non_blocking, bool *ret_before);
bool stream_is_blocking(const struct file *file);
/* How much was put, or -EAGAIN: there is no room, or, unless `takes_part`, not for all of it. */
int stream_put(const struct file *file, const void *bytes, size_t size, bool takes_part);
int stream_take(int descriptor, void *bytes, size_t size);
/* 1: there are bytes, 0: the end, -EAGAIN: neither. */
int stream_look(int descriptor);
int stream_status(const struct file *file);
void stream_closed(struct file *file);
/* When the next connection that is being made is made, or fails. */
int64_t streams_next_ns(void);
/* For programs: the number of a connection, the same at both ends; 0: none. */
int stream_connection(int descriptor);
/* For programs: sends no more, as shutdown(2). */
void stream_shut(int descriptor);
/* For programs: the peer was closed with bytes unread, and had not ended its bytes before. */
bool stream_was_torn(int descriptor);

/* ---- nodes.c ---- */

void nodes_begin(void);
int node_open(int directory, const char *path, bool makes, bool is_place);
int node_make_directory(int directory, const char *path);
int node_list(int directory, bool (*each)(void *info, const char *leaf), void *info);
int node_status(int descriptor, struct stat *ret_status);
int node_path_status(int directory, const char *path, struct stat *ret_status);
int node_lock(int directory, const char *leaf);
int node_rename(int directory, const char *from, const char *to);
int node_unlink(int directory, const char *leaf);
void node_release(struct node *node);
/* For sockets: the node at a path, which may go through /proc/self/fd; NULL: there is none. */
struct node *node_find(const char *path);
/* A new entry for a socket at a path; NULL: it is there already, or the directory is not. */
struct node *node_bind(const char *path, struct file *socket);

/* ---- within the folder ---- */

struct file *file_create(enum file_kind kind);
/* Something has happened that a wait set may report. */
void file_stir(struct file *file);
/* Gives a new file a number; without one the file is released. */
int file_install(struct file *file);
void file_retain(struct file *file);
void file_release(struct file *file);

#endif
