/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects: what every reference of this library points to, how it is counted, and how a type describes itself.
 *
 * An object starts with `struct object`. 16 bytes before it stand its allocator and its owner, if it has one. The count is atomic; 0 means
 * immortal: constants and literals are never counted and never freed. A freed object's count is left at a mark that no live object has, so
 * that a release too many is noticed as long as the memory has not been used again.
 *
 * An owned object is one half of a whole whose other half is an object of another language, with a count of its own: the Swift overlay's
 * timers and observers. Both halves live equally long, because the owner's count stands for both. Two counts would keep each other alive,
 * or need weak references, which cost more than all else in a callout.
 *
 * Literals made by the compiler are objects too:
 *   clang's CFSTR: {&__CFConstantStringClassReference, 32-bit flags, 32-bit zero (our immortal count), bytes, length};
 *   gcc's CFSTR: a wide string literal whose first character is odd, 4-byte aligned; `object_is_wide_literal` tells them by the lowest
 *   bit of the first word, which is never set in the address of a class.
 */
#ifndef CRL_RUNTIME_OBJECT_H
#define CRL_RUNTIME_OBJECT_H

#include "Runtime/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "CoreFoundation/CFBase.h"
#include "Runtime/Object/owner_class.h"

enum object_type_id {
    object_type_none = 0,
    object_type_allocator,
    object_type_null,
    object_type_boolean,
    object_type_number,
    object_type_string,
    object_type_data,
    object_type_date,
    object_type_array,
    object_type_dictionary,
    object_type_set,
    object_type_run_loop,
    object_type_run_loop_mode,
    object_type_run_loop_source,
    object_type_run_loop_observer,
    object_type_run_loop_timer,
    object_type_file_descriptor,
    object_type_socket,
    object_type_message_port,
    object_type_mach_port,
    object_type_uuid,
    object_type_error,
    object_type_url,
    object_type_read_stream,
    object_type_write_stream,
    object_type_host,
    object_type_count
};

/*
 * The functions of a type. Every pointer but `name` may be NULL. Then nothing is finalized, objects are equal only to themselves and hash
 * by their address, and the description is a generated text.
 */
struct object_class {
    CFTypeID type_id;
    const char *name; /* "CFRunLoopTimer" */
    void (*finalize)(CFTypeRef object); /* the count has reached 0: gives back what the object holds, not its own memory */
    Boolean (*equal)(CFTypeRef one, CFTypeRef other); /* both are of this class and not identical */
    CFHashCode (*hash)(CFTypeRef object);
    CFStringRef (*copy_description)(CFTypeRef object); /* for CFCopyDescription */
    CFStringRef (*copy_text)(CFTypeRef object); /* for %@ in a format; NULL: the description */
};

struct object {
    const struct object_class *isa; /* constant */
    uint32_t info; /* the type's own flags; constant after creation or guarded as the type says */
    _Atomic uint32_t count; /* references; 0 = immortal */
};

/* A new object of `size` bytes in all, zeroed behind the header, with one reference; NULL if there is no
 * memory. NULL allocator = default. */
void *object_create(CFAllocatorRef allocator, const struct object_class *isa, size_t size);

/* For an allocator that lives in memory of its own: the object inside `block`, which has object_block_size(size) zeroed bytes. */
void *object_create_in_block(void *block, const struct object_class *isa);
size_t object_block_size(size_t size);

/* The allocator that an object's memory came from, borrowed. */
CFAllocatorRef object_allocator(CFTypeRef object);

/* The class of any object, literals included. Stops with a sentence that names `function` when `object` is NULL. */
const struct object_class *object_class_of(CFTypeRef object, const char *function);

static inline bool object_is_wide_literal(CFTypeRef object)
{
    uint32_t first_word;

    memcpy(&first_word, object, sizeof first_word);
    return (first_word & 1) != 0;
}

/* Like CFRetain and CFRelease, for callers that know that the object is not NULL. */
void object_retain(const void *object);
void object_release(const void *object);

/* CFRelease of what may be NULL. */
static inline void object_release_if_any(CFTypeRef object)
{
    if (object) {
        CFRelease(object);
    }
}

/* Retains unless the count has come to 0 already: for weak references, under the lock that the finalizer takes to clear them. */
bool object_try_retain(const void *object);

/* Stops with one sentence unless `object` is of type `type_id`: "CFRunLoopAddTimer: the timer is NULL". */
void object_require(CFTypeRef object, CFTypeID type_id, const char *function, const char *argument);

/* Stops with one sentence: the object is not of the only class of its type. */
_Noreturn void object_refuse(CFTypeRef object, const struct object_class *expected, const char *function, const char *argument);

/* As object_require, for types that have one class. Since it never comes back from a refusal, it costs a caller two instructions. */
static inline void object_check(CFTypeRef object, const struct object_class *expected, const char *function, const char *argument)
{
    const struct object_class *isa = NULL;

    if (object) {
        __builtin_memcpy(&isa, object, sizeof isa); /* a wide literal of gcc, passed by mistake, is aligned to 4 bytes only */
    }
    if (isa != expected) {
        object_refuse(object, expected, function, argument);
    }
}

/* Makes a new object immortal. Only its maker may know the object yet. */
void object_make_immortal(void *object);

/* Frees an immortal object that nobody else has seen. */
void object_discard_immortal(void *object);

/*
 * Leaves the counting of a new object to `owner`. Only its maker may know the object yet. One of its references becomes the owner's own,
 * which keeps nobody alive. The owner is retained once for each other reference.
 */
void object_give_to_owner(void *object, void *owner, const struct object_owner_class *owner_class);

/* Returns true if an owner counts the object. */
bool object_is_owned(CFTypeRef object);

/* Called by an owner whose count has come to 0. Only the owner's own reference is left, and it is counted here again. */
void object_take_from_owner(void *object);

/* The class of all strings. clang's literals refer to it by this name, so it is exported. */
extern __attribute__((visibility("default"))) const struct object_class string_class __asm__("__CFConstantStringClassReference");

/* Quick for the two kinds that mode names are: the library's own strings and gcc's literals. */
static inline bool object_is_string(CFTypeRef object)
{
    return object_is_wide_literal(object) || ((const struct object *)object)->isa == &string_class ||
           CFGetTypeID(object) == object_type_string;
}

/* Live objects made by object_create, not immortal and not yet freed; for leak checks in tests, and 0 unless built with CRL_TESTING. */
long object_live_count(void);

#endif
