/* SPDX-License-Identifier: Apache-2.0 */
/* File system paths as URLs, URLs as paths, and other paths for URLs. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/URL/url_probe.h"
#include "harness.h"

static CFURLRef url_of_path(const char *path, bool is_directory, CFURLRef base)
{
    CFStringRef text = CFStringCreateWithCString(NULL, path, kCFStringEncodingUTF8);
    CFURLRef url = base != NULL ? CFURLCreateWithFileSystemPathRelativeToBase(NULL, text, kCFURLPOSIXPathStyle, is_directory, base)
                                : CFURLCreateWithFileSystemPath(NULL, text, kCFURLPOSIXPathStyle, is_directory);
    CFRelease(text);
    return url;
}

TEST(a_path_becomes_a_file_url, "424")
{
    static const struct {
        const char *path;
        bool is_directory;
        const char *expected;
    } cases[] = {
        {"/a/b", false, "file:///a/b"},
        {"/a/b", true, "file:///a/b/"},
        {"/a/b//", false, "file:///a/b"},
        {"/", false, "file:///"},
        {"///", true, "file:///"},
        {"/a b/\xC3\xA9#?[x];y%20", false, "file:///a%20b/%C3%A9%23%3F%5Bx%5D%3By%2520"},
        {"/a/../b", false, "file:///a/../b"},
        {"//a", false, "file:////a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CFURLRef url = url_of_path(cases[i].path, cases[i].is_directory, NULL);
        expect_url(url, cases[i].expected);
        CFRelease(url);
    }
}

TEST(a_relative_path_has_a_base, "424 410")
{
    char directory[PATH_MAX];
    char expected[PATH_MAX + 20];
    UInt8 path[PATH_MAX];
    REQUIRE(chdir("/tmp") == 0 && getcwd(directory, sizeof directory) != NULL);
    CFURLRef url = url_of_path("r s/x", false, NULL);
    expect_url(url, "r%20s/x");
    snprintf(expected, sizeof expected, "file://%s/", directory);
    expect_url(CFURLGetBaseURL(url), expected);
    EXPECT(CFURLGetFileSystemRepresentation(url, true, path, sizeof path));
    snprintf(expected, sizeof expected, "%s/r s/x", directory);
    EXPECT_STR((const char *)path, expected);
    EXPECT(CFURLGetFileSystemRepresentation(url, false, path, sizeof path));
    EXPECT_STR((const char *)path, "r s/x");
    CFURLRef inner = url_of_path("in/", true, url);
    expect_url(inner, "in/");
    EXPECT(CFURLGetFileSystemRepresentation(inner, true, path, sizeof path));
    snprintf(expected, sizeof expected, "%s/r s/in", directory);
    EXPECT_STR((const char *)path, expected);
    CFURLRef colon = url_of_path("a:b", false, url);
    expect_url(colon, "./a:b");
    CFURLRef whole = url_of_path("/abs", false, url);
    EXPECT(CFURLGetBaseURL(whole) == NULL);
    CFRelease(whole);
    CFRelease(colon);
    CFRelease(inner);
    CFRelease(url);
}

TEST(paths_that_are_none_are_refused, "424")
{
    const UniChar half[] = {'/', 0xD800};
    const UniChar nul[] = {'/', 0};
    CFStringRef texts[] = {CFSTR(""), CFStringCreateWithCharacters(NULL, half, 2), CFStringCreateWithCharacters(NULL, nul, 2)};
    for (int i = 0; i < 3; i++) {
        EXPECT(CFURLCreateWithFileSystemPath(NULL, texts[i], kCFURLPOSIXPathStyle, false) == NULL);
    }
    EXPECT(CFURLCreateWithFileSystemPath(NULL, CFSTR("C:\\x"), kCFURLWindowsPathStyle, false) == NULL);
    EXPECT(CFURLCreateWithFileSystemPath(NULL, CFSTR("a:x"), kCFURLHFSPathStyle, false) == NULL);
    EXPECT(CFURLCreateFromFileSystemRepresentation(NULL, (const UInt8 *)"", 0, true) == NULL);
    EXPECT(CFURLCreateFromFileSystemRepresentation(NULL, (const UInt8 *)"/a\0b", 4, true) == NULL);
    EXPECT(CFURLCreateFromFileSystemRepresentation(NULL, (const UInt8 *)"/", -1, true) == NULL);
    CFRelease(texts[1]);
    CFRelease(texts[2]);
}

TEST(file_names_may_be_any_bytes, "425")
{
    UInt8 path[20];
    CFURLRef url = CFURLCreateFromFileSystemRepresentation(NULL, (const UInt8 *)"/t/x%y\xFF", 7, false);
    expect_url(url, "file:///t/x%25y%FF");
    EXPECT(CFURLGetFileSystemRepresentation(url, true, path, sizeof path));
    EXPECT_STR((const char *)path, "/t/x%y\xFF");
    expect_text(CFURLCopyFileSystemPath(url, kCFURLPOSIXPathStyle), NULL);
    CFURLRef inner = CFURLCreateFromFileSystemRepresentationRelativeToBase(NULL, (const UInt8 *)"\xFE", 1, false, url);
    EXPECT(CFURLGetFileSystemRepresentation(inner, true, path, sizeof path));
    EXPECT_STR((const char *)path, "/t/\xFE");
    CFRelease(inner);
    CFRelease(url);
}

TEST(a_path_for_the_file_system_fits_or_is_refused, "426")
{
    static const char *const without_path[] = {"", "mailto:x", "file://", "?q"};
    UInt8 path[20] = "unchanged";
    CFURLRef url = url_with("file:///a%20b/", NULL);
    EXPECT(!CFURLGetFileSystemRepresentation(url, true, path, 4));
    EXPECT_STR((const char *)path, "unchanged");
    EXPECT(CFURLGetFileSystemRepresentation(url, true, path, 5));
    EXPECT_STR((const char *)path, "/a b");
    expect_text(CFURLCopyFileSystemPath(url, kCFURLPOSIXPathStyle), "/a b");
    expect_text(CFURLCopyFileSystemPath(url, kCFURLWindowsPathStyle), NULL);
    CFRelease(url);
    for (int i = 0; i < 4; i++) {
        url = url_with(without_path[i], NULL);
        EXPECT(!CFURLGetFileSystemRepresentation(url, true, path, sizeof path));
        CFRelease(url);
    }
    url = url_with("file:///etc/passwd%00.txt", NULL);
    EXPECT(!CFURLGetFileSystemRepresentation(url, true, path, sizeof path));
    CFRelease(url);
    url = url_with("file:///", NULL);
    EXPECT(CFURLGetFileSystemRepresentation(url, true, path, sizeof path));
    EXPECT_STR((const char *)path, "/");
    CFRelease(url);
}

/* Compares and releases. */
static void expect_edited(CFURLRef url, const char *expected)
{
    expect_url(url, expected);
    if (url != NULL) {
        CFRelease(url);
    }
}

