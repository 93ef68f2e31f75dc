/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark of messages: one request and its reply, of the same bytes, between two threads or two processes.
 *
 * Each peer of the comparison is one `struct peer`. The program runs one of them once, in a process of its own, at one size, and prints the
 * median and the 99th percentile; repetition and interleaving are the runner's. Every peer's server gives back what it was sent, and every
 * client holds its request in memory of its own and looks at the reply's size.
 *
 * Or one-way messages: the client sends tells_in_a_row, and measures until the server has had the last, which says so through a pipe of the
 * program's. What is printed is the time for one.
 */
#ifndef MESSAGES_H
#define MESSAGES_H

#include <stdbool.h>
#include <stddef.h>

enum { tells_in_a_row = 1000 };

struct place {
    bool in_process; /* the server is a thread of the client's process */
    bool is_one_way; /* the client tells, and the server calls `was_told` for each message in the place of a reply */
    size_t size; /* of each message */
    char folder[64]; /* of this run */
    char address[96]; /* a path in it that nobody uses */
    const char *name; /* the folder's last part */
    int ends[2]; /* of what prepare made: the client's, the server's */
};

struct peer {
    const char *name;
    const char *what;
    size_t size_most; /* 0: any */
    bool (*prepare)(struct place *place); /* before the server begins; NULL: nothing to do */
    void (*serve)(const struct place *place); /* calls `serving` once, and does not come back */
    bool (*open)(const struct place *place); /* the client's side */
    bool (*exchange)(const void *request, size_t size); /* one round trip; false if the reply is not of this size */
    bool (*tell)(const void *message, size_t size); /* one way; may wait for room. NULL: it has no such messages here */
};

/* The server can be found from now on. */
void serving(void);

/* A message of that size has come, to which there is no reply. */
void was_told(size_t size);

/* Ends the program. */
_Noreturn void give_up(const char *what);

extern const struct peer port_peer;
extern const struct peer awake_port_peer;
extern const struct peer seqpacket_peer;
extern const struct peer waited_seqpacket_peer;
extern const struct peer stream_peer;
extern const struct peer reply_page_peer;
extern const struct peer six_calls_peer;
extern const struct peer zeromq_peer;
extern const struct peer nng_peer;
extern const struct peer direct_bus_peer;
extern const struct peer daemon_bus_peer;

#endif
