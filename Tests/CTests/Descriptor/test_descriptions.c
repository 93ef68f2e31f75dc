/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions beside invalidations: the info that a program describes is still there, and is not asked about once it has gone. */
#include <unistd.h>

#include "Loop/loop_trace.h"

/* Whatever object a test is about; the context of each counts alike. */
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
