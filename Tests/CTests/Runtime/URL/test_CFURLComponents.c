/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of URLs. */
#include <string.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/URL/url_probe.h"
#include "harness.h"

TEST(a_url_has_the_parts_of_the_rfc, "418")
{
    Boolean is_absolute = false;
    CFURLRef url = url_with("http://user:pa%20ss@ex%61mple.com:8080/a/b%20c.txt?q=%31#f%32", NULL);
    EXPECT(CFURLCanBeDecomposed(url));
    expect_text(CFURLCopyScheme(url), "http");
    expect_text(CFURLCopyNetLocation(url), "user:pa%20ss@ex%61mple.com:8080");
    expect_text(CFURLCopyUserName(url), "user");
    expect_text(CFURLCopyPassword(url), "pa ss");
    expect_text(CFURLCopyHostName(url), "example.com");
    EXPECT_EQ(CFURLGetPortNumber(url), 8080);
    expect_text(CFURLCopyPath(url), "/a/b%20c.txt");
    expect_text(CFURLCopyStrictPath(url, &is_absolute), "a/b%20c.txt");
    EXPECT(is_absolute);
    expect_text(CFURLCopyQueryString(url, NULL), "q=%31");
    expect_text(CFURLCopyQueryString(url, CFSTR("")), "q=1");
    expect_text(CFURLCopyQueryString(url, CFSTR("1")), "q=%31");
    expect_text(CFURLCopyFragment(url, NULL), "f%32");
    expect_text(CFURLCopyFragment(url, CFSTR("")), "f2");
    expect_text(CFURLCopyResourceSpecifier(url), "?q=%31#f%32");
    expect_text(CFURLCopyParameterString(url, NULL), NULL);
    expect_text(CFURLCopyLastPathComponent(url), "b c.txt");
    expect_text(CFURLCopyPathExtension(url), "txt");
    CFRelease(url);
}

TEST(missing_parts_are_null, "418")
{
    Boolean is_absolute = true;
    CFURLRef url = url_with("", NULL);
    expect_text(CFURLCopyScheme(url), NULL);
    expect_text(CFURLCopyNetLocation(url), NULL);
    expect_text(CFURLCopyUserName(url), NULL);
    expect_text(CFURLCopyPassword(url), NULL);
    expect_text(CFURLCopyHostName(url), NULL);
    EXPECT_EQ(CFURLGetPortNumber(url), -1);
    expect_text(CFURLCopyPath(url), NULL);
    expect_text(CFURLCopyStrictPath(url, &is_absolute), NULL);
    EXPECT(!is_absolute);
    expect_text(CFURLCopyStrictPath(url, NULL), NULL);
    expect_text(CFURLCopyQueryString(url, CFSTR("")), NULL);
    expect_text(CFURLCopyFragment(url, NULL), NULL);
    expect_text(CFURLCopyResourceSpecifier(url), NULL);
    expect_text(CFURLCopyLastPathComponent(url), "");
    expect_text(CFURLCopyPathExtension(url), NULL);
    EXPECT(!CFURLHasDirectoryPath(url));
    CFRelease(url);
}

TEST(scheme_net_location_and_query_come_from_the_base, "419")
{
    CFURLRef base = url_with("http://u:p@h:80/p?q#f", NULL);
    static const struct {
        const char *text, *host, *query, *fragment;
        SInt32 port;
    } cases[] = {{"z", "h", NULL, NULL, 80}, {"//o", "o", NULL, NULL, -1}, {"?n", "h", "n", NULL, 80}, {"#g", "h", "q", "g", 80}};
    for (int i = 0; i < 4; i++) {
        CFURLRef url = url_with(cases[i].text, base);
        expect_text(CFURLCopyScheme(url), "http");
        expect_text(CFURLCopyHostName(url), cases[i].host);
        EXPECT_EQ(CFURLGetPortNumber(url), cases[i].port);
        expect_text(CFURLCopyUserName(url), cases[i].port == 80 ? "u" : NULL);
        expect_text(CFURLCopyPassword(url), cases[i].port == 80 ? "p" : NULL);
        expect_text(CFURLCopyQueryString(url, NULL), cases[i].query);
        expect_text(CFURLCopyFragment(url, NULL), cases[i].fragment);
        CFRelease(url);
    }
    CFRelease(base);
}

