/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property lists in XML: what each document is, and which bytes are written. The rows are what Core Foundation does, unless a row says
 * otherwise.
 */
#include <math.h>
#include <string.h>

#include "Failure/nth_failure.h"
#include "harness.h"
#include "plist_maker.h"

/* ---- reading, by table ---- */

static const struct row {
    const char *document;
    const char *tree; /* as plist_text writes it, or what the words of the error contain, behind a '!' */
} rows[] = {
    {"<plist><string>a</string></plist>", "'a'"},
    {"<string>a</string>", "'a'"},
    {"<plist version=\"1.0\"><array><true/><false/><true></true></array></plist>", "[true,false,true]"},
    {"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"a\" 'b'>\n<plist>\n<dict/></plist>", "{}"},
    {" <!-- c --><plist><?pi?><!-- a -- b --><array/><!-- d --></plist>", "[]"},
    {"<plist><string>a</string></plist>behind", "'a'"},
    {"<plist><plist><true/></plist></plist>", "true"},
    {"<plist><dict> <key>b</key> <string/> <key>a</key><!-- c --><array><key>k</key></array></dict></plist>", "{a:['k'],b:''}"},
    {"<dict><key>a</key><true/><key>a</key><false/></dict>", "{a:false}"},
    {"<dict><key/><key>b</key></dict>", "{:'b'}"},
    {"<string a=\"b\">x</string >", "'x'"},
    {"<string>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;</string>", "'<>&\"'AB'"},
    {"<string>a<![CDATA[<b>&amp;]]]>c</string>", "'a<b>&amp;]c'"},
    {"<string>\xC3\xA9&#x20AC;</string>", "'\xC3\xA9\xE2\x82\xAC'"},
    {"<string>a\r\n\x01"
     "b</string>",
     "'a\r\n\x01"
     "b'"}, /* no XML, but Core Foundation writes it */
    {"<integer>-5</integer>", "-5"},
    {"<integer>+ 5</integer>", "5"},
    {"<integer>-0x1F</integer>", "-31"},
    {"<integer>9223372036854775807</integer>", "9223372036854775807"},
    {"<integer>-9223372036854775808</integer>", "-9223372036854775808"},
    {"<integer>18446744073709551615</integer>", "r1.8446744073709552e+19"}, /* Core Foundation has a private type for it */
    {"<real>.5</real>", "r0.5"},
    {"<real>-5.</real>", "r-5"},
    {"<real>1E400</real>", "rinf"},
    {"<real>0.10000000000000001</real>", "r0.10000000000000001"},
    {"<real>123456789012345678901234567890</real>", "r1.2345678901234568e+29"},
    {"<real>4.9406564584124654e-324</real>", "r4.9406564584124654e-324"},
    {"<real>NaN</real>", "rnan"},
    {"<real>-Infinity</real>", "r-inf"},
    {"<date>2001-01-01T00:00:00Z</date>", "d0"},
    {"<date>2000-02-29T12:34:56Z</date>", "d-26479504"},
    {"<date>2001-02-29T24:00:60Z</date>", "d5184060"},
    {"<date>-0001-01-01T00:00:00Z</date>", "d-63177062400"},
    {"<date>10000-01-01T00:00:00Z</date>", "d252423993600"},
    {"<data>\n\tYWJj\n\tZA==\n</data>", "<61626364>"},
    {"<data>Y!W@Jj</data>", "<616263>"},
    {"<data>YWJjZ</data>", "<616263>"},
    {"<data></data>", "<>"},
    {"<dict><key>CF$UID</key><integer>7</integer></dict>", "{CF$UID:7}"}, /* Core Foundation has a private type for it */

    {"<", "!tag"},
    {"<plist/>", "!nothing in the plist on line 1"},
    {"<plist></plist>", "!nothing in the plist"},
    {"<plist><string>a</string>", "!ends too early"},
    {"<plist><true/><true/></plist>", "!more than one object"},
    {"<plist><array>junk</array></plist>", "!text where a tag"},
    {"<plist>\n<array>\r\n<foo/>\r</array></plist>", "!'foo', but one is on line 3"},
    {"<plist><array></dict></plist>", "!The end of 'dict' comes where 'array' is open"},
    {"<html></html>", "!'html'"},
    {"<dict><key>a</key></dict>", "!A key has no value"},
    {"<dict><true/></dict>", "!no key"},
    {"<string>a<b/>c</string>", "!'string'"},
    {"<string>a<!-- c -->b</string>", "!'string'"},
    {"<string>a", "!ends in an element"},
    {"<string>&foo;</string>", "!entity"},
    {"<string>&amp</string>", "!entity"},
    {"<string>&#xD800;</string>", "!no character of that number"},
    {"<string>&#1114112;</string>", "!no character of that number"},
    {"<string>&#6q;</string>", "!has no number"},
    {"<string><![CDATA[a</string>", "!quoted section"},
    {"<string>\n\xFF</string>", "!no UTF-8 on line 2"},
    {"<true>x</true>", "!'true'"},
    {"<integer/>", "!has to have a text"},
    {"<integer>5.5</integer>", "!other than digits"},
    {"<integer>0x</integer>", "!no digits"},
    {"<integer>18446744073709551616</integer>", "!more than 64 bits"},
    {"<integer>-9223372036854775809</integer>", "!more than 64 bits"},
    {"<integer>5<!-- c --></integer>", "!'integer'"},
    {"<real> 1</real>", "!other than a number"},
    {"<real>0x1p3</real>", "!other than a number"},
    {"<real>1e</real>", "!other than a number"},
    {"<real>-nan</real>", "!other than a number"},
    {"<date>2001-1-1T0:0:0Z</date>", "!2001-02-03T04:05:06Z"},
    {"<date>2001-13-01T00:00:00Z</date>", "!2001-02-03T04:05:06Z"}, /* the first of the year after in Core Foundation */
    {"<date>2147483648-01-01T00:00:00Z</date>", "!2001-02-03T04:05:06Z"}, /* another year in Core Foundation */
    {"<data/>", "!has to have a text"},
    {"<!DOCTYPE plist [<!ENTITY a \"b\">]><plist><true/></plist>", "!declares something"},
    {"<?xml version=\"1.0\"", "!processing instruction"},
    {"<!-- c", "!comment"},
    {"<?xml version='1.0' encoding='bogus'?><true/>", "!'bogus' is not known"},
};

