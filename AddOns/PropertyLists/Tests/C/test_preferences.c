/* SPDX-License-Identifier: Apache-2.0 */
/* Preferences: names, the search, files that are damaged or not what they seem, processes and threads that write the same one. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Failure/nth_failure.h"
#include "File/plist_file.h"
#include "Preferences/preference_search.h"
#include "folder_maker.h"
#include "harness.h"

#define APP CFSTR("com.example.test")

static void set_text(CFStringRef key, const char *text, CFStringRef application)
{
    CFStringRef value = CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);

    CFPreferencesSetAppValue(key, value, application);
    CFRelease(value);
}

static const char *value_of(CFStringRef key)
{
    return take_text(CFPreferencesCopyAppValue(key, APP));
}

/* As another process does, which has no domains yet. */
static void forget(void)
{
    preference_domains_give_back();
}

/* ---- values ---- */

TEST(a_value_is_kept_in_a_file_of_its_user_and_read_by_the_next_process, "2218 2220")
{
    struct stat status;

    folder_make();
    set_text(CFSTR("name"), "first", APP);
    EXPECT_STR(value_of(CFSTR("name")), "first");
    EXPECT_EQ(access(folder_path("com.example.test.plist"), F_OK), -1);
    EXPECT(CFPreferencesAppSynchronize(APP));
    EXPECT(strstr(folder_read("com.example.test.plist"), "<string>first</string>"));
    EXPECT(stat(folder_path("com.example.test.plist"), &status) == 0 && (status.st_mode & 0777) == 0600);
    EXPECT_EQ(folder_count("", "com.example.test.plist"), 1); /* no new file is left */
    forget();
    EXPECT_STR(value_of(CFSTR("name")), "first");
    CFPreferencesSetAppValue(CFSTR("name"), NULL, APP);
    EXPECT_STR(value_of(CFSTR("name")), "none");
    EXPECT(CFPreferencesAppSynchronize(APP));
    EXPECT(!strstr(folder_read("com.example.test.plist"), "first"));
    folder_remove();
}

TEST(what_others_write_is_seen_when_a_program_synchronizes, "2220")
{
    folder_make();
    folder_write("com.example.test.plist", "{ a = 1; b = 1; c = 1; }");
    EXPECT_STR(value_of(CFSTR("a")), "1");
    set_text(CFSTR("b"), "ours", APP);
    CFPreferencesSetAppValue(CFSTR("c"), NULL, APP);
    folder_write("com.example.test.plist", "{ a = theirs; b = theirs; c = theirs; d = theirs; }");
    EXPECT_STR(value_of(CFSTR("a")), "1");
    EXPECT(CFPreferencesAppSynchronize(APP));
    EXPECT_STR(value_of(CFSTR("a")), "theirs");
    EXPECT_STR(value_of(CFSTR("b")), "ours");
    EXPECT_STR(value_of(CFSTR("c")), "none");
    EXPECT_STR(value_of(CFSTR("d")), "theirs");
    folder_write("com.example.test.plist", "{ a = again; }");
    EXPECT(CFPreferencesAppSynchronize(APP)); /* without a change of ours: what was written before is theirs to replace */
    EXPECT_STR(value_of(CFSTR("a")), "again");
    EXPECT_STR(value_of(CFSTR("b")), "none");
    EXPECT(unlink(folder_path("com.example.test.plist")) == 0);
    EXPECT(CFPreferencesAppSynchronize(APP));
    EXPECT_STR(value_of(CFSTR("a")), "none");
    folder_remove();
}

