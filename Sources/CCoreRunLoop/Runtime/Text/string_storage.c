/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the memory of strings: immutable ones with their units behind the object, ones that use a caller's bytes, growing ones, and the
 * table of immortal ones.
 *
 * A string is stored as bytes exactly as long as all its units are below 128; bytes are always followed by a NUL. A mutable string turns to
 * UTF-16 when it must and stays so. Mutable strings belong to one thread at a time. The table is lock-free: entries are only ever added.
 */
#include "Runtime/Text/string_storage.h"

#include <stdlib.h>
#include <string.h>

#include "Runtime/Object/allocator.h"
#include "Runtime/Text/added_encodings.h"
#include "Runtime/Text/encoding.h"
#include "Support/fault.h"

enum { capacity_first = 32, intern_buckets = 256 };

struct external_string {
    struct string string;
    CFAllocatorRef deallocator; /* retained; constant */
};

struct mutable_string {
    struct string string;
    size_t size; /* bytes that string.units has room for */
};

struct interned {
    struct interned *next; /* constant once published */
    CFStringRef string;
};

static _Atomic(struct interned *) interned[intern_buckets];

static void finalize(CFTypeRef object)
{
    const struct string *string = object;

    if ((string->object.info & string_is_mutable) != 0) {
        allocator_deallocate(object_allocator(object), (void *)(uintptr_t)string->units);
    } else if ((string->object.info & string_is_external) != 0) {
        CFAllocatorRef deallocator = ((const struct external_string *)object)->deallocator;

        allocator_deallocate(deallocator, (void *)(uintptr_t)string->units);
        object_release(deallocator);
    }
}

static Boolean equal(CFTypeRef one, CFTypeRef other)
{
    struct text text1 = text_of(one, "CFEqual");
    struct text text2 = text_of(other, "CFEqual");

    return text_equal(&text1, &text2);
}

static CFHashCode hash(CFTypeRef object)
{
    struct text text = text_of(object, "CFHash");

    return text_hash(&text);
}

const struct object_class string_class = {
    .type_id = object_type_string,
    .name = "CFString",
    .finalize = finalize,
    .equal = equal,
    .hash = hash,
};

/* Bytes for `length` units and, behind bytes, the NUL; 0 when that is more than memory can be. */
static size_t size_for(CFIndex length, bool is_ascii)
{
    size_t size;

    if (__builtin_mul_overflow((size_t)length, is_ascii ? 1 : sizeof(UniChar), &size) || size > (size_t)PTRDIFF_MAX / 2) {
        return 0;
    }
    return size + (is_ascii ? 1 : sizeof(UniChar));
}

struct string *string_create_unfilled(CFAllocatorRef allocator, CFIndex length, bool is_ascii, void **ret_units)
{
    size_t size = size_for(length, is_ascii);
    struct string *string = size != 0 ? object_create(allocator, &string_class, sizeof *string + size) : NULL;

    if (string == NULL) {
        return NULL;
    }
    *ret_units = string + 1;
    string->object.info = is_ascii ? 0 : string_is_utf16;
    string->units = *ret_units;
    string->length = length;
    return string;
}

static CFStringRef reference(struct string *string)
{
    return (CFStringRef)(const void *)string;
}

static void copy_bytes(const struct text *text, CFRange range, uint8_t *ret_bytes)
{
    if (text->form == text_ascii) {
        if (range.length > 0) {
            memcpy(ret_bytes, (const uint8_t *)text->units + range.location, (size_t)range.length);
        }
        return;
    }
    for (CFIndex i = 0; i < range.length; i++) {
        ret_bytes[i] = (uint8_t)text_unit(text, range.location + i);
    }
}

static bool range_is_ascii(const struct text *text, CFRange range)
{
    for (CFIndex i = 0; text->form != text_ascii && i < range.length; i++) {
        if (text_unit(text, range.location + i) >= 0x80) {
            return false;
        }
    }
    return true;
}

