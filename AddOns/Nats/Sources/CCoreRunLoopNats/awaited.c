/* SPDX-License-Identifier: Apache-2.0 */
/* What is waited for, by number; see awaited.h. */
#include "awaited.h"

uint64_t awaited_next_number(struct awaited_table *table)
{
    return ++table->last_number;
}

struct awaited *awaited_add(struct awaited_table *table)
{
    struct awaited *place;

    if (table->count == awaited_max) {
        return NULL;
    }
    do {
        place = &table->places[++table->last_number % awaited_max];
    } while (place->number != 0);
    *place = (struct awaited){.number = table->last_number};
    table->count++;
    return place;
}

struct awaited *awaited_find(struct awaited_table *table, uint64_t number)
{
    struct awaited *place = &table->places[number % awaited_max];

    return number != 0 && place->number == number ? place : NULL;
}

void awaited_remove(struct awaited_table *table, struct awaited *awaited)
{
    *awaited = (struct awaited){.number = 0};
    table->count--;
}