TEST(a_document_in_xml_is_read_or_refused_with_its_line, "2202")
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plist_expect(rows[i].document, strlen(rows[i].document), kCFPropertyListXMLFormat_v1_0, rows[i].tree);
    }
}

TEST(xml_is_read_in_the_encoding_that_it_begins_with, "2202")
{
    static const char utf16[] = "\xFF\xFE<\0a\0r\0r\0a\0y\0/\0>\0";
    static const char big[] = "\xFE\xFF\0<\0t\0r\0u\0e\0/\0>";
    static const char utf32[] = "\xFF\xFE\0\0<\0\0\0t\0\0\0r\0\0\0u\0\0\0e\0\0\0/\0\0\0>\0\0";
    static const char latin[] = "<?xml version='1.0' encoding=\"iso-8859-1\"?><string>\xE9</string>";
    static const char windows[] = "<?xml version=\"1.0\" encoding=\"windows-1252\"?><string>\x80</string>";

    plist_expect(utf16, sizeof utf16 - 1, kCFPropertyListXMLFormat_v1_0, "[]");
    plist_expect(big, sizeof big - 1, kCFPropertyListXMLFormat_v1_0, "true");
    plist_expect(utf32, sizeof utf32, kCFPropertyListXMLFormat_v1_0, "true");
    plist_expect(latin, sizeof latin - 1, kCFPropertyListXMLFormat_v1_0, "'\xC3\xA9'");
    plist_expect(windows, sizeof windows - 1, kCFPropertyListXMLFormat_v1_0, "'\xE2\x82\xAC'");
    plist_expect("\xEF\xBB\xBF<true/>", 10, kCFPropertyListXMLFormat_v1_0, "true");
    plist_expect("\xFF\xFE<\0\0\xD8", 6, kCFPropertyListXMLFormat_v1_0, "!");
}

