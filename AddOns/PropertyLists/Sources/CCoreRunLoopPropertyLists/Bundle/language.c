/* SPDX-License-Identifier: Apache-2.0 */
/* Languages by name (language.h). */
#include "Bundle/language.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CFPreferences.h"

enum { fit_exact = 5, fit_region = 4, fit_language = 3, fit_other_region = 1, longest_name = 63 };

/* Older names of languages, and the usual scripts of those that are written in several. */
static const char *const names[][2] = {
    {"english", "en"}, {"french", "fr"},    {"german", "de"},     {"italian", "it"},  {"dutch", "nl"},
    {"spanish", "es"}, {"swedish", "sv"},   {"portuguese", "pt"}, {"danish", "da"},   {"finnish", "fi"},
    {"greek", "el"},   {"norwegian", "nb"}, {"turkish", "tr"},    {"japanese", "ja"}, {"korean", "ko"},
    {"russian", "ru"}, {"iw", "he"},        {"in", "id"},         {"ji", "yi"},       {"no", "nb"},
};
static const char *const scripts[][3] = {{"zh", "TW", "Hant"}, {"zh", "HK", "Hant"}, {"zh", "MO", "Hant"},
                                         {"zh", "", "Hans"},   {"sr", "", "Cyrl"},   {"uz", "", "Latn"},
                                         {"az", "", "Latn"},   {"pa", "PK", "Arab"}, {"pa", "", "Guru"}};

/* ---- parsing ---- */

static bool is_letter(char byte)
{
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

static bool has_only_letters(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!is_letter(text[i])) {
            return false;
        }
    }
    return true;
}

/* Copies a part that fits, the first letters of it in capitals and the others in small ones. */
static void copy_part(char *place, size_t size, const char *text, size_t length, size_t capitals)
{
    (void)snprintf(place, size, "%.*s", (int)length, text);
    for (size_t i = 0; place[i] != '\0'; i++) {
        place[i] = is_letter(place[i]) ? (char)(i < capitals ? place[i] & ~0x20 : place[i] | 0x20) : place[i];
    }
}

static void set_base(struct language *language, const char *text, size_t length)
{
    char base[12];

    if (length < 2 || length >= sizeof base || !has_only_letters(text, length)) {
        return;
    }
    copy_part(base, sizeof base, text, length, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(base, names[i][0]) == 0) {
            (void)snprintf(language->base, sizeof language->base, "%s", names[i][1]);
            return;
        }
    }
    if (length <= 3) {
        memcpy(language->base, base, length + 1);
    }
}

static void set_script(struct language *language)
{
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts && language->script[0] == '\0'; i++) {
        if (strcmp(language->base, scripts[i][0]) == 0 && (scripts[i][1][0] == '\0' || strcmp(language->region, scripts[i][1]) == 0)) {
            (void)snprintf(language->script, sizeof language->script, "%s", scripts[i][2]);
        }
    }
}

struct language language_parse(const char *name)
{
    struct language language = {"", "", ""};
    size_t length = strcspn(name, "-_.@");

    set_base(&language, name, length);
    for (name += length; *name == '-' || *name == '_'; name += length) {
        name++;
        length = strcspn(name, "-_.@");
        if (length == 4 && language.region[0] == '\0' && has_only_letters(name, length)) {
            copy_part(language.script, sizeof language.script, name, length, 1);
        } else if (language.region[0] == '\0' &&
                   ((length == 2 && has_only_letters(name, length)) || (length == 3 && strspn(name, "0123456789") == 3))) {
            copy_part(language.region, sizeof language.region, name, length, 2);
        }
    }
    set_script(&language);
    return language;
}

static bool get_name(CFTypeRef name, char ret_text[longest_name + 1])
{
    return name && CFGetTypeID(name) == CFStringGetTypeID() && CFStringGetCString(name, ret_text, longest_name + 1, kCFStringEncodingASCII);
}

struct language language_of(CFTypeRef name)
{
    char text[longest_name + 1] = "";

    return language_parse(get_name(name, text) ? text : "");
}

