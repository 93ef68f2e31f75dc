/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any texts as the arguments of a program, as names of localizations and of versions. A language that is known is the same when it is
 * written out and read again, what is chosen is there, and an argument's value is a property list.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Bundle/bundle_version.h"
#include "Bundle/language.h"
#include "CoreFoundation/CoreFoundation.h"
#include "Preferences/preference_search.h"
#include "check.h"

enum { texts_max = 16 };

static void check_language(const char *text)
{
    struct language language = language_parse(text);
    char again[32];

    if (language.base[0] != '\0') {
        (void)snprintf(again, sizeof again, "%s%s%s%s%s", language.base, language.script[0] != '\0' ? "-" : "", language.script,
                       language.region[0] != '\0' ? "-" : "", language.region);
        struct language same = language_parse(again);

        CHECK(strcmp(same.base, language.base) == 0 && strcmp(same.script, language.script) == 0);
        CHECK(strcmp(same.region, language.region) == 0 && language_fit(&same, &language) == 4);
    }
}

static void check_choice(CFArrayRef there, CFArrayRef wanted)
{
    CFRange all = CFRangeMake(0, CFArrayGetCount(there));
    CFMutableArrayRef chosen = language_choose(there, wanted);

    CHECK(chosen && CFArrayGetCount(chosen) <= 2);
    for (CFIndex i = 0; i < CFArrayGetCount(chosen); i++) {
        CHECK(CFArrayContainsValue(there, all, CFArrayGetValueAtIndex(chosen, i)));
    }
    CHECK(CFArrayGetCount(chosen) > 0 || CFArrayGetCount(wanted) == 0 ||
          !CFArrayContainsValue(there, all, CFArrayGetValueAtIndex(wanted, 0)));
    CFRelease(chosen);
}

static void check_argument(CFStringRef key)
{
    Boolean is_truth = false;
    Boolean is_integer = false;
    CFTypeRef value = CFPreferencesCopyAppValue(key, kCFPreferencesCurrentApplication);

    (void)CFPreferencesGetAppBooleanValue(key, kCFPreferencesCurrentApplication, &is_truth);
    (void)CFPreferencesGetAppIntegerValue(key, kCFPreferencesCurrentApplication, &is_integer);
    CHECK(value || (!is_truth && !is_integer));
    if (value) {
        CHECK(CFPropertyListIsValid(value, kCFPropertyListBinaryFormat_v1_0));
        CFRelease(value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *copy = calloc(size + 1, 1);
    char *arguments[texts_max + 1] = {(char *)(uintptr_t)"fuzz"};
    CFMutableArrayRef texts = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    UInt32 code;
    int count = 1;

    (void)setenv("XDG_CONFIG_HOME", "/nowhere", 1);
    (void)setenv("XDG_CONFIG_DIRS", "/nowhere", 1);
    (void)memcpy(copy, bytes, size);
    for (char *text = copy; text < copy + size && count <= texts_max; text += strlen(text) + 1) {
        CFStringRef string = CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);

        arguments[count++] = text;
        check_language(text);
        if (string) {
            CFArrayAppendValue(texts, string);
            (void)bundle_version_parse(string);
            (void)bundle_code_parse(string, &code);
            CFRelease(string);
        }
    }
    CRLPreferencesSetArguments(count, arguments);
    for (CFIndex i = 0; i < CFArrayGetCount(texts); i++) {
        CFMutableStringRef key = CFStringCreateMutableCopy(NULL, 0, CFArrayGetValueAtIndex(texts, i));

        CFStringDelete(key, CFRangeMake(0, CFStringGetLength(key) > 0));
        check_argument(key);
        CFRelease(key);
    }
    check_choice(texts, texts);
    CFRelease(texts);
    free(copy);
    return 0;
}
