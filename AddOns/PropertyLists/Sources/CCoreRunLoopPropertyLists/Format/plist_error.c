/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the error of a property list (plist_error.h). */
#include "Format/plist_error.h"

#include <string.h>

CFStringRef plist_error_create_words(const struct read_fault *fault)
{
    CFIndex length = (CFIndex)strlen(fault->words);
    CFStringRef words = CFStringCreateWithBytes(NULL, (const UInt8 *)fault->words, length, kCFStringEncodingUTF8, false);

    /* They may have bytes of a document in them. */
    return words ? words : CFStringCreateWithBytes(NULL, (const UInt8 *)fault->words, length, kCFStringEncodingISOLatin1, false);
}

void plist_error_set(CFErrorRef *error, CFIndex code, const struct read_fault *fault, CFErrorRef cause)
{
    /* Programs for Apple's systems look for the first key, CFErrorCopyDescription for the second. */
    const void *keys[] = {CFSTR("NSDebugDescription"), kCFErrorDescriptionKey, kCFErrorUnderlyingErrorKey};
    const void *values[] = {NULL, NULL, cause};
    CFStringRef words = error ? plist_error_create_words(fault) : NULL;

    values[0] = values[1] = words;
    if (error) {
        *error = words ? CFErrorCreateWithUserInfoKeysAndValues(NULL, kCFErrorDomainCocoa, code, keys, values, cause ? 3 : 2) : NULL;
    }
    if (words) {
        CFRelease(words);
    }
    if (cause) {
        CFRelease(cause);
    }
}
