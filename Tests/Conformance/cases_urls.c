/* SPDX-License-Identifier: Apache-2.0 */
/* URLs: what they are made of, how they are resolved, and their parts. */
#define CONFORMANCE_GROUP "urls"
#include "conformance.h"

static CFURLRef url_with(const char *text, CFURLRef base)
{
    CFStringRef string = CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);
    CFURLRef url = CFURLCreateWithString(NULL, string, base);
    CFRelease(string);
    return url;
}

/* Logs a text and releases it. */
static void note_text(CFStringRef text)
{
    char bytes[200] = "-";
    if (text != NULL) {
        CFStringGetCString(text, bytes, sizeof bytes, kCFStringEncodingUTF8);
        CFRelease(text);
    }
    probe_note("%s", bytes);
}

static void note_string(CFURLRef url)
{
    note_text(url != NULL ? CFStringCreateCopy(NULL, CFURLGetString(url)) : NULL);
}

static void note_and_release(CFURLRef url)
{
    note_string(url);
    if (url != NULL) {
        CFRelease(url);
    }
}

static void note_parts(const char *text, CFURLRef base)
{
    CFURLRef url = url_with(text, base);
    Boolean is_absolute = false;
    note_string(url);
    if (url == NULL) {
        return;
    }
    note_text(CFURLCopyScheme(url));
    note_text(CFURLCopyNetLocation(url));
    note_text(CFURLCopyUserName(url));
    note_text(CFURLCopyPassword(url));
    note_text(CFURLCopyHostName(url));
    probe_note("%d", (int)CFURLGetPortNumber(url));
    note_text(CFURLCopyPath(url));
    note_text(CFURLCopyStrictPath(url, &is_absolute));
    note_text(CFURLCopyQueryString(url, NULL));
    note_text(CFURLCopyQueryString(url, CFSTR("")));
    note_text(CFURLCopyFragment(url, NULL));
    note_text(CFURLCopyResourceSpecifier(url));
    note_text(CFURLCopyLastPathComponent(url));
    note_text(CFURLCopyPathExtension(url));
    note_text(CFURLCopyFileSystemPath(url, kCFURLPOSIXPathStyle));
    probe_note("%d%d%d;", is_absolute, CFURLHasDirectoryPath(url), CFURLCanBeDecomposed(url));
    CFRelease(url);
}

CASE(parts_of_urls, "418 420 421 422", on_thread)
{
    static const char *const texts[] = {
        "http://user:pa%20ss@ex%61mple.com:8080/a/b%20c.txt?q=%31#f%32", "http://host", "http://host/", "http://[::1]:80/x", "mailto:a@b.c",
        "file:///tmp/x%20y/", "a/b", "", "?q", "#f", "//h/p", "http:a", "http:/a", "http://h:/", "1a:b", "http://h/a;p=1?q", "http://h/..",
        "http://u@h", "http://:p@h", "urn:isbn:1", "HTTP://H/", "file:///a.b/.c", "/a/b.tar.gz/", "..g", "http://h:x/",
        "http://h:99999999999/"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        note_parts(texts[i], NULL);
    }
}

CASE(parts_that_come_from_the_base, "419", on_thread)
{
    CFURLRef base = url_with("http://u:p@h:80/p?q#f", NULL);
    note_parts("z", base);
    note_parts("//o/", base);
    note_parts("?n", base);
    note_parts("#g", base);
    note_parts("", base);
    note_parts("x:y", base);
    CFRelease(base);
}

CASE(strings_that_are_refused_or_escaped, "412", on_thread)
{
    for (int byte = 1; byte < 128; byte++) {
        char text[] = {'h', ':', '/', '/', 'x', '/', 'a', (char)byte, 'b', '\0'};
        CFURLRef url = url_with(text, NULL);
        probe_note("%d", url != NULL);
        if (url != NULL) {
            CFRelease(url);
        }
    }
    static const char *const texts[] = {"http://a b/", "a%zz", "%", "http://h/[x]", "http://h/#a#b", "[", "ht tp://x"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        note_and_release(url_with(texts[i], NULL));
    }
}

static void note_resolved(const char *base_text, const char *const *references, size_t count)
{
    CFURLRef base = url_with(base_text, NULL);
    for (size_t i = 0; i < count; i++) {
        CFURLRef url = url_with(references[i], base);
        note_and_release(CFURLCopyAbsoluteURL(url));
        CFRelease(url);
    }
    CFRelease(base);
}

