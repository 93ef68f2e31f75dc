/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the types that add-on libraries register. A place in the table is taken by one thread and constant from then on; no type goes away.
 */
#include "Runtime/Object/added_types.h"

#include <stdatomic.h>

#include "CRLAddOn.h"
#include "Runtime/Object/object.h"

enum { most_added_types = 32 };

_Static_assert(sizeof(CRLObjectHeader) == sizeof(struct object), "the public header of an object is the private one");

static struct object_class added_classes[most_added_types];
static _Atomic unsigned added_count;

CFTypeID CRLTypeRegister(const CRLTypeFunctions *functions)
{
    unsigned place = atomic_load_explicit(&added_count, memory_order_relaxed);

    do {
        if (place == most_added_types) {
            return object_type_none;
        }
    } while (!atomic_compare_exchange_weak_explicit(&added_count, &place, place + 1, memory_order_relaxed, memory_order_relaxed));
    /* Nobody knows the id before it is returned. */
    added_classes[place] = (struct object_class){
        .type_id = object_type_count + place,
        .name = functions->name,
        .finalize = functions->finalize,
        .equal = functions->equal,
        .hash = functions->hash,
        .copy_description = functions->copyDescription,
    };
    return object_type_count + place;
}

void *CRLTypeCreateObject(CFAllocatorRef allocator, CFTypeID type, CFIndex size)
{
    CFTypeID place = type - object_type_count;

    if (place >= atomic_load_explicit(&added_count, memory_order_relaxed) || size < (CFIndex)sizeof(struct object)) {
        return NULL;
    }
    return object_create(allocator, &added_classes[place], (size_t)size);
}

const char *added_type_name(CFTypeID type)
{
    CFTypeID place = type - object_type_count;

    return place < most_added_types ? added_classes[place].name : NULL;
}