TEST(domains_are_searched_from_the_nearest_to_the_widest, "2218")
{
    CFStringRef applications[] = {APP, CFSTR("suite.new"), CFSTR("suite.old"), kCFPreferencesAnyApplication};
    CFStringRef users[] = {kCFPreferencesCurrentUser, kCFPreferencesAnyUser};
    CFStringRef hosts[] = {kCFPreferencesCurrentHost, kCFPreferencesAnyHost};

    folder_make();
    CFPreferencesAddSuitePreferencesToApp(APP, CFSTR("suite.new"));
    CFPreferencesAddSuitePreferencesToApp(APP, CFSTR("suite.old"));
    CFPreferencesAddSuitePreferencesToApp(APP, CFSTR("suite.new")); /* comes first from now on */
    CFPreferencesAddSuitePreferencesToApp(CFSTR("other"), CFSTR("suite.other"));
    set_text(CFSTR("k"), "other", CFSTR("suite.other"));
    for (int i = 0; i < 16; i++) {
        CFStringRef value = CFStringCreateWithFormat(NULL, NULL, CFSTR("%d"), i);

        CFPreferencesSetValue(CFSTR("k"), value, applications[i / 2 % 4], users[i / 8], hosts[i % 2]);
        EXPECT(CFPreferencesSynchronize(applications[i / 2 % 4], users[i / 8], hosts[i % 2]));
        CFRelease(value);
    }
    forget();
    for (int i = 0; i < 16; i++) {
        char wanted[16];

        (void)snprintf(wanted, sizeof wanted, "%d", i);
        EXPECT_STR(value_of(CFSTR("k")), wanted);
        CFPreferencesSetValue(CFSTR("k"), NULL, applications[i / 2 % 4], users[i / 8], hosts[i % 2]);
    }
    EXPECT_STR(value_of(CFSTR("k")), "none");
    set_text(CFSTR("k"), "suite", CFSTR("suite.old"));
    EXPECT_STR(value_of(CFSTR("k")), "suite");
    CFPreferencesRemoveSuitePreferencesFromApp(APP, CFSTR("suite.old"));
    EXPECT_STR(value_of(CFSTR("k")), "none");
    folder_remove();
}

TEST(truths_and_integers_are_read_of_numbers_and_words, "2218")
{
    static const struct {
        const char *list; /* as a property list */
        int truth; /* -1: none */
        long integer; /* -1: none */
    } rows[] = {
        {"<true/>", 1, -1},
        {"<false/>", 0, -1},
        {"<integer>0</integer>", 0, 0},
        {"<integer>7</integer>", 1, 7},
        {"<real>1</real>", -1, -1},
        {"<string>YES</string>", 1, -1},
        {"<string>true</string>", 1, -1},
        {"<string>No</string>", 0, -1},
        {"<string>FALSE</string>", 0, -1},
        {"<string>1</string>", -1, 1},
        {"<string> 12</string>", -1, 12},
        {"<string>12x</string>", -1, -1},
        {"<string></string>", -1, -1},
        {"<string>999999999999999999999</string>", -1, -1},
        {"<string>a word that is longer than all of them and than a number may be, which is longer</string>", -1, -1},
        {"<data></data>", -1, -1},
    };

    folder_make();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[300];
        Boolean is_truth = false;
        Boolean is_integer = false;

        (void)snprintf(text, sizeof text, "<plist><dict><key>k</key>%s</dict></plist>", rows[i].list);
        folder_write("com.example.test.plist", text);
        forget();
        EXPECT_EQ(CFPreferencesGetAppBooleanValue(CFSTR("k"), APP, &is_truth), rows[i].truth == 1);
        EXPECT_EQ(is_truth, rows[i].truth >= 0);
        EXPECT_EQ(CFPreferencesGetAppIntegerValue(CFSTR("k"), APP, &is_integer), rows[i].integer < 0 ? 0 : rows[i].integer);
        EXPECT_EQ(is_integer, rows[i].integer >= 0);
    }
    EXPECT(!CFPreferencesGetAppBooleanValue(CFSTR("none"), APP, NULL));
    EXPECT_EQ(CFPreferencesGetAppIntegerValue(CFSTR("none"), APP, NULL), 0);
    EXPECT(!CFPreferencesAppValueIsForced(CFSTR("k"), APP));
    folder_remove();
}

