/* SPDX-License-Identifier: Apache-2.0 */
/* Short calls that make trees for tests (plist_maker.h). */
#include "plist_maker.h"

#include <stdarg.h>

CFStringRef make_text(const char *utf8)
{
    return CFStringCreateWithCString(NULL, utf8, kCFStringEncodingUTF8);
}

CFNumberRef make_integer(long long value)
{
    return CFNumberCreate(NULL, kCFNumberLongLongType, &value);
}

CFNumberRef make_real(double value)
{
    return CFNumberCreate(NULL, kCFNumberDoubleType, &value);
}

CFDataRef make_data(const void *bytes, size_t count)
{
    return CFDataCreate(NULL, bytes, (CFIndex)count);
}

CFMutableArrayRef make_array(CFTypeRef first, ...)
{
    CFMutableArrayRef array = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    va_list values;

    va_start(values, first);
    for (CFTypeRef value = first; value; value = va_arg(values, CFTypeRef)) {
        CFArrayAppendValue(array, value);
        CFRelease(value);
    }
    va_end(values);
    return array;
}

CFMutableDictionaryRef make_dictionary(const char *first_key, ...)
{
    CFMutableDictionaryRef dictionary =
        CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    va_list arguments;

    va_start(arguments, first_key);
    for (const char *text = first_key; text; text = va_arg(arguments, const char *)) {
        CFStringRef key = make_text(text);
        CFTypeRef value = va_arg(arguments, CFTypeRef);

        CFDictionarySetValue(dictionary, key, value);
        CFRelease(key);
        CFRelease(value);
    }
    va_end(arguments);
    return dictionary;
}
