/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes in strings. */
#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/URL/url_probe.h"
#include "harness.h"

TEST(escapes_are_replaced_by_characters, "429")
{
    expect_text(CFURLCreateStringByReplacingPercentEscapes(NULL, CFSTR("a%20b%2fc%C3%A9%F0%9F%8C%8D"), CFSTR("")),
                "a b/c\xC3\xA9\xF0\x9F\x8C\x8D");
    expect_text(CFURLCreateStringByReplacingPercentEscapes(NULL, CFSTR("a%20b%2fc%C3%A9"), CFSTR("/ ")), "a%20b%2fc\xC3\xA9");
    expect_text(CFURLCreateStringByReplacingPercentEscapes(NULL, CFSTR("%C3%A9%41"), CFSTR("\u00e9")), "%C3%A9" "A");
    expect_text(CFURLCreateStringByReplacingPercentEscapes(NULL, CFSTR("a%zz"), NULL), "a%zz");
    expect_text(CFURLCreateStringByReplacingPercentEscapes(NULL, CFSTR("\u00e9"), CFSTR("")), "\xC3\xA9");
    expect_text(CFURLCreateStringByReplacingPercentEscapesUsingEncoding(NULL, CFSTR("%E9"), CFSTR(""), kCFStringEncodingISOLatin1),
                "\xC3\xA9");
}

TEST(escapes_that_are_none_are_refused, "429")
{
    static const CFStringRef texts[] = {CFSTR("%"), CFSTR("a%4"), CFSTR("%zz"), CFSTR("%FF"), CFSTR("%C3x"), CFSTR("%20%")};
    for (int i = 0; i < 6; i++) {
        expect_text(CFURLCreateStringByReplacingPercentEscapes(NULL, texts[i], CFSTR("")), NULL);
    }
    expect_text(CFURLCreateStringByReplacingPercentEscapesUsingEncoding(NULL, CFSTR("%41"), CFSTR(""), 0x7777), NULL);
    EXPECT_STOPS("CFURLCreateStringByReplacingPercentEscapes: ", { CFURLCreateStringByReplacingPercentEscapes(NULL, NULL, NULL); });
}

TEST(characters_that_no_url_has_are_escaped, "430")
{
    expect_text(CFURLCreateStringByAddingPercentEscapes(NULL, CFSTR("a b/\u00e9?&=[]%20#\"<>\\^`{|}~;:@!$'()*+,"), NULL, NULL,
                                                        kCFStringEncodingUTF8),
                "a%20b/%C3%A9?&=%5B%5D%2520%23%22%3C%3E%5C%5E%60%7B%7C%7D~;:@!$'()*+,");
    expect_text(CFURLCreateStringByAddingPercentEscapes(NULL, CFSTR("a b/\u00e9%20#"), CFSTR(" #%\u00e9"), CFSTR("/a"),
                                                        kCFStringEncodingISOLatin1),
                "%61 b%2F\xC3\xA9%20#");
    expect_text(CFURLCreateStringByAddingPercentEscapes(NULL, CFSTR("\u00e9"), NULL, NULL, kCFStringEncodingISOLatin1), "%E9");
    expect_text(CFURLCreateStringByAddingPercentEscapes(NULL, CFSTR("\U0001F30D"), NULL, NULL, kCFStringEncodingUTF8), "%F0%9F%8C%8D");
    expect_text(CFURLCreateStringByAddingPercentEscapes(NULL, CFSTR(""), NULL, NULL, kCFStringEncodingUTF8), "");
}

TEST(characters_that_the_encoding_lacks_are_refused, "430")
{
    const UniChar half[] = {'a', 0xD800};
    CFStringRef text = CFStringCreateWithCharacters(NULL, half, 2);
    expect_text(CFURLCreateStringByAddingPercentEscapes(NULL, text, NULL, NULL, kCFStringEncodingUTF8), NULL);
    expect_text(CFURLCreateStringByAddingPercentEscapes(NULL, CFSTR("\u20ac"), NULL, NULL, kCFStringEncodingISOLatin1), NULL);
    expect_text(CFURLCreateStringByAddingPercentEscapes(NULL, CFSTR("a"), NULL, NULL, 0x7777), NULL);
    CFRelease(text);
}
