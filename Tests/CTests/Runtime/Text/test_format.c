/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: every conversion, arguments by position, objects, and formats that make no sense. */
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/Object/counting_allocator.h"
#include "harness.h"

static const char *formatted(const char *format, ...)
{
    static char buffer[2000];
    CFStringRef own_format = CFStringCreateWithCString(NULL, format, kCFStringEncodingUTF8);
    va_list arguments;
    va_start(arguments, format);
    CFStringRef text = CFStringCreateWithFormatAndArguments(NULL, NULL, own_format, arguments);
    va_end(arguments);
    CFRelease(own_format);
    if (text == NULL) {
        return "NULL";
    }
    if (!CFStringGetCString(text, buffer, sizeof buffer, kCFStringEncodingUTF8)) {
        strcpy(buffer, "(does not fit)");
    }
    CFRelease(text);
    return buffer;
}

/* The same as printf for everything that both know. */
#define EXPECT_AS_PRINTF(...)                               \
    do {                                                    \
        char expected_[2000];                               \
        snprintf(expected_, sizeof expected_, __VA_ARGS__); \
        EXPECT_STR(formatted(__VA_ARGS__), expected_);      \
    } while (0)

TEST(numbers_are_written_as_printf_writes_them, "")
{
    EXPECT_AS_PRINTF("%d %i %u %x %X %o", -42, 42, 42U, 255U, 255U, 8U);
    EXPECT_AS_PRINTF("%5d|%-5d|%05d|%+d|% d|%.3d|%8.3d", 42, 42, 42, 42, 42, 7, 7);
    EXPECT_AS_PRINTF("%#x %#o %#X %x", 255U, 8U, 255U, 0U);
    EXPECT_AS_PRINTF("%hd %hu %hhd %hhu", (short)-1, (unsigned short)65535, (signed char)-1, (unsigned char)255);
    EXPECT_AS_PRINTF("%ld %lu %lld %llu", LONG_MIN, ULONG_MAX, LLONG_MIN, ULLONG_MAX);
    EXPECT_AS_PRINTF("%zd %zu %td %jd %ju", (ssize_t)-5, SIZE_MAX, (ptrdiff_t)-9, INTMAX_MIN, UINTMAX_MAX);
    EXPECT_AS_PRINTF("%zx %tx", SIZE_MAX, (ptrdiff_t)-9);
    EXPECT_AS_PRINTF("%u %x %o", UINT_MAX, UINT_MAX, UINT_MAX);
    EXPECT_AS_PRINTF("%f %F %e %E %g %G", 3.25, 3.25, 12345.678, 12345.678, 0.0001, 1e20);
    EXPECT_AS_PRINTF("%a %A", 1.5, 1.5);
    EXPECT_AS_PRINTF("%8.2f|%-8.2f|%08.2f|%+.0f|%.0e|%#.0f", 3.14159, 3.14159, 3.14159, 2.5, 2.5, 3.0);
    EXPECT_AS_PRINTF("%Lf %.3Lg", 1.25L, 2.0L / 3.0L);
    EXPECT_AS_PRINTF("%f %e %g", INFINITY, -INFINITY, (double)NAN);
    EXPECT_AS_PRINTF("%.100f", 1.0 / 3.0);
    EXPECT_AS_PRINTF("%200d|%-200d|", 1, 2);
    EXPECT_AS_PRINTF("%*d|%-*d|%.*f|%*.*f", 6, 1, 6, 2, 2, 3.14159, 8, 3, 2.71828);
    EXPECT_AS_PRINTF("%*d|%.*f", -6, 1, -2, 3.5);
}

/* What is no number has no sign, whatever its bits; the C library's would show it. */
TEST(what_is_no_number_is_shown_without_a_sign, "185")
{
    const double negative = -(double)NAN;
    const double positive = (double)NAN;

    EXPECT_STR(formatted("%f %e %g %a %Lf", negative, negative, negative, negative, (long double)negative), "nan nan nan nan nan");
    EXPECT_STR(formatted("%F %G %E %A", negative, positive, negative, positive), "NAN NAN NAN NAN");
    EXPECT_STR(formatted("%6f|%-6f|%06f|%+f|% f|%.1f", negative, negative, negative, positive, positive, negative),
               "   nan|nan   |   nan|nan|nan|nan");
    EXPECT_STR(formatted("%06f|%+f", -(double)INFINITY, (double)INFINITY), "  -inf|+inf");
}

TEST(the_older_letters_mean_the_same, "")
{
    EXPECT_STR(formatted("%D %U %O %Ld %qd", -1, 2, 8, 5LL, 6LL), "-1 2 10 5 6");
    EXPECT_STR(formatted("%'d", 1234567), "1234567");
}

TEST(short_integers_are_cut_as_their_length_says, "")
{
    EXPECT_STR(formatted("%hhd %hhu %hd %hu", 300, 300, 70000, 70000), "44 44 4464 4464");
}

