/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of chaos-network share: main.c runs and breaks the processes, roles.c is what they do, networks.c are their links. */
#ifndef CRL_TESTS_CHAOS_NETWORK_H
#define CRL_TESTS_CHAOS_NETWORK_H

#include "chaos.h"

enum { machines = 3, clients_of_machine = 2 };

enum role {
    role_nats,
    role_bridge,
    role_owner,
    role_client,
    role_durable_nats,
    role_sending_bridge,
    role_receiving_bridge,
    role_receiver,
    role_sender
};

/* How long a process is stopped at most, and how far beyond its limit a call may end. */
static const double longest_stop_s = 1.0;
static const double margin_s = 0.5;

struct worker {
    enum role role;
    int machine;
    pid_t pid;
    uint32_t life;
    double stopped_until; /* 0: it runs */
};

/* What the processes of the durable part share besides the history. */
struct durable {
    _Atomic uint32_t taken; /* messages that the port took; their numbers are 1 to this */
    _Atomic bool ends;
};
extern struct durable *durable;

extern const char *bridge_program; /* messageport-bridge */
extern char base_folder[]; /* the folder of all files */
extern int server_ports[2 * machines + 1]; /* of clients, of routes, and the durable server's */
extern char all_servers[512];

unsigned random_below(unsigned limit);
void random_begin(unsigned seed);
/* A path in the folder. */
const char *path_of(const char *format, int number);
/* ---- in networks.c ---- */

/* Returns false if there are no networks, as networks.c says: then all machines are on loopback. */
bool networks_make(void);
/* Where a machine's server listens. */
const char *address_of(int machine);
/* The process belongs to the machine's network from now on. */
void network_enter(int machine);
/* Cuts or mends the machine's link to the others. */
void network_set_link(int machine, bool is_up);

/* ---- in roles.c ---- */

/* The process becomes what the worker is. */
void worker_run(struct worker *worker) __attribute__((noreturn));

#endif