CASE(normal_examples_of_the_rfc, "408", on_thread)
{
    static const char *const references[] = {"g:h", "g", "./g", "g/", "/g", "//g", "?y", "g?y", "#s", "g#s", "g?y#s", ";x", "g;x",
                                             "g;x?y#s",
                                             "", ".", "./", "..", "../", "../g", "../..", "../../", "../../g"};
    note_resolved("http://a/b/c/d;p?q", references, sizeof references / sizeof references[0]);
}

CASE(abnormal_examples_of_the_rfc_below_the_root, "408", on_thread)
{
    static const char *const references[] = {"g.", ".g", "g..", "..g", "./../g", "./g/.", "g/./h", "g/../h", "g;x=1/./y", "g;x=1/../y",
                                             "g?y/./x", "g?y/../x", "g#s/./x", "g#s/../x", "http:g"};
    note_resolved("http://a/b/c/d;p?q", references, sizeof references / sizeof references[0]);
}

CASE(dot_segments_above_the_root, "409", on_thread)
{
    static const char *const references[] = {"../../../g", "../../../../g", "/./g", "/../g"};
    note_resolved("http://a/b/c/d;p?q", references, sizeof references / sizeof references[0]);
}

CASE(a_base_without_a_scheme, "410", on_thread)
{
    static const char *const references[] = {"c", "/d"};
    note_resolved("a/b", references, 2);
}

CASE(bases_of_bases, "411 414 415", on_thread)
{
    CFURLRef root = url_with("http://a/b/c?q", NULL);
    CFURLRef middle = url_with("x/y.t?z", root);
    CFURLRef url = url_with("w", middle);
    CFURLRef whole = url_with("http://h/p", root);
    note_string(CFURLGetBaseURL(url));
    probe_note_bool("base", CFURLGetBaseURL(whole) != NULL);
    note_text(CFStringCreateWithFormat(NULL, NULL, CFSTR("%@"), url));
    CFURLRef absolute = CFURLCopyAbsoluteURL(url);
    probe_note_bool("equal", CFEqual(url, absolute));
    CFRelease(absolute);
    CFRelease(whole);
    CFRelease(url);
    CFRelease(middle);
    CFRelease(root);
}

CASE(bytes_with_escapes, "413 416", on_thread)
{
    UInt8 bytes[20];
    note_and_release(CFURLCreateWithBytes(NULL, (const UInt8 *)"http://h/a b%20^", 16, kCFStringEncodingUTF8, NULL));
    note_and_release(CFURLCreateWithBytes(NULL, (const UInt8 *)"a%zz", 4, kCFStringEncodingUTF8, NULL));
    note_and_release(CFURLCreateWithBytes(NULL, (const UInt8 *)"\xFF", 1, kCFStringEncodingUTF8, NULL));
    note_and_release(CFURLCreateWithBytes(NULL, (const UInt8 *)"h\xC3\xA9", 3, kCFStringEncodingUTF8, NULL));
    CFURLRef url = url_with("http://h/a%20b", NULL);
    probe_note("%ld %ld %ld", (long)CFURLGetBytes(url, NULL, 0), (long)CFURLGetBytes(url, bytes, 5), (long)CFURLGetBytes(url, bytes, 14));
    CFRelease(url);
}

CASE(ranges_of_parts, "423", on_thread)
{
    static const char *const texts[] = {"http://us:pw@ho:80/pa/th;x?qu#fr", "http://ho/pa", "pa"};
    for (int i = 0; i < 3; i++) {
        CFURLRef url = url_with(texts[i], NULL);
        for (CFURLComponentType component = 1; component <= 12; component++) {
            CFRange wide;
            CFRange part = CFURLGetByteRangeForComponent(url, component, &wide);
            probe_note("%ld+%ld/%ld+%ld", (long)part.location, (long)part.length, (long)wide.location, (long)wide.length);
        }
        CFRelease(url);
    }
}

/* Every range of a URL, in one number for each, so that a trace stays short. */
static void note_ranges(const char *text)
{
    CFURLRef url = CFURLCreateWithBytes(NULL, (const UInt8 *)text, (CFIndex)strlen(text), kCFStringEncodingUTF8, NULL);
    UInt8 bytes[60] = {0};

    (void)CFURLGetBytes(url, bytes, sizeof bytes - 1);
    probe_note("%s", (const char *)bytes);
    for (CFURLComponentType component = 1; component <= 12; component++) {
        CFRange wide;
        CFRange part = CFURLGetByteRangeForComponent(url, component, &wide);
        probe_note("%ld", (long)(((part.location + 1) * 100 + part.length) * 10000 + (wide.location + 1) * 100 + wide.length));
    }
    CFRelease(url);
}

