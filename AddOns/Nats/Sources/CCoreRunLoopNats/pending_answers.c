/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are awaited, by number; see pending_answers.h. */
#include "pending_answers.h"

#include "Support/invariant.h"

uint64_t pending_answers_next_number(struct pending_answers *table)
{
    return ++table->last_number;
}

struct pending_answer *pending_answers_add(struct pending_answers *table)
{
    struct pending_answer *place;

    if (table->count == pending_answers_max) {
        return NULL;
    }
    do {
        place = &table->places[++table->last_number % pending_answers_max];
    } while (place->number != 0);
    *place = (struct pending_answer){.number = table->last_number};
    table->count++;
    invariant(pending_answers_find(table, place->number) == place);
    return place;
}

struct pending_answer *pending_answers_find(struct pending_answers *table, uint64_t number)
{
    struct pending_answer *place = &table->places[number % pending_answers_max];

    return number != 0 && place->number == number ? place : NULL;
}

void pending_answers_remove(struct pending_answers *table, struct pending_answer *pending)
{
    invariant(pending->number != 0 && pending_answers_find(table, pending->number) == pending);
    invariant(table->count > 0 && table->count <= pending_answers_max);
    *pending = (struct pending_answer){.number = 0};
    table->count--;
}