int language_fit(const struct language *there, const struct language *wanted)
{
    if (there->base[0] == '\0' || strcmp(there->base, wanted->base) != 0 || strcmp(there->script, wanted->script) != 0) {
        return 0;
    }
    return strcmp(there->region, wanted->region) == 0 ? fit_region : there->region[0] == '\0' ? fit_language : fit_other_region;
}

/* ---- choosing ---- */

/* Appends the first one of the names with the best fit of at least `least`, unless it is there. Returns false if there is none. */
static bool append_best(CFMutableArrayRef chosen, CFArrayRef there, CFTypeRef wanted, int least)
{
    struct language language = language_of(wanted);
    CFTypeRef best = NULL;

    for (CFIndex i = 0; i < CFArrayGetCount(there); i++) {
        CFTypeRef name = CFArrayGetValueAtIndex(there, i);
        struct language its = language_of(name);
        int fit = CFEqual(name, wanted) ? fit_exact : language_fit(&its, &language);

        if (fit >= least) {
            best = name;
            least = fit + 1;
        }
    }
    if (best && !CFArrayContainsValue(chosen, CFRangeMake(0, CFArrayGetCount(chosen)), best)) {
        CFArrayAppendValue(chosen, best);
    }
    return best;
}

static void append_plain(CFMutableArrayRef chosen, CFArrayRef there, CFTypeRef wanted)
{
    struct language language = language_of(wanted);
    CFStringRef plain = NULL;

    if (language.region[0] != '\0') {
        language.region[0] = '\0';
        plain = CFStringCreateWithFormat(NULL, NULL, CFSTR("%s-%s"), language.base, language.script);
    }
    if (plain) {
        (void)append_best(chosen, there, plain, fit_region);
        CFRelease(plain);
    }
}

CFMutableArrayRef language_choose(CFArrayRef there, CFArrayRef wanted)
{
    CFMutableArrayRef chosen = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    bool is_found = false;

    for (CFIndex i = 0; chosen && !is_found && i < CFArrayGetCount(wanted); i++) {
        CFTypeRef name = CFArrayGetValueAtIndex(wanted, i);

        is_found = append_best(chosen, there, name, 1);
        if (is_found) {
            append_plain(chosen, there, name);
        }
    }
    return chosen;
}

/* ---- what the user wants ---- */

static bool append_text(CFMutableArrayRef array, const char *text, size_t length)
{
    CFStringRef name = CFStringCreateWithBytes(NULL, (const UInt8 *)text, (CFIndex)length, kCFStringEncodingUTF8, false);

    if (name) {
        CFArrayAppendValue(array, name);
        CFRelease(name);
    }
    return name;
}

/* The variables in the order of gettext(3): LANGUAGE counts only in a locale that is not "C". */
static void append_environment(CFMutableArrayRef array)
{
    const char *all = getenv("LC_ALL");
    const char *messages = getenv("LC_MESSAGES");
    const char *lang = getenv("LANG");
    const char *list = getenv("LANGUAGE");
    const char *locale = all && *all ? all : messages && *messages ? messages : lang && *lang ? lang : "C";
    size_t length = strcspn(locale, ".@");

    if ((length == 1 && *locale == 'C') || (length == 5 && memcmp(locale, "POSIX", 5) == 0)) {
        return;
    }
    for (list = list ? list : ""; *list != '\0'; list += list[0] == ':') {
        size_t part = strcspn(list, ":");

        if (part > 0) {
            (void)append_text(array, list, part);
        }
        list += part;
    }
    (void)append_text(array, locale, length);
}

CFArrayRef language_copy_wanted(void)
{
    CFTypeRef preferred = CFPreferencesCopyAppValue(CFSTR("AppleLanguages"), kCFPreferencesCurrentApplication);

    if (preferred && CFGetTypeID(preferred) == CFArrayGetTypeID()) {
        return preferred;
    }
    if (preferred) {
        CFRelease(preferred);
    }
    CFMutableArrayRef array = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    if (array) {
        append_environment(array);
    }
    return array;
}
