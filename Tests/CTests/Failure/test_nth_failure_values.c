/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th failure in values: strings, formats, data, numbers, collections, allocators, autoreleased objects. */
#include <pthread.h>
#include <string.h>

#include "Failure/nth_failure.h"

NTH_FAILURE(strings, "")
{
    CFStringRef text;
    CFMutableStringRef growing;
    CFDataRef bytes;

    text = bag_keep(CFStringCreateWithCString(NULL, "Grüße, \xF0\x9F\x8C\x8D, and a text that is long enough", kCFStringEncodingUTF8));
    NEED(text);
    NEED(bytes = bag_keep(CFStringCreateExternalRepresentation(NULL, text, kCFStringEncodingUTF8, 0)));
    NEED(bytes = bag_keep(CFStringCreateExternalRepresentation(NULL, text, kCFStringEncodingUTF16, 0)));
    MUST(CFStringGetBytes(text, CFRangeMake(0, 1), 0x0A01, 0, false, NULL, 0, NULL) == 0); /* an encoding of an add-on's */
    NEED(text = bag_keep(CFStringCreateFromExternalRepresentation(NULL, bytes, kCFStringEncodingUTF16)));
    NEED(growing = bag_keep(CFStringCreateMutableCopy(NULL, 0, text)));
    for (int i = 0; i < 20; i++) {
        CFIndex before = CFStringGetLength(growing);
        CFIndex after;

        CFStringAppend(growing, text);
        after = CFStringGetLength(growing);
        MUST(after == before || after == before + CFStringGetLength(text));
        NEED(after != before);
        CFStringAppendCString(growing, "bytes ü", kCFStringEncodingUTF8);
    }
    NEED(text = bag_keep(CFStringCreateWithSubstring(NULL, growing, CFRangeMake(3, 30))));
    NEED(text = bag_keep(CFStringCreateCopy(NULL, growing)));
    MUST(CFEqual(text, growing) && CFHash(text) == CFHash(growing));
    return true;
}

NTH_FAILURE(formats, "")
{
    CFStringRef text;
    CFMutableStringRef growing;
    char wide[600];

    memset(wide, 'x', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    text = bag_keep(
        CFStringCreateWithFormat(NULL, NULL, CFSTR("%d %s %@ %5.2f %p %C %2$s"), 1, wide, CFSTR("inner"), 2.5, (void *)wide, 0xE9));
    NEED(text);
    MUST(CFStringGetLength(text) > 1200);
    NEED(growing = bag_keep(CFStringCreateMutable(NULL, 0)));
    CFStringAppendFormat(growing, NULL, CFSTR("%.400f and %@"), 1e200, text);
    MUST(CFStringGetLength(growing) == 0 || CFStringGetLength(growing) > 1800);
    return CFStringGetLength(growing) != 0;
}

static CFComparisonResult compare(const void *one, const void *other, void *info)
{
    (void)info;
    return CFStringCompare(one, other, 0);
}

NTH_FAILURE(arrays, "")
{
    CFMutableArrayRef array;
    CFArrayRef copy;
    CFStringRef last = NULL;

    NEED(array = bag_keep(CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks)));
    for (int i = 0; i < 40; i++) {
        NEED(last = bag_keep(CFStringCreateWithFormat(NULL, NULL, CFSTR("value %d"), 40 - i)));
        if (i % 2) {
            CFArrayAppendValue(array, last);
        } else {
            CFArrayInsertValueAtIndex(array, 0, last);
        }
        MUST(CFArrayGetCount(array) == i + 1 || CFArrayGetCount(array) == i);
        NEED(CFArrayGetCount(array) == i + 1);
    }
    CFArraySortValues(array, CFRangeMake(0, 40), compare, NULL);
    MUST(CFArrayGetCount(array) == 40 && CFArrayContainsValue(array, CFRangeMake(0, 40), last));
    NEED(copy = bag_keep(CFArrayCreateCopy(NULL, array)));
    MUST(CFEqual(copy, array));
    NEED(array = bag_keep(CFArrayCreateMutableCopy(NULL, 0, copy)));
    CFArrayAppendArray(array, copy, CFRangeMake(0, 40));
    MUST(CFArrayGetCount(array) == 80 || CFArrayGetCount(array) == 40);
    NEED(CFArrayGetCount(array) == 80);
    CFArrayRemoveAllValues(array);
    NEED(bag_keep(CFCopyDescription(copy)));
    return true;
}

