/* SPDX-License-Identifier: Apache-2.0 */
/* See allocation.h. */
#include "allocation.h"

#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"
#include "command_line.h"

void *make_room(size_t count, size_t size)
{
    void *room = calloc(count > 0 ? count : 1, size);

    if (!room) {
        exit(fail(exit_error, "there is no memory"));
    }
    return room;
}

void *grow_array(void *elements, size_t count, size_t *capacity, size_t size)
{
    invariant(size > 0 && count <= *capacity);
    if (count < *capacity) {
        return elements;
    }
    *capacity = *capacity > 0 ? *capacity * 2 : 64;
    elements = reallocarray(elements, *capacity, size);
    if (!elements) {
        exit(fail(exit_error, "there is no memory"));
    }
    return elements;
}

char *copy_text(const char *text, size_t length)
{
    char *copy = make_room(length + 1, 1);

    memcpy(copy, text, length);
    return copy;
}
