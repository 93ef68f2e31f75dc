/* SPDX-License-Identifier: Apache-2.0 */
/* The class of data, and what only the library does with data; see data.h. No locks. */
#include "Runtime/Value/data.h"

#include <string.h>

#include "Runtime/Object/allocator.h"

enum { hashed_max = 128 }; /* bytes */

static void finalize(CFTypeRef object)
{
    const struct data *data = object;

    if ((data->object.info & data_is_mutable) != 0) {
        allocator_deallocate(object_allocator(data), data->bytes);
    } else if ((data->object.info & data_is_external) != 0) {
        allocator_deallocate((CFAllocatorRef)data->owner, data->bytes);
        CFRelease(data->owner);
    } else if ((data->object.info & data_is_shared) != 0) {
        CFRelease(data->owner);
    }
}

static Boolean equal(CFTypeRef object1, CFTypeRef object2)
{
    const struct data *one = object1;
    const struct data *other = object2;

    return one->length == other->length && (one->length == 0 || memcmp(one->bytes, other->bytes, (size_t)one->length) == 0);
}

static CFHashCode hash(CFTypeRef object)
{
    const struct data *data = object;
    uint64_t value = 0xCBF29CE484222325 ^ (uint64_t)data->length;

    for (CFIndex i = 0; i < data->length && i < hashed_max; i++) {
        value = (value ^ data->bytes[i]) * 0x100000001B3;
    }
    return (CFHashCode)(value ^ (value >> 32));
}

const struct object_class data_class = {
    .type_id = object_type_data,
    .name = "CFData",
    .finalize = finalize,
    .equal = equal,
    .hash = hash,
};

void data_shorten(CFDataRef data, CFIndex length)
{
    struct data *shortened = (struct data *)(uintptr_t)data;
    UInt8 *fitting = NULL;

    if (length > 0) {
        fitting = allocator_resize((CFAllocatorRef)shortened->owner, shortened->bytes, (size_t)shortened->length, (size_t)length);
    }
    if (fitting != NULL) {
        shortened->bytes = fitting;
    }
    shortened->length = length;
}

/* True for the library's own deallocators, which free with malloc or keep the block. They call no user code. */
static bool is_plain(CFTypeRef deallocator)
{
    return deallocator == kCFAllocatorMalloc || deallocator == kCFAllocatorSystemDefault || deallocator == allocator_lined ||
           deallocator == allocator_large;
}

bool data_is_shareable(CFDataRef reference)
{
    const struct data *data = (const struct data *)(const void *)reference;
    bool is_external = (data->object.info & data_is_external) != 0;

    return (data->object.info & data_is_mutable) == 0 && object_allocator(data) == kCFAllocatorSystemDefault &&
           (!is_external || is_plain(data->owner));
}

void data_mark_given(CFDataRef reference)
{
    ((struct data *)(uintptr_t)reference)->object.info |= data_is_given;
}

bool data_take_given(CFDataRef reference)
{
    struct data *data = (struct data *)(uintptr_t)reference;
    bool is_given = (data->object.info & data_is_given) != 0;

    if (is_given) {
        data->object.info &= ~(uint32_t)data_is_given;
    }
    return is_given;
}

CFDataRef data_empty(void)
{
    static const struct data empty = {.object = {.isa = &data_class}, .bytes = (UInt8 *)(uintptr_t)""};

    return (CFDataRef)(const void *)&empty;
}

CFDataRef data_create_sharing(CFDataRef reference)
{
    const struct data *original = (const struct data *)(const void *)reference;
    struct data *data = object_create(kCFAllocatorSystemDefault, &data_class, sizeof *data);

    if (data == NULL) {
        return NULL;
    }
    data->object.info = data_is_shared;
    data->length = original->length;
    data->bytes = original->bytes;
    data->owner = CFRetain((original->object.info & data_is_shared) != 0 ? original->owner : (CFTypeRef)reference);
    return (CFDataRef)(const void *)data;
}
