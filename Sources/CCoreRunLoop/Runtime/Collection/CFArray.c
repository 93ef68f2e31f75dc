/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns arrays. An immutable one has its values behind the object, a mutable one in memory of their own, which may have free places on both
 * sides of them: so a long one is a queue from which values are taken at either end without moving the others.
 *
 * An immutable array is anybody's; a mutable one belongs to one thread at a time. Callbacks run after the array has taken its new form, so
 * they find it whole.
 */
#include "CoreFoundation/CFArray.h"

#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Collection/sort.h"
#include "Runtime/Object/allocator.h"
#include "Runtime/Object/object.h"
#include "Support/fault.h"

enum array_flag { array_is_mutable = 1 };

enum {
    capacity_first = 8,
    capacity_hint_max = 4096,
    count_long = 64, /* in a shorter array those behind a place are moved, even if there are fewer before it */
};

struct array {
    struct object object;
    CFIndex count;
    CFIndex capacity; /* values that `values` has room for */
    CFIndex front; /* free places before `values`, in the same memory */
    const void **values;
    CFArrayCallBacks callbacks; /* constant */
};

static const void *retain_value(const struct array *array, const void *value)
{
    return array->callbacks.retain != NULL ? array->callbacks.retain(object_allocator(array), value) : value;
}

static void release_value(const struct array *array, const void *value)
{
    if (array->callbacks.release != NULL) {
        array->callbacks.release(object_allocator(array), value);
    }
}

static bool values_equal(const struct array *array, const void *one, const void *other)
{
    return one == other || (array->callbacks.equal != NULL && array->callbacks.equal(one, other));
}

static void *memory_of(const struct array *array)
{
    return array->values != NULL ? (void *)(array->values - array->front) : NULL;
}

static void finalize(CFTypeRef object)
{
    const struct array *array = object;

    for (CFIndex i = 0; i < array->count; i++) {
        release_value(array, array->values[i]);
    }
    if ((array->object.info & array_is_mutable) != 0) {
        allocator_deallocate(object_allocator(array), memory_of(array));
    }
}

static Boolean equal(CFTypeRef object1, CFTypeRef object2)
{
    const struct array *one = object1;
    const struct array *other = object2;

    if (one->count != other->count || one->callbacks.equal != other->callbacks.equal) {
        return false;
    }
    for (CFIndex i = 0; i < one->count; i++) {
        if (!values_equal(one, one->values[i], other->values[i])) {
            return false;
        }
    }
    return true;
}

static CFHashCode hash(CFTypeRef object)
{
    return (CFHashCode)((const struct array *)object)->count;
}

static void append_value_description(CFMutableStringRef words, const struct array *array, CFIndex index)
{
    const void *value = array->values[index];
    CFStringRef description = array->callbacks.copyDescription != NULL ? array->callbacks.copyDescription(value) : NULL;

    if (description != NULL) {
        CFStringAppendFormat(words, NULL, CFSTR("\t%ld : %@\n"), index, description);
        CFRelease(description);
    } else {
        CFStringAppendFormat(words, NULL, CFSTR("\t%ld : <%p>\n"), index, value);
    }
}

static CFStringRef copy_description(CFTypeRef object)
{
    const struct array *array = object;
    CFMutableStringRef words = CFStringCreateMutable(NULL, 0);

    if (words == NULL) {
        return NULL;
    }
    bool is_mutable = (array->object.info & array_is_mutable) != 0;
    CFStringAppendFormat(words, NULL, CFSTR("<CFArray %p>{%s, count = %ld, values = (\n"), object, is_mutable ? "mutable" : "immutable",
                         array->count);
    for (CFIndex i = 0; i < array->count; i++) {
        append_value_description(words, array, i);
    }
    CFStringAppend(words, CFSTR(")}"));
    return words;
}

static const struct object_class array_class = {
    .type_id = object_type_array,
    .name = "CFArray",
    .finalize = finalize,
    .equal = equal,
    .hash = hash,
    .copy_description = copy_description,
};

static const void *type_retain(CFAllocatorRef allocator, const void *value)
{
    (void)allocator;
    return CFRetain(value);
}

static void type_release(CFAllocatorRef allocator, const void *value)
{
    (void)allocator;
    CFRelease(value);
}

