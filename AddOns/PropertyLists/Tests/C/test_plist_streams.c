/* SPDX-License-Identifier: Apache-2.0 */
/* Property lists in streams, and the older calls. */
#include <string.h>

#include "harness.h"
#include "plist_maker.h"

static const char document[] = "<plist><array><true/></array></plist>";

static CFReadStreamRef open_bytes(const char *bytes, size_t length)
{
    CFReadStreamRef stream = CFReadStreamCreateWithBytesNoCopy(NULL, (const UInt8 *)bytes, (CFIndex)length, kCFAllocatorNull);

    EXPECT(CFReadStreamOpen(stream));
    return stream;
}

TEST(a_stream_is_read_to_its_end_or_as_far_as_was_asked_for, "2206")
{
    static char long_text[200000];
    CFReadStreamRef stream = open_bytes(document, sizeof document - 1);
    CFPropertyListFormat format = 0;
    CFArrayRef tree = CFPropertyListCreateWithStream(NULL, stream, 0, kCFPropertyListMutableContainers, &format, NULL);

    REQUIRE(tree);
    EXPECT_EQ(format, kCFPropertyListXMLFormat_v1_0);
    CFArrayAppendValue((CFMutableArrayRef)(uintptr_t)tree, kCFBooleanFalse);
    CFRelease(tree);
    CFRelease(stream);

    memset(long_text, 'a', sizeof long_text);
    stream = open_bytes(long_text, sizeof long_text);
    tree = CFPropertyListCreateWithStream(NULL, stream, 150000, 0, &format, NULL);
    EXPECT_EQ(CFStringGetLength((CFStringRef)(const void *)tree), 150000);
    CFRelease(tree);
    tree = CFPropertyListCreateFromStream(NULL, stream, 100000, 0, &format, NULL); /* more than what is left */
    EXPECT_EQ(CFStringGetLength((CFStringRef)(const void *)tree), 50000);
    CFRelease(tree);
    CFRelease(stream);
}

static void expect_code(CFErrorRef error, CFIndex code)
{
    EXPECT(error && CFErrorGetCode(error) == code);
    if (error) {
        CFRelease(error);
    }
}

TEST(a_stream_that_brings_nothing_is_an_error, "2206")
{
    CFReadStreamRef stream = open_bytes("", 0);
    CFReadStreamRef closed = CFReadStreamCreateWithBytesNoCopy(NULL, (const UInt8 *)"a", 1, kCFAllocatorNull);
    CFErrorRef error = NULL;
    CFStringRef words = NULL;

    EXPECT(!CFPropertyListCreateWithStream(NULL, stream, 0, 0, NULL, &error));
    expect_code(error, kCFPropertyListReadStreamError);
    EXPECT(!CFPropertyListCreateFromStream(NULL, stream, 0, 0, NULL, &words));
    EXPECT(words);
    CFRelease(words);
    EXPECT(!CFPropertyListCreateWithStream(NULL, closed, 0, 0, NULL, NULL));
    EXPECT(!CFPropertyListCreateFromStream(NULL, closed, 0, 0, NULL, NULL));
    CFRelease(stream);
    stream = open_bytes("<junk", 5);
    error = NULL;
    EXPECT(!CFPropertyListCreateWithStream(NULL, stream, 0, 0, NULL, &error));
    expect_code(error, kCFPropertyListReadCorruptError);
    CFRelease(stream);
    CFRelease(closed);
}

TEST(a_tree_is_written_to_a_stream_that_takes_it, "2206")
{
    CFArrayRef tree = make_array(make_text("some text"), make_integer(7), NULL);
    CFDataRef data = CFPropertyListCreateData(NULL, tree, kCFPropertyListBinaryFormat_v1_0, 0, NULL);
    CFWriteStreamRef stream = CFWriteStreamCreateWithAllocatedBuffers(NULL, NULL);
    UInt8 small[20];
    CFErrorRef error = NULL;
    CFStringRef words = NULL;
    CFTypeRef written;

    EXPECT(CFWriteStreamOpen(stream));
    EXPECT_EQ(CFPropertyListWrite(tree, stream, kCFPropertyListBinaryFormat_v1_0, 0, &error), CFDataGetLength(data));
    written = CFWriteStreamCopyProperty(stream, kCFStreamPropertyDataWritten);
    EXPECT(CFEqual(written, data));
    EXPECT(CFPropertyListWriteToStream(tree, stream, kCFPropertyListXMLFormat_v1_0, &words) > 0 && !words);
    EXPECT_EQ(CFPropertyListWriteToStream(kCFNull, stream, kCFPropertyListXMLFormat_v1_0, &words), 0);
    EXPECT(words);
    CFRelease(words);
    CFRelease(stream);

    stream = CFWriteStreamCreateWithBuffer(NULL, small, sizeof small);
    EXPECT_EQ(CFPropertyListWrite(tree, stream, kCFPropertyListBinaryFormat_v1_0, 0, NULL), 0); /* it is not open */
    EXPECT(CFWriteStreamOpen(stream));
    EXPECT_EQ(CFPropertyListWrite(tree, stream, kCFPropertyListBinaryFormat_v1_0, 0, &error), 0); /* it is too small */
    expect_code(error, kCFPropertyListWriteStreamError);
    CFRelease(stream);
    CFRelease(written);
    CFRelease(data);
    CFRelease(tree);
}

TEST(the_older_calls_read_each_format_and_write_xml, "2206")
{
    CFDataRef data = make_data("{a=b;}", 6);
    CFStringRef words = CFSTR("before");
    CFTypeRef tree = CFPropertyListCreateFromXMLData(NULL, data, 0, &words);
    CFDataRef xml = CFPropertyListCreateXMLData(NULL, tree);
    CFTypeRef again = CFPropertyListCreateFromXMLData(NULL, xml, 0, NULL);

    EXPECT(tree && !words && CFEqual(tree, again));
    CFRelease(again);
    CFRelease(xml);
    CFRelease(tree);
    CFRelease(data);
    data = make_data("{a=b", 4);
    EXPECT(!CFPropertyListCreateFromXMLData(NULL, data, 0, &words));
    EXPECT(words && CFStringGetLength(words) > 0);
    CFRelease(words);
    CFRelease(data);
    EXPECT(!CFPropertyListCreateFromXMLData(NULL, NULL, 0, NULL));
    EXPECT(!CFPropertyListCreateXMLData(NULL, NULL));
}
