/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data as an object. Bytes of immutable data stand behind the object, or belong to a caller or to other data. Mutable data has memory of
 * its own. The functions serve the library alone: data can be made before its bytes are there, so that bytes from a file or a socket are
 * not lost for want of memory; and data can be passed on without a copy.
 */
#ifndef CRL_RUNTIME_DATA_H
#define CRL_RUNTIME_DATA_H

#include "Runtime/link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CFData.h"
#include "Runtime/Object/object.h"

enum data_flag { data_is_mutable = 1, data_is_external = 2, data_is_shared = 4, data_is_given = 8 };

struct data {
    struct object object;
    CFIndex length;
    CFIndex capacity; /* of mutable data, in bytes */
    UInt8 *bytes; /* NULL in mutable data that has never held a byte */
    CFTypeRef owner; /* of external bytes: their deallocator, or the data whose bytes are shared; retained; constant */
};

extern const struct object_class data_class;

/* Shortens data made by CFDataCreateWithBytesNoCopy with kCFAllocatorMalloc, which only the caller knows yet, to `length` bytes. */
void data_shorten(CFDataRef data, CFIndex length);

/*
 * Returns true if a reference to the data is as good as a copy: the data cannot change, and its bytes are its own or malloc's. Bytes of a
 * caller do not count, because the caller may reuse them once it believes that they were copied.
 */
bool data_is_shareable(CFDataRef data);

/*
 * A mark on data that its maker shows only to one receiver, which would copy the bytes: the receiver may have the object itself instead.
 * The mark is set and taken while no other thread knows the data. Taking it returns true if it was set.
 */
void data_mark_given(CFDataRef data);
bool data_take_given(CFDataRef data);

/* Returns immutable data without bytes. It is always the same immortal object. */
CFDataRef data_empty(void);

/* Returns new data on the bytes of shareable data, which it retains; or NULL if there is no memory. */
CFDataRef data_create_sharing(CFDataRef data);

#endif
