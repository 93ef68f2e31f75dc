/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the history; see history.h. */
#include "history.h"

#include "plan.h"
#include "scheduler.h"
#include "tables.h"

enum { letters_max = 4096, owner_none = -1 };

enum result { sent = 0, send_timeout = -1, receive_timeout = -2, is_invalid = -3, transport_error = -4, became_invalid = -5 };

static const int64_t patience_ns = INT64_C(5) * 1000000000;

struct record {
    struct sending sending;
    int sender; /* thread */
    int process;
    bool is_done;
    bool had_no_owner; /* when it was sent: the port of the last one may still have been there, on its way out */
    int32_t result;
    int handled;
};

static struct record records[letters_max];
static uint32_t record_count;

static struct name {
    int owner;
    uint64_t ends; /* owners that died or gave it up, and connections that were cut */
    int cuts; /* under way */
    int64_t free_since_ns;
    uint64_t incarnation;
    uint32_t last_of[threads_max]; /* the last message of each thread that this incarnation has handled */
} names[names_max] = {{.owner = owner_none, .free_since_ns = INT64_MAX}, {.owner = owner_none, .free_since_ns = INT64_MAX}};

static int clients[processes_max];

/* An owner that has died owns nothing. */
static void settle_owner(struct name *name)
{
    if (name->owner != owner_none && scheduler_processes[name->owner].has_died) {
        name->owner = owner_none;
        name->ends++;
        name->free_since_ns = scheduler_now_ns();
    }
}

static struct name *name_of(int number)
{
    settle_owner(&names[number]);
    return &names[number];
}

uint32_t history_send(const struct sending *sending)
{
    struct record *record = &records[record_count];

    if (record_count == letters_max) {
        scheduler_fail("more than %d messages", letters_max);
    }
    *record = (struct record){.sending = *sending, .sender = scheduler_self(), .process = scheduler_process()->number};
    record->had_no_owner = name_of(sending->name)->owner == owner_none;
    scheduler_trace("message %u %s to %d", record_count, sending->is_one_way ? "one way" : "wants a reply", sending->name);
    return record_count++;
}

void history_handle(uint32_t id, int number)
{
    struct name *name = name_of(number);
    struct record *record = &records[id];

    if (id >= record_count || record->sending.name != number) {
        scheduler_fail("message %u was handled, which was not sent to %d", id, number);
    }
    scheduler_trace("message %u is handled", id);
    if (++record->handled > 1) {
        scheduler_fail("message %u was handled twice", id);
    }
    if (record->is_done && record->result == send_timeout) {
        scheduler_fail("message %u was handled though its sending timed out", id);
    }
    if (name->last_of[record->sender] > id + 1) {
        scheduler_fail("message %u was handled after message %u of the same thread", id, name->last_of[record->sender] - 1);
    }
    name->last_of[record->sender] = id + 1;
}

/* Whether the sending side may see its port end, or fail. */
static bool may_have_ended(const struct record *record)
{
    const struct name *name = name_of(record->sending.name);

    return record->had_no_owner || plan.restarts || plan.has_deaths || tables_resource_faults() > 0 || name->cuts > 0 ||
           name->ends != record->sending.ends;
}

static bool is_allowed(const struct record *record, int32_t result)
{
    switch (result) {
    case sent:
        return true;
    case send_timeout:
        return record->sending.has_send_limit;
    case receive_timeout:
        return record->sending.has_receive_limit && !record->sending.is_one_way;
    case transport_error:
        return tables_resource_faults() > 0;
    case is_invalid:
    case became_invalid:
        return may_have_ended(record);
    default:
        return false;
    }
}

void history_result(uint32_t id, int32_t result, bool has_right_reply)
{
    struct record *record = &records[id];

    scheduler_trace("message %u ends with %d", id, (int)result);
    record->is_done = true;
    record->result = result;
    if (!is_allowed(record, result)) {
        scheduler_fail("message %u ended with %d, for which there is no reason", id, (int)result);
    }
    if (result == sent && !record->sending.is_one_way && (record->handled != 1 || !has_right_reply)) {
        scheduler_fail("message %u has its reply, was handled %d times, and the reply is %s", id, record->handled,
                       has_right_reply ? "right" : "wrong");
    }
    if (result == send_timeout && record->handled > 0) {
        scheduler_fail("message %u was handled though its sending timed out", id);
    }
}

void history_own(int number)
{
    struct name *name = name_of(number);

    if (name->owner != owner_none) {
        scheduler_fail("name %d belongs to process %d and to process %d", number, name->owner, scheduler_process()->number);
    }
    scheduler_trace("name %d is taken", number);
    name->owner = scheduler_process()->number;
    name->incarnation++;
    for (int i = 0; i < threads_max; i++) {
        name->last_of[i] = 0;
    }
}

void history_disown(int number)
{
    struct name *name = name_of(number);

    scheduler_trace("name %d is given up", number);
    name->owner = owner_none;
    name->ends++;
    name->free_since_ns = scheduler_now_ns();
}

void history_cut(int number, bool begins)
{
    struct name *name = name_of(number);

    name->ends++;
    name->cuts += begins ? 1 : -1;
}

uint64_t history_ends(int number)
{
    return name_of(number)->ends;
}

void history_refused(int number)
{
    const struct name *name = name_of(number);

    if (name->owner == owner_none && tables_resource_faults() == 0 && scheduler_now_ns() - patience_ns > name->free_since_ns) {
        scheduler_fail("name %d has been free for long and cannot be had", number);
    }
}

void history_client_begins(int process)
{
    clients[process]++;
}

void history_client_ends(void)
{
    clients[scheduler_process()->number]--;
}

bool history_is_over(void *unused)
{
    (void)unused;
    for (int i = 0; i < processes_max; i++) {
        if (clients[i] > 0 && !scheduler_processes[i].has_died) {
            return false;
        }
    }
    return true;
}

/* One-way messages to servers that lived to the end have all been handled. */
void history_check_end(void)
{
    for (uint32_t i = 0; i < record_count; i++) {
        const struct record *record = &records[i];

        if (!record->is_done && !scheduler_processes[record->process].has_died) {
            scheduler_fail("message %u has not ended", i);
        }
        if (record->is_done && record->result == sent && record->handled == 0 && !plan.restarts && !plan.has_deaths &&
            !record->sending.may_be_late && tables_resource_faults() == 0) {
            scheduler_fail("message %u was sent and never handled", i);
        }
    }
}
