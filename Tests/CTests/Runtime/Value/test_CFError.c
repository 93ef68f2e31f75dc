/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: what they hold, when they are equal, and the texts that they have for users and developers. */
#include <errno.h>
#include <locale.h>
#include <netdb.h>

#include "CFNetwork/CFSocketStream.h"
#include "CoreFoundation/CoreFoundation.h"
#include "harness.h"

static CFErrorRef error_with(CFErrorDomain domain, CFIndex code, CFStringRef key, CFStringRef text)
{
    const void *keys[] = {key};
    const void *values[] = {text};
    return CFErrorCreateWithUserInfoKeysAndValues(NULL, domain, code, keys, values, key != NULL ? 1 : 0);
}

/* Compares and releases. */
static void expect_text(CFStringRef text, CFStringRef expected)
{
    char actual[400] = "(NULL)";
    char wanted[400] = "(NULL)";
    if (text != NULL) {
        CFStringGetCString(text, actual, sizeof actual, kCFStringEncodingUTF8);
        CFRelease(text);
    }
    if (expected != NULL) {
        CFStringGetCString(expected, wanted, sizeof wanted, kCFStringEncodingUTF8);
    }
    EXPECT_STR(actual, wanted);
}

TEST(an_error_keeps_copies_of_what_it_is_made_of, "400")
{
    CFMutableStringRef domain = CFStringCreateMutableCopy(NULL, 0, CFSTR("org.example"));
    CFMutableDictionaryRef info = CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    CFDictionarySetValue(info, CFSTR("key"), CFSTR("value"));
    CFErrorRef error = CFErrorCreate(NULL, domain, -7, info);
    CFStringAppend(domain, CFSTR(".more"));
    CFDictionaryRemoveAllValues(info);
    EXPECT_EQ(CFGetTypeID(error), CFErrorGetTypeID());
    EXPECT(CFEqual(CFErrorGetDomain(error), CFSTR("org.example")));
    EXPECT_EQ(CFErrorGetCode(error), -7);
    CFDictionaryRef copy = CFErrorCopyUserInfo(error);
    EXPECT_EQ(CFDictionaryGetCount(copy), 1);
    EXPECT(CFDictionaryGetValue(copy, CFSTR("key")) == CFSTR("value"));
    CFRelease(copy);
    CFRelease(error);
    CFRelease(info);
    CFRelease(domain);
}

TEST(an_error_without_user_info_has_an_empty_one, "400")
{
    CFErrorRef error = CFErrorCreate(NULL, kCFErrorDomainMach, 5, NULL);
    CFDictionaryRef info = CFErrorCopyUserInfo(error);
    EXPECT_EQ(CFDictionaryGetCount(info), 0);
    CFRelease(info);
    CFRelease(error);
}

TEST(errors_are_equal_when_domain_code_and_user_info_are, "401")
{
    CFErrorRef error = error_with(CFSTR("d"), 1, kCFErrorDescriptionKey, CFSTR("text"));
    CFErrorRef others[] = {
        error_with(CFSTR("d"), 1, kCFErrorDescriptionKey, CFSTR("text")),
        error_with(CFSTR("e"), 1, kCFErrorDescriptionKey, CFSTR("text")),
        error_with(CFSTR("d"), 2, kCFErrorDescriptionKey, CFSTR("text")),
        error_with(CFSTR("d"), 1, kCFErrorDescriptionKey, CFSTR("other")),
    };
    EXPECT_EQ(CFHash(error), CFHash(others[0]));
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(CFEqual(error, others[i]), i == 0);
        CFRelease(others[i]);
    }
    CFRelease(error);
}

