/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: their texts and their equality, rules 400 to 405. */
#define CONFORMANCE_GROUP "errors"
#include "conformance.h"

static CFErrorRef error_with(CFStringRef key, CFStringRef text)
{
    const void *keys[] = {key};
    const void *values[] = {text};
    return CFErrorCreateWithUserInfoKeysAndValues(NULL, CFSTR("d"), 3, keys, values, 1);
}

/* Logs a text without what is outside ASCII, because the toolchain's literals may not hold that. Releases it. */
static void note_text(CFStringRef text)
{
    char bytes[300] = "NULL";
    if (text != NULL) {
        CFRange place = CFStringFind(text, CFSTR("t be completed"), 0);
        CFIndex start = place.location == kCFNotFound ? 0 : place.location;
        CFStringRef rest = CFStringCreateWithSubstring(NULL, text, CFRangeMake(start, CFStringGetLength(text) - start));
        CFStringGetCString(rest, bytes, sizeof bytes, kCFStringEncodingASCII);
        CFRelease(rest);
        CFRelease(text);
    }
    probe_note("[%s]", bytes);
}

static void note_texts_and_release(CFErrorRef error)
{
    note_text(CFErrorCopyDescription(error));
    note_text(CFErrorCopyFailureReason(error));
    note_text(CFErrorCopyRecoverySuggestion(error));
    note_text(CFCopyDescription(error));
    note_text(CFStringCreateWithFormat(NULL, NULL, CFSTR("%@"), error));
    CFRelease(error);
}

CASE(texts_of_errors, "402 403 405", on_thread)
{
    note_texts_and_release(CFErrorCreate(NULL, CFSTR("my.domain"), -7, NULL));
    note_texts_and_release(error_with(kCFErrorLocalizedDescriptionKey, CFSTR("All of it.")));
    note_texts_and_release(error_with(kCFErrorLocalizedFailureKey, CFSTR("No save.")));
    note_texts_and_release(error_with(kCFErrorLocalizedFailureReasonKey, CFSTR("Disk full.")));
    note_texts_and_release(error_with(kCFErrorDescriptionKey, CFSTR("Bad argument")));
    note_texts_and_release(error_with(kCFErrorLocalizedRecoverySuggestionKey, CFSTR("Try again.")));
}

CASE(a_failure_and_its_reason, "402", on_thread)
{
    const void *keys[] = {kCFErrorLocalizedFailureKey, kCFErrorLocalizedFailureReasonKey};
    const void *values[] = {CFSTR("No save."), CFSTR("Disk full.")};
    CFErrorRef error = CFErrorCreateWithUserInfoKeysAndValues(NULL, kCFErrorDomainPOSIX, 3, keys, values, 2);
    note_text(CFErrorCopyDescription(error));
    CFRelease(error);
}

CASE(the_text_of_a_posix_error, "404", on_thread)
{
    note_texts_and_release(CFErrorCreate(NULL, kCFErrorDomainPOSIX, 2, NULL));
}

CASE(equal_errors, "401", on_thread)
{
    CFErrorRef error = error_with(kCFErrorDescriptionKey, CFSTR("x"));
    CFErrorRef same = error_with(kCFErrorDescriptionKey, CFSTR("x"));
    CFErrorRef other = error_with(kCFErrorDescriptionKey, CFSTR("y"));
    CFErrorRef plain = CFErrorCreate(NULL, CFSTR("d"), 3, NULL);
    probe_note_bool("same", CFEqual(error, same) && CFHash(error) == CFHash(same));
    probe_note_bool("other", CFEqual(error, other));
    probe_note_bool("plain", CFEqual(error, plain));
    CFRelease(error);
    CFRelease(same);
    CFRelease(other);
    CFRelease(plain);
}

CASE(names_of_domains_and_keys, "400", on_thread)
{
    const CFStringRef names[] = {kCFErrorDomainPOSIX, kCFErrorDomainOSStatus, kCFErrorDomainMach, kCFErrorDomainCocoa,
                                 kCFErrorLocalizedDescriptionKey, kCFErrorLocalizedFailureKey, kCFErrorLocalizedFailureReasonKey,
                                 kCFErrorLocalizedRecoverySuggestionKey, kCFErrorDescriptionKey, kCFErrorUnderlyingErrorKey,
                                 kCFErrorURLKey, kCFErrorFilePathKey};
    CFErrorRef error = CFErrorCreate(NULL, CFSTR("d"), 3, NULL);
    CFDictionaryRef info = CFErrorCopyUserInfo(error);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        note_text(CFStringCreateCopy(NULL, names[i]));
    }
    probe_note("count=%ld", (long)CFDictionaryGetCount(info));
    CFRelease(info);
    CFRelease(error);
}
