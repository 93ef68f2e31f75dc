/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions of CFString.h: argument checks, and the work done by text.c (reading), string_storage.c (memory), encoding.c and
 * format.c.
 *
 * Any thread for strings that do not change; a mutable string belongs to one thread at a time. No state of its own.
 */
#include "CoreFoundation/CFString.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Runtime/Object/allocator.h"
#include "Runtime/Object/object.h"
#include "Runtime/Object/range.h"
#include "Runtime/Text/added_encodings.h"
#include "Runtime/Text/encoding.h"
#include "Runtime/Text/format.h"
#include "Runtime/Text/string_storage.h"
#include "Runtime/Text/text.h"
#include "Support/fault.h"
#include "Support/uncancelled.h"

CFTypeID CFStringGetTypeID(void)
{
    return object_type_string;
}

CFStringRef __CFStringMakeConstantString(const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    CFStringRef decoded = CFStringCreateWithCString(kCFAllocatorSystemDefault, text, kCFStringEncodingUTF8);
    if (decoded == NULL) {
        return NULL;
    }
    struct text view = text_of(decoded, "CFSTR");
    CFStringRef constant = string_intern(&view);
    CFRelease(decoded);
    return constant;
}

CFStringRef CFStringCreateWithBytes(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex count, CFStringEncoding encoding,
                                    Boolean isExternalRepresentation)
{
    if (count < 0 || (bytes == NULL && count > 0)) {
        return NULL;
    }
    return string_create_decoded(allocator, bytes, (size_t)count, encoding, isExternalRepresentation);
}

CFStringRef CFStringCreateWithCString(CFAllocatorRef allocator, const char *text, CFStringEncoding encoding)
{
    return text != NULL ? string_create_decoded(allocator, (const uint8_t *)text, strlen(text), encoding, false) : NULL;
}

/* Returns `copy`, and frees `original`: for functions that may use the caller's memory in place, but copy it here. */
static CFStringRef without_original(CFStringRef copy, const void *original, CFAllocatorRef deallocator)
{
    if (copy != NULL) {
        allocator_deallocate(allocator_resolve(deallocator), (void *)(uintptr_t)original);
    }
    return copy;
}

CFStringRef CFStringCreateWithCStringNoCopy(CFAllocatorRef allocator, const char *text, CFStringEncoding encoding,
                                            CFAllocatorRef deallocator)
{
    if (text == NULL) {
        return NULL;
    }
    CFAllocatorRef owner = allocator_resolve(deallocator);
    size_t count = strlen(text);
    bool is_ascii = encoding_extends_ascii(encoding);
    for (size_t i = 0; is_ascii && i < count; i++) {
        is_ascii = (unsigned char)text[i] < 0x80;
    }
    if (is_ascii) {
        return string_create_external(allocator, text, (CFIndex)count, owner);
    }
    return without_original(CFStringCreateWithCString(allocator, text, encoding), text, deallocator);
}

CFStringRef CFStringCreateWithCharacters(CFAllocatorRef allocator, const UniChar *characters, CFIndex count)
{
    if (count < 0 || (characters == NULL && count > 0)) {
        return NULL;
    }
    struct text text = text_of_units(characters, count);
    return string_create(allocator, &text, CFRangeMake(0, count));
}

CFStringRef CFStringCreateWithBytesNoCopy(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex count, CFStringEncoding encoding,
                                          Boolean isExternalRepresentation, CFAllocatorRef deallocator)
{
    return without_original(CFStringCreateWithBytes(allocator, bytes, count, encoding, isExternalRepresentation), bytes, deallocator);
}

CFStringRef CFStringCreateWithCharactersNoCopy(CFAllocatorRef allocator, const UniChar *characters, CFIndex count,
                                               CFAllocatorRef deallocator)
{
    return without_original(CFStringCreateWithCharacters(allocator, characters, count), characters, deallocator);
}

CFStringRef CFStringCreateWithSubstring(CFAllocatorRef allocator, CFStringRef text, CFRange range)
{
    struct text view = text_of(text, "CFStringCreateWithSubstring");

    string_require_range(range, view.length, "CFStringCreateWithSubstring");
    return string_create(allocator, &view, range);
}

CFStringRef CFStringCreateWithFormatAndArguments(CFAllocatorRef allocator, CFDictionaryRef options, CFStringRef format, va_list arguments)
{
    (void)options;
    struct text view = text_of(format, "CFStringCreateWithFormat");
    CFMutableStringRef built = string_create_mutable(kCFAllocatorSystemDefault, 0);
    if (built == NULL) {
        return NULL;
    }
    CFStringRef created = NULL;
    if (format_append(built, &view, arguments)) {
        struct text text = text_of(built, "CFStringCreateWithFormat");

        created = string_create(allocator, &text, CFRangeMake(0, text.length));
    }
    CFRelease(built);
    return created;
}

