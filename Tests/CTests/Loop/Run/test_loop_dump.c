/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a loop, and what each kind of item says of itself: rules 600 to 606. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Loop/Core/loop.h"
#include "Loop/Core/shown.h"
#include "Loop/loop_trace.h"

static char text[16384];

/* Describes the object into `text`. */
static const char *describe(CFTypeRef object)
{
    CFStringRef description = CFCopyDescription(object);

    text[0] = '\0';
    REQUIRE(description != NULL);
    EXPECT(CFStringGetCString(description, text, sizeof text, kCFStringEncodingUTF8));
    CFRelease(description);
    return text;
}

/* The number of the line, from 0, of the text that has the fragment; -1 if none has. */
static int line_of(const char *fragment)
{
    const char *found = strstr(text, fragment);
    int line = 0;

    for (const char *byte = text; found && byte < found; byte++) {
        line += *byte == '\n';
    }
    return found ? line : -1;
}

/* The number of the line that begins with the description of the probe's item, behind its indentation. */
static int line_of_item(const struct probe *probe)
{
    char begin[128];
    const char *name = CFGetTypeID(probe->item) == CFRunLoopSourceGetTypeID()  ? "CFRunLoopSource"
                       : CFGetTypeID(probe->item) == CFRunLoopTimerGetTypeID() ? "CFRunLoopTimer"
                                                                               : "CFRunLoopObserver";

    (void)snprintf(begin, sizeof begin, "\n        <%s %p>", name, probe->item);
    return strstr(text, begin) ? line_of(begin) + 1 : -1;
}

TEST(a_loop_is_described_with_its_modes_and_their_items, "600")
{
    static struct probe source = PROBE("S", NULL);
    static struct probe first = PROBE("F", NULL);
    static struct probe late = PROBE("L", NULL);
    static struct probe early = PROBE("E", NULL);
    static struct probe observer = PROBE("O", NULL);

    clock_start();
    (void)probe_source_add(&source, 7, LOOP, MODE);
    (void)probe_source_add(&first, -7, LOOP, MODE);
    (void)probe_timer_add(&late, 20, 0, LOOP, MODE);
    (void)probe_timer_add(&early, 10, 0, LOOP, kCFRunLoopCommonModes);
    (void)probe_observer_add(&observer, kCFRunLoopBeforeWaiting | kCFRunLoopExit, 0, LOOP, MODE);
    CFRunLoopAddCommonMode(LOOP, MODE);
    (void)describe(LOOP);
    EXPECT_EQ(line_of("<CFRunLoop "), 0);
    EXPECT_EQ(line_of("{thread = main (this one), current mode = (none), waiting = No, "), 0);
    EXPECT_EQ(line_of("common modes = kCFRunLoopDefaultMode, test, common items = 1"), 0);
    EXPECT_EQ(line_of("\n    mode kCFRunLoopDefaultMode, common:\n"), 0);
    EXPECT_EQ(line_of("\n    mode test, common:\n"), 2);
    EXPECT_EQ(line_of_item(&first), 4);
    EXPECT_EQ(line_of_item(&source), 5);
    EXPECT_EQ(line_of("order = 7"), 5);
    EXPECT_EQ(line_of("(in 10.000000 s)"), 2);
    EXPECT_EQ(line_of("common item\n"), 2); /* the early timer, in the default mode; it is in the other one, too */
    EXPECT_EQ(line_of_item(&late), 7);
    EXPECT_EQ(line_of_item(&observer), 8);
    EXPECT_EQ(line_of("activities = BeforeWaiting|Exit"), 8);
    EXPECT(strcmp(text + strlen(text) - 2, "\n}") == 0);
    CFRunLoopSourceSignal(probe_source_of(&first));
    (void)describe(LOOP);
    EXPECT_EQ(line_of("signalled = Yes"), 4);
    probe_invalidate(&first);
    probe_invalidate(&source);
    probe_invalidate(&late);
    probe_invalidate(&early);
    probe_invalidate(&observer);
    (void)describe(LOOP);
    EXPECT_EQ(line_of("\n    mode test, common: no items"), 1);
}