TEST(a_url_that_cannot_be_decomposed_has_a_scheme_and_the_rest, "420")
{
    CFURLRef url = url_with("mailto:a@b.c?x#y", NULL);
    EXPECT(!CFURLCanBeDecomposed(url));
    expect_text(CFURLCopyScheme(url), "mailto");
    expect_text(CFURLCopyResourceSpecifier(url), "a@b.c?x#y");
    expect_text(CFURLCopyPath(url), NULL);
    expect_text(CFURLCopyStrictPath(url, NULL), NULL);
    expect_text(CFURLCopyFileSystemPath(url, kCFURLPOSIXPathStyle), NULL);
    expect_text(CFURLCopyQueryString(url, NULL), NULL);
    expect_text(CFURLCopyFragment(url, NULL), NULL);
    expect_text(CFURLCopyLastPathComponent(url), "");
    expect_text(CFURLCopyPathExtension(url), NULL);
    EXPECT(!CFURLHasDirectoryPath(url));
    EXPECT_EQ(CFURLGetByteRangeForComponent(url, kCFURLComponentScheme, NULL).length, 6);
    EXPECT_EQ(CFURLGetByteRangeForComponent(url, kCFURLComponentResourceSpecifier, NULL).location, 7);
    EXPECT_EQ(CFURLGetByteRangeForComponent(url, kCFURLComponentPath, NULL).location, kCFNotFound);
    CFRelease(url);
}