CFStringRef CFStringCreateWithFormat(CFAllocatorRef allocator, CFDictionaryRef options, CFStringRef format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    CFStringRef created = CFStringCreateWithFormatAndArguments(allocator, options, format, arguments);
    va_end(arguments);
    return created;
}

CFStringRef CFStringCreateCopy(CFAllocatorRef allocator, CFStringRef text)
{
    return string_create_copy(allocator, text, "CFStringCreateCopy");
}

CFMutableStringRef CFStringCreateMutable(CFAllocatorRef allocator, CFIndex maxLength)
{
    return string_create_mutable(allocator, maxLength);
}

CFMutableStringRef CFStringCreateMutableCopy(CFAllocatorRef allocator, CFIndex maxLength, CFStringRef text)
{
    struct text view = text_of(text, "CFStringCreateMutableCopy");
    CFMutableStringRef copy = string_create_mutable(allocator, maxLength);

    if (copy != NULL && !string_append(copy, &view)) {
        CFRelease(copy);
        return NULL;
    }
    return copy;
}

CFIndex CFStringGetLength(CFStringRef text)
{
    return text_of(text, "CFStringGetLength").length;
}

UniChar CFStringGetCharacterAtIndex(CFStringRef text, CFIndex index)
{
    struct text view = text_of(text, "CFStringGetCharacterAtIndex");

    if (index < 0 || index >= view.length) {
        fault_stop_format("CFStringGetCharacterAtIndex", "the index %ld is outside the string, whose length is %ld", index, view.length);
    }
    return text_unit(&view, index);
}

void CFStringGetCharacters(CFStringRef text, CFRange range, UniChar *buffer)
{
    struct text view = text_of(text, "CFStringGetCharacters");

    string_require_range(range, view.length, "CFStringGetCharacters");
    text_copy_units(&view, range, buffer);
}

/* The destination of bytes. Without a buffer bytes are only counted; bytes that do not fit into a buffer are refused. */
struct sink {
    UInt8 *buffer;
    CFIndex size;
    CFIndex used;
};

static bool sink_put(struct sink *sink, const uint8_t *bytes, size_t count)
{
    if (sink->buffer != NULL) {
        if ((CFIndex)count > sink->size - sink->used) {
            return false;
        }
        memcpy(sink->buffer + sink->used, bytes, count);
    }
    sink->used += (CFIndex)count;
    return true;
}

/* Reads one character, or the unit at `index` for encodings that write units. */
static uint32_t character_at(const struct text *text, CFIndex index, CFIndex end, CFStringEncoding encoding, CFIndex *ret_units)
{
    uint32_t unit = text_unit(text, index);

    *ret_units = 1;
    if (!encoding_joins_pairs(encoding) || !unit_is_high_surrogate(unit) || index + 1 >= end) {
        return unit;
    }
    uint32_t next = text_unit(text, index + 1);
    if (!unit_is_low_surrogate(next)) {
        return unit;
    }
    *ret_units = 2;
    return 0x10000 + ((unit & 0x3FF) << 10 | (next & 0x3FF));
}

static size_t write_loss_byte(CFStringEncoding encoding, UInt8 loss_byte, uint8_t bytes[encoding_bytes_max])
{
    if (encoding_bytes_per_unit(encoding) > 1) {
        return encoding_write(encoding, loss_byte, bytes);
    }
    bytes[0] = loss_byte;
    return 1;
}

static CFIndex write_range(const struct text *text, CFRange range, CFStringEncoding encoding, UInt8 loss_byte, struct sink *sink)
{
    CFIndex end = range.location + range.length;
    CFIndex index = range.location;

    while (index < end) {
        uint8_t bytes[encoding_bytes_max];
        CFIndex units;
        size_t count = encoding_write(encoding, character_at(text, index, end, encoding, &units), bytes);

        if (count == 0 && loss_byte != 0) {
            count = write_loss_byte(encoding, loss_byte, bytes);
        }
        if (count == 0 || !sink_put(sink, bytes, count)) {
            break;
        }
        index += units;
    }
    return index - range.location;
}

/* In an encoding of an add-on library, or one that nobody knows. */
static CFIndex write_added(const struct text *text, CFRange range, CFStringEncoding encoding, UInt8 loss_byte, struct sink *sink)
{
    UniChar *units = malloc((size_t)range.length * sizeof *units + 1);

    if (units == NULL) {
        return 0;
    }
    text_copy_units(text, range, units);
    CFIndex count = added_encode(encoding, units, range.length, loss_byte, sink->buffer, sink->size, &sink->used);
    free(units);
    return count;
}

