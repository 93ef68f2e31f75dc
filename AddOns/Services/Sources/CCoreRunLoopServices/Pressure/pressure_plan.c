/* SPDX-License-Identifier: Apache-2.0 */
/* See pressure_plan.h. */
#include "Pressure/pressure_plan.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char mount_of_groups[] = "/sys/fs/cgroup";
/* Processes without privileges may ask for windows of whole 2 seconds only. The kernel takes the last byte for the end. */
static const char default_request[] = "some 200000 2000000";

/* ---- the environment ---- */

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *digit = c != '\0' ? strchr(digits, c) : NULL;

    return digit ? (int)(digit - digits) : -1;
}

/* Whole groups of four digits, of which the last may end in one or two '='. */
static int decode(struct pressure_plan *plan, const char *text)
{
    size_t length = strnlen(text, sizeof plan->request / 3 * 4 + 1);
    size_t digits = length;
    uint32_t bits = 0;

    for (int i = 0; i < 2 && digits > 0 && text[digits - 1] == '='; i++) {
        digits--;
    }
    if (length % 4 != 0 || length > sizeof plan->request / 3 * 4) {
        return -EBADMSG;
    }
    for (size_t i = 0; i < digits; i++) {
        int digit = base64_digit(text[i]);

        if (digit < 0) {
            return -EBADMSG;
        }
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 0) {
            plan->request[plan->size++] = (unsigned char)(bits >> (6 - i % 4 * 2) & 0xff);
        }
    }
    return 0;
}

static int take_given(struct pressure_plan *plan, const char *watch, const char *write)
{
    if (strcmp(watch, "/dev/null") == 0) {
        return -EHOSTDOWN;
    }
    if (watch[0] != '/' || strnlen(watch, sizeof plan->paths[0]) == sizeof plan->paths[0]) {
        return -EBADMSG;
    }
    plan->is_given = true;
    (void)strcpy(plan->paths[0], watch);
    return write ? decode(plan, write) : 0;
}

/* ---- the control group ---- */

static void set_path(char path[PATH_MAX], const char *group, size_t length, const char *name)
{
    int size = snprintf(path, PATH_MAX, "%s%.*s/%s", mount_of_groups, (int)length, group, name);

    if (size < 0 || size >= PATH_MAX) {
        path[0] = '\0';
    }
}

/* A group outside of the process's view of groups, "/..", is not to be found by its name. */
static void take_group(struct pressure_plan *plan, const char *groups)
{
    const char *line = groups;
    size_t length;

    while (line && strncmp(line, "0::/", 4) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    length = line ? strcspn(line, "\n") : 0;
    if (length < 4 || length >= PATH_MAX || strncmp(line + 3, "/..", 3) == 0) {
        return;
    }
    set_path(plan->events, line + 3, length - 3, "memory.events");
    if (!plan->is_given) {
        set_path(plan->paths[0], line + 3, length - 3, "memory.pressure");
    }
}

int pressure_plan_make(struct pressure_plan *plan, const char *watch, const char *write, const char *groups)
{
    int result = 0;

    memset(plan, 0, sizeof *plan);
    if (watch && watch[0] != '\0') {
        result = take_given(plan, watch, write);
    } else {
        (void)strcpy(plan->paths[1], "/proc/pressure/memory");
        memcpy(plan->request, default_request, sizeof default_request);
        plan->size = sizeof default_request;
    }
    take_group(plan, groups);
    return result;
}

unsigned long long pressure_events_sum(const char *text)
{
    static const char *const names[] = {"high ", "max ", "oom ", "oom_kill "};
    unsigned long long sum = 0;

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            size_t length = strlen(names[i]);

            sum += strncmp(line, names[i], length) == 0 ? strtoull(line + length, NULL, 10) : 0;
        }
    }
    return sum;
}
