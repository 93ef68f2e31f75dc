/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one conformance case, named by the only argument, and prints its log on one line. `--list` prints name, group and rules of all.
 * Exit status 77: the case cannot be tried with this build; the reason is printed instead.
 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct conformance_case *all_cases;

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[65536]; /* log_lock */
static size_t log_length; /* log_lock */
static bool log_closed; /* log_lock */

static double time_mark;

void conformance_register(struct conformance_case *one)
{
    one->next = all_cases;
    all_cases = one;
}

void probe_log(const char *token)
{
    pthread_mutex_lock(&log_lock);
    size_t length = strlen(token);
    if (!log_closed && log_length + length + 2 < sizeof log_text) {
        if (log_length > 0) {
            log_text[log_length++] = ' ';
        }
        memcpy(log_text + log_length, token, length + 1);
        log_length += length;
    }
    pthread_mutex_unlock(&log_lock);
}

static void log_close(void)
{
    pthread_mutex_lock(&log_lock);
    log_closed = true;
    pthread_mutex_unlock(&log_lock);
}

void say_nothing_of_that(void)
{
    pthread_mutex_lock(&log_lock);
    log_length = 0;
    log_text[0] = '\0';
    pthread_mutex_unlock(&log_lock);
}

_Noreturn void conformance_skip(const char *reason)
{
    printf("%s\n", reason);
    fflush(stdout);
    _Exit(77);
}

void mark_time(void)
{
    time_mark = probe_seconds();
}

int steps_since_mark(double step_seconds)
{
    return (int)((probe_seconds() - time_mark + 0.001) / step_seconds);
}

static void run_case(void *context)
{
    struct conformance_case *one = context;
    one->function();
    log_close();
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 2) {
        fprintf(stderr, "usage: %s CASE | --list\n", arguments[0]);
        return 2;
    }
    for (struct conformance_case *one = all_cases; one; one = one->next) {
        if (strcmp(arguments[1], "--list") == 0) {
            printf("%s\t%s\t%s\n", one->name, one->group, one->rules);
        } else if (strcmp(arguments[1], one->name) == 0) {
            if (one->thread == on_main) {
                run_case(one);
            } else {
                probe_on_thread(run_case, one);
            }
            printf("%s\n", log_text);
            fflush(stdout);
            _Exit(0);
        }
    }
    return strcmp(arguments[1], "--list") == 0 ? 0 : 2;
}