CASE(ranges_of_parts_that_are_empty_or_missing, "416 423", on_thread)
{
    static const char *const texts[] = {
        "file:///tmp/x", "ftp://host", "http://h/%zz", "http:/a", "http:", "http://", "http://?q", "//", "//#f", "///?q", "?#",
        "mailto:a?b", "http://:80/", "http://:@:", "http://@h?", "//u:@[::1]:9//x?q#f", "http://h/a b[x]?x y#%z", "/a/b", ""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        note_ranges(texts[i]);
    }
}

static CFURLRef url_of_path(const char *path, bool is_directory)
{
    CFStringRef text = CFStringCreateWithCString(NULL, path, kCFStringEncodingUTF8);
    CFURLRef url = CFURLCreateWithFileSystemPath(NULL, text, kCFURLPOSIXPathStyle, is_directory);
    CFRelease(text);
    return url;
}

CASE(urls_of_paths, "424", on_thread)
{
    note_and_release(url_of_path("/a/b", false));
    note_and_release(url_of_path("/a/b", true));
    note_and_release(url_of_path("/a/b/", false));
    note_and_release(url_of_path("/", false));
    note_and_release(url_of_path("/a b/\xC3\xA9#?[x];y%20", false));
    note_and_release(url_of_path("/a/../b", false));
    note_and_release(url_of_path("r s/x", true));
    note_and_release(url_of_path("", false));
    note_and_release(CFURLCreateFromFileSystemRepresentation(NULL, (const UInt8 *)"/e\0x", 4, true));
}

CASE(paths_of_urls, "426", on_thread)
{
    UInt8 path[20] = "-";
    CFURLRef url = url_with("file:///a%20b/", NULL);
    probe_note("%d", CFURLGetFileSystemRepresentation(url, true, path, 5));
    probe_note("%s", (const char *)path);
    CFRelease(url);
    url = url_with("file:///etc/passwd%00.txt", NULL);
    probe_note("%d", CFURLGetFileSystemRepresentation(url, true, path, sizeof path));
    CFRelease(url);
}

CASE(other_paths, "427 428", on_thread)
{
    static const char *const texts[] = {"http://h/a/b.c?q#f", "http://h/a/b.c/", "http://h/", "a", "file:///a/b/..", "", "mailto:x"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CFURLRef url = url_with(texts[i], NULL);
        note_and_release(CFURLCreateCopyAppendingPathComponent(NULL, url, CFSTR("n w?"), false));
        note_and_release(CFURLCreateCopyAppendingPathComponent(NULL, url, CFSTR("n"), true));
        note_and_release(CFURLCreateCopyDeletingLastPathComponent(NULL, url));
        note_and_release(CFURLCreateCopyDeletingPathExtension(NULL, url));
        note_and_release(CFURLCreateCopyAppendingPathExtension(NULL, url, CFSTR("a b")));
        CFRelease(url);
    }
    CFURLRef url = url_with("http://h/a/b.c?q#f", NULL);
    note_and_release(CFURLCreateCopyAppendingPathExtension(NULL, url, CFSTR("x")));
    CFRelease(url);
}

CASE(escapes_in_strings, "429 430", on_thread)
{
    note_text(CFURLCreateStringByReplacingPercentEscapes(NULL, CFSTR("a%20b%2fc%C3%A9"), CFSTR("")));
    note_text(CFURLCreateStringByReplacingPercentEscapes(NULL, CFSTR("a%20b%2Fc%C3%A9"), CFSTR("/ ")));
    note_text(CFURLCreateStringByReplacingPercentEscapes(NULL, CFSTR("a%20"), NULL));
    note_text(CFURLCreateStringByReplacingPercentEscapes(NULL, CFSTR("a%zz"), CFSTR("")));
    note_text(CFURLCreateStringByReplacingPercentEscapes(NULL, CFSTR("%FF"), CFSTR("")));
    CFStringRef all = CFSTR("a b/?&=[]%20#\"<>\\^`{|}~;:@!$'()*+,");
    note_text(CFURLCreateStringByAddingPercentEscapes(NULL, all, NULL, NULL, kCFStringEncodingUTF8));
    note_text(CFURLCreateStringByAddingPercentEscapes(NULL, CFSTR("a b/?&=[]%20#"), CFSTR(" #%"), CFSTR("/?&=a"), kCFStringEncodingUTF8));
}