static void do_nothing(void *info)
{
    (void)info;
}

TEST(queued_functions_are_counted, "600")
{
    CRLRunLoopPerformFunction(LOOP, MODE, do_nothing, NULL, NULL);
    CRLRunLoopPerformFunction(LOOP, MODE, do_nothing, NULL, NULL);
    CRLRunLoopPerformFunction(LOOP, kCFRunLoopCommonModes, do_nothing, NULL, NULL);
    (void)describe(LOOP);
    EXPECT_EQ(line_of(", blocks for several modes = 1"), 0);
    EXPECT(line_of("\n    mode test, blocks = 2: no items") > 0);
    (void)CFRunLoopRunInMode(MODE, 0, false);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    (void)describe(LOOP);
    EXPECT_EQ(line_of("blocks"), -1);
}

static void describe_in_callout(struct probe *probe)
{
    (void)probe;
    (void)describe(LOOP);
}

static void run_inner(struct probe *probe)
{
    (void)probe;
    (void)CFRunLoopRunInMode(CFSTR("inner"), 0, false);
}

TEST(a_loop_is_described_in_a_nested_run_with_the_timers_in_callout, "600 602")
{
    static struct probe outer = PROBE("O", run_inner);
    static struct probe inner = PROBE("I", describe_in_callout);

    clock_start();
    (void)probe_timer_add(&outer, 0, 5, LOOP, MODE);
    (void)probe_timer_add(&inner, 0, 5, LOOP, CFSTR("inner"));
    (void)CFRunLoopRunInMode(MODE, 0, false);
    EXPECT_EQ(line_of("current mode = inner inside test, "), 0);
    EXPECT(line_of_item(&outer) > 0);
    EXPECT(line_of_item(&inner) > 0);
    EXPECT_EQ(line_of("firing = Yes"), line_of_item(&outer));
    (void)describe(probe_timer_of(&inner));
    EXPECT(strstr(text, "firing") == NULL);
    EXPECT(strstr(text, "(in 5.000000 s), interval = 5,") != NULL);
    probe_invalidate(&outer);
    probe_invalidate(&inner);
}

TEST(a_timer_says_how_far_its_date_is, "602")
{
    static struct probe probe = PROBE("T", NULL);
    CFRunLoopTimerRef timer;

    clock_start();
    timer = probe_timer(&probe, 2.5, 1.5);
    CFRunLoopTimerSetTolerance(timer, 0.25);
    EXPECT(strstr(describe(timer), "(in 2.500000 s), interval = 1.5, tolerance = 0.25, order = 0, ") != NULL);
    clock_spend_ms(3500);
    EXPECT(strstr(describe(timer), "(1.000000 s ago)") != NULL);
    CFRunLoopTimerInvalidate(timer);
    EXPECT(strstr(describe(timer), "{valid = No, next fire date = 0.000000, ") != NULL);
    CFRelease(timer);
}

TEST(a_callout_has_its_name_or_its_place_in_a_file, "601")
{
    void *exported = dlsym(RTLD_DEFAULT, "getppid");
    struct shown shown;
    char expected[64];

    REQUIRE(exported != NULL);
    (void)shown_callout(&shown, (void (*)(void))(uintptr_t)exported);
    EXPECT(strstr(shown.text, "getppid") != NULL);
    EXPECT_STR(shown_callout(&shown, (void (*)(void))run_inner), "run_inner"); /* a static function */
    (void)shown_callout(&shown, (void (*)(void))((uintptr_t)&run_inner + 1)); /* the beginning of no function */
    (void)snprintf(expected, sizeof expected, "run-tests+0x");
    EXPECT(strncmp(shown.text, expected, strlen(expected)) == 0);
    EXPECT_STR(shown_callout(&shown, NULL), "(none)");
    EXPECT_STR(shown_callout(&shown, (void (*)(void))(uintptr_t)16), "code without a file");
}

static bool refuses_open;

static int refuse_open(const char *path, int flags)
{
    return refuses_open ? -EMFILE : kernel_linux.path_open(path, flags);
}

