/* SPDX-License-Identifier: Apache-2.0 */
/* Names as subjects; see subject.h. */
#include "Wire/subject.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "Support/invariant.h"

/* Returns how many bytes the UTF-8 character at `s` has, or 0 if there is none. Overlong forms and surrogates are none. */
static size_t character_length(const uint8_t *s)
{
    static const struct {
        uint8_t first_min, first_max, second_min, second_max, length;
    } forms[] = {{0x01, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                 {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                 {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (s[0] >= forms[i].first_min && s[0] <= forms[i].first_max) {
            if (forms[i].length > 1 && (s[1] < forms[i].second_min || s[1] > forms[i].second_max)) {
                return 0;
            }
            for (size_t at = 2; at < forms[i].length; at++) {
                if ((s[at] & 0xC0) != 0x80) {
                    return 0;
                }
            }
            return forms[i].length;
        }
    }
    return 0;
}

const char *name_fault(const char *name, size_t most)
{
    size_t length = strlen(name);

    if (length == 0) {
        return "is empty";
    }
    if (length > most) {
        return "is too long";
    }
    for (size_t at = 0; at < length;) {
        size_t step = character_length((const uint8_t *)name + at);

        if (step == 0) {
            return "is not UTF-8";
        }
        at += step;
    }
    return NULL;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

void subject_escape(const char *text, char *ret_token, size_t capacity)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t at = 0;

    invariant(capacity >= 3 * strlen(text) + 1);
    for (; *text != '\0' && at + 4 <= capacity; text++) {
        if (is_plain(*text)) {
            ret_token[at++] = *text;
        } else {
            ret_token[at++] = '%';
            ret_token[at++] = digits[(uint8_t)*text >> 4];
            ret_token[at++] = digits[(uint8_t)*text & 15];
        }
    }
    ret_token[at] = '\0';
}

void subject_make(char ret_subject[subject_max], const char *kind, const char *machine, const char *name)
{
    char escaped_machine[3 * machine_name_max + 1] = "";
    char escaped_name[3 * port_name_max + 1];
    int length;

    if (machine) {
        subject_escape(machine, escaped_machine, sizeof escaped_machine);
    }
    subject_escape(name, escaped_name, sizeof escaped_name);
    length = snprintf(ret_subject, subject_max, "crl.1.%s.%s%s%s", kind, escaped_machine, machine ? "." : "", escaped_name);
    invariant(length > 0 && length < subject_max); /* a cut subject would be another name's */
}
