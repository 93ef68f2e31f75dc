/* SPDX-License-Identifier: Apache-2.0 */
/* CFData's functions. Any thread may use immutable data; mutable data belongs to one thread at a time. */
#include "Runtime/Value/data.h"

#include <string.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Object/allocator.h"
#include "Runtime/Object/object.h"
#include "Runtime/Object/range.h"
#include "Support/fault.h"

enum { capacity_first = 32, capacity_hint_max = 1 << 30 };

static const struct data *data_of(CFDataRef data, const char *function)
{
    object_check(data, &data_class, function, "data");
    return (const struct data *)(const void *)data;
}

static struct data *mutable_of(CFMutableDataRef data, const char *function)
{
    object_require(data, object_type_data, function, "data");
    struct data *changed = (struct data *)(void *)data;
    if ((changed->object.info & data_is_mutable) == 0) {
        fault_stop(function, "the data cannot be changed");
    }
    return changed;
}

static void require_range(CFRange range, CFIndex length, const char *function)
{
    if (range.location < 0 || range.length < 0 || range.location > length || range.length > length - range.location) {
        fault_stop_format(function, "the range {%ld, %ld} is outside the data, whose length is %ld", range.location, range.length, length);
    }
}

static bool reserve(struct data *data, CFIndex length)
{
    if (length <= data->capacity) {
        return true;
    }
    CFIndex capacity = data->capacity <= PTRDIFF_MAX / 2 ? data->capacity * 2 : length;
    capacity = capacity > length ? capacity : length;
    capacity = capacity > capacity_first ? capacity : capacity_first;
    UInt8 *bytes = allocator_resize(object_allocator(data), data->bytes, (size_t)data->capacity, (size_t)capacity);
    if (bytes == NULL) {
        return false;
    }
    data->bytes = bytes;
    data->capacity = capacity;
    return true;
}

CFTypeID CFDataGetTypeID(void)
{
    return object_type_data;
}

CFDataRef CFDataCreate(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length)
{
    if (length < 0 || (bytes == NULL && length > 0) || (size_t)length > (size_t)PTRDIFF_MAX - sizeof(struct data)) {
        return NULL;
    }
    struct data *data = object_create(allocator, &data_class, sizeof *data + (size_t)length);
    if (data == NULL) {
        return NULL;
    }
    data->length = length;
    data->bytes = (UInt8 *)(data + 1);
    if (length > 0) {
        memcpy(data->bytes, bytes, (size_t)length);
    }
    return (CFDataRef)(const void *)data;
}

CFDataRef CFDataCreateWithBytesNoCopy(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length, CFAllocatorRef deallocator)
{
    struct data *data = length >= 0 && (bytes != NULL || length == 0) ? object_create(allocator, &data_class, sizeof *data) : NULL;

    if (data == NULL) {
        return NULL;
    }
    data->object.info = data_is_external;
    data->length = length;
    data->bytes = (UInt8 *)(uintptr_t)bytes;
    data->owner = CFRetain(allocator_resolve(deallocator));
    return (CFDataRef)(const void *)data;
}

/* True for bytes that belong to the program, which may free or change them once the data is gone. */
static bool is_lent(const struct data *data)
{
    return (data->object.info & data_is_external) != 0 && data->owner == kCFAllocatorNull;
}

CFDataRef CFDataCreateCopy(CFAllocatorRef allocator, CFDataRef data)
{
    const struct data *original = data_of(data, "CFDataCreateCopy");
    bool is_constant = (original->object.info & data_is_mutable) == 0 && !is_lent(original);

    if (is_constant && object_allocator(original) == allocator_resolve(allocator)) {
        return CFRetain(data);
    }
    return CFDataCreate(allocator, original->bytes, original->length);
}

CFMutableDataRef CFDataCreateMutable(CFAllocatorRef allocator, CFIndex capacity)
{
    struct data *data = object_create(allocator, &data_class, sizeof *data);

    if (data == NULL) {
        return NULL;
    }
    data->object.info = data_is_mutable;
    /* Programs keep the pointer to the bytes while data grows within its capacity. A hint that cannot be followed does no harm. */
    if (capacity > 0 && capacity <= capacity_hint_max) {
        reserve(data, capacity);
    }
    return (CFMutableDataRef)(void *)data;
}

CFMutableDataRef CFDataCreateMutableCopy(CFAllocatorRef allocator, CFIndex capacity, CFDataRef data)
{
    const struct data *original = data_of(data, "CFDataCreateMutableCopy");
    CFMutableDataRef copy = CFDataCreateMutable(allocator, capacity);

    if (copy == NULL) {
        return NULL;
    }
    struct data *filled = (struct data *)(void *)copy;
    if (!reserve(filled, original->length)) {
        CFRelease(copy);
        return NULL;
    }
    if (original->length > 0) {
        memcpy(filled->bytes, original->bytes, (size_t)original->length);
    }
    filled->length = original->length;
    return copy;
}

CFIndex CFDataGetLength(CFDataRef data)
{
    return data_of(data, "CFDataGetLength")->length;
}

const UInt8 *CFDataGetBytePtr(CFDataRef data)
{
    static const UInt8 nothing[1];
    const struct data *read = data_of(data, "CFDataGetBytePtr");

    return read->bytes != NULL ? read->bytes : nothing;
}

