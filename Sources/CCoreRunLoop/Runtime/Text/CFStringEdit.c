/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Those public functions of CFString.h that change the middle of a text, and those that tell how it could be written. The work is done by
 * string_storage.c and text.c.
 *
 * A mutable string belongs to one thread at a time. No state of its own.
 */
#include "CoreFoundation/CFString.h"

#include "Runtime/Object/object.h"
#include "Runtime/Object/range.h"
#include "Runtime/Text/added_encodings.h"
#include "Runtime/Text/encoding.h"
#include "Runtime/Text/string_storage.h"
#include "Runtime/Text/text.h"
#include "Support/fault.h"

static void replace(CFMutableStringRef text, CFRange range, CFStringRef replacement, const char *function)
{
    string_require_mutable(text, function);
    string_require_range(range, CFStringGetLength(text), function);
    struct text view = text_of(replacement, function);
    string_log_no_memory(string_replace(text, range, &view));
}

void CFStringInsert(CFMutableStringRef text, CFIndex index, CFStringRef inserted)
{
    replace(text, CFRangeMake(index, 0), inserted, "CFStringInsert");
}

void CFStringDelete(CFMutableStringRef text, CFRange range)
{
    replace(text, range, CFSTR(""), "CFStringDelete");
}

void CFStringReplace(CFMutableStringRef text, CFRange range, CFStringRef replacement)
{
    replace(text, range, replacement, "CFStringReplace");
}

void CFStringReplaceAll(CFMutableStringRef text, CFStringRef replacement)
{
    string_require_mutable(text, "CFStringReplaceAll");
    replace(text, CFRangeMake(0, CFStringGetLength(text)), replacement, "CFStringReplaceAll");
}

/* Returns the range that is still to be searched: the rest of `range` behind the place that was found, or before it. */
static CFRange rest_of(CFRange range, CFRange found, CFIndex replaced_by, bool backwards)
{
    if (backwards) {
        return CFRangeMake(range.location, found.location - range.location);
    }
    CFIndex behind = found.location + found.length;
    return CFRangeMake(found.location + replaced_by, range.location + range.length - behind);
}

/* Does the work of CFStringFindAndReplace. `wanted` and `replacement` are other objects than `text`. */
static CFIndex find_and_replace(CFMutableStringRef text, CFStringRef wanted, CFStringRef replacement, CFRange range,
                                CFStringCompareFlags options)
{
    struct text view = text_of(replacement, "CFStringFindAndReplace");
    CFIndex count = 0;
    CFRange found;

    range = range_clipped(range, CFStringGetLength(text));
    while (CFStringFindWithOptions(text, wanted, range, options, &found)) {
        if (!string_replace(text, found, &view)) {
            string_log_no_memory(false);
            break;
        }
        range = rest_of(range, found, view.length, (options & kCFCompareBackwards) != 0);
        count++;
    }
    return count;
}

CFIndex CFStringFindAndReplace(CFMutableStringRef text, CFStringRef wanted, CFStringRef replacement, CFRange range,
                               CFStringCompareFlags options)
{
    string_require_mutable(text, "CFStringFindAndReplace");
    object_require(wanted, object_type_string, "CFStringFindAndReplace", "wanted text");
    object_require(replacement, object_type_string, "CFStringFindAndReplace", "replacement");
    /* Copies both, because either may be `text`, which changes meanwhile. A copy of an immutable text is the text itself. */
    CFStringRef wanted_copy = CFStringCreateCopy(NULL, wanted);
    CFStringRef replacement_copy = CFStringCreateCopy(NULL, replacement);
    CFIndex count = 0;
    if (wanted_copy != NULL && replacement_copy != NULL) {
        count = find_and_replace(text, wanted_copy, replacement_copy, range, options);
    } else {
        string_log_no_memory(false);
    }
    object_release_if_any(wanted_copy);
    object_release_if_any(replacement_copy);
    return count;
}

