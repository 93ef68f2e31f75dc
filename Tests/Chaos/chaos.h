/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chaos: processes that own names and processes that ask them, while they are killed, stopped, short of descriptors and without their
 * directory; a crowd that waits in line for one name, and hostile peers; and what they did, written down where it outlives them. Where it
 * is allowed, some of them live in PID and user namespaces of their own.
 *
 * All processes share one region of memory, made before the first is forked. A worker is one slot of it, filled by one process after
 * another; each of these lives has a number of its own. Events get their place in the history from one counter, so their order is the order
 * in which they happened.
 */
#ifndef CRL_TESTS_CHAOS_H
#define CRL_TESTS_CHAOS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum chaos_sizes {
    chaos_names = 3,
    chaos_servers = 6,
    chaos_clients = 6,
    chaos_crowd = 20,
    chaos_hostile = 2,
    chaos_askers = chaos_servers + chaos_clients + chaos_crowd, /* the slots of those who send messages come first */
    chaos_workers = chaos_askers + chaos_hostile,
    chaos_lives_max = 1 << 18,
    chaos_directories_max = 4096,
    chaos_events_max = 1 << 25,
    chaos_codes = 6, /* results of CFMessagePortSendRequest, negated */
};

enum event_kind {
    event_none, /* its writer was killed before it had written */
    event_handled, /* by `server`: message `number` of `client` */
    event_answered, /* `client` got the reply to its `number` */
};

struct event {
    uint32_t client; /* a life */
    uint32_t number;
    uint32_t server; /* a life */
    uint16_t name;
    uint16_t kind; /* written last */
};

/* Who owns a name in one directory: the kernel lets go of a dead owner's mutex before it closes the owner's files. */
struct directory_witness {
    _Atomic uint64_t inode; /* 0: free */
    pthread_mutex_t owners[chaos_names];
};

struct chaos {
    uint64_t seed;
    char directory[64]; /* of names */
    bool breaks_order; /* a message may be overtaken: it went by a connection that was lost */
    _Atomic bool is_calm; /* nothing is broken any more */
    _Atomic bool is_over;
    _Atomic uint32_t lives;
    _Atomic uint32_t event_count;
    _Atomic double stopped_s[chaos_workers]; /* for how long the worker has been stopped in all */
    _Atomic uint32_t shortages[chaos_workers]; /* how often its descriptors became few or many again; odd: they are few */
    _Atomic uint32_t progress[chaos_workers][chaos_names]; /* messages sent since it is calm, with their replies if one was asked for */
    _Atomic bool is_in_line[chaos_workers]; /* the worker waits in the kernel's line of senders */
    _Atomic uint32_t owner[chaos_names]; /* the latest life that owned it */
    _Atomic uint64_t owners; /* how many in all */
    _Atomic uint64_t takeovers; /* of those, after one who was killed */
    _Atomic bool was_killed[chaos_lives_max];
    _Atomic uint64_t one_way, results[chaos_codes];
    _Atomic uint64_t in_user_namespaces; /* lives */
    _Atomic uint64_t lingering, blocking; /* descriptors of these kinds that were passed */
    /* One call, and one run of a server's loop, beyond what it was told to wait, while it was not stopped and had a processor. */
    _Atomic double longest_s, longest_run_s;
    _Atomic uint32_t violations;
    struct directory_witness directories[chaos_directories_max];
    struct event events[chaos_events_max];
};

extern struct chaos *chaos;

/* Something is not as it must be; printed at once. Any process. */
void chaos_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
double chaos_now(void);
void chaos_note(enum event_kind kind, int name, uint32_t client, uint32_t number, uint32_t server);
/* What follows is drawn from the seed, and for a worker from its slot and life, too. */
void chaos_begin_life(int slot, uint32_t life);
unsigned chaos_random(unsigned limit); /* below the limit */

/* ---- in workers.c: what the processes do, until they are killed or it is over ---- */

void serve(int slot, uint32_t life) __attribute__((noreturn));
void ask(int slot, uint32_t life) __attribute__((noreturn));
void crowd(int slot, uint32_t life) __attribute__((noreturn));

/* ---- in hostile.c: what wants to hold up the servers' loops, by descriptors whose close waits ---- */

void harm(int slot, uint32_t life) __attribute__((noreturn));

/* ---- in namespaces.c ---- */

/* As fork(2), at times into a PID namespace of the child's own, and at times into a user namespace. */
pid_t namespaces_fork(void);
/* How many children have got a PID namespace. */
uint64_t namespaces_pid_count(void);

/* ---- in history.c ---- */

struct verdict {
    uint64_t handled, answered, lost; /* lost: events whose writer was killed meanwhile */
    uint64_t reordered; /* handled after a later message of the same sender, where that may happen */
};
/* Each message handled at most once, in its sender's order; each answer to a message that was handled before. */
struct verdict judge_history(void);

#endif
