/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the command: each call returns some, or ends the process with a line on standard error. */
#ifndef RUNLOOP_ALLOCATION_H
#define RUNLOOP_ALLOCATION_H

#include <stddef.h>

/* Zeroed. A count of 0 gives a place as well. */
void *make_room(size_t count, size_t size);
/* Makes room for one more element, and returns the place of the elements, which may have moved. */
void *grow_array(void *elements, size_t count, size_t *capacity, size_t size);
/* A terminated copy of so many bytes. */
char *copy_text(const char *text, size_t length);

#endif
