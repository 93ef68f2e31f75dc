/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases of cases.c ask of a host, which glib.c, libuv.c and qt.cpp do. All functions are called on the first thread. */
#ifndef HOSTS_TESTS_HOST_H
#define HOSTS_TESTS_HOST_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a callback of the run loop may run the host's loop: libuv's cannot be run within itself. */
extern const bool host_can_nest;

/* Makes the host's loop. */
void host_make(void);

/* Attaches the run loop. Returns whether it is in the host now. */
bool host_attach(void (*stopped)(void *info), void *info);
void host_detach(void);

/* Runs the host's loop until host_quit, once. */
void host_run(void);
void host_quit(void);

/* Lets the host go round once, within a callback; it sleeps until something is ready. */
void host_run_nested(void);

/* Has the host call `function` each `interval_ms`, to the end of the program. */
void host_every(unsigned interval_ms, void (*function)(void));

/* How often the host's loop has gone round since host_make. */
unsigned long host_turns(void);

#ifdef __cplusplus
}
#endif

#endif
