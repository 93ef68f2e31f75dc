/* SPDX-License-Identifier: Apache-2.0 */
/* Names as subjects. */
#include <string.h>

#include "harness.h"
#include "Wire/subject.h"
#include "unescape.h"

TEST(each_name_has_one_subject_and_comes_back_from_it, "1105")
{
    static const char *const names[] = {"jobs", "a.b", "a b", "a*", "a>b", "%", "\xC3\xA4", "-_.", "A%41", "\x01\x7F"};
    char token[3 * port_name_max + 1];
    char text[port_name_max + 1];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        EXPECT(name_fault(names[i], port_name_max) == NULL);
        subject_escape(names[i], token, sizeof token);
        EXPECT(strpbrk(token, " .*>\t\r\n") == NULL);
        unescape(token, text);
        EXPECT_STR(text, names[i]);
    }
    subject_escape("a.b", token, sizeof token);
    EXPECT_STR(token, "a%2Eb");
}

TEST(a_name_that_cannot_be_one_has_a_fault, "1105")
{
    char longest[port_name_max + 2];

    memset(longest, 'x', sizeof longest);
    longest[port_name_max] = '\0';
    EXPECT(name_fault(longest, port_name_max) == NULL);
    longest[port_name_max] = 'x';
    longest[port_name_max + 1] = '\0';
    EXPECT_STR(name_fault(longest, port_name_max), "is too long");
    EXPECT_STR(name_fault("", port_name_max), "is empty");
    EXPECT_STR(name_fault("\xC0\x80", port_name_max), "is not UTF-8");
    EXPECT_STR(name_fault("a\xE2\x82", port_name_max), "is not UTF-8");
    EXPECT_STR(name_fault("\xED\xA0\x80", port_name_max), "is not UTF-8");
    EXPECT_STR(name_fault("\xF5\x80\x80\x80", port_name_max), "is not UTF-8");
}

TEST(a_subject_has_its_kind_its_machine_and_its_name, "1105")
{
    char subject[subject_max];
    char longest[port_name_max + 1];
    char machine[machine_name_max + 1];

    subject_make(subject, "any", NULL, "a.b");
    EXPECT_STR(subject, "crl.1.any.a%2Eb");
    subject_make(subject, "at", "m 1", "jobs");
    EXPECT_STR(subject, "crl.1.at.m%201.jobs");
    memset(longest, '.', port_name_max);
    longest[port_name_max] = '\0';
    memset(machine, '.', machine_name_max);
    machine[machine_name_max] = '\0';
    subject_make(subject, "ctl", machine, longest);
    EXPECT_EQ(strlen(subject), strlen("crl.1.ctl..") + 3 * port_name_max + 3 * machine_name_max);
}
