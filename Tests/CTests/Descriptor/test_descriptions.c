/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions while another thread invalidates the object. The info stays while the program describes it. Once it is released, the program
 * is not asked to describe it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "CoreFoundation/CFFileDescriptor.h"
#include "CoreFoundation/CFSocket.h"
#include "Kernel/kernel.h"
#include "Loop/loop_trace.h"

/* The object of the test under way. The contexts of all kinds of objects count here. */
static struct {
    CFTypeRef object;
    void (*invalidate)(CFTypeRef object);
    int releases;
    int descriptions;
} described;

static void count_release(const void *info)
{
    EXPECT(info == &described);
    described.releases++;
}

static void count_release_of_any(void *info)
{
    count_release(info);
}

static void invalidate_elsewhere(void *context)
{
    (void)context;
    described.invalidate(described.object);
}

static CFStringRef describe_while_it_ends(const void *info)
{
    struct probe_thread thread;

    EXPECT(info == &described);
    described.descriptions++;
    probe_thread_start(&thread, invalidate_elsewhere, NULL);
    probe_thread_join(&thread);
    EXPECT_EQ(described.releases, 0);
    return CFStringCreateWithCString(NULL, "the info", kCFStringEncodingUTF8);
}

static CFStringRef describe_any_while_it_ends(void *info)
{
    return describe_while_it_ends(info);
}

static void expect_lasting_info(CFTypeRef object)
{
    CFStringRef text;

    described.object = object;
    text = CFCopyDescription(object);
    EXPECT(CFStringFind(text, CFSTR("the info"), 0).length > 0);
    EXPECT_EQ(described.releases, 1);
    CFRelease(text);
    text = CFCopyDescription(object);
    EXPECT(CFStringFind(text, CFSTR("valid = No"), 0).length > 0);
    EXPECT(CFStringFind(text, CFSTR("the info"), 0).length == 0);
    EXPECT_EQ(described.descriptions, 1);
    CFRelease(text);
    CFRelease(object);
    EXPECT_EQ(described.releases, 1);
}

static void invalidate_socket(CFTypeRef object)
{
    CFSocketInvalidate((CFSocketRef)(uintptr_t)object);
}

TEST(the_info_of_a_socket_lasts_while_it_is_described, "185 267")
{
    CFSocketContext context = {0, &described, NULL, count_release, describe_while_it_ends};

    described.invalidate = invalidate_socket;
    expect_lasting_info(CFSocketCreate(NULL, 0, 0, 0, 0, NULL, &context));
}

static void invalidate_mach_port(CFTypeRef object)
{
    CFMachPortInvalidate((CFMachPortRef)(uintptr_t)object);
}

TEST(the_info_of_a_mach_port_lasts_while_it_is_described, "185 247")
{
    CFMachPortContext context = {0, &described, NULL, count_release, describe_while_it_ends};

    described.invalidate = invalidate_mach_port;
    expect_lasting_info(CFMachPortCreate(NULL, NULL, &context, NULL));
}

static void never_called(CFFileDescriptorRef f, CFOptionFlags callBackTypes, void *info)
{
    (void)f, (void)callBackTypes, (void)info;
    FAIL("the callback was called");
}

static void invalidate_file_descriptor(CFTypeRef object)
{
    CFFileDescriptorInvalidate((CFFileDescriptorRef)(uintptr_t)object);
}

TEST(the_info_of_a_file_descriptor_lasts_while_it_is_described, "185 287")
{
    CFFileDescriptorContext context = {0, &described, NULL, count_release_of_any, describe_any_while_it_ends};

    described.invalidate = invalidate_file_descriptor;
    expect_lasting_info(CFFileDescriptorCreate(NULL, STDIN_FILENO, false, never_called, &context));
}

/* ---- timers, observers and sources ---- */

static void invalidate_timer(CFTypeRef object)
{
    CFRunLoopTimerInvalidate((CFRunLoopTimerRef)(uintptr_t)object);
}

static void invalidates_itself(CFRunLoopTimerRef timer, void *info)
{
    EXPECT(info == &described);
    CFRunLoopTimerInvalidate(timer);
    EXPECT_EQ(described.releases, 0);
}

static CFRunLoopTimerRef described_timer(void)
{
    CFRunLoopTimerContext context = {0, &described, NULL, count_release, describe_while_it_ends};

    return CFRunLoopTimerCreate(NULL, 0, 1000, 0, 0, invalidates_itself, &context);
}

TEST(the_info_of_a_timer_lasts_while_it_is_described, "135 184")
{
    described.invalidate = invalidate_timer;
    expect_lasting_info(described_timer());
}

static void fire_timer(CFTypeRef object)
{
    CFRunLoopAddTimer(LOOP, (CFRunLoopTimerRef)(uintptr_t)object, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 10, false), kCFRunLoopRunFinished);
}

