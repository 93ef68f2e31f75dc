/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of CFString.h between strings and arrays of strings. No state of its own. */
#include "CoreFoundation/CFString.h"

#include "CoreFoundation/CFArray.h"
#include "Runtime/Object/object.h"
#include "Runtime/Text/string_storage.h"
#include "Runtime/Text/text.h"

static bool append_string(CFMutableStringRef built, CFStringRef string, const char *function)
{
    struct text text = text_of(string, function);

    return string_append(built, &text);
}

CFStringRef CFStringCreateByCombiningStrings(CFAllocatorRef allocator, CFArrayRef array, CFStringRef separator)
{
    static const char function[] = "CFStringCreateByCombiningStrings";

    object_require(array, object_type_array, function, "array");
    object_require(separator, object_type_string, function, "separator");
    CFMutableStringRef built = string_create_mutable(kCFAllocatorSystemDefault, 0);
    bool is_done = built != NULL;
    CFIndex count = CFArrayGetCount(array);
    for (CFIndex i = 0; is_done && i < count; i++) {
        is_done = (i == 0 || append_string(built, separator, function)) && append_string(built, CFArrayGetValueAtIndex(array, i), function);
    }
    CFStringRef created = is_done ? CFStringCreateCopy(allocator, built) : NULL;
    object_release_if_any(built);
    return created;
}

static bool append_part(CFMutableArrayRef parts, CFAllocatorRef allocator, const struct text *text, CFIndex start, CFIndex end)
{
    CFStringRef part = string_create(allocator, text, CFRangeMake(start, end - start));

    if (part == NULL) {
        return false;
    }
    CFIndex count = CFArrayGetCount(parts);
    CFArrayAppendValue(parts, part);
    CFRelease(part);
    return CFArrayGetCount(parts) > count;
}

CFArrayRef CFStringCreateArrayBySeparatingStrings(CFAllocatorRef allocator, CFStringRef text, CFStringRef separator)
{
    struct text view = text_of(text, "CFStringCreateArrayBySeparatingStrings");
    struct text wanted = text_of(separator, "CFStringCreateArrayBySeparatingStrings");
    CFMutableArrayRef parts = CFArrayCreateMutable(allocator, 0, &kCFTypeArrayCallBacks);
    bool is_done = parts != NULL;
    CFIndex start = 0;
    CFIndex found;

    while (is_done && (found = text_find(&view, CFRangeMake(start, view.length - start), &wanted, 0)) != kCFNotFound) {
        is_done = append_part(parts, allocator, &view, start, found);
        start = found + wanted.length;
    }
    if (is_done && append_part(parts, allocator, &view, start, view.length)) {
        return parts;
    }
    object_release_if_any(parts);
    return NULL;
}