TEST(several_values_are_set_and_listed_at_once, "2218")
{
    CFStringRef keys[] = {CFSTR("a"), CFSTR("b"), CFSTR("missing")};
    CFDictionaryRef set = CFDictionaryCreate(NULL, (const void **)keys, (const void **)keys, 2, &kCFTypeDictionaryKeyCallBacks,
                                             &kCFTypeDictionaryValueCallBacks);
    CFArrayRef names = CFArrayCreate(NULL, (const void **)keys, 3, &kCFTypeArrayCallBacks);
    CFArrayRef removed = CFArrayCreate(NULL, (const void **)keys, 1, &kCFTypeArrayCallBacks);

    folder_make();
    EXPECT(!CFPreferencesCopyKeyList(APP, kCFPreferencesCurrentUser, kCFPreferencesAnyHost));
    EXPECT(!CFPreferencesCopyApplicationList(kCFPreferencesCurrentUser, kCFPreferencesAnyHost));
    CFPreferencesSetMultiple(set, NULL, APP, kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
    CFDictionaryRef some = CFPreferencesCopyMultiple(names, APP, kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
    EXPECT(some && CFEqual(some, set));
    CFRelease(some);
    CFPreferencesSetMultiple(NULL, removed, APP, kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
    CFArrayRef list = CFPreferencesCopyKeyList(APP, kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
    EXPECT(list && CFArrayGetCount(list) == 1 && CFEqual(CFArrayGetValueAtIndex(list, 0), CFSTR("b")));
    CFRelease(list);
    EXPECT_STR(take_text(CFPreferencesCopyValue(CFSTR("b"), APP, kCFPreferencesCurrentUser, kCFPreferencesAnyHost)), "b");
    EXPECT(CFPreferencesAppSynchronize(APP));
    set_text(CFSTR("g"), "1", kCFPreferencesAnyApplication);
    EXPECT(CFPreferencesAppSynchronize(kCFPreferencesAnyApplication));
    folder_write("no-preferences.txt", "");
    folder_write(".hidden.plist", "");
    list = CFPreferencesCopyApplicationList(kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
    REQUIRE(list);
    EXPECT_EQ(CFArrayGetCount(list), 2);
    EXPECT(CFArrayContainsValue(list, CFRangeMake(0, 2), APP) &&
           CFArrayContainsValue(list, CFRangeMake(0, 2), kCFPreferencesAnyApplication));
    CFRelease(list);
    CFRelease(set);
    CFRelease(names);
    CFRelease(removed);
    folder_remove();
}

TEST(arguments_come_before_what_is_kept_and_are_not_kept, "2218")
{
    char *arguments[] = {"program", "-name",  "argued", "file",  "-list", "(1, 2)", "-bad", "(1", "-flag",  "-n",
                         "-5",      "--long", "-",      "-text", "a b",   "-utf",   "\xFF", "--", "-after", "end"};

    folder_make();
    set_text(CFSTR("name"), "kept", kCFPreferencesCurrentApplication);
    CRLPreferencesSetArguments(sizeof arguments / sizeof *arguments, arguments);
    CFStringRef current = kCFPreferencesCurrentApplication;
    EXPECT_STR(take_text(CFPreferencesCopyAppValue(CFSTR("name"), current)), "argued");
    CFTypeRef list = CFPreferencesCopyAppValue(CFSTR("list"), current);
    EXPECT(list && CFGetTypeID(list) == CFArrayGetTypeID() && CFArrayGetCount(list) == 2);
    CFRelease(list);
    EXPECT_STR(take_text(CFPreferencesCopyAppValue(CFSTR("bad"), current)), "(1");
    EXPECT_STR(take_text(CFPreferencesCopyAppValue(CFSTR("flag"), current)), "none");
    EXPECT_EQ(CFPreferencesGetAppIntegerValue(CFSTR("n"), current, NULL), -5);
    EXPECT_STR(take_text(CFPreferencesCopyAppValue(CFSTR("text"), current)), "a b");
    EXPECT_STR(take_text(CFPreferencesCopyAppValue(CFSTR("utf"), current)), "none");
    EXPECT_STR(take_text(CFPreferencesCopyAppValue(CFSTR("after"), current)), "none");
    EXPECT_STR(value_of(CFSTR("name")), "none"); /* of another application */
    CRLPreferencesSetArguments(0, NULL);
    EXPECT_STR(take_text(CFPreferencesCopyAppValue(CFSTR("name"), current)), "kept");
    folder_remove();
}

TEST(a_value_that_no_property_list_holds_is_refused, "2220")
{
    CFMutableArrayRef deep = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    CFErrorRef error = CFErrorCreate(NULL, kCFErrorDomainPOSIX, 1, NULL);

    folder_make();
    for (int i = 0; i < 510; i++) {
        CFMutableArrayRef outer = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);

        CFArrayAppendValue(outer, deep);
        CFRelease(deep);
        deep = outer;
    }
    CFPreferencesSetAppValue(CFSTR("deep"), deep, APP);
    EXPECT(CFPreferencesAppSynchronize(APP));
    forget();
    EXPECT_STR(value_of(CFSTR("deep")), "other");
    CFArrayRef deeper = CFArrayCreate(NULL, (const void **)&deep, 1, &kCFTypeArrayCallBacks);
    CFMutableArrayRef innermost = deep;
    while (CFArrayGetCount(innermost) > 0) {
        innermost = (CFMutableArrayRef)(uintptr_t)CFArrayGetValueAtIndex(innermost, 0);
    }
    CFArrayAppendValue(innermost, CFSTR("leaf"));
    CFPreferencesSetAppValue(CFSTR("deep and full"), deep, APP);
    EXPECT_STR(value_of(CFSTR("deep and full")), "other");
    stderr_take();
    CFPreferencesSetAppValue(CFSTR("deeper"), deeper, APP);
    CFPreferencesSetAppValue(CFSTR("error"), error, APP);
    EXPECT(strstr(stderr_taken(), "CFPreferencesSetAppValue: the value is no property list"));
    EXPECT_STR(value_of(CFSTR("deeper")), "none");
    EXPECT_STR(value_of(CFSTR("error")), "none");
    EXPECT_STOPS("CFPreferencesCopyAppValue: the key is NULL", { (void)CFPreferencesCopyAppValue(NULL, APP); });
    EXPECT_STOPS("CFPreferencesSetAppValue: the application is no string", { CFPreferencesSetAppValue(APP, APP, (CFStringRef)error); });
    CFRelease(deeper);
    CFRelease(deep);
    CFRelease(error);
    folder_remove();
}

/* As somebody's property list of some hundred bytes has it. */
TEST(an_array_that_occurs_a_million_million_times_is_kept, "2220")
{
    CFArrayRef array = CFArrayCreate(NULL, NULL, 0, &kCFTypeArrayCallBacks);

    folder_make();
    for (int i = 0; i < 40; i++) {
        CFArrayRef twice = CFArrayCreate(NULL, (const void *[]){array, array}, 2, &kCFTypeArrayCallBacks);

        CFRelease(array);
        array = twice;
    }
    CFPreferencesSetAppValue(CFSTR("many"), array, APP);
    EXPECT(CFPreferencesAppSynchronize(APP));
    forget();
    EXPECT_STR(value_of(CFSTR("many")), "other");
    CFRelease(array);
    folder_remove();
}

/* ---- names ---- */

TEST(a_name_that_leads_elsewhere_has_no_preferences, "2216")
{
    static const char *const names[] = {"", ".", "..", "../x", "/etc/passwd", "a/b", ".hidden", "a\nb", "\x7F", "a/"};
    char long_name[202];

    folder_make();
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    stderr_take();
    for (size_t i = 0; i <= sizeof names / sizeof *names + 1; i++) {
        const char *text = i < sizeof names / sizeof *names ? names[i] : long_name;
        CFStringRef name = i <= sizeof names / sizeof *names
                               ? CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8)
                               : CFStringCreateWithBytes(NULL, (const UInt8 *)"a\0b", 3, kCFStringEncodingUTF8, false);

        set_text(CFSTR("k"), "v", name);
        EXPECT_STR(take_text(CFPreferencesCopyAppValue(CFSTR("k"), name)), "none");
        EXPECT(!CFPreferencesAppSynchronize(name));
        CFPreferencesSetValue(CFSTR("k"), CFSTR("v"), APP, name, kCFPreferencesAnyHost);
        CFPreferencesSetValue(CFSTR("k"), CFSTR("v"), APP, kCFPreferencesCurrentUser, name);
        EXPECT(!CFPreferencesSynchronize(APP, kCFPreferencesCurrentUser, name));
        EXPECT(!CFPreferencesCopyApplicationList(name, kCFPreferencesAnyHost));
        CFPreferencesAddSuitePreferencesToApp(APP, name);
        CFPreferencesRemoveSuitePreferencesFromApp(name, APP);
        CFDictionaryRef all = CFPreferencesCopyMultiple(NULL, name, kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
        EXPECT(all && CFDictionaryGetCount(all) == 0);
        CFRelease(all);
        CFRelease(name);
    }
    EXPECT(strstr(stderr_taken(), "there are no preferences of the application '../x'"));
    EXPECT_STR(value_of(CFSTR("k")), "none");
    EXPECT_EQ(folder_count("", ""), 2); /* nothing but . and .. */
    long_name[200] = '\0';
    CFStringRef longest = CFStringCreateWithCString(NULL, long_name, kCFStringEncodingUTF8);
    set_text(CFSTR("k"), "v", longest);
    EXPECT(CFPreferencesAppSynchronize(longest));
    CFRelease(longest);
    folder_remove();
}

TEST(another_host_has_a_folder_of_its_own, "2218")
{
    folder_make();
    CFPreferencesSetValue(CFSTR("k"), CFSTR("v"), APP, kCFPreferencesCurrentUser, CFSTR("elsewhere"));
    EXPECT(CFPreferencesSynchronize(APP, kCFPreferencesCurrentUser, CFSTR("elsewhere")));
    EXPECT(strstr(folder_read("ByHost/elsewhere/com.example.test.plist"), "<string>v</string>"));
    EXPECT_STR(value_of(CFSTR("k")), "none");
    folder_remove();
}

TEST(without_a_folder_preferences_last_as_long_as_the_process, "2218")
{
    folder_make();
    (void)unsetenv("XDG_CONFIG_HOME");
    (void)unsetenv("HOME");
    set_text(CFSTR("k"), "v", APP);
    EXPECT_STR(value_of(CFSTR("k")), "v");
    stderr_take();
    EXPECT(!CFPreferencesAppSynchronize(APP));
    EXPECT(strstr(stderr_taken(), "Neither XDG_CONFIG_HOME nor HOME"));
    EXPECT(!CFPreferencesCopyApplicationList(kCFPreferencesCurrentUser, kCFPreferencesAnyHost));
    (void)setenv("XDG_CONFIG_HOME", "relative", 1); /* counts as none */
    (void)setenv("HOME", folder_path(""), 1);
    EXPECT(CFPreferencesAppSynchronize(APP));
    EXPECT(strstr(folder_read(".config/com.example.test.plist"), "<string>v</string>"));
    folder_remove();
}

/* ---- files that are not what they should be ---- */

/* Sets a value over what is at the file's place. Returns what was said. */
static const char *write_over(bool wanted)
{
    forget();
    stderr_take();
    EXPECT_STR(value_of(CFSTR("name")), "none");
    set_text(CFSTR("name"), "fresh", APP);
    EXPECT_EQ(CFPreferencesAppSynchronize(APP), wanted);
    EXPECT_STR(value_of(CFSTR("name")), "fresh");
    return stderr_taken();
}

TEST(a_damaged_file_is_kept_aside_and_never_overwritten, "2219")
{
    static const char *const texts[] = {"", "<plist><dict>", "bplist00", "{ a = ", "<plist><array/></plist>", "(a)", "{ a = \"\xC3(\"; }"};

    folder_make();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char aside[64];

        folder_write("com.example.test.plist", texts[i]);
        const char *said = write_over(true);
        EXPECT(strstr(said, "is damaged. ") && strstr(said, "is kept as "));
        (void)snprintf(aside, sizeof aside, "com.example.test.plist.damaged-%zu", i + 1);
        EXPECT_STR(folder_read(aside), texts[i]);
        EXPECT(strstr(folder_read("com.example.test.plist"), "<string>fresh</string>"));
    }
    folder_write("com.example.test.plist", "damaged (");
    forget();
    stderr_take();
    EXPECT(CFPreferencesAppSynchronize(APP)); /* nothing is to be written */
    EXPECT(strstr(stderr_taken(), "is damaged. "));
    EXPECT_STR(folder_read("com.example.test.plist"), "damaged (");
    folder_remove();
}

TEST(no_more_than_a_hundred_damaged_files_are_kept, "2219")
{
    folder_make();
    for (int i = 1; i <= 100; i++) {
        char name[64];

        (void)snprintf(name, sizeof name, "com.example.test.plist.damaged-%d", i);
        folder_write(name, "");
    }
    folder_write("com.example.test.plist", "(");
    EXPECT(strstr(write_over(false), "There are 100 files beside it"));
    EXPECT_STR(folder_read("com.example.test.plist"), "(");
    EXPECT_EQ(folder_count("", "com.example.test.plist"), 101); /* no new file is left */
    folder_remove();
}

TEST(an_enormous_file_is_not_read, "2219")
{
    struct stat status;

    folder_make();
    folder_write("com.example.test.plist", "");
    REQUIRE(truncate(folder_path("com.example.test.plist"), INT64_C(2) << 30) == 0);
    EXPECT(strstr(write_over(true), "more than 67108864 bytes"));
    EXPECT(stat(folder_path("com.example.test.plist.damaged-1"), &status) == 0 && status.st_size == INT64_C(2) << 30);
    folder_remove();
}

TEST(a_pipe_and_a_socket_hold_nobody_up, "2219")
{
    folder_make();
    REQUIRE(mkfifo(folder_path("com.example.test.plist"), 0600) == 0);
    EXPECT(strstr(write_over(true), "It is no regular file"));
    EXPECT_EQ(access(folder_path("com.example.test.plist.damaged-1"), F_OK), 0);
    folder_remove();
}

TEST(a_folder_in_the_place_of_a_file_stays, "2219")
{
    folder_make();
    REQUIRE(mkdir(folder_path("com.example.test.plist"), 0700) == 0);
    const char *said = write_over(false);
    EXPECT(strstr(said, "It is no regular file") && strstr(said, "was not written"));
    REQUIRE(rmdir(folder_path("com.example.test.plist")) == 0);
    EXPECT(CFPreferencesAppSynchronize(APP)); /* nothing is lost */
    EXPECT(strstr(folder_read("com.example.test.plist"), "fresh"));
    folder_remove();
}

TEST(a_link_stays_and_what_it_leads_to_is_replaced, "2220")
{
    struct stat status;

    folder_make();
    folder_write("elsewhere/real.plist", "{ other = kept; }");
    REQUIRE(symlink(folder_path("elsewhere/real.plist"), folder_path("com.example.test.plist")) == 0);
    EXPECT_STR(value_of(CFSTR("other")), "kept");
    set_text(CFSTR("name"), "fresh", APP);
    EXPECT(CFPreferencesAppSynchronize(APP));
    EXPECT(lstat(folder_path("com.example.test.plist"), &status) == 0 && S_ISLNK(status.st_mode));
    const char *text = folder_read("elsewhere/real.plist");
    EXPECT(strstr(text, "kept") && strstr(text, "fresh"));
    REQUIRE(unlink(folder_path("com.example.test.plist")) == 0);
    REQUIRE(symlink("com.example.test.plist", folder_path("com.example.test.plist")) == 0); /* leads to itself */
    EXPECT(strstr(write_over(false), "is out of reach. It cannot be read"));
    REQUIRE(unlink(folder_path("com.example.test.plist")) == 0);
    REQUIRE(symlink("nowhere", folder_path("com.example.test.plist")) == 0);
    EXPECT(CFPreferencesAppSynchronize(APP)); /* it leads to nothing: the name is taken */
    EXPECT(strstr(folder_read("com.example.test.plist"), "fresh"));
    folder_remove();
}

/* As one to /dev/null, with which people keep a program from writing. */
TEST(a_link_to_what_is_no_property_list_is_replaced_itself, "2219")
{
    struct stat status;

    folder_make();
    folder_write("elsewhere/text", "(");
    REQUIRE(mkfifo(folder_path("elsewhere/pipe"), 0600) == 0);
    for (int i = 0; i < 2; i++) {
        REQUIRE(symlink(i == 0 ? "elsewhere/text" : "elsewhere/pipe", folder_path("com.example.test.plist")) == 0);
        EXPECT(strstr(write_over(true), "is kept as"));
        EXPECT(lstat(folder_path("com.example.test.plist"), &status) == 0 && S_ISREG(status.st_mode));
        EXPECT(lstat(folder_path(i == 0 ? "com.example.test.plist.damaged-1" : "com.example.test.plist.damaged-2"), &status) == 0 &&
               S_ISLNK(status.st_mode));
        REQUIRE(unlink(folder_path("com.example.test.plist")) == 0);
    }
    EXPECT_STR(folder_read("elsewhere/text"), "(");
    EXPECT(stat(folder_path("elsewhere/pipe"), &status) == 0 && S_ISFIFO(status.st_mode));
    EXPECT_EQ(folder_count("elsewhere", ""), 4); /* with . and .. */
    folder_remove();
}

TEST(a_lock_that_is_something_else_is_not_taken, "2219")
{
    folder_make();
    REQUIRE(symlink("elsewhere", folder_path(".com.example.test.plist.lock")) == 0);
    EXPECT(strstr(write_over(false), "Its lock"));
    EXPECT_EQ(access(folder_path("elsewhere"), F_OK), -1);
    folder_remove();
}

TEST(permissions_stay_and_what_may_not_be_read_is_not_overwritten, "2219 2220")
{
    struct stat status;

    folder_make();
    folder_write("com.example.test.plist", "{ a = 1; }");
    REQUIRE(chmod(folder_path("com.example.test.plist"), 0640) == 0);
    set_text(CFSTR("name"), "v", APP);
    EXPECT(CFPreferencesAppSynchronize(APP));
    EXPECT(stat(folder_path("com.example.test.plist"), &status) == 0 && (status.st_mode & 0777) == 0640);
    REQUIRE(chmod(folder_path("com.example.test.plist"), 0) == 0);
    if (access(folder_path("com.example.test.plist"), R_OK) != 0) { /* nobody is root */
        EXPECT(strstr(write_over(false), "is out of reach"));
    }
    folder_remove();
}

TEST(a_disk_that_is_full_loses_nothing, "2221")
{
    struct rlimit limit = {10, 10};
    struct rlimit before;

    folder_make();
    folder_write("com.example.test.plist", "{ old = kept; }");
    set_text(CFSTR("name"), "v", APP);
    (void)signal(SIGXFSZ, SIG_IGN);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    limit.rlim_max = before.rlim_max;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct read_fault fault = {{0}};
    CFDictionaryRef dictionary = CFDictionaryCreate(NULL, (const void *[]){CFSTR("k")}, (const void *[]){CFSTR("v")}, 1,
                                                    &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    EXPECT(!plist_file_write(folder_path("com.example.test.plist"), dictionary, 0600, false, &fault));
    EXPECT(strstr(fault.words, "It cannot be written"));
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CFRelease(dictionary);
    EXPECT_STR(folder_read("com.example.test.plist"), "{ old = kept; }");
    EXPECT_EQ(folder_count("", "com.example.test.plist"), 1);
    EXPECT(CFPreferencesAppSynchronize(APP));
    EXPECT_STR(value_of(CFSTR("old")), "kept");
    folder_remove();
}

TEST(what_xml_cannot_hold_is_kept_in_the_binary_format, "2220")
{
    CFDateRef date = CFDateCreate(NULL, 1e18);

    folder_make();
    CFPreferencesSetAppValue(CFSTR("when"), date, APP);
    EXPECT(CFPreferencesAppSynchronize(APP));
    forget();
    CFTypeRef again = CFPreferencesCopyAppValue(CFSTR("when"), APP);
    EXPECT(again && CFEqual(again, date));
    CFRelease(again);
    CFRelease(date);
    folder_remove();
}
