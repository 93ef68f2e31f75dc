/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of CFString.h between strings and data in an encoding. No state of its own. */
#include "CoreFoundation/CFString.h"

#include "CoreFoundation/CFData.h"
#include "Runtime/Object/object.h"

CFStringRef CFStringCreateFromExternalRepresentation(CFAllocatorRef allocator, CFDataRef data, CFStringEncoding encoding)
{
    object_require(data, object_type_data, "CFStringCreateFromExternalRepresentation", "data");
    return CFStringCreateWithBytes(allocator, CFDataGetBytePtr(data), CFDataGetLength(data), encoding, true);
}

CFDataRef CFStringCreateExternalRepresentation(CFAllocatorRef allocator, CFStringRef text, CFStringEncoding encoding, UInt8 lossByte)
{
    object_require(text, object_type_string, "CFStringCreateExternalRepresentation", "text");
    CFRange all = CFRangeMake(0, CFStringGetLength(text));
    CFIndex size = 0;
    /* An unknown encoding converts nothing, which for an empty text looks like success. */
    if (!CFStringIsEncodingAvailable(encoding) || CFStringGetBytes(text, all, encoding, lossByte, true, NULL, 0, &size) != all.length) {
        return NULL;
    }
    CFMutableDataRef data = CFDataCreateMutable(allocator, size);
    if (data == NULL) {
        return NULL;
    }
    CFDataSetLength(data, size);
    if (CFDataGetLength(data) != size) {
        CFRelease(data);
        return NULL;
    }
    (void)CFStringGetBytes(text, all, encoding, lossByte, true, CFDataGetMutableBytePtr(data), size, NULL);
    return data;
}
