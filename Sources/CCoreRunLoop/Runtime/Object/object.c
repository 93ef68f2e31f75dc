/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns counting, the memory around an object, and dispatch to the object's class. Knows the classes of strings and allocators only.
 *
 * No locks: a count is one atomic word, everything else about an object belongs to its type. Ranges of the count:
 *   0 immortal; 1 to count_limit live; count_owned where the owner counts; around count_finalizing while the finalizer runs, so that it may
 *   retain and release in balance; around count_dead in memory that has been given back.
 */
#include "Runtime/Object/object.h"

#include <stdalign.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Object/allocator.h"
#include "Support/barrier.h"
#include "Support/fault.h"

static const uint32_t count_limit = 0x7FFFFFFF;
static const uint32_t count_owned = 0x90000000;
static const uint32_t count_finalizing = 0xA0000000;
static const uint32_t count_dead = 0xD0000000;
static const uint32_t count_slack = 0x08000000; /* how far racing threads may move a mark before it is not recognised */

struct prefix {
    alignas(16) CFAllocatorRef allocator; /* never NULL; constant */
    void *owner; /* constant once others know the object; NULL: counted here. Of one in destroyed_later: the next one's prefix */
};

/*
 * Objects whose end ends others, those again others and so on, are destroyed inside of each other as far as `destroy_depth_max`. What is
 * deeper waits in a list until the innermost of these destroys it: a tree may be as deep as memory allows.
 */
enum { destroy_depth_max = 32 };
static __thread unsigned destroy_depth __attribute__((tls_model("initial-exec")));
static __thread struct prefix *destroyed_later __attribute__((tls_model("initial-exec")));

static _Atomic(const struct object_owner_class *) owner_class;

#if defined(CRL_TESTING)
static _Atomic long live_count;
#endif

static void live_count_add(long change)
{
#if defined(CRL_TESTING)
    atomic_fetch_add_explicit(&live_count, change, memory_order_relaxed);
#else
    (void)change;
#endif
}

long object_live_count(void)
{
#if defined(CRL_TESTING)
    return atomic_load_explicit(&live_count, memory_order_relaxed);
#else
    return 0;
#endif
}

static bool is_near(uint32_t count, uint32_t mark)
{
    return count >= mark - count_slack && count < mark + count_slack;
}

static struct prefix *prefix_of(const void *object)
{
    return (struct prefix *)(uintptr_t)object - 1;
}

void *object_create(CFAllocatorRef allocator, const struct object_class *isa, size_t size)
{
    if (size > (size_t)PTRDIFF_MAX - sizeof(struct prefix)) {
        return NULL;
    }
    CFAllocatorRef source = allocator_resolve(allocator);
    struct prefix *prefix = allocator_allocate_zeroed(source, sizeof(struct prefix) + size);
    if (prefix == NULL) {
        return NULL;
    }
    object_retain(source);
    prefix->allocator = source;
    struct object *object = (struct object *)(void *)(prefix + 1);
    object->isa = isa;
    atomic_init(&object->count, 1);
    live_count_add(1);
    return object;
}

void *object_create_in_block(void *block, const struct object_class *isa)
{
    struct prefix *prefix = block;
    struct object *object = (struct object *)(void *)(prefix + 1);

    prefix->allocator = (CFAllocatorRef)(const void *)object;
    object->isa = isa;
    atomic_init(&object->count, 1);
    live_count_add(1);
    return object;
}

size_t object_block_size(size_t size)
{
    return sizeof(struct prefix) + size;
}

void object_make_immortal(void *object)
{
    atomic_store_explicit(&((struct object *)object)->count, 0, memory_order_relaxed);
    live_count_add(-1);
}

void object_discard_immortal(void *object)
{
    live_count_add(1);
    atomic_store_explicit(&((struct object *)object)->count, 1, memory_order_relaxed);
    object_release(object);
}

const struct object_class *object_class_of(CFTypeRef object, const char *function)
{
    if (object == NULL) {
        fault_stop(function, "the object is NULL");
    }
    if (object_is_wide_literal(object)) {
        return &string_class;
    }
    const struct object_class *isa = ((const struct object *)object)->isa;
    if (isa == NULL) {
        fault_stop(function, "the pointer does not point to an object");
    }
    return isa;
}

void object_require(CFTypeRef object, CFTypeID type_id, const char *function, const char *argument)
{
    if (object == NULL) {
        fault_stop_format(function, "the %s is NULL", argument);
    }
    const struct object_class *isa = object_class_of(object, function);
    if (isa->type_id != type_id) {
        fault_stop_format(function, "the %s is a %s", argument, isa->name);
    }
}

void object_refuse(CFTypeRef object, const struct object_class *expected, const char *function, const char *argument)
{
    object_require(object, expected->type_id, function, argument);
    fault_stop_format(function, "the %s is of another making", argument);
}

static _Noreturn void stop_on_count(const struct object *object, uint32_t count, const char *function)
{
    if (is_near(count, count_dead)) {
        fault_stop_format(function, "this %s has already been freed", object->isa->name);
    }
    if (is_near(count, count_finalizing)) {
        fault_stop_format(function, "this %s is being freed, and was released once too often", object->isa->name);
    }
    fault_stop_format(function, "this %s has too many references, or its memory was overwritten", object->isa->name);
}

