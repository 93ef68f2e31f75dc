/* SPDX-License-Identifier: Apache-2.0 */
/* Names of languages, and which localization fits what a user wants. */
#include <stdlib.h>
#include <string.h>

#include "Bundle/language.h"
#include "Failure/nth_failure.h"
#include "folder_maker.h"
#include "harness.h"

static CFArrayRef create_list(const char *words)
{
    CFStringRef text = CFStringCreateWithCString(NULL, words, kCFStringEncodingUTF8);
    CFArrayRef list = *words ? CFStringCreateArrayBySeparatingStrings(NULL, text, CFSTR(" ")) : CFArrayCreate(NULL, NULL, 0, NULL);

    CFRelease(text);
    return list;
}

/* Takes the list. */
static const char *take_words(CFArrayRef list)
{
    CFStringRef text = list ? CFStringCreateByCombiningStrings(NULL, list, CFSTR(" ")) : NULL;

    if (list) {
        CFRelease(list);
    }
    return take_text(text);
}

static const char *chosen(const char *there, const char *wanted)
{
    CFArrayRef there_list = create_list(there);
    CFArrayRef wanted_list = create_list(wanted);
    CFMutableArrayRef list = language_choose(there_list, wanted_list);

    CFRelease(there_list);
    CFRelease(wanted_list);
    return take_words(list);
}

TEST(the_localization_that_fits_best_is_chosen, "2215")
{
    static const struct {
        const char *there, *wanted, *chosen;
    } rows[] = {
        {"en fr de", "fr", "fr"},
        {"en fr de", "fr_CA", "fr"},
        {"en fr de", "fr-CA", "fr"},
        {"en fr de", "fr_FR.UTF-8", "fr"},
        {"en fr de", "de_DE@euro", "de"},
        {"en fr de", "ja", ""},
        {"en fr de", "ja de en", "de"},
        {"en_GB fr", "en_US", "en_GB"},
        {"fr en_GB", "en", "en_GB"},
        {"en en-GB", "en_GB", "en-GB en"},
        {"en en_GB", "en-GB", "en_GB en"},
        {"en en_GB", "en_AU", "en"},
        {"English French", "fr", "French"},
        {"French fr", "fr", "fr"},
        {"fr French", "French", "French"},
        {"German en", "de_AT", "German"},
        {"zh_TW zh_CN", "zh-Hant", "zh_TW"},
        {"zh-Hans zh-Hant", "zh_TW", "zh-Hant"},
        {"zh-Hant zh-Hans", "zh_CN", "zh-Hans"},
        {"zh-Hans zh-Hant en", "zh-HK", "zh-Hant"},
        {"zh-Hant zh-Hans en", "zh", "zh-Hans"},
        {"zh-Hans en", "zh_TW en", "en"},
        {"en pt_BR pt_PT", "pt", "pt_BR"},
        {"en pt pt_PT", "pt_BR", "pt"},
        {"en no", "nb", "no"},
        {"en he", "iw_IL", "he"},
        {"sr-Latn sr", "sr_RS", "sr"},
        {"sr sr-Latn", "sr-Latn-RS", "sr-Latn"},
        {"en es-419 es", "es-419", "es-419 es"},
        {"en fr", "FR", "fr"},
        {"de_CH fr", "de", "de_CH"},
        {"Base en", "Base", "Base"},
        {"en", "", ""},
        {"", "en", ""},
        {"en", "e 1 x_y_z englishes-language a_very_long_name_of_a_language_that_there_is_not_anywhere_in_the_whole_world", ""},
        {"de-1996 de", "de", "de"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *found = chosen(rows[i].there, rows[i].wanted);

        if (strcmp(found, rows[i].chosen) != 0) {
            test_failed(__FILE__, __LINE__, "of %s for %s: %s, not %s", rows[i].there, rows[i].wanted, found, rows[i].chosen);
        }
    }
}

/* What is wanted with the variables LANGUAGE, LC_ALL, LC_MESSAGES and LANG; NULL: not set. */
static const char *wanted_with(const char *const *values)
{
    static const char *const variables[] = {"LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"};

    for (int i = 0; i < 4; i++) {
        (void)(values[i] ? setenv(variables[i], values[i], 1) : unsetenv(variables[i]));
    }
    return take_words(language_copy_wanted());
}

TEST(the_user_wants_the_languages_of_a_preference_or_of_the_environment, "2215")
{
    static const struct {
        const char *values[4];
        const char *wanted;
    } rows[] = {
        {{NULL, NULL, NULL, NULL}, ""},
        {{NULL, NULL, NULL, "fr_FR.UTF-8"}, "fr_FR"},
        {{NULL, NULL, "de_DE@euro", "fr_FR.UTF-8"}, "de_DE"},
        {{NULL, "ja_JP", "de_DE", "fr"}, "ja_JP"},
        {{NULL, "", "", "fr"}, "fr"},
        {{"de:fr::en", NULL, NULL, "it"}, "de fr en it"},
        {{"de", NULL, NULL, "C"}, ""},
        {{"de", "POSIX", NULL, "fr"}, ""},
        {{"de", "C.UTF-8", NULL, "fr"}, ""},
    };

    folder_make();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_STR(wanted_with(rows[i].values), rows[i].wanted);
    }
    CFPreferencesSetAppValue(CFSTR("AppleLanguages"), CFSTR("no array"), kCFPreferencesAnyApplication);
    EXPECT_STR(wanted_with(rows[1].values), "fr_FR");
    CFArrayRef list = create_list("sv da");
    CFPreferencesSetAppValue(CFSTR("AppleLanguages"), list, kCFPreferencesAnyApplication);
    CFRelease(list);
    EXPECT_STR(wanted_with(rows[1].values), "sv da");
    folder_remove();
}

TEST(without_a_fit_the_first_localization_is_taken, "2215")
{
    CFArrayRef there = create_list("it fr");
    CFArrayRef wanted = create_list("ja");
    CFArrayRef none = create_list("");

    folder_make();
    EXPECT_STR(take_words(CFBundleCopyLocalizationsForPreferences(there, wanted)), "it");
    EXPECT_STR(take_words(CFBundleCopyLocalizationsForPreferences(none, wanted)), "en");
    EXPECT(!CFBundleCopyLocalizationsForPreferences(NULL, wanted));
    EXPECT(!CFBundleCopyPreferredLocalizationsFromArray(NULL));
    (void)setenv("LC_ALL", "fr_CA.UTF-8", 1);
    EXPECT_STR(take_words(CFBundleCopyLocalizationsForPreferences(there, NULL)), "fr");
    EXPECT_STR(take_words(CFBundleCopyPreferredLocalizationsFromArray(there)), "fr");
    (void)setenv("LC_ALL", "ja_JP.UTF-8", 1);
    EXPECT_STR(take_words(CFBundleCopyPreferredLocalizationsFromArray(there)), "it");
    CFRelease(there);
    CFRelease(wanted);
    CFRelease(none);
    folder_remove();
}
