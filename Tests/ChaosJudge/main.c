/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of the chaos runs is given histories: with each kind of violation, which it has to find, and with none, where it has to be
 * silent. A chaos run without violations says little if its judge is blind.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "chaos.h"

enum { events_max = 8 };

struct chaos *chaos;

static char violations[1024];
static int violation_count;

void chaos_violation(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(violations, sizeof violations, format, arguments);
    va_end(arguments);
    violation_count++;
}

/* ---- histories ---- */

#define HANDLED(_client, _number, _server) {_client, _number, _server, 0, event_handled}
#define HANDLED_AT(_name, _client, _number, _server) {_client, _number, _server, _name, event_handled}
#define ANSWERED(_client, _number) {_client, _number, 0, 0, event_answered}
#define ANSWERED_AT(_name, _client, _number) {_client, _number, 0, _name, event_answered}
#define LOST {0, 0, 0, 0, event_none}

struct history {
    const char *what;
    bool breaks_order;
    const char *violation; /* a part of its sentence; NULL: there is none */
    struct verdict verdict;
    struct event events[events_max];
    uint32_t count;
};

static const struct history histories[] = {
    {"nothing", false, NULL, {0, 0, 0, 0}, {LOST}, 0},
    {"messages in order, with answers", false, NULL, {3, 2, 0, 0},
     {HANDLED(1, 1, 9), ANSWERED(1, 1), HANDLED(1, 2, 9), HANDLED(1, 3, 9), ANSWERED(1, 3)}, 5},
    {"messages of two clients with the same numbers", false, NULL, {4, 0, 0, 0},
     {HANDLED(1, 1, 9), HANDLED(2, 1, 9), HANDLED(2, 2, 9), HANDLED(1, 2, 9)}, 4},
    {"messages for two names, each in its own order", false, NULL, {4, 2, 0, 0},
     {HANDLED_AT(0, 1, 3, 8), HANDLED_AT(1, 1, 1, 9), ANSWERED_AT(1, 1, 1), ANSWERED_AT(0, 1, 3), HANDLED_AT(1, 1, 2, 9),
      HANDLED_AT(0, 1, 4, 8)}, 6},
    {"messages that never came", false, NULL, {2, 0, 0, 0}, {HANDLED(1, 1, 9), HANDLED(1, 7, 9)}, 2},
    {"an event whose writer was killed", false, NULL, {2, 0, 1, 0}, {HANDLED(1, 1, 9), LOST, HANDLED(1, 2, 9)}, 3},
    {"a message that was handled twice", false, "message 2 of client 1 was handled twice, the second time by server 7", {3, 0, 0, 0},
     {HANDLED(1, 1, 9), HANDLED(1, 2, 9), HANDLED(1, 2, 7)}, 3},
    {"an earlier message that was handled twice", false, "message 1 of client 1 was handled twice", {3, 0, 0, 0},
     {HANDLED(1, 1, 9), HANDLED(1, 2, 9), HANDLED(1, 1, 9)}, 3},
    {"the same where order may break", true, "message 1 of client 1 was handled twice", {3, 0, 0, 0},
     {HANDLED(1, 1, 9), HANDLED(1, 2, 9), HANDLED(1, 1, 9)}, 3},
    {"a message that was overtaken", false, "message 1 of client 1 was handled after its message 2", {2, 0, 0, 0},
     {HANDLED(1, 2, 9), HANDLED(1, 1, 9)}, 2},
    {"the same where order may break", true, NULL, {2, 0, 0, 1}, {HANDLED(1, 2, 9), HANDLED(1, 1, 9)}, 2},
    {"one that was overtaken, with the number of another client's", true, NULL, {3, 0, 0, 1},
     {HANDLED(2, 1, 9), HANDLED(1, 2, 9), HANDLED(1, 1, 9)}, 3},
    {"an answer to a message that nobody has handled", false, "client 1 has an answer to its message 2", {1, 1, 0, 0},
     {HANDLED(1, 1, 9), ANSWERED(1, 2)}, 2},
    {"the same where order may break", true, "client 1 has an answer to its message 2", {1, 1, 0, 0},
     {HANDLED(1, 1, 9), ANSWERED(1, 2)}, 2},
    {"an answer that comes before its message is handled", true, "client 1 has an answer to its message 1", {1, 1, 0, 0},
     {ANSWERED(1, 1), HANDLED(1, 1, 9)}, 2},
    {"an answer to an earlier message than the last", false, "client 1 has an answer to its message 1", {2, 1, 0, 0},
     {HANDLED(1, 1, 9), HANDLED(1, 2, 9), ANSWERED(1, 1)}, 3},
    {"the same where order may break", true, NULL, {2, 1, 0, 0}, {HANDLED(1, 1, 9), HANDLED(1, 2, 9), ANSWERED(1, 1)}, 3},
    {"an answer to another client's message", false, "client 2 has an answer to its message 1", {1, 1, 0, 0},
     {HANDLED(1, 1, 9), ANSWERED(2, 1)}, 2},
    {"an answer at another name", false, "client 1 has an answer to its message 1", {1, 1, 0, 0},
     {HANDLED_AT(0, 1, 1, 9), ANSWERED_AT(1, 1, 1)}, 2},
};

/* ---- judging the judge ---- */

static bool is_equal(const struct verdict *a, const struct verdict *b)
{
    return a->handled == b->handled && a->answered == b->answered && a->lost == b->lost && a->reordered == b->reordered;
}

/* Returns whether the judge has found what is in the history, and no more. */
static bool check(const struct history *history)
{
    struct verdict verdict;
    bool is_right;

    violation_count = 0;
    violations[0] = '\0';
    chaos->breaks_order = history->breaks_order;
    chaos->lives = 9;
    chaos->event_count = history->count;
    memcpy(chaos->events, history->events, sizeof history->events);
    verdict = judge_history();
    is_right = violation_count == (history->violation ? 1 : 0) && (!history->violation || strstr(violations, history->violation)) &&
               is_equal(&verdict, &history->verdict);
    if (!is_right) {
        (void)printf("chaos-judge: %s%s: %d violations, the last: '%s'; %d handled, %d answered, %d lost, %d reordered\n", history->what,
                     history->breaks_order ? " (order may break)" : "", violation_count, violations, (int)verdict.handled,
                     (int)verdict.answered, (int)verdict.lost, (int)verdict.reordered);
    }
    return is_right;
}

int main(void)
{
    int count = sizeof histories / sizeof histories[0];
    int wrong = 0;

    chaos = mmap(NULL, sizeof *chaos, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (chaos == MAP_FAILED) {
        perror("chaos-judge");
        return 2;
    }
    for (int i = 0; i < count; i++) {
        wrong += !check(&histories[i]);
    }
    (void)printf("chaos-judge: %d histories, %d judged wrongly\n", count, wrong);
    return wrong > 0;
}