UInt8 *CFDataGetMutableBytePtr(CFMutableDataRef data)
{
    return mutable_of(data, "CFDataGetMutableBytePtr")->bytes;
}

CFRange CFDataFind(CFDataRef data, CFDataRef dataToFind, CFRange searchRange, CFDataSearchFlags compareOptions)
{
    const struct data *searched = data_of(data, "CFDataFind");
    const struct data *wanted = data_of(dataToFind, "CFDataFind");

    CFRange range = range_clipped(searchRange, searched->length);
    CFIndex last = range.length - wanted->length;
    if (wanted->length == 0 || last < 0) {
        return CFRangeMake(kCFNotFound, 0);
    }
    bool backwards = (compareOptions & kCFDataSearchBackwards) != 0;
    CFIndex places = (compareOptions & kCFDataSearchAnchored) != 0 ? 1 : last + 1;
    for (CFIndex i = 0; i < places; i++) {
        CFIndex location = range.location + (backwards ? last - i : i);

        if (memcmp(searched->bytes + location, wanted->bytes, (size_t)wanted->length) == 0) {
            return CFRangeMake(location, wanted->length);
        }
    }
    return CFRangeMake(kCFNotFound, 0);
}

void CFDataGetBytes(CFDataRef data, CFRange range, UInt8 *buffer)
{
    const struct data *read = data_of(data, "CFDataGetBytes");

    require_range(range, read->length, "CFDataGetBytes");
    if (range.length > 0) {
        memcpy(buffer, read->bytes + range.location, (size_t)range.length);
    }
}

/* Puts `length` bytes, or zeros for NULL, in the place of `range`. */
static void replace(struct data *data, CFRange range, const UInt8 *bytes, CFIndex length, const char *function)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    if (length < 0) {
        fault_stop_format(function, "the length %ld is negative", length);
    }
    CFIndex new_length;
    /* Bytes from inside the data itself may move when it grows. */
    bool is_inside = data->bytes != NULL && bytes != NULL && length > 0 && bytes >= data->bytes && bytes < data->bytes + data->capacity;
    UInt8 *copied = is_inside ? allocator_allocate(kCFAllocatorSystemDefault, (size_t)length) : NULL;
    if (__builtin_add_overflow(data->length - range.length, length, &new_length) || (is_inside && copied == NULL)) {
        fault_log_once(&logged, "CFData: no memory; the data stays as it was");
        allocator_deallocate(kCFAllocatorSystemDefault, copied);
        return;
    }
    if (is_inside) {
        memcpy(copied, bytes, (size_t)length);
        bytes = copied;
    }
    if (!reserve(data, new_length)) {
        fault_log_once(&logged, "CFData: no memory; the data stays as it was");
    } else if (data->bytes != NULL) {
        UInt8 *place = data->bytes + range.location;

        memmove(place + length, place + range.length, (size_t)(data->length - range.location - range.length));
        if (bytes != NULL) {
            memcpy(place, bytes, (size_t)length);
        } else {
            memset(place, 0, (size_t)length);
        }
        data->length = new_length;
    }
    allocator_deallocate(kCFAllocatorSystemDefault, copied);
}

static void set_length(struct data *data, CFIndex length, const char *function)
{
    if (length < 0) {
        fault_stop_format(function, "the length %ld is negative", length);
    }
    if (length <= data->length) {
        data->length = length;
    } else {
        replace(data, CFRangeMake(data->length, 0), NULL, length - data->length, function);
    }
}

void CFDataSetLength(CFMutableDataRef data, CFIndex length)
{
    set_length(mutable_of(data, "CFDataSetLength"), length, "CFDataSetLength");
}

void CFDataIncreaseLength(CFMutableDataRef data, CFIndex extraLength)
{
    struct data *changed = mutable_of(data, "CFDataIncreaseLength");
    CFIndex length;

    if (__builtin_add_overflow(changed->length, extraLength, &length)) {
        length = PTRDIFF_MAX;
    }
    set_length(changed, length, "CFDataIncreaseLength");
}

static void require_bytes(const UInt8 *bytes, CFIndex length, const char *function)
{
    if (bytes == NULL && length > 0) {
        fault_stop(function, "the bytes are NULL");
    }
}

void CFDataAppendBytes(CFMutableDataRef data, const UInt8 *bytes, CFIndex length)
{
    struct data *changed = mutable_of(data, "CFDataAppendBytes");

    require_bytes(bytes, length, "CFDataAppendBytes");
    replace(changed, CFRangeMake(changed->length, 0), bytes, length, "CFDataAppendBytes");
}

void CFDataReplaceBytes(CFMutableDataRef data, CFRange range, const UInt8 *bytes, CFIndex length)
{
    struct data *changed = mutable_of(data, "CFDataReplaceBytes");

    require_range(range, changed->length, "CFDataReplaceBytes");
    require_bytes(bytes, length, "CFDataReplaceBytes");
    replace(changed, range, bytes, length, "CFDataReplaceBytes");
}

void CFDataDeleteBytes(CFMutableDataRef data, CFRange range)
{
    struct data *changed = mutable_of(data, "CFDataDeleteBytes");

    require_range(range, changed->length, "CFDataDeleteBytes");
    replace(changed, range, NULL, 0, "CFDataDeleteBytes");
}