/* Adds units of `padding`, which is not `text`, until `text` has `length` units. Returns false if there is no memory. */
static bool pad(CFMutableStringRef text, CFStringRef padding, CFIndex length, CFIndex index)
{
    CFIndex missing;
    bool is_done = true;
    CFIndex padding_length = CFStringGetLength(padding);

    while (is_done && (missing = length - CFStringGetLength(text)) > 0) {
        CFIndex count = padding_length - index < missing ? padding_length - index : missing;
        CFStringRef part = CFStringCreateWithSubstring(NULL, padding, CFRangeMake(index, count));

        if (part == NULL) {
            return false;
        }
        struct text view = text_of(part, "CFStringPad");
        is_done = string_append(text, &view);
        CFRelease(part);
        index = 0;
    }
    return is_done;
}

void CFStringPad(CFMutableStringRef text, CFStringRef padding, CFIndex length, CFIndex index)
{
    string_require_mutable(text, "CFStringPad");
    if (length < 0) {
        fault_stop_format("CFStringPad", "the length %ld is negative", length);
    }
    CFIndex old_length = CFStringGetLength(text);
    if (length <= old_length) {
        CFStringDelete(text, CFRangeMake(length, old_length - length));
        return;
    }
    if (padding == NULL) {
        return;
    }
    CFIndex padding_length = text_of(padding, "CFStringPad").length;
    if (index < 0 || index >= padding_length) {
        fault_stop_format("CFStringPad", "the index %ld is outside the padding, whose length is %ld", index, padding_length);
    }
    CFStringRef copy = CFStringCreateCopy(NULL, padding);
    string_log_no_memory(copy != NULL && pad(text, copy, length, index));
    object_release_if_any(copy);
}

/* Leaves only a part of a text, which needs no memory. */
static void keep(CFMutableStringRef text, CFIndex start, CFIndex end)
{
    CFStringDelete(text, CFRangeMake(end, CFStringGetLength(text) - end));
    CFStringDelete(text, CFRangeMake(0, start));
}

void CFStringTrim(CFMutableStringRef text, CFStringRef trimmed)
{
    string_require_mutable(text, "CFStringTrim");
    struct text view = text_of(text, "CFStringTrim");
    struct text wanted = text_of(trimmed, "CFStringTrim");
    CFIndex start = 0;
    CFIndex end = view.length;
    while (text_find(&view, CFRangeMake(start, end - start), &wanted, kCFCompareAnchored) != kCFNotFound) {
        start += wanted.length;
    }
    while (text_find(&view, CFRangeMake(start, end - start), &wanted, kCFCompareAnchored | kCFCompareBackwards) != kCFNotFound) {
        end -= wanted.length;
    }
    keep(text, start, end);
}

static bool is_white(UniChar unit)
{
    return unit == ' ' || (unit >= '\t' && unit <= '\r') || unit == 0x85 || unit == 0xA0 || unit == 0x1680 ||
           (unit >= 0x2000 && unit <= 0x200B) || unit == 0x2028 || unit == 0x2029 || unit == 0x202F || unit == 0x205F || unit == 0x3000;
}

void CFStringTrimWhitespace(CFMutableStringRef text)
{
    string_require_mutable(text, "CFStringTrimWhitespace");
    struct text view = text_of(text, "CFStringTrimWhitespace");
    CFIndex start = 0;
    CFIndex end = view.length;
    while (start < end && is_white(text_unit(&view, start))) {
        start++;
    }
    while (end > start && is_white(text_unit(&view, end - 1))) {
        end--;
    }
    keep(text, start, end);
}

static void change_case(CFMutableStringRef text, bool is_capital, const char *function)
{
    string_require_mutable(text, function);
    CFIndex length = CFStringGetLength(text);
    for (CFIndex i = 0; i < length; i++) {
        struct text view = text_of(text, function);
        UniChar unit = text_unit(&view, i);
        UniChar changed = unit_in_case(unit, is_capital);
        struct text one = text_of_units(&changed, 1);

        if (changed != unit && !string_replace(text, CFRangeMake(i, 1), &one)) {
            string_log_no_memory(false);
            return;
        }
    }
}

void CFStringLowercase(CFMutableStringRef text, CFLocaleRef locale)
{
    (void)locale;
    change_case(text, false, "CFStringLowercase");
}

void CFStringUppercase(CFMutableStringRef text, CFLocaleRef locale)
{
    (void)locale;
    change_case(text, true, "CFStringUppercase");
}

