/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a thread and of a descriptor, and memory for a closure. */
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "CoreRunLoopTestingShims.h"

bool seeded_thread_is_blocked(int thread_id)
{
    char path[64], text[256];
    const char *state;
    ssize_t length;
    int file;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread_id);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    length = read(file, text, sizeof text - 1);
    (void)close(file);
    if (length <= 0) {
        return false;
    }
    text[length] = '\0';
    state = strrchr(text, ')'); /* behind the thread's name */
    return state && strlen(state) > 2 && state[2] == 'S';
}

bool seeded_is_readable(int descriptor, int limit_ms)
{
    struct pollfd ready = {.fd = descriptor, .events = POLLIN};

    return poll(&ready, 1, limit_ms) > 0;
}

void *seeded_keep_context(const void *context)
{
    size_t size = malloc_usable_size((void *)context);
    void *copy = malloc(size);

    if (copy) {
        memcpy(copy, context, size);
    }
    return copy;
}
