/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's two loops, and the turns that Foundation's loop takes in runs of this library's. foundation_loop.h declares the turns. */
#ifndef CRL_FOUNDATION_TURN_H
#define CRL_FOUNDATION_TURN_H

#include <stdbool.h>

/* Returns false if the system has no room for a thread-specific key. */
bool foundation_turns_begin(void);

/* The calling thread has both loops: from now on others can stop its runs by Foundation's loop. */
void foundation_turns_note_thread(void);

/* Stops the innermost run of the thread that has this loop of Foundation. Returns false if it has no run of both loops. Any thread. */
bool foundation_turns_stop(void *loop);

/* In the child of a fork. */
void foundation_turns_part_in_child(void);

#endif