TEST(hosts_may_be_addresses_in_brackets, "421")
{
    static const struct {
        const char *text, *host;
        SInt32 port;
    } cases[] = {
        {"http://[::1]:80/", "::1", 80},  {"http://[fe80::1%25eth0]/", "fe80::1%eth0", -1}, {"http://h:/", "h", -1},
        {"http://h:x/", "h", -1},         {"http://h:99999999999/", "h", INT32_MAX},        {"http:///", NULL, -1},
        {"http://a%40b@evil@c/", "c", -1}, {"http://:p@h/", "h", -1},                        {"http://h%FF/", NULL, -1},
        {"http://[]/", "[]", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CFURLRef url = url_with(cases[i].text, NULL);
        expect_text(CFURLCopyHostName(url), cases[i].host);
        EXPECT_EQ(CFURLGetPortNumber(url), cases[i].port);
        CFRelease(url);
    }
}

TEST(the_last_component_and_its_extension, "422")
{
    static const struct {
        const char *text, *last, *extension;
        bool is_directory;
    } cases[] = {
        {"http://h", "", NULL, false},        {"http://h/", "/", NULL, true},    {"/a/b.tar.gz/", "b.tar.gz", "gz", true},
        {"/a.b/.c", ".c", NULL, false},       {"..g", "..g", "g", false},        {"a.", "a.", NULL, false},
        {"a/..", "..", NULL, true},           {"a/.", ".", NULL, true},          {"a.b%20c", "a.b c", NULL, false},
        {"a.%C3%A9", "a.\xC3\xA9", "\xC3\xA9", false}, {"a/...", "...", NULL, false}, {"x%FF.t", NULL, "t", false},
        {"a;p", "a;p", NULL, false},          {"//h//a//", "", NULL, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CFURLRef url = url_with(cases[i].text, NULL);
        expect_text(CFURLCopyLastPathComponent(url), cases[i].last);
        expect_text(CFURLCopyPathExtension(url), cases[i].extension);
        EXPECT_EQ(CFURLHasDirectoryPath(url), cases[i].is_directory);
        CFRelease(url);
    }
}

static void expect_range(CFURLRef url, CFURLComponentType component, CFRange part, CFRange with_separators)
{
    CFRange wide;
    CFRange actual = CFURLGetByteRangeForComponent(url, component, &wide);
    EXPECT_EQ(actual.location, part.location);
    EXPECT_EQ(actual.length, part.length);
    EXPECT_EQ(wide.location, with_separators.location);
    EXPECT_EQ(wide.length, with_separators.length);
    EXPECT_EQ(CFURLGetByteRangeForComponent(url, component, NULL).location, part.location);
}

TEST(parts_stand_at_places_in_the_bytes, "423")
{
    static const CFRange whole[][2] = {
        {{0, 4}, {0, 7}},   {{7, 11}, {4, 14}}, {{18, 8}, {18, 9}},               {{27, 5}, {26, 6}}, {{7, 2}, {4, 6}},   {{10, 2}, {9, 4}},
        {{7, 5}, {4, 9}},   {{13, 2}, {12, 4}}, {{16, 2}, {15, 3}},               {{kCFNotFound, 0}, {kCFNotFound, 0}},
        {{27, 2}, {26, 4}}, {{30, 2}, {29, 3}},
    };
    static const CFRange short_one[][2] = {
        {{0, 4}, {0, 7}},
        {{7, 2}, {4, 5}},
        {{9, 3}, {9, 3}},
        {{kCFNotFound, 0}, {12, 0}},
        {{kCFNotFound, 0}, {7, 0}},
        {{kCFNotFound, 0}, {7, 0}},
        {{kCFNotFound, 0}, {7, 0}},
        {{7, 2}, {4, 5}},
        {{kCFNotFound, 0}, {9, 0}},
        {{kCFNotFound, 0}, {kCFNotFound, 0}},
        {{kCFNotFound, 0}, {12, 0}},
        {{kCFNotFound, 0}, {12, 0}},
    };
    CFURLRef urls[] = {url_with("http://us:pw@ho:80/pa/th;x?qu#fr", NULL), url_with("http://ho/pa", NULL)};
    for (CFIndex i = 0; i < 12; i++) {
        expect_range(urls[0], i + 1, whole[i][0], whole[i][1]);
        expect_range(urls[1], i + 1, short_one[i][0], short_one[i][1]);
    }
    EXPECT_EQ(CFURLGetByteRangeForComponent(urls[0], 99, NULL).location, kCFNotFound);
    CFRelease(urls[0]);
    CFRelease(urls[1]);
    CFURLRef path = url_with("pa", NULL);
    expect_range(path, kCFURLComponentScheme, CFRangeMake(kCFNotFound, 0), CFRangeMake(0, 0));
    expect_range(path, kCFURLComponentPath, CFRangeMake(0, 2), CFRangeMake(0, 2));
    expect_range(path, kCFURLComponentPassword, CFRangeMake(kCFNotFound, 0), CFRangeMake(0, 0));
    expect_range(path, kCFURLComponentPort, CFRangeMake(kCFNotFound, 0), CFRangeMake(0, 0));
    CFRelease(path);
    CFURLRef user = url_with("http://us@ho", NULL);
    expect_range(user, kCFURLComponentPassword, CFRangeMake(kCFNotFound, 0), CFRangeMake(9, 0));
    expect_range(user, kCFURLComponentPath, CFRangeMake(12, 0), CFRangeMake(12, 0));
    CFRelease(user);
}

TEST(a_part_reaches_to_its_neighbours_with_its_separators, "416 423")
{
    static const struct {
        const char *text;
        CFURLComponentType component;
        CFRange part, with_separators;
    } cases[] = {
        {"file:///tmp/x", kCFURLComponentScheme, {0, 4}, {0, 7}},
        {"file:///tmp/x", kCFURLComponentPath, {7, 6}, {4, 9}},
        {"file:///tmp/x", kCFURLComponentHost, {kCFNotFound, 0}, {7, 0}},
        {"http:/a", kCFURLComponentScheme, {0, 4}, {0, 5}},
        {"http:/a", kCFURLComponentPath, {5, 2}, {4, 3}},
        {"ftp://host", kCFURLComponentPath, {10, 0}, {10, 0}},
        {"//h?q", kCFURLComponentPath, {3, 0}, {3, 1}},
        {"//h?q", kCFURLComponentUser, {kCFNotFound, 0}, {0, 0}},
        {"http://:80/", kCFURLComponentHost, {7, 0}, {4, 4}},
        {"http://:80/", kCFURLComponentPort, {8, 2}, {7, 3}},
        {"http://:@:", kCFURLComponentPassword, {8, 0}, {7, 2}},
        {"http://:@:", kCFURLComponentNetLocation, {7, 3}, {4, 6}},
        {"///?q", kCFURLComponentPath, {2, 1}, {0, 4}},
        {"http://h/?#", kCFURLComponentResourceSpecifier, {10, 1}, {9, 2}},
        {"http://h/?#", kCFURLComponentQuery, {10, 0}, {9, 2}},
        {"http://h/?#", kCFURLComponentFragment, {11, 0}, {10, 1}},
        {"http://?q", kCFURLComponentScheme, {0, 4}, {0, 8}},
        {"http://?q", kCFURLComponentPath, {kCFNotFound, 0}, {7, 0}},
        {"mailto:a?b", kCFURLComponentResourceSpecifier, {7, 3}, {6, 4}},
        {"mailto:a?b", kCFURLComponentQuery, {kCFNotFound, 0}, {kCFNotFound, 0}},
        {"mailto:", kCFURLComponentScheme, {0, 6}, {0, 7}},
        {"mailto:", kCFURLComponentResourceSpecifier, {kCFNotFound, 0}, {7, 0}},
        {"http://h/%zz [x]?a b", kCFURLComponentPath, {8, 8}, {8, 9}},
        {"http://h/%zz [x]?a b", kCFURLComponentQuery, {17, 3}, {16, 4}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CFIndex length = (CFIndex)strlen(cases[i].text);
        CFURLRef url = CFURLCreateWithBytes(NULL, (const UInt8 *)cases[i].text, length, kCFStringEncodingUTF8, NULL);
        expect_range(url, cases[i].component, cases[i].part, cases[i].with_separators);
        CFRelease(url);
    }
}
