/* SPDX-License-Identifier: Apache-2.0 */
/* See findings.h. Names may come from anybody, so control characters are made plain. */
#define _GNU_SOURCE /* vasprintf */
#include "Why/findings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_string.h"
#include "runloop.h"

static const char *const kind_names[finding_kind_count] = {"deadlock",     "hangs", "no reply", "spins",
                                                           "never called", "late",  "stalls",   "wakes often"};

static char *made_plain(const char *format, va_list arguments)
{
    char *text = NULL;

    if (vasprintf(&text, format, arguments) < 0) {
        exit(fail(exit_error, "there is no memory"));
    }
    for (char *byte = text; *byte; byte++) {
        if ((unsigned char)*byte < ' ' || *byte == '\x7f') {
            *byte = '?';
        }
    }
    return text;
}

bool findings_add(struct findings *findings, enum finding_kind kind, int32_t process, int32_t thread, const char *sentence, ...)
{
    va_list arguments;

    if (findings->by_kind[kind]++ >= findings_of_kind_most) {
        return false;
    }
    findings->all = grow_array(findings->all, findings->count, &findings->capacity, sizeof *findings->all);
    va_start(arguments, sentence);
    findings->all[findings->count++] = (struct finding){kind, process, thread, made_plain(sentence, arguments), copy_text("", 0)};
    va_end(arguments);
    return true;
}

void findings_prove(struct findings *findings, const char *sentence, ...)
{
    struct finding *last = &findings->all[findings->count - 1];
    va_list arguments;
    char *added;
    char *text;

    invariant(findings->count > 0);
    va_start(arguments, sentence);
    added = made_plain(sentence, arguments);
    va_end(arguments);
    if (asprintf(&text, "%s%s%s", last->evidence, *last->evidence ? " " : "", added) < 0) {
        exit(fail(exit_error, "there is no memory"));
    }
    free(added);
    free(last->evidence);
    last->evidence = text;
}

static void write_field(const char *name, const char *text)
{
    (void)printf("\"%s\": ", name);
    write_json_string(stdout, text, strlen(text), "");
}

static void write_finding(const struct finding *finding, bool is_json, bool is_first)
{
    if (is_json) {
        (void)printf("%s\n  {", is_first ? "" : ",");
        write_field("what", kind_names[finding->kind]);
        (void)printf(", \"process\": %d, \"thread\": %d, ", (int)finding->process, (int)finding->thread);
        write_field("sentence", finding->sentence);
        (void)fputs(", ", stdout);
        write_field("evidence", finding->evidence);
        (void)fputs("}", stdout);
        return;
    }
    (void)printf("%s: %s\n", kind_names[finding->kind], finding->sentence);
    if (*finding->evidence) {
        (void)printf("    %s\n", finding->evidence);
    }
}

int findings_write(const struct findings *findings, const char *what, bool is_json)
{
    bool is_first = true;

    if (is_json) {
        (void)fputs("{\"findings\": [", stdout);
    } else if (findings->count == 0) {
        (void)printf("%s\n", what);
    }
    for (int kind = 0; kind < finding_kind_count; kind++) {
        for (size_t i = 0; i < findings->count; i++) {
            if (findings->all[i].kind == (enum finding_kind)kind) {
                write_finding(&findings->all[i], is_json, is_first);
                is_first = false;
            }
        }
        if (!is_json && findings->by_kind[kind] > findings_of_kind_most) {
            (void)printf("%s: %zu more\n", kind_names[kind], findings->by_kind[kind] - findings_of_kind_most);
        }
    }
    if (is_json) {
        (void)fputs("]}\n", stdout);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return fail(exit_error, "standard output cannot be written: %s", strerror(errno));
    }
    return findings->count == 0 ? exit_success : exit_found;
}
