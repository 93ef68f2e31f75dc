/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns errors and their descriptions. Errors do not change; any thread.
 */
#include "CoreFoundation/CFError.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "Runtime/Object/object.h"
#include "Runtime/Value/error_reason.h"
#include "Support/error_text.h"

struct error {
    struct object object;
    CFErrorDomain domain; /* retained; constant */
    CFDictionaryRef user_info; /* retained; constant */
    CFIndex code; /* constant */
};

const CFErrorDomain kCFErrorDomainPOSIX = CFSTR("NSPOSIXErrorDomain");
const CFErrorDomain kCFErrorDomainOSStatus = CFSTR("NSOSStatusErrorDomain");
const CFErrorDomain kCFErrorDomainMach = CFSTR("NSMachErrorDomain");
const CFErrorDomain kCFErrorDomainCocoa = CFSTR("NSCocoaErrorDomain");

const CFStringRef kCFErrorLocalizedDescriptionKey = CFSTR("NSLocalizedDescription");
const CFStringRef kCFErrorLocalizedFailureKey = CFSTR("NSLocalizedFailure");
const CFStringRef kCFErrorLocalizedFailureReasonKey = CFSTR("NSLocalizedFailureReason");
const CFStringRef kCFErrorLocalizedRecoverySuggestionKey = CFSTR("NSLocalizedRecoverySuggestion");
const CFStringRef kCFErrorDescriptionKey = CFSTR("NSDescription");
const CFStringRef kCFErrorUnderlyingErrorKey = CFSTR("NSUnderlyingError");
const CFStringRef kCFErrorURLKey = CFSTR("NSURL");
const CFStringRef kCFErrorFilePathKey = CFSTR("NSFilePath");

static void finalize(CFTypeRef object)
{
    const struct error *error = object;

    object_release_if_any(error->domain);
    object_release_if_any(error->user_info);
}

static Boolean equal(CFTypeRef one, CFTypeRef other)
{
    const struct error *error1 = one;
    const struct error *error2 = other;

    return error1->code == error2->code && CFEqual(error1->domain, error2->domain) && CFEqual(error1->user_info, error2->user_info);
}

static CFHashCode hash(CFTypeRef object)
{
    const struct error *error = object;

    return CFHash(error->domain) + (CFHashCode)error->code;
}

/* The words for a code. They are English, as every text that the library makes, whatever the program's locale is. */
static CFStringRef create_known_reason(const struct error *error)
{
    bool is_posix = error->code > 0 && error->code <= INT_MAX && CFEqual(error->domain, kCFErrorDomainPOSIX);
    const char *text = NULL;

    if (is_posix) {
        text = known_error_text((int)error->code);
    } else if (CFEqual(error->domain, kCFErrorDomainOSStatus)) {
        text = error_reason_of_tls(error->code);
    } else if (CFEqual(error->domain, CFSTR("kCFErrorDomainCFNetwork"))) {
        text = error_reason_of_name(error->code);
    }
    if (text != NULL) {
        return CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);
    }
    return is_posix ? CFStringCreateWithFormat(NULL, NULL, CFSTR("Unknown error %d"), (int)error->code) : NULL;
}

/* A text of the user info with a new reference. What is not a string has no words for a user. */
static CFStringRef copy_text(const struct error *error, CFStringRef key)
{
    CFTypeRef value = CFDictionaryGetValue(error->user_info, key);

    return value != NULL && object_is_string(value) ? CFRetain(value) : NULL;
}

static CFStringRef copy_reason(const struct error *error)
{
    CFStringRef reason = copy_text(error, kCFErrorLocalizedFailureReasonKey);

    return reason != NULL ? reason : create_known_reason(error);
}

/* Releases the texts. The format has a place for `other` unless that is NULL. */
static CFStringRef join(CFStringRef format, CFStringRef text, CFStringRef other)
{
    CFStringRef joined = CFStringCreateWithFormat(NULL, NULL, format, text, other);

    object_release_if_any(text);
    object_release_if_any(other);
    return joined;
}

static CFStringRef create_code_description(const struct error *error)
{
    CFStringRef meaning = copy_text(error, kCFErrorDescriptionKey);
    CFStringRef words = meaning != NULL
                            ? CFStringCreateWithFormat(NULL, NULL, CFSTR("The operation couldn\u2019t be completed. (%@ error %ld - %@)"),
                                                       error->domain, (long)error->code, meaning)
                            : CFStringCreateWithFormat(NULL, NULL, CFSTR("The operation couldn\u2019t be completed. (%@ error %ld.)"),
                                                       error->domain, (long)error->code);

    object_release_if_any(meaning);
    return words;
}

static CFStringRef copy_user_description(const struct error *error)
{
    CFStringRef description = copy_text(error, kCFErrorLocalizedDescriptionKey);

    if (description != NULL) {
        return description;
    }
    CFStringRef failure = copy_text(error, kCFErrorLocalizedFailureKey);
    CFStringRef reason = copy_reason(error);
    if (failure != NULL) {
        return reason != NULL ? join(CFSTR("%@ %@"), failure, reason) : failure;
    }
    return reason != NULL ? join(CFSTR("The operation couldn\u2019t be completed. %@"), reason, NULL) : create_code_description(error);
}

