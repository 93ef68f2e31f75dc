/* SPDX-License-Identifier: Apache-2.0 */
/* The linker gives the program these functions in the place of the C library's (--wrap). Only one thread runs while one fails. */
#include "failing_memory.h"

#include <stdlib.h>

static unsigned left; /* 0: nothing is refused */
static bool has_failed;

void failing_memory_begin(unsigned n)
{
    left = n;
    has_failed = false;
}

void failing_memory_end(void)
{
    left = 0;
}

bool failing_memory_has_failed(void)
{
    return has_failed;
}

static bool is_refused(void)
{
    if (left == 0 || --left > 0) {
        return false;
    }
    has_failed = true;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);

void *__wrap_malloc(size_t size)
{
    return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return is_refused() ? NULL : __real_realloc(block, size);
}