TEST(components_are_appended_and_deleted, "427")
{
    static const struct {
        const char *url, *appended, *as_directory, *with_slash, *deleted;
    } cases[] = {
        {"http://h/a/b.c?q#f", "http://h/a/b.c/n%20w?q#f", "http://h/a/b.c/n%20w/?q#f", "http://h/a/b.c/x/y%3F?q#f", "http://h/a/?q#f"},
        {"http://h/a/b.c/", "http://h/a/b.c/n%20w", "http://h/a/b.c/n%20w/", "http://h/a/b.c/x/y%3F", "http://h/a/"},
        {"http://h", "http://h/n%20w", "http://h/n%20w/", "http://h/x/y%3F", "http://h"},
        {"http://h/", "http://h/n%20w", "http://h/n%20w/", "http://h/x/y%3F", "http://h/../"},
        {"a", "a/n%20w", "a/n%20w/", "a/x/y%3F", "./"},
        {"/", "/n%20w", "/n%20w/", "/x/y%3F", "/../"},
        {"file:///a/..", "file:///a/../n%20w", "file:///a/../n%20w/", "file:///a/../x/y%3F", "file:///a/../../"},
        {"", NULL, NULL, NULL, NULL},
        {"mailto:x", NULL, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CFURLRef url = url_with(cases[i].url, NULL);
        expect_edited(CFURLCreateCopyAppendingPathComponent(NULL, url, CFSTR("n w"), false), cases[i].appended);
        expect_edited(CFURLCreateCopyAppendingPathComponent(NULL, url, CFSTR("n w"), true), cases[i].as_directory);
        expect_edited(CFURLCreateCopyAppendingPathComponent(NULL, url, CFSTR("//x/y?"), false), cases[i].with_slash);
        expect_edited(CFURLCreateCopyDeletingLastPathComponent(NULL, url), cases[i].deleted);
        CFRelease(url);
    }
    CFURLRef base = url_with("http://h/p", NULL);
    CFURLRef url = url_with("x", base);
    CFURLRef longer = CFURLCreateCopyAppendingPathComponent(NULL, url, CFSTR("y"), false);
    expect_url(CFURLGetBaseURL(longer), "http://h/p");
    CFRelease(longer);
    CFRelease(url);
    CFRelease(base);
}

TEST(extensions_are_appended_and_deleted, "428")
{
    static const struct {
        const char *url, *appended, *deleted;
    } cases[] = {
        {"http://h/a/b.c?q", "http://h/a/b.c.t%3B?q", "http://h/a/b?q"}, {"a.b/", "a.b.t%3B/", "a/"},
        {"http://h/", NULL, "http://h/"},                              {"http://h", NULL, "http://h"},
        {"mailto:a.b", NULL, NULL},                                    {"/.c", "/.c.t%3B", "/.c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CFURLRef url = url_with(cases[i].url, NULL);
        expect_edited(CFURLCreateCopyAppendingPathExtension(NULL, url, CFSTR("t;")), cases[i].appended);
        expect_edited(CFURLCreateCopyDeletingPathExtension(NULL, url), cases[i].deleted);
        EXPECT(CFURLCreateCopyAppendingPathExtension(NULL, url, CFSTR("")) == NULL);
        EXPECT(CFURLCreateCopyAppendingPathExtension(NULL, url, CFSTR("a/b")) == NULL);
        EXPECT(CFURLCreateCopyAppendingPathExtension(NULL, url, CFSTR("a b")) == NULL);
        CFRelease(url);
    }
    CFURLRef latin = CFURLCreateWithBytes(NULL, (const UInt8 *)"a", 1, kCFStringEncodingISOLatin1, NULL);
    EXPECT(CFURLCreateCopyAppendingPathExtension(NULL, latin, CFSTR("\u20ac")) == NULL);
    CFRelease(latin);
}