NTH_FAILURE(dictionaries, "")
{
    CFMutableDictionaryRef dictionary;
    CFDictionaryRef copy;

    NEED(dictionary = bag_keep(CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks)));
    for (int i = 0; i < 30; i++) {
        CFStringRef key = bag_keep(CFStringCreateWithFormat(NULL, NULL, CFSTR("key %d"), i));

        NEED(key);
        CFDictionarySetValue(dictionary, key, key);
        MUST(CFDictionaryGetCount(dictionary) == i + 1 || CFDictionaryGetCount(dictionary) == i);
        NEED(CFDictionaryGetValue(dictionary, key) == key);
    }
    CFDictionaryRemoveValue(dictionary, CFSTR("key 3"));
    MUST(CFDictionaryGetCount(dictionary) == 29);
    NEED(copy = bag_keep(CFDictionaryCreateCopy(NULL, dictionary)));
    MUST(CFEqual(copy, dictionary));
    NEED(bag_keep(CFDictionaryCreateMutableCopy(NULL, 0, copy)));
    NEED(bag_keep(CFCopyDescription(copy)));
    return true;
}

NTH_FAILURE(sets, "")
{
    CFMutableSetRef set;
    CFSetRef copy;

    NEED(set = bag_keep(CFSetCreateMutable(NULL, 0, &kCFTypeSetCallBacks)));
    for (int i = 0; i < 30; i++) {
        CFNumberRef number = bag_keep(CFNumberCreate(NULL, kCFNumberIntType, &i));

        NEED(number);
        CFSetAddValue(set, number);
        NEED(CFSetContainsValue(set, number));
        MUST(CFSetGetCount(set) == i + 1);
    }
    NEED(copy = bag_keep(CFSetCreateCopy(NULL, set)));
    MUST(CFEqual(copy, set));
    NEED(bag_keep(CFSetCreateMutableCopy(NULL, 0, set)));
    NEED(bag_keep(CFCopyDescription(copy)));
    return true;
}

NTH_FAILURE(data, "")
{
    UInt8 bytes[700] = {1, 2, 3};
    CFMutableDataRef growing;
    CFDataRef copy;
    CFNumberRef number;
    double value = 2.5;

    NEED(growing = bag_keep(CFDataCreateMutable(NULL, 0)));
    for (int i = 0; i < 12; i++) {
        CFIndex before = CFDataGetLength(growing);

        CFDataAppendBytes(growing, bytes, sizeof bytes);
        MUST(CFDataGetLength(growing) == before || CFDataGetLength(growing) == before + (CFIndex)sizeof bytes);
        NEED(CFDataGetLength(growing) != before);
    }
    NEED(copy = bag_keep(CFDataCreateCopy(NULL, growing)));
    MUST(CFEqual(copy, growing));
    NEED(copy = bag_keep(CFDataCreateMutableCopy(NULL, 0, copy)));
    NEED(number = bag_keep(CFNumberCreate(NULL, kCFNumberDoubleType, &value)));
    NEED(bag_keep(CFDateCreate(NULL, value)));
    NEED(bag_keep(CFCopyDescription(copy)));
    NEED(bag_keep(CFCopyDescription(number)));
    return true;
}

NTH_FAILURE(errors, "")
{
    const void *keys[] = {kCFErrorLocalizedFailureKey, kCFErrorFilePathKey};
    const void *values[] = {CFSTR("No file."), CFSTR("/nowhere")};
    CFErrorRef error;
    CFStringRef text;

    NEED(bag_keep(CFErrorCreate(NULL, kCFErrorDomainMach, 3, NULL)));
    NEED(error = bag_keep(CFErrorCreateWithUserInfoKeysAndValues(NULL, kCFErrorDomainPOSIX, 2, keys, values, 2)));
    NEED(bag_keep(CFErrorCopyUserInfo(error)));
    NEED(text = bag_keep(CFErrorCopyDescription(error)));
    NEED(bag_keep(CFErrorCopyFailureReason(error)));
    MUST(CFStringHasPrefix(text, CFSTR("No file.")));
    NEED(bag_keep(CFCopyDescription(error)));
    return CFStringHasSuffix(text, CFSTR("No file. No such file or directory"));
}