const CFArrayCallBacks kCFTypeArrayCallBacks = {
    .retain = type_retain,
    .release = type_release,
    .copyDescription = CFCopyDescription,
    .equal = CFEqual,
};

static const struct array *array_of(CFArrayRef array, const char *function)
{
    object_require(array, object_type_array, function, "array");
    return (const struct array *)(const void *)array;
}

static struct array *mutable_of(CFMutableArrayRef array, const char *function)
{
    object_require(array, object_type_array, function, "array");
    struct array *changed = (struct array *)(void *)array;
    if ((changed->object.info & array_is_mutable) == 0) {
        fault_stop(function, "the array cannot be changed");
    }
    return changed;
}

static void require_index(CFIndex index, CFIndex end, CFIndex count, const char *function)
{
    if (index < 0 || index >= end) {
        fault_stop_format(function, "the index %ld is outside the array, whose count is %ld", index, count);
    }
}

static void require_range(CFRange range, CFIndex count, const char *function)
{
    if (range.location < 0 || range.length < 0 || range.location > count || range.length > count - range.location) {
        fault_stop_format(function, "the range {%ld, %ld} is outside the array, whose count is %ld", range.location, range.length, count);
    }
}

/* Sets the room for values, and keeps the free places in front. */
static bool set_capacity(struct array *array, CFIndex capacity)
{
    CFIndex places;
    size_t size;

    if (__builtin_add_overflow(array->front, capacity, &places) || __builtin_mul_overflow((size_t)places, sizeof *array->values, &size)) {
        return false;
    }
    size_t old_size = (size_t)(array->front + array->capacity) * sizeof *array->values;
    const void **places_now = allocator_resize(object_allocator(array), memory_of(array), old_size, size);
    if (places_now == NULL) {
        return false;
    }
    array->values = places_now + array->front;
    array->capacity = capacity;
    return true;
}

/* Moves the values so that `front` places before them are free. */
static void set_front(struct array *array, CFIndex front)
{
    const void **values = array->values - array->front + front;

    memmove(values, array->values, (size_t)array->count * sizeof *values);
    array->values = values;
    array->capacity += array->front - front;
    array->front = front;
}

static bool reserve(struct array *array, CFIndex count)
{
    if (array->capacity < count && array->front > 0 && array->front >= array->capacity) {
        set_front(array, array->front / 2); /* for half as many values, at least, as are moved now */
    }
    if (count <= array->capacity) {
        return true;
    }
    CFIndex doubled = array->capacity <= PTRDIFF_MAX / 2 ? array->capacity * 2 : count;
    CFIndex capacity = doubled > count ? doubled : count;
    return set_capacity(array, capacity > capacity_first ? capacity : capacity_first);
}

/* Makes room before the values for as many more as there are. Without memory the array stays as it is. */
static void reserve_front(struct array *array)
{
    CFIndex capacity;

    if (array->front == 0 && !__builtin_add_overflow(array->capacity, array->count, &capacity) && set_capacity(array, capacity)) {
        set_front(array, array->count);
    }
}

static void log_no_memory(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    fault_log_once(&logged, "CFArray: no memory; the array stays as it was");
}

static struct array *create_mutable(CFAllocatorRef allocator, CFIndex capacity, const CFArrayCallBacks *callbacks)
{
    struct array *array = object_create(allocator, &array_class, sizeof *array);

    if (array == NULL) {
        return NULL;
    }
    array->object.info = array_is_mutable;
    array->callbacks = callbacks != NULL ? *callbacks : (CFArrayCallBacks){.version = 0};
    /* A hint that cannot be followed does no harm. */
    if (capacity > 0 && capacity <= capacity_hint_max) {
        set_capacity(array, capacity);
    }
    return array;
}

CFTypeID CFArrayGetTypeID(void)
{
    return object_type_array;
}

CFArrayRef CFArrayCreate(CFAllocatorRef allocator, const void **values, CFIndex count, const CFArrayCallBacks *callBacks)
{
    size_t size;

    if (count < 0 || (values == NULL && count > 0) || __builtin_mul_overflow((size_t)count, sizeof *values, &size) ||
        __builtin_add_overflow(size, sizeof(struct array), &size)) {
        return NULL;
    }
    struct array *array = object_create(allocator, &array_class, size);
    if (array == NULL) {
        return NULL;
    }
    array->callbacks = callBacks != NULL ? *callBacks : (CFArrayCallBacks){.version = 0};
    array->values = (const void **)(void *)(array + 1);
    for (CFIndex i = 0; i < count; i++) {
        array->values[i] = retain_value(array, values[i]);
        array->count = i + 1;
    }
    return (CFArrayRef)(const void *)array;
}