CFStringRef string_create(CFAllocatorRef allocator, const struct text *text, CFRange range)
{
    void *units;
    bool is_ascii = range_is_ascii(text, range);
    struct string *string = string_create_unfilled(allocator, range.length, is_ascii, &units);

    if (string == NULL) {
        return NULL;
    }
    if (is_ascii) {
        copy_bytes(text, range, units);
    } else {
        text_copy_units(text, range, units);
    }
    return reference(string);
}

CFStringRef string_create_external(CFAllocatorRef allocator, const char *bytes, CFIndex length, CFAllocatorRef deallocator)
{
    struct external_string *string = object_create(allocator, &string_class, sizeof *string);

    if (string == NULL) {
        return NULL;
    }
    string->string.object.info = string_is_external | (deallocator == kCFAllocatorNull ? string_is_lent : 0);
    string->string.units = bytes;
    string->string.length = length;
    object_retain(deallocator);
    string->deallocator = deallocator;
    return reference(&string->string);
}

static bool are_ascii(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

/* Counts the units that the bytes make, or gives kCFNotFound when they are not valid. */
static CFIndex measure(struct decoder decoder, bool *ret_is_ascii)
{
    CFIndex length = 0;

    *ret_is_ascii = true;
    int32_t character;
    while ((character = decoder_next(&decoder)) >= 0) {
        length += character >= 0x10000 ? 2 : 1;
        if (character >= 0x80) {
            *ret_is_ascii = false;
        }
    }
    return character == decoder_at_end ? length : kCFNotFound;
}

static void fill(struct decoder decoder, bool is_ascii, void *units)
{
    uint8_t *byte = units;
    UniChar *unit = units;
    int32_t character;

    while ((character = decoder_next(&decoder)) >= 0) {
        if (is_ascii) {
            *byte++ = (uint8_t)character;
        } else {
            unit += units_of_character((uint32_t)character, unit);
        }
    }
}

/* In an encoding of an add-on library, or one that nobody knows. */
static CFStringRef create_added(CFAllocatorRef allocator, const uint8_t *bytes, CFIndex count, CFStringEncoding encoding)
{
    UniChar *units = NULL;
    CFIndex length = added_decode(encoding, bytes, count, &units);

    if (length == kCFNotFound) {
        return NULL;
    }
    struct text text = text_of_units(units, length);
    CFStringRef string = string_create(allocator, &text, CFRangeMake(0, length));
    free(units);
    return string;
}

CFStringRef string_create_decoded(CFAllocatorRef allocator, const uint8_t *bytes, size_t count, CFStringEncoding encoding, bool is_external)
{
    if (encoding_extends_ascii(encoding) && are_ascii(bytes, count)) {
        struct text text = text_of_ascii((const char *)bytes, (CFIndex)count);

        return string_create(allocator, &text, CFRangeMake(0, (CFIndex)count));
    }
    struct decoder decoder;
    if (!decoder_start(&decoder, bytes, count, encoding, is_external)) {
        return create_added(allocator, bytes, (CFIndex)count, encoding);
    }
    bool is_ascii;
    CFIndex length = measure(decoder, &is_ascii);
    void *units;
    struct string *string = length != kCFNotFound ? string_create_unfilled(allocator, length, is_ascii, &units) : NULL;
    if (string == NULL) {
        return NULL;
    }
    fill(decoder, is_ascii, units);
    return reference(string);
}

static CFStringRef find_interned(const struct interned *from, const struct interned *to, const struct text *text)
{
    for (const struct interned *entry = from; entry != to; entry = entry->next) {
        struct text candidate = text_of(entry->string, "CFSTR");

        if (text_equal(&candidate, text)) {
            return entry->string;
        }
    }
    return NULL;
}

static struct interned *create_interned(const struct text *text)
{
    struct interned *entry = malloc(sizeof *entry);

    if (entry == NULL) {
        return NULL;
    }
    entry->string = string_create(kCFAllocatorSystemDefault, text, CFRangeMake(0, text->length));
    if (entry->string == NULL) {
        free(entry);
        return NULL;
    }
    return entry;
}

CFStringRef string_intern(const struct text *text)
{
    _Atomic(struct interned *) *bucket = &interned[text_hash(text) % intern_buckets];
    /* Acquire, paired with the release below: a thread that sees an entry sees its string. */
    struct interned *first = atomic_load_explicit(bucket, memory_order_acquire);
    CFStringRef found = find_interned(first, NULL, text);

    if (found != NULL) {
        return found;
    }
    struct interned *entry = create_interned(text);
    if (entry == NULL) {
        return NULL;
    }
    struct interned *searched = first;
    entry->next = first;
    object_make_immortal((void *)(uintptr_t)entry->string);
    while (!atomic_compare_exchange_weak_explicit(bucket, &first, entry, memory_order_release, memory_order_acquire)) {
        found = find_interned(first, searched, text);
        if (found != NULL) {
            object_discard_immortal((void *)(uintptr_t)entry->string);
            free(entry);
            return found;
        }
        searched = first;
        entry->next = first;
    }
    return entry->string;
}

static struct mutable_string *mutable_of(CFMutableStringRef string)
{
    return (struct mutable_string *)(void *)string;
}

static bool is_utf16(const struct mutable_string *string)
{
    return (string->string.object.info & string_is_utf16) != 0;
}

/* Makes room for `length` units and the NUL, as bytes or as UTF-16. */
static bool reserve(struct mutable_string *string, CFIndex length)
{
    size_t needed = size_for(length, !is_utf16(string));

    if (needed == 0 || needed <= string->size) {
        return needed != 0;
    }
    size_t size = string->size < (size_t)PTRDIFF_MAX / 2 ? string->size * 2 : needed;
    if (size < needed) {
        size = needed < capacity_first ? capacity_first : needed;
    }
    void *units = allocator_resize(object_allocator(string), (void *)(uintptr_t)string->string.units, string->size, size);
    if (units == NULL) {
        return false;
    }
    string->string.units = units;
    string->size = size;
    return true;
}

static bool widen(struct mutable_string *string, CFIndex length)
{
    size_t size = size_for(length, false);
    CFAllocatorRef allocator = object_allocator(string);
    UniChar *units = size != 0 ? allocator_allocate(allocator, size) : NULL;

    if (units == NULL) {
        return false;
    }
    const uint8_t *bytes = string->string.units;
    for (CFIndex i = 0; i < string->string.length; i++) {
        units[i] = bytes[i];
    }
    allocator_deallocate(allocator, (void *)(uintptr_t)bytes);
    string->string.units = units;
    string->string.object.info |= string_is_utf16;
    string->size = size;
    return true;
}

CFMutableStringRef string_create_mutable(CFAllocatorRef allocator, CFIndex capacity)
{
    struct mutable_string *string = object_create(allocator, &string_class, sizeof *string);

    if (string == NULL) {
        return NULL;
    }
    string->string.object.info = string_is_mutable;
    CFMutableStringRef created = (CFMutableStringRef)(void *)string;
    /* A hint that cannot be followed does no harm. */
    if (!reserve(string, capacity > 0 && capacity < 4096 ? capacity : 0)) {
        object_release(created);
        return NULL;
    }
    ((char *)(uintptr_t)string->string.units)[0] = '\0';
    return created;
}

/* Room for `length` units, some of which are those of `text`. */
static bool prepare(struct mutable_string *string, CFIndex length, const struct text *text)
{
    return is_utf16(string) || text_is_ascii(text) ? reserve(string, length) : widen(string, length);
}

static void put(struct mutable_string *string, CFRange range, const struct text *text)
{
    CFIndex behind = range.location + range.length;
    CFIndex length = string->string.length - range.length + text->length;
    size_t unit_size = is_utf16(string) ? sizeof(UniChar) : 1;
    uint8_t *units = (uint8_t *)(uintptr_t)string->string.units;
    uint8_t *place = units + (size_t)range.location * unit_size;

    memmove(place + (size_t)text->length * unit_size, units + (size_t)behind * unit_size,
            (size_t)(string->string.length - behind) * unit_size);
    if (is_utf16(string)) {
        text_copy_units(text, CFRangeMake(0, text->length), (UniChar *)(void *)place);
    } else {
        copy_bytes(text, CFRangeMake(0, text->length), place);
        units[length] = 0;
    }
    string->string.length = length;
}

bool string_replace(CFMutableStringRef reference, CFRange range, const struct text *replacement)
{
    struct mutable_string *string = mutable_of(reference);
    CFIndex old_length = string->string.length;
    CFIndex length;

    if (__builtin_add_overflow(old_length - range.length, replacement->length, &length)) {
        return false;
    }
    struct text text = *replacement;
    bool is_itself = text.units == string->string.units && text.length > 0;
    bool is_at_end = range.location == old_length;
    /* Units of the string itself stay where they are only when the new ones come behind them. */
    CFStringRef copy = is_itself && !is_at_end ? string_create(kCFAllocatorSystemDefault, &text, CFRangeMake(0, text.length)) : NULL;
    if (copy != NULL) {
        text = text_of(copy, "CFStringReplace");
    }
    bool has_units = copy != NULL || !is_itself || is_at_end;
    bool is_done = has_units && prepare(string, length > old_length ? length : old_length, &text);
    if (is_done && is_itself && is_at_end) {
        text.units = string->string.units;
    }
    if (is_done) {
        put(string, range, &text);
    }
    if (copy != NULL) {
        object_release(copy);
    }
    return is_done;
}

bool string_append(CFMutableStringRef reference, const struct text *appended)
{
    return string_replace(reference, CFRangeMake(mutable_of(reference)->string.length, 0), appended);
}

bool string_append_repeated(CFMutableStringRef reference, char byte, CFIndex count)
{
    char bytes[64];

    memset(bytes, byte, sizeof bytes);
    struct mutable_string *string = mutable_of(reference);
    CFIndex length;
    if (__builtin_add_overflow(string->string.length, count, &length) || !reserve(string, length)) {
        return false;
    }
    while (count > 0) {
        CFIndex step = count < (CFIndex)sizeof bytes ? count : (CFIndex)sizeof bytes;
        struct text text = text_of_ascii(bytes, step);

        if (!string_append(reference, &text)) {
            return false;
        }
        count -= step;
    }
    return true;
}

bool string_can_change(CFStringRef string)
{
    return !object_is_wide_literal(string) && (((const struct object *)(const void *)string)->info & string_is_mutable) != 0;
}

void string_require_mutable(CFMutableStringRef string, const char *function)
{
    object_require(string, object_type_string, function, "string");
    if (!string_can_change(string)) {
        fault_stop(function, "the string cannot be changed");
    }
}

void string_require_range(CFRange range, CFIndex length, const char *function)
{
    if (range.location < 0 || range.length < 0 || range.location > length || range.length > length - range.location) {
        fault_stop_format(function, "the range {%ld, %ld} is outside the string, whose length is %ld", range.location, range.length,
                          length);
    }
}

void string_log_no_memory(bool is_done)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    if (!is_done) {
        fault_log_once(&logged, "CFString: no memory; the string stays as it was");
    }
}

static bool is_lent(CFStringRef text)
{
    return !object_is_wide_literal(text) && (((const struct object *)(const void *)text)->info & string_is_lent) != 0;
}

/* Returns true if no reference keeps the string alive. */
static bool is_immortal(CFStringRef text)
{
    return atomic_load_explicit(&((const struct object *)(const void *)text)->count, memory_order_relaxed) == 0;
}

CFStringRef string_create_copy(CFAllocatorRef allocator, CFStringRef text, const char *function)
{
    struct text view = text_of(text, function);

    if (!string_can_change(text) && !is_lent(text) &&
        (object_is_wide_literal(text) || object_allocator(text) == allocator_resolve(allocator) || is_immortal(text))) {
        object_retain(text);
        return text;
    }
    return string_create(allocator, &view, CFRangeMake(0, view.length));
}
