/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is linked with the add-on library for property lists: it writes one in both formats and reads it again. */
#include <CoreFoundation/CoreFoundation.h>

static int is_kept(CFPropertyListRef tree, CFPropertyListFormat format)
{
    CFDataRef data = CFPropertyListCreateData(NULL, tree, format, 0, NULL);
    CFPropertyListFormat found;
    CFPropertyListRef again = data ? CFPropertyListCreateWithData(NULL, data, kCFPropertyListImmutable, &found, NULL) : NULL;

    return again && found == format && CFEqual(tree, again);
}

int main(void)
{
    CFTypeRef key = CFSTR("key");
    CFTypeRef value = kCFBooleanTrue;
    CFDictionaryRef tree = CFDictionaryCreate(NULL, &key, &value, 1, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);

    return is_kept(tree, kCFPropertyListXMLFormat_v1_0) && is_kept(tree, kCFPropertyListBinaryFormat_v1_0) ? 0 : 1;
}
