/* SPDX-License-Identifier: Apache-2.0 */
/* Preferences that several processes and threads write: none loses what another has set, whatever fails, and wherever one is killed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Failure/nth_failure.h"
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

static bool synchronize(void)
{
    return CFPreferencesSynchronize(APP, kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
}

/* ---- processes, threads, forks ---- */

enum { writer_keys = 1000 };

static void write_keys(int writer)
{
    for (int i = 0; i < writer_keys; i++) {
        CFStringRef key = CFStringCreateWithFormat(NULL, NULL, CFSTR("%d of %d"), i, writer);

        CFPreferencesSetAppValue(key, key, APP);
        CFRelease(key);
        if (i % 50 == 49 && !synchronize()) {
            _exit(1);
        }
    }
}

TEST(two_processes_that_synchronize_a_thousand_keys_lose_none, "2220")
{
    pid_t children[2];

    folder_make();
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        REQUIRE(children[i] >= 0);
        if (children[i] == 0) {
            write_keys(i);
            _exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        int status = -1;

        EXPECT(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
    CFArrayRef keys = CFPreferencesCopyKeyList(APP, kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
    REQUIRE(keys);
    EXPECT_EQ(CFArrayGetCount(keys), 2 * writer_keys);
    CFRelease(keys);
    folder_remove();
}

static void *change_and_synchronize(void *number)
{
    CFStringRef key = CFStringCreateWithFormat(NULL, NULL, CFSTR("key %d"), *(int *)number);

    for (int i = 1; i <= 40; i++) {
        CFNumberRef value = CFNumberCreate(NULL, kCFNumberIntType, &i);

        CFPreferencesSetAppValue(key, value, APP);
        CFRelease(value);
        EXPECT(synchronize());
        EXPECT_EQ(CFPreferencesGetAppIntegerValue(key, APP, NULL), i); /* nobody else sets it */
    }
    CFRelease(key);
    return NULL;
}

TEST(threads_that_synchronize_one_domain_keep_what_each_has_set, "2220")
{
    pthread_t threads[4];
    int numbers[4] = {0, 1, 2, 3};

    folder_make();
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, change_and_synchronize, &numbers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    preference_domains_give_back();
    EXPECT_EQ(CFPreferencesGetAppIntegerValue(CFSTR("key 3"), APP, NULL), 40);
    folder_remove();
}

static _Atomic bool is_over;

static void *set_all_the_time(void *unused)
{
    while (!is_over) {
        set_text(CFSTR("k"), "v", APP);
        (void)synchronize();
    }
    return unused;
}

TEST(the_child_of_a_fork_has_preferences_while_others_set_them, "2210")
{
    pthread_t thread;

    if (test_is_instrumented()) {
        SKIP("the child would find the locks of the sanitizer taken");
    }
    folder_make();
    REQUIRE(pthread_create(&thread, NULL, set_all_the_time, NULL) == 0);
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();

        if (child == 0) {
            set_text(CFSTR("child"), "v", APP);
            _exit(synchronize() ? 0 : 1);
        }
        int status = -1;
        REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
        EXPECT_EQ(status, 0);
    }
    is_over = true;
    (void)pthread_join(thread, NULL);
    folder_remove();
}

/* ---- a process that is killed ---- */

/* Sets a value in a child that is killed at its n-th step of writing it. False: it came to its end before. */
static bool is_killed_at(unsigned n)
{
    pid_t child = fork();
    int status = -1;

    REQUIRE(child >= 0);
    if (child == 0) {
        set_text(CFSTR("new"), "v", APP);
        nth_failure_die_at(n);
        _exit(synchronize() ? 0 : 1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status) || status == 0);
    return WIFSIGNALED(status);
}

TEST(a_process_that_is_killed_leaves_the_old_file_or_the_new_one, "2221")
{
    unsigned killed = 0;
    unsigned new_ones = 0;

    for (bool is_damaged = false;; is_damaged = true) {
        for (unsigned n = 1;; n++) {
            folder_make();
            folder_write("com.example.test.plist", is_damaged ? "damaged (" : "{ old = v; }");
            bool is_killed = is_killed_at(n);
            const char *text = folder_read("com.example.test.plist");
            bool is_new = strstr(text, "<key>new</key>");
            EXPECT(is_new || strcmp(text, is_damaged ? "damaged (" : "{ old = v; }") == 0);
            EXPECT(folder_count("", "com.example.test.plist") <= 3); /* the file, the new one, and what was kept aside */
            set_text(CFSTR("next"), "v", APP);
            stderr_take();
            EXPECT(synchronize()); /* the lock is free, and what was left is no hindrance */
            (void)stderr_taken();
            text = folder_read("com.example.test.plist");
            EXPECT(strstr(text, "<key>next</key>") && (is_damaged || strstr(text, "<key>old</key>")));
            EXPECT(!is_new || strstr(text, "<key>new</key>"));
            EXPECT_EQ(access(folder_path("com.example.test.plist.new"), F_OK), -1);
            folder_remove();
            killed += is_killed;
            new_ones += is_killed && is_new;
            if (!is_killed) {
                break;
            }
        }
        if (is_damaged) {
            break;
        }
    }
    EXPECT(killed >= 20 && new_ones >= 2);
}

TEST(what_lies_in_the_place_of_the_new_file_is_replaced_and_not_written_into, "2221")
{
    folder_make();
    folder_write("com.example.test.plist.new", "half of");
    set_text(CFSTR("k"), "v", APP);
    EXPECT(synchronize());
    EXPECT_EQ(folder_count("", "com.example.test.plist"), 1);
    folder_write("other", "the user's");
    REQUIRE(link(folder_path("other"), folder_path("com.example.test.plist.new")) == 0);
    set_text(CFSTR("k"), "w", APP);
    stderr_take();
    EXPECT(!synchronize());
    EXPECT(strstr(stderr_taken(), "What is to become it is another file"));
    EXPECT_STR(folder_read("other"), "the user's");
    EXPECT(synchronize()); /* it has been removed */
    REQUIRE(mkfifo(folder_path("com.example.test.plist.new"), 0600) == 0);
    set_text(CFSTR("k"), "x", APP);
    stderr_take();
    EXPECT(!synchronize());
    (void)stderr_taken();
    EXPECT(synchronize());
    EXPECT(strstr(folder_read("com.example.test.plist"), "<string>x</string>"));
    REQUIRE(mkdir(folder_path("com.example.test.plist.new"), 0700) == 0);
    set_text(CFSTR("k"), "y", APP);
    stderr_take();
    EXPECT(!synchronize());
    EXPECT(strstr(stderr_taken(), "A new file cannot be made beside it"));
    folder_remove();
}

TEST(two_names_that_lead_to_one_file_write_it_in_turn, "2220")
{
    pid_t children[2];

    folder_make();
    folder_write("elsewhere/real.plist", "{}");
    REQUIRE(symlink("elsewhere/real.plist", folder_path("a.plist")) == 0);
    REQUIRE(symlink("elsewhere/real.plist", folder_path("b.plist")) == 0);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        REQUIRE(children[i] >= 0);
        if (children[i] == 0) {
            CFStringRef name = i == 0 ? CFSTR("a") : CFSTR("b");
            bool is_done = true;
            for (int step = 0; is_done && step < 50; step++) {
                set_text(name, step % 2 == 0 ? "one" : "another", name);
                is_done = CFPreferencesSynchronize(name, kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
            }
            _exit(is_done ? 0 : 1);
        }
    }
    for (int i = 0; i < 2; i++) {
        int status = -1;

        EXPECT(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
    EXPECT(strstr(folder_read("elsewhere/real.plist"), "<string>another</string>"));
    EXPECT_EQ(folder_count("elsewhere", "real"), 1);
    folder_remove();
}

TEST(a_folder_that_cannot_be_written_keeps_its_file, "2221")
{
    folder_make();
    folder_write("com.example.test.plist", "{ old = v; }");
    set_text(CFSTR("new"), "v", APP);
    EXPECT(chmod(folder_path(""), 0500) == 0);
    if (access(folder_path(""), W_OK) != 0) { /* nobody is root */
        stderr_take();
        EXPECT(!synchronize());
        EXPECT(strstr(stderr_taken(), "cannot be taken"));
        EXPECT_STR(folder_read("com.example.test.plist"), "{ old = v; }");
    }
    EXPECT(chmod(folder_path(""), 0700) == 0);
    EXPECT(synchronize());
    EXPECT(strstr(folder_read("com.example.test.plist"), "<key>new</key>"));
    folder_remove();
}

/* ---- failures ---- */

NTH_FAILURE(preferences, "2221")
{
    folder_make();
    CFStringRef application = CFSTR("com.example.failing");
    folder_write("elsewhere/real.plist", "{ old = v; }");
    MUST(symlink("elsewhere/real.plist", folder_path("com.example.failing.plist")) == 0);
    CRLPreferencesSetArguments(3, (char *[]){"program", "-argument", "{ a = b; }"});
    CFPreferencesAddSuitePreferencesToApp(application, CFSTR("suite"));
    CFTypeRef array = CFArrayCreate(NULL, (const void *[]){CFSTR("one"), CFSTR("two")}, 2, &kCFTypeArrayCallBacks);
    bool is_done = array;
    if (array) {
        CFPreferencesSetAppValue(CFSTR("k"), array, application);
        CFTypeRef value = CFPreferencesCopyAppValue(CFSTR("k"), application);
        bool is_set = value && CFEqual(value, array);
        bool is_written = CFPreferencesSynchronize(application, kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
        struct stat status;
        MUST(lstat(folder_path("com.example.failing.plist"), &status) == 0 && S_ISLNK(status.st_mode));
        MUST(is_written || strcmp(folder_read("elsewhere/real.plist"), "{ old = v; }") == 0);
        if (value) {
            CFRelease(value);
        }
        preference_domains_give_back();
        value = CFPreferencesCopyAppValue(CFSTR("k"), application);
        is_done = is_set && is_written && value && CFEqual(value, array);
        if (value) {
            CFRelease(value);
        }
        CFRelease(array);
    }
    CFArrayRef list = CFPreferencesCopyApplicationList(kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
    CFArrayRef keys = CFPreferencesCopyKeyList(application, kCFPreferencesCurrentUser, kCFPreferencesAnyHost);
    CFTypeRef argument = CFPreferencesCopyAppValue(CFSTR("argument"), kCFPreferencesCurrentApplication);
    is_done = is_done && list && keys && argument;
    for (int i = 0; i < 3; i++) {
        CFTypeRef object = i == 0 ? (CFTypeRef)list : i == 1 ? (CFTypeRef)keys : argument;
        if (object) {
            CFRelease(object);
        }
    }
    folder_remove();
    return is_done;
}