static CFIndex write_text(const struct text *text, CFRange range, CFStringEncoding encoding, UInt8 loss_byte, bool is_external,
                          struct sink *sink)
{
    if (!encoding_is_known(encoding)) {
        return write_added(text, range, encoding, loss_byte, sink);
    }
    uint8_t mark[encoding_bytes_max];
    size_t mark_size = is_external ? encoding_write_mark(encoding, mark) : 0;
    if (!sink_put(sink, mark, mark_size)) {
        return 0;
    }
    if (text->form != text_ascii || !encoding_extends_ascii(encoding)) {
        return write_range(text, range, encoding, loss_byte, sink);
    }
    CFIndex count = sink->buffer != NULL && range.length > sink->size - sink->used ? sink->size - sink->used : range.length;
    sink_put(sink, (const uint8_t *)text->units + range.location, (size_t)count);
    return count;
}

CFIndex CFStringGetBytes(CFStringRef text, CFRange range, CFStringEncoding encoding, UInt8 lossByte, Boolean isExternalRepresentation,
                         UInt8 *buffer, CFIndex maxLength, CFIndex *usedLength)
{
    struct text view = text_of(text, "CFStringGetBytes");

    string_require_range(range, view.length, "CFStringGetBytes");
    struct sink sink = {.buffer = buffer, .size = maxLength > 0 ? maxLength : 0};
    CFIndex count = write_text(&view, range, encoding, lossByte, isExternalRepresentation, &sink);
    if (usedLength != NULL) {
        *usedLength = sink.used;
    }
    return count;
}

Boolean CFStringGetCString(CFStringRef text, char *buffer, CFIndex size, CFStringEncoding encoding)
{
    struct text view = text_of(text, "CFStringGetCString");

    if (buffer == NULL || size < 1) {
        return false;
    }
    buffer[0] = '\0';
    if (!CFStringIsEncodingAvailable(encoding)) {
        return false;
    }
    struct sink sink = {.buffer = (UInt8 *)buffer, .size = size - 1};
    CFIndex count = write_text(&view, CFRangeMake(0, view.length), encoding, 0, false, &sink);
    bool is_whole = count == view.length;
    buffer[is_whole ? sink.used : 0] = '\0';
    return is_whole;
}

const char *CFStringGetCStringPtr(CFStringRef text, CFStringEncoding encoding)
{
    struct text view = text_of(text, "CFStringGetCStringPtr");

    if (!encoding_extends_ascii(encoding)) {
        return NULL;
    }
    if (object_is_wide_literal(text) && text_is_ascii(&view)) {
        CFStringRef constant = string_intern(&view);

        return constant != NULL ? text_of(constant, "CFStringGetCStringPtr").units : NULL;
    }
    return view.form == text_ascii ? view.units : NULL;
}

CFIndex CFStringGetMaximumSizeForEncoding(CFIndex length, CFStringEncoding encoding)
{
    CFIndex size;
    CFIndex bytes_per_unit = encoding_bytes_per_unit(encoding);

    bytes_per_unit = bytes_per_unit != 0 ? bytes_per_unit : added_bytes_per_unit(encoding);
    if (length < 0 || bytes_per_unit == 0 || __builtin_mul_overflow(length, bytes_per_unit, &size)) {
        return kCFNotFound;
    }
    return size;
}

CFComparisonResult CFStringCompareWithOptions(CFStringRef text1, CFStringRef text2, CFRange range, CFStringCompareFlags options)
{
    struct text view1 = text_of(text1, "CFStringCompareWithOptions");
    struct text view2 = text_of(text2, "CFStringCompareWithOptions");

    string_require_range(range, view1.length, "CFStringCompareWithOptions");
    return text_compare(&view1, range, &view2, options);
}

CFComparisonResult CFStringCompare(CFStringRef text1, CFStringRef text2, CFStringCompareFlags options)
{
    struct text view1 = text_of(text1, "CFStringCompare");
    struct text view2 = text_of(text2, "CFStringCompare");

    return text_compare(&view1, CFRangeMake(0, view1.length), &view2, options);
}

Boolean CFStringFindWithOptions(CFStringRef text, CFStringRef wanted, CFRange range, CFStringCompareFlags options, CFRange *result)
{
    struct text view = text_of(text, "CFStringFindWithOptions");
    struct text wanted_view = text_of(wanted, "CFStringFindWithOptions");

    CFIndex location = text_find(&view, range_clipped(range, view.length), &wanted_view, options);
    if (location != kCFNotFound && result != NULL) {
        *result = CFRangeMake(location, wanted_view.length);
    }
    return location != kCFNotFound;
}

