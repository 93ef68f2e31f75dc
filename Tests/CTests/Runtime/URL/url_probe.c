/* SPDX-License-Identifier: Apache-2.0 */
#include "Runtime/URL/url_probe.h"

#include "harness.h"

enum { longest = 2000 };

CFURLRef url_with(const char *text, CFURLRef base)
{
    CFStringRef string = CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);
    CFURLRef url = CFURLCreateWithString(NULL, string, base);
    CFRelease(string);
    return url;
}

static void compare(CFStringRef text, const char *expected)
{
    char actual[longest] = "(NULL)";
    if (text != NULL) {
        REQUIRE(CFStringGetCString(text, actual, sizeof actual, kCFStringEncodingUTF8));
    }
    EXPECT_STR(actual, expected != NULL ? expected : "(NULL)");
}

void expect_url(CFURLRef url, const char *expected)
{
    compare(url != NULL ? CFURLGetString(url) : NULL, expected);
}

void expect_text(CFStringRef text, const char *expected)
{
    compare(text, expected);
    if (text != NULL) {
        CFRelease(text);
    }
}
