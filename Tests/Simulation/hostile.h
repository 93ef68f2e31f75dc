/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile peer of the simulated ports; see hostile.c. */
#ifndef CRL_TESTS_SIMULATION_HOSTILE_H
#define CRL_TESTS_SIMULATION_HOSTILE_H

#include "CoreFoundation/CFString.h"

/* Attacks the port of that name once, if it is there. What the calling thread does for it meets no faults. */
void hostile_attack(CFStringRef port);

#endif
