/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any texts as the variables of the service manager, the process's control groups and the counters of one. What was found has its end, each
 * path is absolute, and the bytes to be written are those of the base64.
 */
#include <limits.h>
#include <string.h>

#include "Pressure/pressure_plan.h"
#include "check.h"

/* Takes the bytes up to the next 0, or all of them, out of the input as a text of its own size, so that a read beyond it is found. */
static char *take_text(const uint8_t **bytes, size_t *left)
{
    size_t length = strnlen((const char *)*bytes, *left);
    char *text = malloc(length + 1);

    CHECK(text);
    memcpy(text, *bytes, length);
    text[length] = '\0';
    *bytes += length + (length < *left);
    *left -= length + (length < *left);
    return text;
}

static void check_path(const char path[PATH_MAX])
{
    CHECK(strnlen(path, PATH_MAX) < PATH_MAX);
    CHECK(path[0] == '\0' || path[0] == '/');
}

/* The base64 of the plan's bytes, written another way than the library reads it. */
static void check_request(const struct pressure_plan *plan, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    CHECK(plan->size == strlen(text) / 4 * 3 - (strchr(text, '=') ? strlen(strchr(text, '=')) : 0));
    for (size_t i = 0; i < plan->size * 8 / 6; i++) {
        size_t bit = i * 6;
        unsigned pair = (unsigned)plan->request[bit / 8] << 8 | (bit / 8 + 1 < plan->size ? plan->request[bit / 8 + 1] : 0);

        CHECK(digits[pair >> (10 - bit % 8) & 63] == text[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct pressure_plan plan;
    char *watch = take_text(&bytes, &size);
    char *write = take_text(&bytes, &size);
    char *groups = take_text(&bytes, &size);
    char *counters = take_text(&bytes, &size);

    if (pressure_plan_make(&plan, watch, write, groups) == 0) {
        CHECK(plan.is_given == (watch[0] != '\0') && plan.size <= sizeof plan.request);
        check_path(plan.paths[0]);
        check_path(plan.paths[1]);
        check_path(plan.events);
        if (plan.is_given) {
            check_request(&plan, write);
        }
    }
    (void)pressure_events_sum(counters);
    free(counters);
    free(groups);
    free(write);
    free(watch);
    return 0;
}
