/* SPDX-License-Identifier: Apache-2.0 */
/* Names of hosts, for the streams of a simulated program. See names.c. */
#ifndef CRL_SIMULATION_NAMES_H
#define CRL_SIMULATION_NAMES_H

#include <stdint.h>

/* The ports that addresses of names have: one more than there are, at which nobody listens. */
struct names_terms {
    uint32_t first_port;
    int port_count;
};

void names_install(struct names_terms terms);

#endif
