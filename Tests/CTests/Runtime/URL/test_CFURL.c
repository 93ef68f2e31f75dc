/* SPDX-License-Identifier: Apache-2.0 */
/* URLs made of strings and bytes, their resolution after RFC 3986, their equality and their descriptions. */
#include <string.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/URL/url_probe.h"
#include "harness.h"

struct resolution {
    const char *reference, *target;
};

static void expect_resolutions(const char *base_text, const struct resolution *resolutions, size_t count)
{
    CFURLRef base = url_with(base_text, NULL);
    for (size_t i = 0; i < count; i++) {
        CFURLRef url = url_with(resolutions[i].reference, base);
        REQUIRE(url != NULL);
        CFURLRef absolute = CFURLCopyAbsoluteURL(url);
        expect_url(absolute, resolutions[i].target);
        EXPECT(CFURLGetBaseURL(absolute) == NULL);
        CFRelease(absolute);
        CFRelease(url);
    }
    CFRelease(base);
}

/* RFC 3986, 5.4.1. */
TEST(references_are_resolved_as_in_the_normal_examples_of_the_rfc, "408")
{
    static const struct resolution examples[] = {
        {"g:h", "g:h"},
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q#s"},
        {"g#s", "http://a/b/c/g#s"},
        {"g?y#s", "http://a/b/c/g?y#s"},
        {";x", "http://a/b/c/;x"},
        {"g;x", "http://a/b/c/g;x"},
        {"g;x?y#s", "http://a/b/c/g;x?y#s"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../", "http://a/"},
        {"../../g", "http://a/g"},
    };
    expect_resolutions("http://a/b/c/d;p?q", examples, sizeof examples / sizeof examples[0]);
}

/* RFC 3986, 5.4.2. */
TEST(references_are_resolved_as_in_the_abnormal_examples_of_the_rfc, "408 409")
{
    static const struct resolution examples[] = {
        {"../../../g", "http://a/g"},
        {"../../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {".g", "http://a/b/c/.g"},
        {"g..", "http://a/b/c/g.."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/./x", "http://a/b/c/g?y/./x"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"g#s/./x", "http://a/b/c/g#s/./x"},
        {"g#s/../x", "http://a/b/c/g#s/../x"},
        {"http:g", "http:g"},
    };
    expect_resolutions("http://a/b/c/d;p?q", examples, sizeof examples / sizeof examples[0]);
}

TEST(a_base_without_a_path_gives_its_root, "408")
{
    static const struct resolution examples[] = {
        {"g", "http://a/g"}, {"../g", "http://a/g"}, {"?y", "http://a?y"}, {"#s", "http://a#s"}, {"", "http://a"}, {"/x", "http://a/x"},
    };
    expect_resolutions("http://a", examples, sizeof examples / sizeof examples[0]);
}

TEST(a_base_without_a_scheme_stays_without_one, "408 410")
{
    static const struct resolution examples[] = {
        {"c", "a/c"},         {"/d", "/d"},    {"../c", "c"},         {"..", ""},           {"../../c", "c"},
        {"../x:y", "./x:y"}, {"//h", "//h"}, {".//c", "a//c"}, {"/.//c", "/.//c"}, {"./x:y", "a/x:y"},
    };
    expect_resolutions("a/b", examples, sizeof examples / sizeof examples[0]);
}

TEST(a_path_is_never_taken_for_a_net_location, "410")
{
    static const struct resolution examples[] = {{".//evil/x", "s:/.//evil/x"}, {"/.//evil", "s:/.//evil"}};
    expect_resolutions("s:/a", examples, sizeof examples / sizeof examples[0]);
}

TEST(the_base_is_resolved_and_kept_only_where_it_is_needed, "411")
{
    CFURLRef root = url_with("http://a/b/c?q", NULL);
    CFURLRef middle = url_with("x/y.t?z", root);
    CFURLRef url = url_with("w", middle);
    expect_url(CFURLGetBaseURL(middle), "http://a/b/c?q");
    expect_url(CFURLGetBaseURL(url), "http://a/b/x/y.t?z");
    EXPECT(CFURLGetBaseURL(CFURLGetBaseURL(url)) == NULL);
    CFURLRef whole = url_with("http://h/p", root);
    EXPECT(CFURLGetBaseURL(whole) == NULL);
    CFURLRef same = CFURLCopyAbsoluteURL(whole);
    EXPECT(same == whole);
    CFRelease(same);
    CFRelease(whole);
    CFRelease(url);
    CFRelease(middle);
    CFRelease(root);
}

TEST(a_string_with_characters_that_no_url_has_is_refused, "412")
{
    for (int byte = 1; byte < 128; byte++) {
        char text[] = {'h', ':', '/', '/', 'x', '/', 'a', (char)byte, 'b', '\0'};
        bool is_refused = byte <= ' ' || byte == 127 || strchr("\"%<>\\^`{|}", byte) != NULL;
        CFURLRef url = url_with(text, NULL);
        EXPECT_EQ(url == NULL, is_refused);
        if (url != NULL) {
            CFRelease(url);
        }
    }
    static const char *const refused[] = {"http://a b/",       "a%zz",          "%",         "%4",  "\xC3\xA9",
                                          "http://h/\xC3\xA9", "http://u s@h/", "ht tp://x", "#a#b"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        EXPECT(url_with(refused[i], NULL) == NULL);
    }
}

TEST(what_may_not_stand_in_its_part_is_escaped, "412")
{
    static const struct resolution examples[] = {
        {"http://h/[x]", "http://h/%5Bx%5D"}, {"http://h/?[", "http://h/?%5B"}, {"http://h/#a", "http://h/#a"},
        {"[", "%5B"},                         {"http://[::1]/", "http://[::1]/"}, {"http://a@b@c/", "http://a%40b@c/"},
        {"http://[::1/", "http://%5B::1/"},   {"data:,x?y#z", "data:,x?y#z"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        CFURLRef url = url_with(examples[i].reference, NULL);
        expect_url(url, examples[i].target);
        CFRelease(url);
    }
}

TEST(any_bytes_make_a_url_whose_string_makes_it_again, "406")
{
    static const char alphabet[] = "a/:?#[]@%2.\0\x7F\"";
    unsigned random = 1;
    for (int i = 0; i < 20000; i++) {
        UInt8 bytes[12];
        for (size_t k = 0; k < sizeof bytes; k++) {
            random = random * 1103515245 + 12345;
            bytes[k] = (UInt8)alphabet[(random >> 16) % (sizeof alphabet - 1)];
        }
        CFURLRef url = CFURLCreateWithBytes(NULL, bytes, i % 13, kCFStringEncodingUTF8, NULL);
        CFURLRef again = CFURLCreateWithString(NULL, CFURLGetString(url), NULL);
        REQUIRE(again != NULL && CFEqual(url, again));
        CFRelease(again);
        CFRelease(url);
    }
}

static void expect_bytes(const char *bytes, CFIndex count, CFStringEncoding encoding, const char *expected)
{
    CFURLRef url = CFURLCreateWithBytes(NULL, (const UInt8 *)bytes, count, encoding, NULL);
    expect_url(url, expected);
    if (url != NULL) {
        CFRelease(url);
    }
}

TEST(bytes_are_escaped_in_their_encoding, "413")
{
    const UniChar wide[] = {'a', 0xE9};
    expect_bytes("http://h/a b", 12, kCFStringEncodingUTF8, "http://h/a%20b");
    expect_bytes("http://h/a%20", 13, kCFStringEncodingUTF8, "http://h/a%20");
    expect_bytes("#a#b", 4, kCFStringEncodingUTF8, "#a%23b");
    expect_bytes("a%zz", 4, kCFStringEncodingUTF8, "a%25zz");
    expect_bytes("h\xE9", 2, kCFStringEncodingISOLatin1, "h%E9");
    expect_bytes("h\xC3\xA9", 3, kCFStringEncodingUTF8, "h%C3%A9");
    expect_bytes((const char *)wide, 4, kCFStringEncodingUTF16, "a%C3%A9");
    expect_bytes("h\xE9", 2, kCFStringEncodingUTF8, NULL);
    expect_bytes("h", 1, 0x7777, NULL);
    expect_bytes("h", -1, kCFStringEncodingUTF8, NULL);
    expect_bytes("", 0, kCFStringEncodingUTF8, "");
    expect_bytes("\0x", 2, kCFStringEncodingUTF8, "%00x");
    CFURLRef url = CFURLCreateWithBytes(NULL, (const UInt8 *)"http://h%E9/%E9?%E9", 19, kCFStringEncodingISOLatin1, NULL);
    expect_text(CFURLCopyHostName(url), "h\xC3\xA9");
    expect_text(CFURLCopyFileSystemPath(url, kCFURLPOSIXPathStyle), "/\xC3\xA9");
    expect_text(CFURLCopyQueryString(url, CFSTR("")), "\xC3\xA9");
    CFRelease(url);
}

TEST(bytes_are_resolved_against_a_base, "408 413")
{
    CFURLRef base = url_with("http://a/b/c?q#f", NULL);
    CFURLRef url = CFURLCreateAbsoluteURLWithBytes(NULL, (const UInt8 *)"../../d e", 9, kCFStringEncodingUTF8, base, false);
    expect_url(url, "http://a/d%20e");
    CFRelease(url);
    EXPECT(CFURLCreateAbsoluteURLWithBytes(NULL, (const UInt8 *)"\xFF", 1, kCFStringEncodingUTF8, base, true) == NULL);
    CFRelease(base);
}

TEST(urls_are_equal_when_string_and_base_are, "414")
{
    CFURLRef base = url_with("http://a/b/", NULL);
    CFURLRef url = url_with("x", base);
    CFURLRef same = url_with("x", base);
    CFURLRef others[] = {url_with("y", base), url_with("x", NULL), url_with("http://a/b/x", NULL), url_with("x", url)};
    EXPECT(CFEqual(url, same) && CFHash(url) == CFHash(same));
    for (int i = 0; i < 4; i++) {
        EXPECT(!CFEqual(url, others[i]));
        EXPECT(!CFEqual(others[i], url));
    }
    for (int i = 0; i < 4; i++) {
        CFRelease(others[i]);
    }
    CFURLRef large = url_with("HTTP://a", NULL);
    CFURLRef small = url_with("http://a", NULL);
    EXPECT(!CFEqual(large, small));
    EXPECT_EQ(CFGetTypeID(small), CFURLGetTypeID());
    CFRelease(large);
    CFRelease(small);
    CFRelease(same);
    CFRelease(url);
    CFRelease(base);
}

TEST(a_url_prints_as_its_string_and_base, "415")
{
    CFURLRef base = url_with("http://a/b", NULL);
    CFURLRef url = url_with("x?y", base);
    expect_text(CFStringCreateWithFormat(NULL, NULL, CFSTR("%@"), base), "http://a/b");
    expect_text(CFStringCreateWithFormat(NULL, NULL, CFSTR("%@"), url), "x?y -- http://a/b");
    CFStringRef words = CFCopyDescription(url);
    EXPECT(CFStringHasSuffix(words, CFSTR(">{string = x?y, encoding = 134217984, base = http://a/b}")));
    CFRelease(words);
    words = CFCopyDescription(base);
    EXPECT(CFStringHasSuffix(words, CFSTR(">{string = http://a/b, encoding = 134217984, base = (null)}")));
    CFRelease(words);
    CFRelease(url);
    CFRelease(base);
}

static void expect_kept_bytes(CFURLRef url, const char *expected)
{
    UInt8 bytes[40] = {0};

    EXPECT_EQ(CFURLGetBytes(url, bytes, sizeof bytes - 1), (CFIndex)strlen(expected));
    EXPECT_STR((const char *)bytes, expected);
}

TEST(the_bytes_of_a_url_are_those_that_it_was_made_of, "416")
{
    static const char *const texts[] = {"http://h/%zz", "a b\xC3\xA9[%", "http://h/a#b#c", "http://u@x@h/"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CFURLRef url = CFURLCreateWithBytes(NULL, (const UInt8 *)texts[i], (CFIndex)strlen(texts[i]), kCFStringEncodingUTF8, NULL);
        CFURLRef again = CFURLCreateWithString(NULL, CFURLGetString(url), NULL);

        expect_kept_bytes(url, texts[i]);
        EXPECT(CFEqual(url, again));
        EXPECT_EQ(CFHash(url), CFHash(again));
        CFRelease(again);
        CFRelease(url);
    }
    CFURLRef url = CFURLCreateWithBytes(NULL, (const UInt8 *)"h\xE9", 2, kCFStringEncodingISOLatin1, NULL);
    expect_kept_bytes(url, "h\xE9");
    CFRelease(url);
    url = CFURLCreateWithBytes(NULL, (const UInt8 *)"h\0\xE9", 4, kCFStringEncodingUTF16LE, NULL);
    expect_kept_bytes(url, "h%C3%A9");
    CFRelease(url);
    url = url_with("http://h/[x]", NULL);
    expect_kept_bytes(url, "http://h/[x]");
    CFRelease(url);
}

TEST(the_bytes_of_a_url_are_those_of_its_string, "416")
{
    UInt8 bytes[16] = {0};
    CFURLRef url = url_with("http://h/a%20b", NULL);
    EXPECT_EQ(CFURLGetBytes(url, NULL, 0), 14);
    EXPECT_EQ(CFURLGetBytes(url, bytes, 13), -1);
    EXPECT_EQ(bytes[0], 0);
    EXPECT_EQ(CFURLGetBytes(url, bytes, 14), 14);
    EXPECT_STR((const char *)bytes, "http://h/a%20b");
    CFDataRef data = CFURLCreateData(NULL, url, kCFStringEncodingUTF8, true);
    EXPECT_EQ(CFDataGetLength(data), 14);
    EXPECT(memcmp(CFDataGetBytePtr(data), bytes, 14) == 0);
    CFRelease(data);
    EXPECT(CFURLCreateData(NULL, url, 0x7777, true) == NULL);
    CFRelease(url);
}

TEST(functions_of_urls_refuse_what_is_none, "417")
{
    EXPECT_STOPS("CFURLCreateWithString: the string is NULL", { CFURLCreateWithString(NULL, NULL, NULL); });
    EXPECT_STOPS("CFURLCreateWithString: the URL", { CFURLCreateWithString(NULL, CFSTR("a"), (CFURLRef)(const void *)kCFNull); });
    EXPECT_STOPS("CFURLGetString: the URL is NULL", { CFURLGetString(NULL); });
    EXPECT_STOPS("CFURLCreateWithFileSystemPath: the path is NULL", { CFURLCreateWithFileSystemPath(NULL, NULL, 0, false); });
}