CFArrayRef CFArrayCreateCopy(CFAllocatorRef allocator, CFArrayRef array)
{
    const struct array *original = array_of(array, "CFArrayCreateCopy");

    if ((original->object.info & array_is_mutable) == 0 && object_allocator(original) == allocator_resolve(allocator)) {
        return CFRetain(array);
    }
    return CFArrayCreate(allocator, original->values, original->count, &original->callbacks);
}

CFMutableArrayRef CFArrayCreateMutable(CFAllocatorRef allocator, CFIndex capacity, const CFArrayCallBacks *callBacks)
{
    return (CFMutableArrayRef)(void *)create_mutable(allocator, capacity, callBacks);
}

CFMutableArrayRef CFArrayCreateMutableCopy(CFAllocatorRef allocator, CFIndex capacity, CFArrayRef array)
{
    const struct array *original = array_of(array, "CFArrayCreateMutableCopy");
    struct array *copy = create_mutable(allocator, capacity, &original->callbacks);

    if (copy == NULL || !reserve(copy, original->count)) {
        object_release_if_any(copy);
        return NULL;
    }
    for (CFIndex i = 0; i < original->count; i++) {
        copy->values[i] = retain_value(copy, original->values[i]);
        copy->count = i + 1;
    }
    return (CFMutableArrayRef)(void *)copy;
}

CFIndex CFArrayGetCount(CFArrayRef array)
{
    return array_of(array, "CFArrayGetCount")->count;
}

const void *CFArrayGetValueAtIndex(CFArrayRef array, CFIndex index)
{
    const struct array *read = array_of(array, "CFArrayGetValueAtIndex");

    require_index(index, read->count, read->count, "CFArrayGetValueAtIndex");
    return read->values[index];
}

void CFArrayGetValues(CFArrayRef array, CFRange range, const void **values)
{
    const struct array *read = array_of(array, "CFArrayGetValues");

    require_range(range, read->count, "CFArrayGetValues");
    if (range.length > 0) {
        memcpy(values, read->values + range.location, (size_t)range.length * sizeof *values);
    }
}

static CFIndex first_index(const struct array *array, CFRange range, const void *value)
{
    for (CFIndex i = 0; i < range.length; i++) {
        if (values_equal(array, value, array->values[range.location + i])) {
            return range.location + i;
        }
    }
    return kCFNotFound;
}

Boolean CFArrayContainsValue(CFArrayRef array, CFRange range, const void *value)
{
    const struct array *read = array_of(array, "CFArrayContainsValue");

    require_range(range, read->count, "CFArrayContainsValue");
    return first_index(read, range, value) != kCFNotFound;
}

CFIndex CFArrayGetFirstIndexOfValue(CFArrayRef array, CFRange range, const void *value)
{
    const struct array *read = array_of(array, "CFArrayGetFirstIndexOfValue");

    require_range(range, read->count, "CFArrayGetFirstIndexOfValue");
    return first_index(read, range, value);
}

CFIndex CFArrayGetLastIndexOfValue(CFArrayRef array, CFRange range, const void *value)
{
    const struct array *read = array_of(array, "CFArrayGetLastIndexOfValue");

    require_range(range, read->count, "CFArrayGetLastIndexOfValue");
    CFIndex index = range.location + range.length - 1;
    while (index >= range.location && !values_equal(read, value, read->values[index])) {
        index--;
    }
    return index >= range.location ? index : kCFNotFound;
}

CFIndex CFArrayGetCountOfValue(CFArrayRef array, CFRange range, const void *value)
{
    const struct array *read = array_of(array, "CFArrayGetCountOfValue");

    require_range(range, read->count, "CFArrayGetCountOfValue");
    CFIndex count = 0;
    for (CFIndex i = 0; i < range.length; i++) {
        count += values_equal(read, value, read->values[range.location + i]);
    }
    return count;
}