TEST(the_description_is_made_of_the_texts_that_say_most, "402")
{
    const struct {
        CFStringRef key, text, expected;
    } cases[] = {
        {kCFErrorLocalizedDescriptionKey, CFSTR("All of it."), CFSTR("All of it.")},
        {kCFErrorLocalizedFailureKey, CFSTR("No save."), CFSTR("No save.")},
        {kCFErrorLocalizedFailureReasonKey, CFSTR("Disk full."), CFSTR("The operation couldn\u2019t be completed. Disk full.")},
        {kCFErrorDescriptionKey, CFSTR("Bad arg"), CFSTR("The operation couldn\u2019t be completed. (d error 3 - Bad arg)")},
        {kCFErrorURLKey, CFSTR("x"), CFSTR("The operation couldn\u2019t be completed. (d error 3.)")},
    };
    for (int i = 0; i < 5; i++) {
        CFErrorRef error = error_with(CFSTR("d"), 3, cases[i].key, cases[i].text);
        expect_text(CFErrorCopyDescription(error), cases[i].expected);
        CFRelease(error);
    }
    const void *keys[] = {kCFErrorLocalizedFailureKey, kCFErrorLocalizedFailureReasonKey};
    const void *values[] = {CFSTR("No save."), CFSTR("Disk full.")};
    CFErrorRef error = CFErrorCreateWithUserInfoKeysAndValues(NULL, CFSTR("d"), 3, keys, values, 2);
    expect_text(CFErrorCopyDescription(error), CFSTR("No save. Disk full."));
    CFRelease(error);
}

TEST(a_value_that_is_no_text_is_passed_over, "402")
{
    CFErrorRef error = error_with(CFSTR("d"), 3, kCFErrorLocalizedDescriptionKey, (CFStringRef)(const void *)kCFBooleanTrue);
    expect_text(CFErrorCopyDescription(error), CFSTR("The operation couldn\u2019t be completed. (d error 3.)"));
    CFRelease(error);
}

TEST(reason_and_suggestion_come_from_the_user_info, "403")
{
    CFErrorRef plain = CFErrorCreate(NULL, kCFErrorDomainCocoa, 260, NULL);
    CFErrorRef reason = error_with(kCFErrorDomainPOSIX, ENOENT, kCFErrorLocalizedFailureReasonKey, CFSTR("Disk full."));
    CFErrorRef suggestion = error_with(CFSTR("d"), 1, kCFErrorLocalizedRecoverySuggestionKey, CFSTR("Try again."));
    expect_text(CFErrorCopyFailureReason(plain), NULL);
    expect_text(CFErrorCopyRecoverySuggestion(plain), NULL);
    expect_text(CFErrorCopyFailureReason(reason), CFSTR("Disk full."));
    expect_text(CFErrorCopyRecoverySuggestion(suggestion), CFSTR("Try again."));
    CFRelease(plain);
    CFRelease(reason);
    CFRelease(suggestion);
}

TEST(posix_errors_have_the_texts_of_the_system, "404")
{
    setlocale(LC_ALL, "");
    CFErrorRef error = CFErrorCreate(NULL, kCFErrorDomainPOSIX, ENOENT, NULL);
    expect_text(CFErrorCopyFailureReason(error), CFSTR("No such file or directory"));
    expect_text(CFErrorCopyDescription(error), CFSTR("The operation couldn\u2019t be completed. No such file or directory"));
    expect_text(CFCopyDescription(error), CFSTR("Error Domain=NSPOSIXErrorDomain Code=2 \"No such file or directory\""));
    CFRelease(error);
    const CFIndex no_codes[] = {0, -2, (CFIndex)1 << 40};
    for (int i = 0; i < 3; i++) {
        error = CFErrorCreate(NULL, kCFErrorDomainPOSIX, no_codes[i], NULL);
        expect_text(CFErrorCopyFailureReason(error), NULL);
        CFRelease(error);
    }
}