TEST(characters_and_texts_are_written_with_their_widths, "")
{
    UniChar units[] = {'e', 0x20AC, 0};
    EXPECT_STR(formatted("%c%c|%3c|%-3c|", 'a', 'b', 'c', 'd'), "ab|  c|d  |");
    EXPECT_STR(formatted("%C|%lc|%c", 0x20AC, (wint_t)0x1F600, 0xE9), "€|😀|é");
    EXPECT_STR(formatted("%s|%5s|%-5s|%.2s|%5.1s|", "text", "ab", "cd", "text", "xyz"), "text|   ab|cd   |te|    x|");
    EXPECT_STR(formatted("%s", "Zürich"), "Zürich");
    EXPECT_STR(formatted("%S|%4S|%.1S", units, units, units), "e€|  e€|e");
    EXPECT_STR(formatted("%ls|%.2ls|%5ls", L"wäh", L"wäh", L"😀"), "wäh|wä|   😀");
    EXPECT_STR(formatted("%s %S %ls", NULL, NULL, NULL), "(null) (null) (null)");
    EXPECT_STR(formatted("%8s|%-8s|%.2s|%8.2S|%20@", NULL, NULL, NULL, NULL, NULL), "(null)|(null)|(null)|(null)|(null)");
    EXPECT_STR(formatted("%p %8p %-6p| %p", (void *)0x1234, (void *)0x10, (void *)0x10, NULL), "0x1234     0x10 0x10  | 0x0");
}

TEST(bytes_that_are_not_utf8_are_taken_as_latin_1, "")
{
    EXPECT_STR(formatted("%s", "Z\xFCrich"), "Zürich");
}

TEST(a_precision_never_reads_beyond_it_nor_cuts_a_character, "")
{
    const char unterminated[3] = {'a', 'b', 'c'};
    EXPECT_STR(formatted("%.3s", unterminated), "abc");
    EXPECT_STR(formatted("%.*s", 2, unterminated), "ab");
    EXPECT_STR(formatted("%.2s|%.3s|%.4s|%.0s|", "aü€", "aü€", "aü€", "x"), "a|aü|aü||");
    EXPECT_STR(formatted("%.5s|%.6s", "aü€", "aü€"), "aü|aü€");
    EXPECT_STR(formatted("%.3s|%.4s", "😀", "😀"), "|😀");
    EXPECT_STR(formatted("%.1@|%.2@", CFSTR("😀"), CFSTR("😀")), "|😀");
    const wchar_t characters[2] = {L'x', L'y'};
    EXPECT_STR(formatted("%.2ls", characters), "xy");
    EXPECT_STR(formatted("%.1s", "\x80\x80"), "\xC2\x80");
}

TEST(invalid_wide_characters_are_named, "")
{
    wchar_t invalid[] = {0x110000, 0};
    EXPECT_STR(formatted("%ls", invalid), "(invalid)");
}

TEST(objects_are_written_as_what_they_say, "434")
{
    int number = -7;
    double floating = 0.1;
    CFNumberRef integer = CFNumberCreate(NULL, kCFNumberIntType, &number);
    CFNumberRef real = CFNumberCreate(NULL, kCFNumberDoubleType, &floating);
    EXPECT_STR(formatted("%@ %@ %@ %@ %@ %@", CFSTR("Zürich"), integer, real, kCFBooleanTrue, kCFNull, NULL),
               "Zürich -7 0.1 true <null> (null)");
    EXPECT_STR(formatted("[%6@|%-6@|%.2@|%6.2@]", CFSTR("ab"), CFSTR("cd"), CFSTR("text"), integer), "[    ab|cd    |te|    -7]");
    CFArrayRef array = CFArrayCreate(NULL, NULL, 0, &kCFTypeArrayCallBacks);
    EXPECT(strstr(formatted("%@", array), "<CFArray 0x") != NULL);
    CFRelease(array);
    CFRelease(integer);
    CFRelease(real);
}

TEST(arguments_may_be_named_by_position_in_any_order, "")
{
    EXPECT_STR(formatted("%2$d %1$s %2$d", "one", 2), "2 one 2");
    EXPECT_STR(formatted("%3$@ %1$f %2$lld %4$s", 1.5, 5000000000LL, CFSTR("text"), "end"), "text 1.500000 5000000000 end");
    EXPECT_STR(formatted("%2$*1$d|%3$.*1$f", 5, 42, 3.14159265), "   42|3.14159");
    EXPECT_STR(formatted("%2$@", CFSTR("unused"), CFSTR("used")), "used");
    EXPECT_STR(formatted("%3$d", 1L, 2L, 3), "3");
    EXPECT_STR(formatted("%1$p %1$p", (void *)0x10), "0x10 0x10");
    EXPECT_STR(formatted("%1$Lf %2$f", 2.5L, 1.5), "2.500000 1.500000");
}

