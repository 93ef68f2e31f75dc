/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that begin with Foundation's loop. Results are those of CFRunLoopRunInMode. All on the loops' own thread. */
#ifndef CRL_FOUNDATION_RUN_H
#define CRL_FOUNDATION_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the mode's name in UTF-8, in `short_text` or from malloc, or NULL if it cannot be had. */
char *foundation_run_text(const void *mode, char *short_text, long size);

/* Runs both loops. A mode whose name cannot be had is Foundation's alone. */
int32_t foundation_run_both(const void *mode, double seconds, bool returns_after_source);

/* Runs Foundation's loop alone, and both once the thread has another loop. */
int32_t foundation_run_plain(const void *mode, double seconds, bool returns_after_source);

#endif