TEST(containers_are_nested_up_to_512_and_refused_beyond, "2203")
{
    static char document[100000 * 8 + 1];

    for (int i = 0; i < 100000; i++) {
        memcpy(document + i * 7, "<array>", 7);
    }
    plist_expect(document, 700000, kCFPropertyListXMLFormat_v1_0, "!nested too deep");
    for (int i = 0; i < 512; i++) {
        memcpy(document + 512 * 7 + i * 8, "</array>", 8);
    }
    plist_expect(document, 512 * 15, kCFPropertyListXMLFormat_v1_0, NULL);
    memcpy(document + 512 * 7, "<array>", 7);
    plist_expect(document, 512 * 15, kCFPropertyListXMLFormat_v1_0, "!nested too deep");
}

/* ---- writing ---- */

#define HEAD                                                                                                              \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"                                                                        \
    "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<plist " \
    "version=\"1.0\">\n"

static void expect_written(CFTypeRef tree, const char *body)
{
    CFDataRef data = CFPropertyListCreateXMLData(NULL, tree);
    size_t length = data ? (size_t)CFDataGetLength(data) : 0;
    const char *bytes = data ? (const char *)CFDataGetBytePtr(data) : "";
    char text[1000] = "";

    if (length >= strlen(HEAD) + strlen("</plist>\n") && length < sizeof text) {
        EXPECT(memcmp(bytes, HEAD, strlen(HEAD)) == 0);
        memcpy(text, bytes + strlen(HEAD), length - strlen(HEAD) - strlen("</plist>\n"));
    }
    EXPECT_STR(text, body);
    if (data) {
        CFRelease(data);
    }
    CFRelease(tree);
}

TEST(xml_has_the_bytes_of_core_foundation, "2201")
{
    static const UniChar half[] = {'a', 0xD800, 'b', 0xD83D, 0xDE00};
    static const unsigned char bytes[58] = {0};

    expect_written(make_text("a<b>&\"c'd]]>\t\r\x01\xC3\xA9"), "<string>a&lt;b&gt;&amp;\"c'd]]&gt;\t\r\x01\xC3\xA9</string>\n");
    expect_written(CFStringCreateWithCharacters(NULL, half, 5), "<string>a\xEF\xBF\xBD"
                                                                "b\xF0\x9F\x98\x80</string>\n");
    expect_written(make_text(""), "<string></string>\n");
    expect_written(make_array(make_array(NULL), make_dictionary(NULL), CFRetain(kCFBooleanTrue), NULL),
                   "<array>\n\t<array/>\n\t<dict/>\n\t<true/>\n</array>\n");
    expect_written(make_dictionary("b", make_integer(-1), "a10", make_text(""), "a2", CFRetain(kCFBooleanFalse), "B",
                                   make_array(make_integer(5), NULL), NULL),
                   "<dict>\n\t<key>B</key>\n\t<array>\n\t\t<integer>5</integer>\n\t</array>\n\t<key>a10</key>\n\t<string></string>\n"
                   "\t<key>a2</key>\n\t<false/>\n\t<key>b</key>\n\t<integer>-1</integer>\n</dict>\n");
    expect_written(make_integer(INT64_MIN), "<integer>-9223372036854775808</integer>\n");
    expect_written(make_real(0.1), "<real>0.10000000000000001</real>\n");
    expect_written(make_real(-0.0), "<real>0.0</real>\n");
    expect_written(make_real(1e17), "<real>1e+17</real>\n");
    expect_written(make_real((double)NAN), "<real>nan</real>\n");
    expect_written(make_real(-(double)INFINITY), "<real>-infinity</real>\n");
    expect_written(CFDateCreate(NULL, -0.5), "<date>2000-12-31T23:59:59Z</date>\n");
    expect_written(CFDateCreate(NULL, 252423993600), "<date>10000-01-01T00:00:00Z</date>\n");
    expect_written(CFDateCreate(NULL, -1e11), "<date>-1168-02-16T14:13:20Z</date>\n");
    expect_written(make_data("", 0), "<data>\n</data>\n");
    expect_written(
        make_array(make_data(bytes, 58), NULL),
        "<array>\n\t<data>\n\tAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n\tAAAAAAAAAA==\n\t</data>\n</array>\n");
}