TEST(errors_of_tls_and_of_names_have_words, "404")
{
    const struct {
        CFErrorDomain domain;
        CFIndex code;
        CFStringRef expected;
    } cases[] = {
        {kCFErrorDomainOSStatus, errSSLCertExpired, CFSTR("The certificate of the peer, or of an authority, has expired")},
        {kCFErrorDomainOSStatus, errSSLPeerHandshakeFail, CFSTR("The peer sent the alert handshake_failure")},
        {kCFErrorDomainOSStatus, -50, NULL},
        {CFSTR("kCFErrorDomainCFNetwork"), EAI_NONAME, CFSTR("There is no host of this name")},
        {CFSTR("kCFErrorDomainCFNetwork"), EAI_AGAIN, CFSTR("No server of names has answered, or it has a problem")},
        {CFSTR("kCFErrorDomainCFNetwork"), 1, NULL},
        {CFSTR("d"), EAI_NONAME, NULL},
        {kCFErrorDomainCocoa, errSSLCertExpired, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CFErrorRef error = CFErrorCreate(NULL, cases[i].domain, cases[i].code, NULL);
        expect_text(CFErrorCopyFailureReason(error), cases[i].expected);
        CFRelease(error);
    }
}

TEST(the_words_for_an_error_show_all_of_it, "405")
{
    CFErrorRef cause = CFErrorCreate(NULL, CFSTR("inner"), 4, NULL);
    CFErrorRef error = error_with(CFSTR("outer"), -1, kCFErrorUnderlyingErrorKey, (CFStringRef)(void *)cause);
    CFStringRef expected = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("Error Domain=outer Code=-1 \"(null)\" UserInfo={NSUnderlyingError=%p {Error Domain=inner Code=4 \"(null)\"}}"),
        (void *)cause);
    expect_text(CFCopyDescription(error), expected);
    expect_text(CFStringCreateWithFormat(NULL, NULL, CFSTR("%@"), error), expected);
    CFRelease(expected);
    CFRelease(error);
    CFRelease(cause);
    error = error_with(CFSTR("d"), 1, kCFErrorDescriptionKey, CFSTR("Bad arg"));
    expect_text(CFCopyDescription(error), CFSTR("Error Domain=d Code=1 \"Bad arg\" UserInfo={NSDescription=Bad arg}"));
    CFRelease(error);
}

TEST(two_facts_of_an_error_are_separated, "405")
{
    const void *keys[] = {CFSTR("a"), CFSTR("b")};
    const void *values[] = {CFSTR("1"), CFSTR("2")};
    CFErrorRef error = CFErrorCreateWithUserInfoKeysAndValues(NULL, CFSTR("d"), 1, keys, values, 2);
    CFStringRef words = CFCopyDescription(error);
    EXPECT(CFStringHasSuffix(words, CFSTR("{a=1, b=2}")) || CFStringHasSuffix(words, CFSTR("{b=2, a=1}")));
    CFRelease(words);
    CFRelease(error);
}

TEST(errors_refuse_what_is_none, "")
{
    EXPECT_STOPS("CFErrorCreate: the domain is NULL", { CFErrorCreate(NULL, NULL, 1, NULL); });
    EXPECT_STOPS("CFErrorCreateWithUserInfoKeysAndValues", { CFErrorCreateWithUserInfoKeysAndValues(NULL, NULL, 1, NULL, NULL, 0); });
    EXPECT_STOPS("CFErrorGetCode: the error is NULL", { CFErrorGetCode(NULL); });
    EXPECT_STOPS("CFErrorGetDomain", { CFErrorGetDomain((CFErrorRef)(uintptr_t)kCFNull); });
    EXPECT_STOPS("CFErrorCopyUserInfo", { CFErrorCopyUserInfo(NULL); });
    EXPECT_STOPS("CFErrorCopyDescription", { CFErrorCopyDescription(NULL); });
    EXPECT_STOPS("CFErrorCopyFailureReason", { CFErrorCopyFailureReason(NULL); });
    EXPECT_STOPS("CFErrorCopyRecoverySuggestion", { CFErrorCopyRecoverySuggestion(NULL); });
}
