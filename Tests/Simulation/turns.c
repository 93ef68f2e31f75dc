/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line in which blocking senders wait for room in a datagram socket's queue, as Linux keeps it: each packet that is taken wakes the
 * first of them, who tries again, and goes to the end if another sender was quicker. A wake-up is lost if its sender has died or was
 * interrupted. And how far senders come out of the order in which they came.
 */
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "scheduler.h"

/* ---- the line ---- */

struct waiter {
    struct waiter *next;
    const struct process *process;
    bool is_woken; /* and then out of the line */
};

static bool is_woken(void *info)
{
    return ((const struct waiter *)info)->is_woken;
}

static void join(struct file *receiver, struct waiter *waiter)
{
    struct waiter **place = &receiver->waiters;

    while (*place) {
        place = &(*place)->next;
    }
    *place = waiter;
}

static void leave(struct file *receiver, const struct waiter *waiter)
{
    struct waiter **place = &receiver->waiters;

    while (*place != waiter) {
        place = &(*place)->next;
    }
    *place = waiter->next;
}

void turns_wake_next(struct file *receiver)
{
    struct waiter *waiter = receiver->waiters;

    while (waiter && waiter->process->has_died) {
        waiter = waiter->next;
    }
    receiver->waiters = waiter ? waiter->next : NULL;
    if (waiter) {
        waiter->is_woken = true;
    }
}

void turns_wake_all(struct file *receiver)
{
    while (receiver->waiters) {
        turns_wake_next(receiver);
    }
}

bool turns_wait(struct file *receiver, int64_t deadline_ns)
{
    struct waiter waiter = {.process = scheduler_process()};

    join(receiver, &waiter);
    (void)scheduler_wait(is_woken, &waiter, deadline_ns);
    if (!waiter.is_woken) {
        leave(receiver, &waiter); /* it still is there: its end wakes all */
    }
    return waiter.is_woken;
}

/* ---- the order ---- */

/* From a thread's first try in vain until its packet is in the queue. */
static struct ticket {
    const struct file *receiver; /* NULL: it does not wait */
    const struct process *process;
    uint64_t puts; /* into the receiver's queue, before */
    uint64_t ahead; /* who waited before it */
} tickets[threads_max];

static uint64_t count_tickets(const struct file *receiver)
{
    uint64_t count = 0;

    for (int i = 0; i < threads_max; i++) {
        count += tickets[i].receiver == receiver && !tickets[i].process->has_died ? 1 : 0;
    }
    return count;
}

void turns_note_full(const struct file *receiver)
{
    struct ticket *ticket = &tickets[scheduler_self()];

    if (ticket->receiver != receiver) {
        ticket->receiver = NULL;
        *ticket = (struct ticket){receiver, scheduler_process(), receiver->puts, count_tickets(receiver)};
    }
}

void turns_note_put(const struct file *receiver)
{
    struct ticket *ticket = &tickets[scheduler_self()];

    if (ticket->receiver == receiver) {
        scheduler_counts.waits++;
        scheduler_counts.late_waits += receiver->puts - ticket->puts > 2 * (ticket->ahead + 1) ? 1 : 0;
        ticket->receiver = NULL;
    }
}

void turns_give_up(void)
{
    tickets[scheduler_self()].receiver = NULL;
}

void turns_forget(const struct file *receiver)
{
    for (int i = 0; i < threads_max; i++) {
        if (tickets[i].receiver == receiver) {
            tickets[i].receiver = NULL;
        }
    }
}