/* Handles the rare counts outside 1 to count_limit, and stops on dead objects. Kept out of object_retain, which stays short so. */
static __attribute__((noinline)) void retain_specially(struct object *object, uint32_t count)
{
    if (count == count_owned) {
        atomic_load_explicit(&owner_class, memory_order_relaxed)->retain(prefix_of(object)->owner);
    } else if (count != 0) {
        uint32_t before = atomic_fetch_add_explicit(&object->count, 1, memory_order_relaxed);

        if (!is_near(before, count_finalizing)) {
            stop_on_count(object, before, "CFRetain");
        }
    }
}

void object_retain(const void *reference)
{
    if (object_is_wide_literal(reference)) {
        return;
    }
    struct object *object = (struct object *)(uintptr_t)reference;
    uint32_t count = atomic_load_explicit(&object->count, memory_order_relaxed);
    if (count - 1 >= count_limit) {
        retain_specially(object, count);
        return;
    }
    /* Relaxed: the caller already holds a reference, and the way it got that has ordered the object's memory. */
    uint32_t before = atomic_fetch_add_explicit(&object->count, 1, memory_order_relaxed);
    if (before >= count_limit) {
        stop_on_count(object, before, "CFRetain");
    }
}

static inline __attribute__((always_inline)) void destroy_now(struct object *object)
{
    const struct object_class *isa = object->isa;

    if (isa->finalize != NULL) {
        isa->finalize(object);
    }
    if (atomic_load_explicit(&object->count, memory_order_relaxed) != count_finalizing) {
        fault_stop_format("CFRelease", "this %s was retained while it was being freed", isa->name);
    }
    atomic_store_explicit(&object->count, count_dead, memory_order_relaxed);
    live_count_add(-1);
    struct prefix *prefix = prefix_of(object);
    CFAllocatorRef allocator = prefix->allocator;
    if ((const void *)allocator == object) {
        allocator_free_itself(allocator, prefix);
        return;
    }
    allocator_deallocate(allocator, prefix);
    object_release(allocator);
}

/* Kept out of destroy, which stays short so. */
static __attribute__((noinline, cold)) void destroy_deep(struct object *object)
{
    struct prefix *prefix = prefix_of(object);

    if (destroy_depth >= destroy_depth_max && prefix->owner == NULL) {
        prefix->owner = destroyed_later;
        destroyed_later = prefix;
        return;
    }
    destroy_depth++;
    destroy_now(object);
    while (destroy_depth == destroy_depth_max && (prefix = destroyed_later) != NULL) {
        destroyed_later = prefix->owner;
        prefix->owner = NULL;
        destroy_now((struct object *)(void *)(prefix + 1));
    }
    destroy_depth--;
}

static void destroy(struct object *object)
{
    atomic_store_explicit(&object->count, count_finalizing, memory_order_relaxed);
    if (destroy_depth >= destroy_depth_max - 1) {
        destroy_deep(object);
        return;
    }
    destroy_depth++;
    destroy_now(object);
    destroy_depth--;
}

bool object_try_retain(const void *reference)
{
    struct object *object = (struct object *)(uintptr_t)reference;
    uint32_t count = atomic_load_explicit(&object->count, memory_order_relaxed);

    do {
        if (count == 0 || count >= count_limit) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&object->count, &count, count + 1, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static __attribute__((noinline)) void release_specially(struct object *object, uint32_t count)
{
    if (count == count_owned) {
        barrier_before_end(object);
        atomic_load_explicit(&owner_class, memory_order_relaxed)->release(prefix_of(object)->owner);
    } else if (count != 0) {
        uint32_t before = atomic_fetch_sub_explicit(&object->count, 1, memory_order_acq_rel);

        if (!is_near(before, count_finalizing) || before <= count_finalizing) {
            stop_on_count(object, before, "CFRelease");
        }
    }
}

void object_release(const void *reference)
{
    if (object_is_wide_literal(reference)) {
        return;
    }
    struct object *object = (struct object *)(uintptr_t)reference;
    uint32_t count = atomic_load_explicit(&object->count, memory_order_relaxed);
    if (count - 1 >= count_limit) {
        release_specially(object, count);
        return;
    }
    /* Release: this thread's changes to the object come before its end. Acquire: the thread that ends it sees the changes of all others. */
    uint32_t before = atomic_fetch_sub_explicit(&object->count, 1, memory_order_acq_rel);
    if (before == 1) {
        destroy(object);
    } else if (before > count_limit) {
        stop_on_count(object, before, "CFRelease");
    }
}

void object_give_to_owner(void *reference, void *owner, const struct object_owner_class *its_class)
{
    struct object *object = reference;
    uint32_t count = atomic_load_explicit(&object->count, memory_order_relaxed);

    atomic_store_explicit(&owner_class, its_class, memory_order_relaxed);
    prefix_of(object)->owner = owner;
    atomic_store_explicit(&object->count, count_owned, memory_order_relaxed);
    for (uint32_t i = 1; i < count; i++) {
        its_class->retain(owner);
    }
}

bool object_is_owned(CFTypeRef object)
{
    return atomic_load_explicit(&((const struct object *)object)->count, memory_order_relaxed) == count_owned;
}

void object_take_from_owner(void *object)
{
    barrier_at_end(object);
    atomic_store_explicit(&((struct object *)object)->count, 1, memory_order_relaxed);
}

CFAllocatorRef object_allocator(CFTypeRef object)
{
    if (object_is_wide_literal(object) || atomic_load_explicit(&((const struct object *)object)->count, memory_order_relaxed) == 0) {
        return kCFAllocatorSystemDefault;
    }
    return prefix_of(object)->allocator;
}
