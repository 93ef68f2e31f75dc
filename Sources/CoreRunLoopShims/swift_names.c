/* SPDX-License-Identifier: Apache-2.0 */
/* Mangled names, as Swift's runtime reads them. */
#include <string.h>

#include "CoreRunLoopShims.h"

/* A runtime that has lost this function is asked no more. It writes no more than the size says, and always a terminating zero. */
__attribute__((weak)) char *swift_demangle(const char *name, size_t length, char *ret_text, size_t *size, uint32_t flags);

/* As for swift_demangle. Returns the function's record, of which nothing is read here. */
__attribute__((weak)) const void *swift_findAccessibleFunction(const char *name, size_t length);

bool shim_swift_knows_function(const uint8_t *name, intptr_t length)
{
    return swift_findAccessibleFunction && name && length > 0 && swift_findAccessibleFunction((const char *)name, (size_t)length);
}

bool shim_swift_demangle(const uint8_t *name, intptr_t length, char *ret_text, intptr_t size)
{
    size_t room = (size_t)size;

    if (!swift_demangle || !name || length <= 0 || size <= 1 || !swift_demangle((const char *)name, (size_t)length, ret_text, &room, 0)) {
        return false;
    }
    return strnlen(ret_text, (size_t)size) < (size_t)size - 1;
}
