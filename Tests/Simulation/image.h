/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of a simulation: a shared object that holds the library and the programs below, of which the simulation loads a copy for each
 * process, so that each has the library's global state to itself. What it needs of the simulation comes from the program that loads it.
 */
#ifndef CRL_TESTS_SIMULATION_IMAGE_H
#define CRL_TESTS_SIMULATION_IMAGE_H

#include "CoreFoundation/CFRunLoop.h"

/* What an image exports. */
struct image {
    void (*start)(int process); /* makes the process's threads; they run when they get the baton */
    long (*live_objects)(void);
};
extern const struct image simulation_image;

/* The calling thread's loop, which waits awake if the plan and chance say so. */
CFRunLoopRef image_loop(void);

/* loops.c, connections.c, pairs.c, ports.c */
void loops_start(int process);
void connections_start(int process);
void pairs_start(int process);
void ports_start(int process);

#endif