/* An error within the user info has its address before its words, which are in braces. */
static void append_entry(const void *key, const void *value, void *context)
{
    CFMutableStringRef words = context;

    CFStringAppend(words, CFStringHasSuffix(words, CFSTR("{")) ? CFSTR("") : CFSTR(", "));
    if (CFGetTypeID(value) == object_type_error) {
        CFStringAppendFormat(words, NULL, CFSTR("%@=%p {%@}"), key, value, value);
    } else {
        CFStringAppendFormat(words, NULL, CFSTR("%@=%@"), key, value);
    }
}

/* The quoted text is the first that the user info has of those that say most. */
static CFStringRef copy_quoted_text(const struct error *error)
{
    CFStringRef text = copy_text(error, kCFErrorLocalizedDescriptionKey);

    if (text == NULL) {
        text = copy_reason(error);
    }
    return text != NULL ? text : copy_text(error, kCFErrorDescriptionKey);
}

static CFStringRef copy_description(CFTypeRef object)
{
    const struct error *error = object;
    CFMutableStringRef words = CFStringCreateMutable(NULL, 0);

    if (words == NULL) {
        return NULL;
    }
    CFStringRef text = copy_quoted_text(error);
    CFStringAppendFormat(words, NULL, CFSTR("Error Domain=%@ Code=%ld \"%@\""), error->domain, (long)error->code,
                         text != NULL ? text : CFSTR("(null)"));
    object_release_if_any(text);
    if (CFDictionaryGetCount(error->user_info) > 0) {
        CFStringAppend(words, CFSTR(" UserInfo={"));
        CFDictionaryApplyFunction(error->user_info, append_entry, words);
        CFStringAppend(words, CFSTR("}"));
    }
    return words;
}

static const struct object_class error_class = {
    .type_id = object_type_error,
    .name = "CFError",
    .finalize = finalize,
    .equal = equal,
    .hash = hash,
    .copy_description = copy_description,
};

static const struct error *error_of(CFErrorRef error, const char *function)
{
    object_check(error, &error_class, function, "error");
    return (const struct error *)(const void *)error;
}

/* Takes the reference to the user info, which is NULL when there was no memory for it. */
static CFErrorRef create(CFAllocatorRef allocator, CFErrorDomain domain, CFIndex code, CFDictionaryRef user_info)
{
    struct error *error = user_info != NULL ? object_create(allocator, &error_class, sizeof *error) : NULL;

    if (error == NULL) {
        object_release_if_any(user_info);
        return NULL;
    }
    error->user_info = user_info;
    error->code = code;
    error->domain = CFStringCreateCopy(allocator, domain);
    if (error->domain == NULL) {
        object_release(error);
        return NULL;
    }
    return (CFErrorRef)(void *)error;
}

static CFDictionaryRef create_user_info(CFAllocatorRef allocator, const void *const *keys, const void *const *values, CFIndex count)
{
    return CFDictionaryCreate(allocator, (const void **)(uintptr_t)keys, (const void **)(uintptr_t)values, count,
                              &kCFCopyStringDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
}

CFTypeID CFErrorGetTypeID(void)
{
    return object_type_error;
}

CFErrorRef CFErrorCreate(CFAllocatorRef allocator, CFErrorDomain domain, CFIndex code, CFDictionaryRef userInfo)
{
    object_require(domain, object_type_string, "CFErrorCreate", "domain");
    CFDictionaryRef copy = userInfo != NULL ? CFDictionaryCreateCopy(allocator, userInfo) : create_user_info(allocator, NULL, NULL, 0);
    return create(allocator, domain, code, copy);
}

CFErrorRef CFErrorCreateWithUserInfoKeysAndValues(CFAllocatorRef allocator, CFErrorDomain domain, CFIndex code,
                                                  const void *const *userInfoKeys, const void *const *userInfoValues,
                                                  CFIndex numUserInfoValues)
{
    object_require(domain, object_type_string, "CFErrorCreateWithUserInfoKeysAndValues", "domain");
    return create(allocator, domain, code, create_user_info(allocator, userInfoKeys, userInfoValues, numUserInfoValues));
}

CFErrorDomain CFErrorGetDomain(CFErrorRef error)
{
    return error_of(error, "CFErrorGetDomain")->domain;
}

CFIndex CFErrorGetCode(CFErrorRef error)
{
    return error_of(error, "CFErrorGetCode")->code;
}

CFDictionaryRef CFErrorCopyUserInfo(CFErrorRef error)
{
    return CFRetain(error_of(error, "CFErrorCopyUserInfo")->user_info);
}

CFStringRef CFErrorCopyDescription(CFErrorRef error)
{
    return copy_user_description(error_of(error, "CFErrorCopyDescription"));
}

CFStringRef CFErrorCopyFailureReason(CFErrorRef error)
{
    return copy_reason(error_of(error, "CFErrorCopyFailureReason"));
}

CFStringRef CFErrorCopyRecoverySuggestion(CFErrorRef error)
{
    return copy_text(error_of(error, "CFErrorCopyRecoverySuggestion"), kCFErrorLocalizedRecoverySuggestionKey);
}
