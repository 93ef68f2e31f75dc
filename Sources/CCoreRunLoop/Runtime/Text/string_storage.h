/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of a string, how it is made, and how a string that can be changed grows.
 *
 * The first four fields are those of the constants that clang makes for CFSTR, so all stored strings are read alike.
 */
#ifndef CRL_RUNTIME_STRING_STORAGE_H
#define CRL_RUNTIME_STRING_STORAGE_H

#include "Runtime/link_names.h"

#include "CoreFoundation/CFString.h"
#include "Runtime/Object/object.h"
#include "Runtime/Text/text.h"

/* Bits of object.info. The two of clang's constants are given: 0x7C8 with bytes, 0x7D0 with UTF-16 units. */
enum string_flag {
    string_is_mutable = 0x1,
    string_is_external = 0x2, /* the units are freed by a deallocator */
    string_is_lent = 0x4, /* the deallocator frees nothing: the units belong to the program, which may free them once the string is gone */
    string_is_utf16 = 0x10,
};

struct string {
    struct object object;
    const void *units; /* bytes below 128 and a NUL, or UniChar; constant unless mutable */
    CFIndex length;
};

/* A new immutable string with room for its units, which the caller fills in; NULL if there is no memory. */
struct string *string_create_unfilled(CFAllocatorRef allocator, CFIndex length, bool is_ascii, void **ret_units);

/* A new immutable string with the units of a view. */
CFStringRef string_create(CFAllocatorRef allocator, const struct text *text, CFRange range);

/* A new immutable string of bytes below 128 that end with NUL, used in place and freed by `deallocator`, which is not NULL. */
CFStringRef string_create_external(CFAllocatorRef allocator, const char *bytes, CFIndex length, CFAllocatorRef deallocator);

/* A new string of bytes; NULL when they are not valid, the encoding is unknown or there is no memory. */
CFStringRef string_create_decoded(CFAllocatorRef allocator, const uint8_t *bytes, size_t count, CFStringEncoding encoding,
                                  bool is_external);

/* The immortal string with these units, always the same one; NULL if there is no memory. */
CFStringRef string_intern(const struct text *text);

/* A new empty string that can be changed. `capacity` is a hint, in units. */
CFMutableStringRef string_create_mutable(CFAllocatorRef allocator, CFIndex capacity);

/* Adds a view at the end, which may be of `string` itself. False, with nothing changed, if there is no memory. */
bool string_append(CFMutableStringRef string, const struct text *text);

/* Puts a view, which may be of `string` itself, in the place of a range of it. False, with nothing changed, if there is no memory. */
bool string_replace(CFMutableStringRef string, CFRange range, const struct text *text);

bool string_can_change(CFStringRef string);

/* Stops with a sentence unless the string can be changed. */
void string_require_mutable(CFMutableStringRef string, const char *function);

/* Stops with a sentence unless the range lies within a string of `length` units. */
void string_require_range(CFRange range, CFIndex length, const char *function);

/* Says once that a change was not made for want of memory. */
void string_log_no_memory(bool is_done);

/* Adds `count` times the byte, which is below 128. */
bool string_append_repeated(CFMutableStringRef string, char byte, CFIndex count);

/* Returns a string that does not change with the text of `text`: `text` itself with a reference where that will do. NULL: no memory. */
CFStringRef string_create_copy(CFAllocatorRef allocator, CFStringRef text, const char *function);

#endif
