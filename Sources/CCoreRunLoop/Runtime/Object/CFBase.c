/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions of CFBase.h that work on any object, and CFNull. Thin: argument checks and one call inward. CFAutorelease stands in
 * autorelease.c and the CFAllocator functions in allocator.c.
 *
 * Any thread; no state of its own.
 */
#include "CoreFoundation/CFBase.h"

#include <limits.h>
#include <stdbool.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Object/object.h"
#include "Support/fault.h"

const double kCFCoreFoundationVersionNumber = kCFCoreFoundationVersionNumber10_11;

/*
 * Blocks are objects on Apple's systems. Here the blocks runtime counts them, which a program that has blocks has: its symbols are weak.
 * Source: the blocks ABI specification of Clang, "High Level" and "Runtime Helper Functions".
 */
extern void *_NSConcreteStackBlock[] __attribute__((weak));
extern void *_NSConcreteGlobalBlock[] __attribute__((weak));
extern void *_NSConcreteMallocBlock[] __attribute__((weak));
extern void *_Block_copy(const void *block) __attribute__((weak));
extern void _Block_release(const void *block) __attribute__((weak));

/* `isa` is not NULL, as the symbols are without a runtime. */
static bool is_block(const void *isa)
{
    return isa == (const void *)_NSConcreteMallocBlock || isa == (const void *)_NSConcreteGlobalBlock ||
           isa == (const void *)_NSConcreteStackBlock;
}

CFTypeRef CFRetain(CFTypeRef object)
{
    if (__builtin_expect(is_block(object_class_of(object, "CFRetain")), 0)) {
        return _Block_copy(object);
    }
    object_retain(object);
    return object;
}

void CFRelease(CFTypeRef object)
{
    if (__builtin_expect(is_block(object_class_of(object, "CFRelease")), 0)) {
        _Block_release(object);
        return;
    }
    object_release(object);
}

CFIndex CFGetRetainCount(CFTypeRef object)
{
    object_class_of(object, "CFGetRetainCount");
    if (object_is_wide_literal(object)) {
        return LONG_MAX;
    }
    /* Acquire: a program that sees the count 1 may conclude that all other holders are done. */
    uint32_t count = atomic_load_explicit(&((const struct object *)object)->count, memory_order_acquire);
    return count == 0 ? LONG_MAX : object_is_owned(object) ? 1 : (CFIndex)count;
}

CFTypeID CFGetTypeID(CFTypeRef object)
{
    return object_class_of(object, "CFGetTypeID")->type_id;
}

/* Collections in collections. More of them would end the stack of many a thread. */
enum { equal_depth_max = 1024 };

static bool are_equal_collections(CFTypeRef object1, CFTypeRef object2, Boolean (*equal)(CFTypeRef, CFTypeRef))
{
    static __thread unsigned depth;
    bool is_equal;

    if (depth == equal_depth_max) {
        return false;
    }
    depth++;
    is_equal = equal(object1, object2);
    depth--;
    return is_equal;
}

Boolean CFEqual(CFTypeRef object1, CFTypeRef object2)
{
    const struct object_class *class1 = object_class_of(object1, "CFEqual");
    const struct object_class *class2 = object_class_of(object2, "CFEqual");

    if (object1 == object2) {
        return true;
    }
    if (class1->type_id != class2->type_id || class1->equal == NULL) {
        return false;
    }
    return class1->type_id >= object_type_array && class1->type_id <= object_type_set
               ? are_equal_collections(object1, object2, class1->equal)
               : class1->equal(object1, object2);
}

CFHashCode CFHash(CFTypeRef object)
{
    const struct object_class *isa = object_class_of(object, "CFHash");

    return isa->hash != NULL ? isa->hash(object) : (CFHashCode)(uintptr_t)object;
}

CFAllocatorRef CFGetAllocator(CFTypeRef object)
{
    return object != NULL ? object_allocator(object) : kCFAllocatorSystemDefault;
}

CFTypeRef CFMakeCollectable(CFTypeRef object)
{
    return object;
}

static CFStringRef null_copy_words(CFTypeRef object)
{
    (void)object;
    return CFSTR("<null>");
}

static const struct object_class null_class = {
    .type_id = object_type_null,
    .name = "CFNull",
    .copy_description = null_copy_words,
};

static const struct object null_object = {.isa = &null_class};

const CFNullRef kCFNull = (CFNullRef)(const void *)&null_object;

CFTypeID CFNullGetTypeID(void)
{
    return object_type_null;
}