TEST(every_day_of_the_calendar_is_written_and_read_as_itself, "2201")
{
    for (double day = -800000; day < 800000; day += 97) {
        CFDateRef date = CFDateCreate(NULL, day * 86400 + 3661);
        CFDataRef data = CFPropertyListCreateXMLData(NULL, date);
        CFTypeRef read = CFPropertyListCreateWithData(NULL, data, 0, NULL, NULL);

        REQUIRE(read && CFEqual(read, date));
        CFRelease(read);
        CFRelease(data);
        CFRelease(date);
    }
}

TEST(what_xml_cannot_hold_is_refused_in_words, "2202")
{
    plist_expect_refused(CFDateCreate(NULL, (double)NAN), kCFPropertyListXMLFormat_v1_0, "XML cannot hold a date");
    plist_expect_refused(make_array(CFRetain(kCFNull), NULL), kCFPropertyListXMLFormat_v1_0, "CFNull");
    plist_expect_refused(make_text("a"), kCFPropertyListOpenStepFormat, "not written in the format 1");
}

/* Deeper than any reader takes it, or the stack. */
TEST(a_tree_as_deep_as_memory_is_checked_and_written, "2204")
{
    CFMutableArrayRef arrays[20001];
    CFDataRef data;

    arrays[0] = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    for (int i = 1; i <= 20000; i++) {
        arrays[i] = make_array(CFRetain(arrays[i - 1]), NULL);
    }
    EXPECT(CFPropertyListIsValid(arrays[20000], kCFPropertyListBinaryFormat_v1_0));
    data = CFPropertyListCreateData(NULL, arrays[20000], kCFPropertyListBinaryFormat_v1_0, 0, NULL);
    EXPECT_EQ(CFDataGetLength(data), 8 + 20000 * 3 + 1 + 20001 * 2 + 32);
    CFRelease(data);
    for (int i = 20000; i >= 0; i--) {
        CFArrayRemoveAllValues(arrays[i]);
        CFRelease(arrays[i]);
    }
}

/* ---- failures ---- */

static CFDataRef document;

static bool read_document(void)
{
    CFErrorRef error = NULL;
    CFTypeRef tree = bag_keep(CFPropertyListCreateWithData(NULL, document, kCFPropertyListMutableContainersAndLeaves, NULL, &error));
    CFDataRef data;

    bag_keep(error);
    NEED(tree);
    data = bag_keep(CFPropertyListCreateData(NULL, tree, kCFPropertyListXMLFormat_v1_0, 0, NULL));
    NEED(data);
    MUST(CFEqual(data, document));
    return true;
}

TEST_LIMIT(nth_failure_of_xml, "2202", 120)
{
    CFTypeRef tree =
        make_dictionary("a", make_text("x<y\xC3\xA9"), "b", make_array(make_integer(1), make_real(1e30), CFDateCreate(NULL, 7), NULL), "c",
                        make_data("data", 4), "d", CFRetain(kCFBooleanTrue), NULL);

    document = CFPropertyListCreateXMLData(NULL, tree);
    nth_failure_run("xml", read_document);
    CFRelease(document);
    CFRelease(tree);
}

/* More than the pool of strings keeps near the places that their hashes say. */
TEST(many_strings_of_a_list_are_read, "2202")
{
    enum { count = 60000 };
    CFMutableStringRef text = CFStringCreateMutable(NULL, 0);
    CFDataRef data;
    CFPropertyListRef list;

    CFStringAppend(text, CFSTR("<plist><array>"));
    for (int i = 0; i < count; i++) {
        CFStringAppendFormat(text, NULL, CFSTR("<string>%d</string>"), i);
    }
    CFStringAppend(text, CFSTR("</array></plist>"));
    data = CFStringCreateExternalRepresentation(NULL, text, kCFStringEncodingUTF8, 0);
    list = CFPropertyListCreateWithData(NULL, data, kCFPropertyListImmutable, NULL, NULL);
    REQUIRE(list && CFArrayGetCount(list) == count);
    for (int i = 0; i < count; i += 997) {
        EXPECT_EQ(CFStringGetIntValue(CFArrayGetValueAtIndex(list, i)), i);
    }
    CFRelease(list);
    CFRelease(data);
    CFRelease(text);
}