static ssize_t read_nothing(int file, void *bytes, size_t size, off_t offset)
{
    (void)file;
    memset(bytes, 0xFF, size);
    return offset == 0 ? (ssize_t)size : -EIO;
}

TEST(a_callout_whose_file_cannot_be_read_is_a_place_in_it, "601")
{
    struct shown shown;

    kernel.path_open = refuse_open;
    for (int i = 0; i < 2; i++) {
        refuses_open = i == 0;
        kernel_ports.file_read = i == 0 ? kernel_ports_linux.file_read : read_nothing;
        EXPECT(strncmp(shown_callout(&shown, (void (*)(void))run_inner), "run-tests+0x", 12) == 0);
    }
    kernel_ports = kernel_ports_linux;
    kernel.path_open = kernel_linux.path_open;
}

TEST(an_observer_names_its_activities, "604")
{
    CFRunLoopObserverRef all = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, 0, NULL, NULL);
    CFRunLoopObserverRef odd = CFRunLoopObserverCreate(NULL, kCFRunLoopEntry | 1 << 20, true, 0, NULL, NULL);
    CFRunLoopObserverRef none = CFRunLoopObserverCreate(NULL, 0, true, 0, NULL, NULL);

    EXPECT(strstr(describe(all), "activities = all, ") != NULL);
    EXPECT(strstr(describe(odd), "activities = Entry|0x100000, ") != NULL);
    EXPECT(strstr(describe(none), "activities = none, ") != NULL);
    CFRelease(all);
    CFRelease(odd);
    CFRelease(none);
}

/* ---- while the loop changes ---- */

static CFRunLoopSourceRef removed[3];

static CFStringRef describe_and_change(const void *info)
{
    (void)info;
    for (int i = 0; i < 3; i++) {
        if (removed[i]) {
            CFRunLoopSourceInvalidate(removed[i]);
            CFRelease(removed[i]);
            removed[i] = NULL;
        }
    }
    return CFStringCreateWithCString(NULL, "two\nlines", kCFStringEncodingUTF8);
}

TEST(a_description_may_change_the_loop, "605")
{
    CFRunLoopSourceContext context = {.copyDescription = describe_and_change};

    for (int i = 0; i < 3; i++) {
        context.info = &removed[i];
        removed[i] = CFRunLoopSourceCreate(NULL, i, &context);
        CFRunLoopAddSource(LOOP, removed[i], MODE);
    }
    (void)describe(LOOP);
    EXPECT_EQ(line_of("order = 0"), 3); /* below the line of the loop and those of two modes */
    EXPECT_EQ(line_of("order = 1"), 4);
    EXPECT_EQ(line_of("order = 2"), 5);
    EXPECT_EQ(line_of("two lines"), 3);
    (void)describe(LOOP);
    EXPECT(line_of("\n    mode test: no items") > 0);
}

static _Atomic int is_over;
static _Atomic int descriptions;

static void describe_until_over(void *loop)
{
    while (!is_over) {
        CFStringRef description = CFCopyDescription(loop);

        EXPECT(CFStringFind(description, CFSTR("thread = main,"), 0).length > 0);
        CFRelease(description);
        descriptions++;
    }
}

TEST(a_loop_is_described_while_another_thread_runs_it, "605")
{
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    static struct probe source = PROBE("S", NULL);
    struct probe_thread other;

    timer.logging = observer.logging = source.logging = probe_is_silent;
    (void)probe_timer_add(&timer, 0, 0.0001, LOOP, MODE);
    (void)probe_observer_add(&observer, kCFRunLoopAllActivities, 0, LOOP, MODE);
    probe_thread_start(&other, describe_until_over, LOOP);
    while (descriptions < 200) {
        CFRunLoopSourceRef added = probe_source(&source, 0);
        CFRunLoopTimerRef short_lived = CFRunLoopTimerCreate(NULL, 0, 0, 0, 0, NULL, NULL);

        CFRunLoopAddSource(LOOP, added, MODE);
        CFRunLoopAddTimer(LOOP, short_lived, kCFRunLoopCommonModes);
        CFRunLoopSourceSignal(added);
        (void)CFRunLoopRunInMode(MODE, 0.0002, true);
        CFRunLoopSourceInvalidate(added);
        CFRunLoopTimerInvalidate(short_lived);
        CFRelease(short_lived);
        CFRelease(added);
    }
    is_over = 1;
    probe_thread_join(&other);
    probe_invalidate(&timer);
    probe_invalidate(&observer);
}