static CFRange find(CFStringRef text, CFStringRef wanted, CFStringCompareFlags options, const char *function)
{
    struct text view = text_of(text, function);
    struct text wanted_view = text_of(wanted, function);
    CFIndex location = text_find(&view, CFRangeMake(0, view.length), &wanted_view, options);

    return CFRangeMake(location, location != kCFNotFound ? wanted_view.length : 0);
}

CFRange CFStringFind(CFStringRef text, CFStringRef wanted, CFStringCompareFlags options)
{
    return find(text, wanted, options, "CFStringFind");
}

Boolean CFStringHasPrefix(CFStringRef text, CFStringRef prefix)
{
    return find(text, prefix, kCFCompareAnchored, "CFStringHasPrefix").location != kCFNotFound;
}

Boolean CFStringHasSuffix(CFStringRef text, CFStringRef suffix)
{
    return find(text, suffix, kCFCompareAnchored | kCFCompareBackwards, "CFStringHasSuffix").location != kCFNotFound;
}

void CFStringAppend(CFMutableStringRef text, CFStringRef appended)
{
    string_require_mutable(text, "CFStringAppend");
    struct text view = text_of(appended, "CFStringAppend");
    string_log_no_memory(string_append(text, &view));
}

void CFStringAppendCharacters(CFMutableStringRef text, const UniChar *characters, CFIndex count)
{
    string_require_mutable(text, "CFStringAppendCharacters");
    if (characters != NULL && count > 0) {
        struct text view = text_of_units(characters, count);

        string_log_no_memory(string_append(text, &view));
    }
}

void CFStringAppendCString(CFMutableStringRef text, const char *appended, CFStringEncoding encoding)
{
    string_require_mutable(text, "CFStringAppendCString");
    if (appended == NULL) {
        fault_stop("CFStringAppendCString", "the C string is NULL");
    }
    CFStringRef decoded = CFStringCreateWithCString(kCFAllocatorSystemDefault, appended, encoding);
    if (decoded != NULL) {
        struct text view = text_of(decoded, "CFStringAppendCString");

        string_log_no_memory(string_append(text, &view));
        CFRelease(decoded);
    }
}

void CFStringAppendFormatAndArguments(CFMutableStringRef text, CFDictionaryRef options, CFStringRef format, va_list arguments)
{
    string_require_mutable(text, "CFStringAppendFormat");
    CFStringRef formatted = CFStringCreateWithFormatAndArguments(kCFAllocatorSystemDefault, options, format, arguments);
    if (formatted == NULL) {
        string_log_no_memory(false);
        return;
    }
    CFStringAppend(text, formatted);
    CFRelease(formatted);
}

void CFStringAppendFormat(CFMutableStringRef text, CFDictionaryRef options, CFStringRef format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    CFStringAppendFormatAndArguments(text, options, format, arguments);
    va_end(arguments);
}

static void print(CFStringRef string)
{
    struct text text = text_of(string, "CFShow");
    CFIndex index = 0;

    while (index < text.length) {
        UInt8 buffer[512];
        struct sink sink = {.buffer = buffer, .size = sizeof buffer};

        index += write_text(&text, CFRangeMake(index, text.length - index), kCFStringEncodingUTF8, '?', false, &sink);
        (void)uncancelled(fwrite(buffer, 1, (size_t)sink.used, stderr));
    }
}

void CFShow(CFTypeRef object)
{
    CFStringRef words = NULL;

    if (object == NULL) {
        words = CFSTR("(null)");
    } else if (object_is_string(object)) {
        words = CFRetain(object);
    } else {
        words = CFCopyDescription(object);
    }
    flockfile(stderr);
    if (words != NULL) {
        print(words);
        CFRelease(words);
    }
    (void)uncancelled(fputc('\n', stderr));
    funlockfile(stderr);
}

void CFShowStr(CFStringRef text)
{
    if (text == NULL) {
        (void)uncancelled(fputs("(null)\n", stderr));
        return;
    }
    static const char *const forms[] = {"bytes", "UTF-16", "wide literal", "wide literal"};
    struct text view = text_of(text, "CFShowStr");
    (void)uncancelled(fprintf(stderr, "length %ld, stored as %s, %s, references %ld\n", view.length, forms[view.form],
                              string_can_change(text) ? "mutable" : "immutable", CFGetRetainCount(text)));
}
