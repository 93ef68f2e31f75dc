/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has sent a packet, as the kernel says. Peers in a PID namespace that this process cannot see into all have the process id 0. Each is
 * known by the number of its process then, which the kernel gives since Linux 6.9 (SO_PASSPIDFD), or not at all.
 */
#ifndef CRL_PORT_WIRE_PEER_H
#define CRL_PORT_WIRE_PEER_H

#include "Port/link_names.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct peer {
    pid_t pid; /* 0: of a process that this one cannot see */
    uint64_t process; /* with pid 0: its number; 0: not known */
};

static inline bool peer_is_known(const struct peer *peer)
{
    return peer->pid != 0 || peer->process != 0;
}

/* For limits and punishment: true if both are known to be one peer. A peer that is not known is the same as no other. */
static inline bool peers_are_one(const struct peer *first, const struct peer *second)
{
    return first->pid == second->pid && (first->pid != 0 || (first->process != 0 && first->process == second->process));
}

/* For secrets that a peer shows: false if the kernel tells the two apart. */
static inline bool peers_may_be_one(const struct peer *first, const struct peer *second)
{
    bool both_are_known = first->process != 0 && second->process != 0;

    return first->pid == second->pid && (first->pid != 0 || !both_are_known || first->process == second->process);
}

#endif