TEST(a_timer_that_ends_in_its_callout_leaves_the_info_to_who_describes_it, "135 184")
{
    described.invalidate = fire_timer;
    expect_lasting_info(described_timer());
}

static void invalidate_observer(CFTypeRef object)
{
    CFRunLoopObserverInvalidate((CFRunLoopObserverRef)(uintptr_t)object);
}

static void ends_by_itself(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)activity;
    EXPECT(info == &described);
    CFRunLoopObserverInvalidate(observer);
    EXPECT_EQ(described.releases, 0);
}

static CFRunLoopObserverRef described_observer(void)
{
    CFRunLoopObserverContext context = {0, &described, NULL, count_release, describe_while_it_ends};

    return CFRunLoopObserverCreate(NULL, kCFRunLoopEntry, true, 0, ends_by_itself, &context);
}

TEST(the_info_of_an_observer_lasts_while_it_is_described, "184 153")
{
    described.invalidate = invalidate_observer;
    expect_lasting_info(described_observer());
}

static void call_observer(CFTypeRef object)
{
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};

    CFRunLoopAddObserver(LOOP, (CFRunLoopObserverRef)(uintptr_t)object, MODE);
    probe_source_add(&idle, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
}

TEST(an_observer_that_ends_in_its_callout_leaves_the_info_to_who_describes_it, "184 153")
{
    described.invalidate = call_observer;
    expect_lasting_info(described_observer());
}

static void invalidate_source(CFTypeRef object)
{
    CFRunLoopSourceInvalidate((CFRunLoopSourceRef)(uintptr_t)object);
}

TEST(the_info_of_a_source_lasts_as_long_as_the_source, "184 73")
{
    CFRunLoopSourceContext context = {.info = &described, .release = count_release, .copyDescription = describe_while_it_ends};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFStringRef text;

    described.invalidate = invalidate_source;
    described.object = source;
    text = CFCopyDescription(source);
    EXPECT(CFStringFind(text, CFSTR("the info"), 0).length > 0);
    EXPECT_EQ(described.releases, 0);
    CFRelease(text);
    CFRelease(source);
    EXPECT_EQ(described.releases, 1);
}

/* ---- what a reader needs ---- */

static char words[2048];

static const char *words_of(CFTypeRef object)
{
    CFStringRef description = CFCopyDescription(object);

    REQUIRE(description != NULL);
    EXPECT(CFStringGetCString(description, words, sizeof words, kCFStringEncodingUTF8));
    CFRelease(description);
    return words;
}

static int without_proc(int descriptor, char *ret_name, size_t size)
{
    (void)descriptor;
    (void)size;
    ret_name[0] = '\0';
    return -ENOENT;
}

TEST(a_descriptor_has_its_number_and_kind, "603 604")
{
    int ends[2];
    char expected[64];
    CFFileDescriptorRef f;

    REQUIRE(pipe(ends) == 0);
    f = CFFileDescriptorCreate(NULL, ends[0], false, never_called, NULL);
    CFFileDescriptorEnableCallBacks(f, kCFFileDescriptorReadCallBack);
    (void)snprintf(expected, sizeof expected, "descriptor = %d (pipe:[", ends[0]);
    EXPECT(strstr(words_of(f), expected) != NULL);
    EXPECT(strstr(words, ", enabled = read, ") != NULL);
    close(ends[1]);
    close(ends[0]);
    (void)snprintf(expected, sizeof expected, "descriptor = %d (not open)", ends[0]);
    EXPECT(strstr(words_of(f), expected) != NULL);
    CFFileDescriptorInvalidate(f);
    EXPECT(strstr(words_of(f), "descriptor = -1, enabled = none") != NULL);
    CFRelease(f);
    kernel.descriptor_name = without_proc;
    f = CFFileDescriptorCreate(NULL, 0, false, never_called, NULL);
    EXPECT(strstr(words_of(f), "descriptor = 0, ") != NULL);
    CFRelease(f);
}

static void socket_called(CFSocketRef s, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    (void)s;
    (void)type;
    (void)address;
    (void)data;
    (void)info;
}

TEST(a_socket_names_its_callbacks, "603 604")
{
    CFSocketRef s = CFSocketCreate(NULL, 0, 0, 0, kCFSocketDataCallBack | kCFSocketWriteCallBack, socket_called, NULL);
    CFRunLoopSourceRef source;

    REQUIRE(s != NULL);
    source = CFSocketCreateRunLoopSource(NULL, s, 0);
    CFRunLoopAddSource(LOOP, source, MODE);
    CFSocketDisableCallBacks(s, kCFSocketWriteCallBack);
    EXPECT(strstr(words_of(s), "(socket:[") != NULL);
    EXPECT(strstr(words, ", callbacks = data|write, enabled = data, ") != NULL);
    EXPECT(strstr(words_of(source), "callbacks = data|write") != NULL);
    EXPECT(strchr(words, '\n') == NULL);
    CFSocketInvalidate(s);
    CFRelease(source);
    CFRelease(s);
}