static void wait_in_loop(void *context)
{
    static struct probe timer = PROBE("T", NULL);

    (void)probe_timer_add(&timer, 1000, 0, LOOP, MODE);
    *(CFRunLoopRef *)context = (CFRunLoopRef)(uintptr_t)CFRetain(LOOP);
    is_over = 1;
    (void)CFRunLoopRunInMode(MODE, 2000, false);
    probe_invalidate(&timer);
}

TEST(a_loop_that_sleeps_says_when_it_wakes, "600 605")
{
    struct probe_thread other;
    CFRunLoopRef loop = NULL;

    probe_thread_start(&other, wait_in_loop, &loop);
    probe_await_count(&is_over, 1);
    probe_await_sleep(loop);
    do {
        (void)describe(loop); /* the loop counts as waiting a little before it sleeps */
    } while (!strstr(text, " (wakes in "));
    EXPECT_EQ(line_of("thread = secondary, current mode = test, waiting = Yes (wakes in "), 0);
    CFRunLoopStop(loop);
    probe_thread_join(&other);
    EXPECT(strstr(describe(loop), "thread = secondary (ended), current mode = (none), ") != NULL);
    CFRelease(loop);
}

/* ---- the thread, and names of Swift ---- */

static void describe_named_thread(void *context)
{
    (void)context;
    REQUIRE(pthread_setname_np(pthread_self(), "a worker") == 0);
    EXPECT(strstr(describe(LOOP), ", waiting = No, thread name = a worker, common modes = ") != NULL);
}

TEST(a_loop_is_described_with_the_name_of_its_thread, "600")
{
    probe_on_thread(describe_named_thread, NULL);
    REQUIRE(pthread_setname_np(pthread_self(), "strange\nname") == 0);
    EXPECT(strstr(describe(LOOP), "thread name = strange?name,") != NULL);
}

/* Stands in for the function of Swift's runtime, which is not in this process. */
char *swift_demangle(const char *name, size_t length, char *buffer, size_t *size, uint32_t flags);
char *swift_demangle(const char *name, size_t length, char *buffer, size_t *size, uint32_t flags)
{
    EXPECT_EQ(flags, 0);
    EXPECT_EQ(length, strlen(name));
    EXPECT_EQ(*size, sizeof(struct shown));
    if (strcmp(name, "$sNoName") == 0) {
        return NULL;
    }
    memset(buffer, 'x', *size); /* a name that is too long is cut, and has no end then */
    (void)memcpy(buffer, "module.call(", 12);
    return buffer;
}

/* Stands in for the function of C++'s runtime. */
char *__cxa_demangle(const char *name, char *buffer, size_t *size, int *ret_status);
char *__cxa_demangle(const char *name, char *buffer, size_t *size, int *ret_status)
{
    EXPECT(!buffer && !size && !ret_status);
    return strcmp(name, "_ZNoName") == 0 ? NULL : strdup("name::call()");
}

TEST(names_are_shown_as_in_their_language, "601")
{
    struct shown shown;

    EXPECT(strncmp(shown_symbol(&shown, "$s6module4callyyF"), "module.call(xxx", 15) == 0);
    EXPECT_EQ(strlen(shown.text), sizeof shown.text - 1);
    EXPECT_STR(shown_symbol(&shown, "$sNoName"), "$sNoName");
    EXPECT_STR(shown_symbol(&shown, "_ZN4name4callEv"), "name::call()");
    EXPECT_STR(shown_symbol(&shown, "_ZNoName"), "_ZNoName");
    EXPECT_STR(shown_symbol(&shown, "main"), "main");
}