TEST(an_argument_named_twice_with_types_that_do_not_agree_is_not_touched, "")
{
    EXPECT_STR(formatted("%1$d %1$s", 42), "42 %1$s");
    EXPECT_STR(formatted("%1$s %1$@ %1$f", "text"), "text %1$@ %1$f");
    EXPECT_STR(formatted("%1$d %1$ld %1$hhd", 300), "300 300 44");
    EXPECT_STR(formatted("%1$f %1$Lf %1$g", 1.5), "1.500000 1.500000 1.5");
    CFStringRef text = CFSTR("an object");
    EXPECT(strncmp(formatted("%1$p %1$@", text), "0x", 2) == 0);
    EXPECT(strstr(formatted("%1$p %1$@", text), " an object") != NULL);
}

TEST(what_is_not_a_conversion_is_copied, "433")
{
    EXPECT_STR(formatted("100%"), "100%");
    EXPECT_STR(formatted("%"), "%");
    EXPECT_STR(formatted("%y %d", 5), "%y 5");
    EXPECT_STR(formatted("%-08y|%*y|%d", 5), "%-08y|%*y|5");
    EXPECT_STR(formatted("%%|%5%|%%d"), "%|%|%d");
    EXPECT_STR(formatted("%ü %d", 1), "%ü 1");
    EXPECT_STR(formatted("%0$d %d", 1), "%0$d 1");
    EXPECT_STR(formatted("%129$d|%d", 1), "%129$d|1");
    EXPECT_STR(formatted("%99999999999999999999$d|%d", 1), "%99999999999999999999$d|1");
    EXPECT_STR(formatted("%2147483648y"), "%2147483648y");
    EXPECT_STR(formatted("%l"), "%l");
    EXPECT_STR(formatted("%.d|%.s|", 0, "x"), "||");
    EXPECT_STR(formatted(""), "");
}

TEST(nothing_is_written_for_n, "")
{
    int written = 77;
    EXPECT_STR(formatted("ab%ncd%d", &written, 5), "abcd5");
    EXPECT_EQ(written, 77);
}

TEST(a_format_with_very_many_conversions_uses_the_first_arguments, "")
{
    char format[400];
    for (int i = 0; i < 130; i++) {
        memcpy(format + 2 * i, "%d", 3);
    }
    const char *text = formatted(format, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3,
                                 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
                                 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5,
                                 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8);
    EXPECT_EQ(strlen(text), 128 + 4);
    EXPECT_STR(text + 120, "12345678%d%d");
}

TEST(a_point_is_a_point_in_every_locale, "")
{
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL) {
        setlocale(LC_ALL, "");
    }
    EXPECT_STR(formatted("%.2f", 1.5), "1.50");
    EXPECT_NEAR(CFStringGetDoubleValue(CFSTR("1.5")), 1.5, 0);
}

TEST(formats_may_be_literals_of_any_kind, "")
{
    CFStringRef text = CFStringCreateWithFormat(NULL, NULL,
                                                (CFStringRef)(const void *)L"\1"
                                                                           L"😀 %d ü %@",
                                                5, CFSTR("x"));
    EXPECT(CFEqual(text, CFSTR("😀 5 ü x")));
    CFRelease(text);
}

TEST(a_format_appends_to_a_text_even_the_text_itself, "")
{
    CFMutableStringRef text = CFStringCreateMutable(NULL, 0);
    CFStringAppendFormat(text, NULL, CFSTR("%s-%d"), "one", 2);
    CFStringAppendFormat(text, NULL, CFSTR("/%@/%@"), text, text);
    EXPECT(CFEqual(text, CFSTR("one-2/one-2/one-2")));
    CFRelease(text);
}

TEST(formats_that_run_out_of_memory_give_null, "")
{
    struct counting counting;
    counting_open(&counting, 0, true);
    EXPECT(CFStringCreateWithFormat(counting.allocator, NULL, CFSTR("%d"), 1) == NULL);
    EXPECT_STR(formatted("%2147483647d", 1), "NULL");
    EXPECT_STR(formatted("%.2147483647d", 1), "NULL");
    CFAllocatorSetDefault(counting.allocator);
    CFMutableStringRef text = CFStringCreateMutable(kCFAllocatorSystemDefault, 0);
    CFStringAppendFormat(text, NULL, CFSTR("%s"), "bytes");
    EXPECT_EQ(CFStringGetLength(text), 0);
    CFRelease(text);
    CFAllocatorSetDefault(kCFAllocatorSystemDefault);
    CFRelease(counting.allocator);
    counting_close(&counting);
}

TEST(a_wrong_format_object_stops_with_a_sentence, "")
{
    EXPECT_STOPS("CFStringCreateWithFormat: the string is NULL", { CFStringCreateWithFormat(NULL, NULL, NULL); });
}
