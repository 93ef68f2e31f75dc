/* SPDX-License-Identifier: Apache-2.0 */
/* Property lists in the old format of OpenStep, and files of strings. The rows are what Core Foundation does. */
#include <string.h>

#include "Failure/nth_failure.h"
#include "harness.h"
#include "plist_maker.h"

static const struct row {
    const char *text;
    const char *tree;
} rows[] = {
    {"abc", "'abc'"},
    {"a-b.c/d_e:f$g", "'a-b.c/d_e:f$g'"},
    {"\"a b\"", "'a b'"},
    {"'a\"b'", "'a\"b'"},
    {"{a=b;c=d;}", "{a:'b',c:'d'}"},
    {"{a;b=c;}", "{a:'a',b:'c'}"},
    {"{\"a\"=\"b\";\"a\"=\"c\";}", "{a:'c'}"},
    {"{a={b=(c,<00 ff>);};}", "{a:{b:['c',<00ff>]}}"},
    {"(a, b,)", "['a','b']"},
    {"()", "[]"},
    {"{}", "{}"},
    {"<>", "<>"},
    {" <abcd>", "<abcd>"},
    {"< 61\n62 >", "<6162>"},
    {"a=b;\nc=d;", "{a:'b',c:'d'}"},
    {"a;", "{a:'a'}"},
    {"\"k\" = \"v\";\n/* c */\n\"k2\" = \"v2\"; // end", "{k:'v',k2:'v2'}"},
    {"a=(1,2);b={c=d;};", "{a:['1','2'],b:{c:'d'}}"},
    {"   ", "{}"},
    {"// only", "{}"},
    {"/* unterminated", "{}"},
    {"{ /* c */ a /**/ = // x\n b /**/ ; }", "{a:'b'}"},
    {"\xE2\x80\xA8"
     "abc\xE2\x80\xA9",
     "'abc'"},
    {"\xEF\xBB\xBF"
     "a=b;",
     "{a:'b'}"},
    {"\"\xC3\xA9\"", "'\xC3\xA9'"},
    {"\"a\\nb\\t\\\"\\\\\\q\"", "'a\nb\t\"\\q'"},
    {"\"\\101\\344\\U00e9\\U20AC\\U12x\"", "'A\xC3\xAE\xC3\xA9\xE2\x82\xAC\x12x'"},
    {"\"\\Ud83d\\Ude00\"", "'\xF0\x9F\x98\x80'"},
    {"\"\\Ud83dx\"", "'\xEF\xBF\xBDx'"}, /* half a pair in Core Foundation */
    {"\"\\\n\"", "'\n'"},
    {"\"\\8\"", "'8'"},

    {"{a=b}", "!no semicolon"},
    {"{a=b;;}", "!begins nothing"},
    {"{=b;}", "!begins nothing"},
    {"{(a)=b;}", "!begins nothing"},
    {"{a=;}", "!begins nothing"},
    {"{a=b;} junk", "!behind the property list"},
    {"{a=b;", "!ends in an array or a dictionary"},
    {"{a=", "!where a value has to be"},
    {"a=b", "!no semicolon"},
    {"a b", "!no semicolon"},
    {"a+b", "!no semicolon"},
    {"(a", "!no comma"},
    {"(a b)", "!no comma"},
    {"(a,,b)", "!begins nothing"},
    {"(\na\n\r\n b)", "!no comma or bracket behind a value on line 4"},
    {"\"unterminated", "!quoted string does not end"},
    {"\"a\\", "!quoted string does not end"},
    {"\"\xE9\"", "!no UTF-8"},
    {"\xC3\xA9", "!begins nothing"},
    {"@abc", "!begins nothing"},
    {"=", "!begins nothing"},
    {"{a=<0>;}", "!pairs of hexadecimal digits"},
    {"{a=<0", "!pairs of hexadecimal digits"},
    {"{a=<00", "!Data do not end"},
    {"{a=<zz>;}", "!pairs of hexadecimal digits"},
    {"<abc>", "!'abc'"}, /* as a document in XML */
};

TEST(the_old_format_is_read_or_refused_with_its_line, "2202")
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plist_expect(rows[i].text, strlen(rows[i].text), kCFPropertyListOpenStepFormat, rows[i].tree);
    }
    plist_expect("", 0, 0, "!no bytes");
    plist_expect("\0", 1, 0, "!begins nothing");
    plist_expect("a\0b", 3, 0, "!no semicolon");
}

TEST(a_file_of_strings_is_read_in_utf16, "2202")
{
    plist_expect("\xFE\xFF\0a\0=\0\"\0\xE9\0\"\0;", 14, kCFPropertyListOpenStepFormat, "{a:'\xC3\xA9'}");
}

TEST(a_hundred_thousand_brackets_are_refused, "2203")
{
    static char text[100000];

    memset(text, '(', sizeof text);
    plist_expect(text, sizeof text, 0, "!nested too deep");
    memset(text + 512, ')', 512);
    plist_expect(text, 1024, kCFPropertyListOpenStepFormat, NULL);
}

/* ---- failures ---- */

static bool read_text(void)
{
    static const char text[] = "{a=(b,\"c\\n\",<00>); \"\\U00e9\" = b;}";
    CFDataRef data = bag_keep(make_data(text, sizeof text - 1));
    CFErrorRef error = NULL;
    CFTypeRef tree;

    NEED(data);
    tree = bag_keep(CFPropertyListCreateWithData(NULL, data, kCFPropertyListMutableContainersAndLeaves, NULL, &error));
    bag_keep(error);
    NEED(tree);
    MUST(CFDictionaryGetCount(tree) == 2);
    return true;
}

TEST_LIMIT(nth_failure_of_the_old_format, "2202", 120)
{
    nth_failure_run("old", read_text);
}