const UniChar *CFStringGetCharactersPtr(CFStringRef text)
{
    struct text view = text_of(text, "CFStringGetCharactersPtr");

    return view.form == text_utf16 ? view.units : NULL;
}

CFStringRef CFStringCreateWithFileSystemRepresentation(CFAllocatorRef allocator, const char *path)
{
    return CFStringCreateWithCString(allocator, path, kCFStringEncodingUTF8);
}

Boolean CFStringGetFileSystemRepresentation(CFStringRef text, char *buffer, CFIndex size)
{
    object_require(text, object_type_string, "CFStringGetFileSystemRepresentation", "string");
    return CFStringGetCString(text, buffer, size, kCFStringEncodingUTF8);
}

CFIndex CFStringGetMaximumSizeOfFileSystemRepresentation(CFStringRef text)
{
    struct text view = text_of(text, "CFStringGetMaximumSizeOfFileSystemRepresentation");

    return CFStringGetMaximumSizeForEncoding(view.length, kCFStringEncodingUTF8) + 1;
}

CFStringEncoding CFStringGetSystemEncoding(void)
{
    return kCFStringEncodingUTF8;
}

CFStringEncoding CFStringGetFastestEncoding(CFStringRef text)
{
    struct text view = text_of(text, "CFStringGetFastestEncoding");
    bool is_ascii = view.form == text_ascii || (object_is_wide_literal(text) && text_is_ascii(&view)); /* as CFStringGetCStringPtr */

    return is_ascii ? kCFStringEncodingASCII : kCFStringEncodingUTF16;
}

static CFIndex size_in(CFStringRef text, CFStringEncoding encoding)
{
    CFIndex size = 0;
    CFIndex length = CFStringGetLength(text);

    return CFStringGetBytes(text, CFRangeMake(0, length), encoding, 0, false, NULL, 0, &size) == length ? size : INTPTR_MAX;
}

CFStringEncoding CFStringGetSmallestEncoding(CFStringRef text)
{
    static const CFStringEncoding encodings[] = {kCFStringEncodingASCII, kCFStringEncodingISOLatin1, kCFStringEncodingUTF8};

    object_require(text, object_type_string, "CFStringGetSmallestEncoding", "string");
    CFStringEncoding smallest = kCFStringEncodingUTF16;
    CFIndex least = 2 * CFStringGetLength(text);
    for (size_t i = sizeof encodings / sizeof *encodings; i-- > 0;) {
        CFIndex size = size_in(text, encodings[i]);

        if (size <= least) {
            smallest = encodings[i];
            least = size;
        }
    }
    return smallest;
}

Boolean CFStringIsEncodingAvailable(CFStringEncoding encoding)
{
    return encoding_is_known(encoding) || added_bytes_per_unit(encoding) != 0;
}

CFStringRef CFStringGetNameOfEncoding(CFStringEncoding encoding)
{
    switch (encoding) {
    case kCFStringEncodingMacRoman:
        return CFSTR("Western (Mac OS Roman)");
    case kCFStringEncodingWindowsLatin1:
        return CFSTR("Western (Windows Latin 1)");
    case kCFStringEncodingISOLatin1:
        return CFSTR("Western (ISO Latin 1)");
    case kCFStringEncodingASCII:
        return CFSTR("Western (ASCII)");
    case kCFStringEncodingUTF8:
        return CFSTR("Unicode (UTF-8)");
    case kCFStringEncodingNonLossyASCII:
        return CFSTR("Non-lossy ASCII");
    case kCFStringEncodingUTF16:
        return CFSTR("Unicode (UTF-16)");
    case kCFStringEncodingUTF16BE:
        return CFSTR("Unicode (UTF-16BE)");
    case kCFStringEncodingUTF16LE:
        return CFSTR("Unicode (UTF-16LE)");
    case kCFStringEncodingUTF32:
        return CFSTR("Unicode (UTF-32)");
    case kCFStringEncodingUTF32BE:
        return CFSTR("Unicode (UTF-32BE)");
    case kCFStringEncodingUTF32LE:
        return CFSTR("Unicode (UTF-32LE)");
    default:
        return added_encoding_name(encoding);
    }
}