CFIndex CFArrayBSearchValues(CFArrayRef array, CFRange range, const void *value, CFComparatorFunction comparator, void *context)
{
    const struct array *read = array_of(array, "CFArrayBSearchValues");

    require_range(range, read->count, "CFArrayBSearchValues");
    if (comparator == NULL) {
        fault_stop("CFArrayBSearchValues", "the comparator is NULL");
    }
    CFIndex start = range.location;
    CFIndex end = range.location + range.length;
    while (start < end) {
        CFIndex middle = start + (end - start) / 2;

        if (comparator(read->values[middle], value, context) == kCFCompareLessThan) {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    return start;
}

void CFArrayApplyFunction(CFArrayRef array, CFRange range, CFArrayApplierFunction applier, void *context)
{
    const struct array *read = array_of(array, "CFArrayApplyFunction");

    require_range(range, read->count, "CFArrayApplyFunction");
    if (applier == NULL) {
        fault_stop("CFArrayApplyFunction", "the function is NULL");
    }
    /* The count is looked at each time: the function may have made the array shorter. */
    for (CFIndex i = 0; i < range.length && range.location + i < read->count; i++) {
        applier(read->values[range.location + i], context);
    }
}

/* True if fewer values stand before the place than behind it, and the array is long enough for the difference to matter. */
static bool is_in_front(const struct array *array, CFIndex index)
{
    return array->count >= count_long && index < array->count / 2;
}

/* Moves values apart for a new one at the place. The caller has made room. */
static void open_place(struct array *array, CFIndex index)
{
    if (is_in_front(array, index)) {
        reserve_front(array);
    }
    if (is_in_front(array, index) && array->front > 0) {
        memmove(array->values - 1, array->values, (size_t)index * sizeof *array->values);
        array->values--;
        array->front--;
        array->capacity++;
    } else {
        memmove(array->values + index + 1, array->values + index, (size_t)(array->count - index) * sizeof *array->values);
    }
    array->count++;
}

static void close_place(struct array *array, CFIndex index)
{
    array->count--;
    if (is_in_front(array, index)) {
        memmove(array->values + 1, array->values, (size_t)index * sizeof *array->values);
        array->values++;
        array->front++;
        array->capacity--;
    } else {
        memmove(array->values + index, array->values + index + 1, (size_t)(array->count - index) * sizeof *array->values);
    }
}

static void insert(struct array *array, CFIndex index, const void *value)
{
    if (!reserve(array, array->count + 1)) {
        log_no_memory();
        return;
    }
    const void *retained = retain_value(array, value);
    open_place(array, index);
    array->values[index] = retained;
}

void CFArrayAppendValue(CFMutableArrayRef array, const void *value)
{
    struct array *changed = mutable_of(array, "CFArrayAppendValue");

    insert(changed, changed->count, value);
}

void CFArrayInsertValueAtIndex(CFMutableArrayRef array, CFIndex index, const void *value)
{
    struct array *changed = mutable_of(array, "CFArrayInsertValueAtIndex");

    require_index(index, changed->count + 1, changed->count, "CFArrayInsertValueAtIndex");
    insert(changed, index, value);
}

void CFArraySetValueAtIndex(CFMutableArrayRef array, CFIndex index, const void *value)
{
    struct array *changed = mutable_of(array, "CFArraySetValueAtIndex");

    require_index(index, changed->count + 1, changed->count, "CFArraySetValueAtIndex");
    if (index == changed->count) {
        insert(changed, index, value);
        return;
    }
    const void *retained = retain_value(changed, value);
    const void *old = changed->values[index];
    changed->values[index] = retained;
    release_value(changed, old);
}

void CFArrayExchangeValuesAtIndices(CFMutableArrayRef array, CFIndex index1, CFIndex index2)
{
    struct array *changed = mutable_of(array, "CFArrayExchangeValuesAtIndices");

    require_index(index1, changed->count, changed->count, "CFArrayExchangeValuesAtIndices");
    require_index(index2, changed->count, changed->count, "CFArrayExchangeValuesAtIndices");
    const void *value = changed->values[index1];
    changed->values[index1] = changed->values[index2];
    changed->values[index2] = value;
}

/* `spare` has room for the new values and those that leave. */
static void replace_by(struct array *array, CFRange range, const void *const *values, CFIndex count, const void **spare)
{
    const void **added = spare;
    const void **removed = spare + count;

    for (CFIndex i = 0; i < count; i++) {
        added[i] = retain_value(array, values[i]);
    }
    const void **place = array->values + range.location;
    memcpy(removed, place, (size_t)range.length * sizeof *place);
    memmove(place + count, place + range.length, (size_t)(array->count - range.location - range.length) * sizeof *place);
    memcpy(place, added, (size_t)count * sizeof *place);
    array->count += count - range.length;
    for (CFIndex i = 0; i < range.length; i++) {
        release_value(array, removed[i]);
    }
}

static void replace(struct array *array, CFRange range, const void *const *values, CFIndex count)
{
    CFIndex new_count;
    CFIndex spare_count;
    size_t size;
    const void **spare = NULL;

    if (count == 0 && range.length == 0) {
        return;
    }
    /* The values may be those of the array itself, which making room may move: they are kept by their place then. */
    bool is_itself = values >= (const void *const *)array->values && values < (const void *const *)array->values + array->count;
    CFIndex place = is_itself ? (CFIndex)(values - (const void *const *)array->values) : 0;
    if (!__builtin_add_overflow(array->count - range.length, count, &new_count) &&
        !__builtin_add_overflow(range.length, count, &spare_count) && !__builtin_mul_overflow((size_t)spare_count, sizeof *spare, &size)) {
        spare = malloc(size);
    }
    if (spare == NULL || !reserve(array, new_count)) {
        log_no_memory();
    } else {
        replace_by(array, range, is_itself ? (const void *const *)array->values + place : values, count, spare);
    }
    free(spare);
}

void CFArrayReplaceValues(CFMutableArrayRef array, CFRange range, const void **newValues, CFIndex newCount)
{
    struct array *changed = mutable_of(array, "CFArrayReplaceValues");

    require_range(range, changed->count, "CFArrayReplaceValues");
    if (newCount < 0 || (newValues == NULL && newCount > 0)) {
        fault_stop("CFArrayReplaceValues", "the new values are NULL, or their count is negative");
    }
    replace(changed, range, newValues, newCount);
}

void CFArrayAppendArray(CFMutableArrayRef array, CFArrayRef otherArray, CFRange otherRange)
{
    struct array *changed = mutable_of(array, "CFArrayAppendArray");
    const struct array *other = array_of(otherArray, "CFArrayAppendArray");

    require_range(otherRange, other->count, "CFArrayAppendArray");
    if (otherRange.length > 0) {
        replace(changed, CFRangeMake(changed->count, 0), other->values + otherRange.location, otherRange.length);
    }
}

void CFArrayRemoveValueAtIndex(CFMutableArrayRef array, CFIndex index)
{
    struct array *changed = mutable_of(array, "CFArrayRemoveValueAtIndex");

    require_index(index, changed->count, changed->count, "CFArrayRemoveValueAtIndex");
    const void *old = changed->values[index];
    close_place(changed, index);
    release_value(changed, old);
}

void CFArrayRemoveAllValues(CFMutableArrayRef array)
{
    struct array *changed = mutable_of(array, "CFArrayRemoveAllValues");
    const void **values = changed->values;
    void *memory = memory_of(changed);
    CFIndex count = changed->count;

    changed->values = NULL;
    changed->count = 0;
    changed->capacity = 0;
    changed->front = 0;
    for (CFIndex i = 0; i < count; i++) {
        release_value(changed, values[i]);
    }
    allocator_deallocate(object_allocator(changed), memory);
}

void CFArraySortValues(CFMutableArrayRef array, CFRange range, CFComparatorFunction comparator, void *context)
{
    struct array *changed = mutable_of(array, "CFArraySortValues");

    require_range(range, changed->count, "CFArraySortValues");
    if (comparator == NULL) {
        fault_stop("CFArraySortValues", "the comparator is NULL");
    }
    if (range.length < 2) {
        return;
    }
    /* Sorted in a copy, so that the comparator always sees a whole array. */
    size_t size = (size_t)range.length * sizeof(void *);
    const void **sorted = malloc(2 * size);
    if (sorted == NULL) {
        log_no_memory();
        return;
    }
    memcpy(sorted, changed->values + range.location, size);
    sort_stably(sorted, range.length, sorted + range.length, comparator, context);
    memcpy(changed->values + range.location, sorted, size);
    free(sorted);
}