NTH_FAILURE(urls, "407")
{
    UInt8 path[200];
    CFURLRef base, url;

    NEED(base = bag_keep(CFURLCreateWithBytes(NULL, (const UInt8 *)"http://u:p@h/a b/c?q#f", 22, kCFStringEncodingUTF8, NULL)));
    NEED(url = bag_keep(CFURLCreateWithString(NULL, CFSTR("../x.y"), base)));
    NEED(bag_keep(CFURLCopyAbsoluteURL(url)));
    NEED(CFURLGetFileSystemRepresentation(url, true, path, sizeof path));
    MUST(strcmp((const char *)path, "/x.y") == 0);
    NEED(bag_keep(CFURLCopyHostName(url)));
    NEED(bag_keep(CFURLCopyPassword(url)));
    NEED(bag_keep(CFURLCopyQueryString(base, CFSTR(""))));
    NEED(bag_keep(CFURLCopyPathExtension(url)));
    NEED(bag_keep(CFURLCreateCopyAppendingPathComponent(NULL, url, CFSTR("n w"), true)));
    NEED(bag_keep(CFURLCreateCopyAppendingPathExtension(NULL, url, CFSTR("t"))));
    NEED(bag_keep(CFURLCreateCopyDeletingLastPathComponent(NULL, url)));
    NEED(bag_keep(CFURLCreateAbsoluteURLWithBytes(NULL, (const UInt8 *)"d", 1, kCFStringEncodingUTF8, base, false)));
    NEED(url = bag_keep(CFURLCreateWithFileSystemPath(NULL, CFSTR("relative path"), kCFURLPOSIXPathStyle, false)));
    NEED(bag_keep(CFURLCopyFileSystemPath(url, kCFURLPOSIXPathStyle)));
    NEED(bag_keep(CFURLCreateStringByReplacingPercentEscapes(NULL, CFSTR("a%20b%2F"), CFSTR("/"))));
    NEED(bag_keep(CFCopyDescription(url)));
    return true;
}

static const void *info_retain(const void *info)
{
    ++*(int *)(uintptr_t)info;
    return info;
}

static void info_release(const void *info)
{
    --*(int *)(uintptr_t)info;
}

static void *allocate(CFIndex size, CFOptionFlags hint, void *info)
{
    (void)hint;
    (void)info;
    return CFAllocatorAllocate(kCFAllocatorMalloc, size, 0);
}

static void deallocate(void *block, void *info)
{
    (void)info;
    CFAllocatorDeallocate(kCFAllocatorMalloc, block);
}

NTH_FAILURE(allocators, "")
{
    static int references;
    CFAllocatorContext context = {
        .info = &references, .retain = info_retain, .release = info_release, .allocate = allocate, .deallocate = deallocate};
    CFAllocatorRef allocator;
    CFMutableArrayRef array;

    MUST(references == 0);
    NEED(allocator = bag_keep(CFAllocatorCreate(NULL, &context)));
    NEED(bag_keep(CFAllocatorCreate(kCFAllocatorUseContext, &context)));
    MUST(references == 2);
    NEED(array = bag_keep(CFArrayCreateMutable(allocator, 0, &kCFTypeArrayCallBacks)));
    for (int i = 0; i < 20; i++) {
        CFArrayAppendValue(array, allocator);
        NEED(CFArrayGetCount(array) == i + 1);
    }
    NEED(bag_keep(CFStringCreateWithFormat(allocator, NULL, CFSTR("%@"), array)));
    return true;
}

/* A literal that another module made at run time: the first time it is interned, and then it is the same object. */
NTH_FAILURE(literals, "")
{
    CFStringRef text = __CFStringMakeConstantString("a literal of this scenario");
    CFStringRef same = __CFStringMakeConstantString("a literal of this scenario");

    NEED(text && same);
    MUST(same == text);
    MUST(CFStringCompare(text, CFSTR("a literal of this scenario"), 0) == kCFCompareEqualTo);
    return true;
}

/* More than the pool has room for at first. */
static void *lends_to_its_thread(void *ret_is_complete)
{
    *(bool *)ret_is_complete = true;
    for (int i = 0; i < 20; i++) {
        CFNumberRef number = CFNumberCreate(NULL, kCFNumberIntType, &i);

        if (number) {
            CFAutorelease(number);
        }
        *(bool *)ret_is_complete &= number != NULL;
    }
    return NULL;
}

NTH_FAILURE(lent_objects, "")
{
    bool is_complete = false;
    pthread_t thread;

    NEED(pthread_create(&thread, NULL, lends_to_its_thread, &is_complete) == 0);
    pthread_join(thread, NULL);
    return is_complete;
}
