/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ports of this process by name, and what becomes of them in the child of a fork: there they are invalid, and their descriptors closed
 * without a word to anybody, for a child that kept them would keep the parent's names alive.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

#include "Kernel/kernel_ports.h"
#include "Loop/thread_loop.h"
#include "Port/message_port.h"

enum { bucket_count = 64 };

static struct lock creation_lock;
static struct lock table_lock;
static struct link buckets[bucket_count]; /* T; ports without a name are in the first */
static uint32_t republish_round; /* creation lock */
static struct link republished; /* creation lock; ports with a reference, given up when the lock is free: user code may follow */
static pthread_once_t once = PTHREAD_ONCE_INIT;

volatile uint32_t *port_fork_mark;

static CFMessagePortRef port_of(struct link *link)
{
    return container_of(link, struct __CFMessagePort, table_link);
}

static struct link *bucket_of(const struct port_name *name)
{
    uint32_t hash = 0;

    for (uint32_t i = 0; i < name->length; i++) {
        hash = hash * 31 + (uint8_t)name->bytes[i];
    }
    return &buckets[hash % bucket_count];
}

/* ---- fork ---- */

static void before_fork(void)
{
    lock_take(&creation_lock);
    lock_take(&table_lock);
    for (int i = 0; i < bucket_count; i++) {
        list_for_each(link, &buckets[i]) {
            CFMessagePortRef port = port_of(link);

            port_lock(port);
            if (!port->is_remote && port->side.local.inbox) {
                inbox_lock(port->side.local.inbox);
            }
        }
    }
    registry_before_fork();
}

static void after_fork_in_parent(void)
{
    registry_after_fork(false);
    for (int i = 0; i < bucket_count; i++) {
        list_for_each(link, &buckets[i]) {
            CFMessagePortRef port = port_of(link);

            if (!port->is_remote && port->side.local.inbox) {
                inbox_unlock(port->side.local.inbox);
            }
            port_unlock(port);
        }
    }
    lock_drop(&table_lock);
    lock_drop(&creation_lock);
}

static void after_fork_in_child(void)
{
    registry_after_fork(true);
    for (int i = 0; i < bucket_count; i++) {
        list_for_each_removable(link, &buckets[i]) {
            CFMessagePortRef port = port_of(link);

            lock_reset(&port->lock);
            list_remove(link);
            atomic_store_explicit(&port->is_valid, false, memory_order_release);
            if (port->is_remote) {
                remote_port_abandon(port);
            } else {
                local_port_abandon(port);
            }
        }
    }
    lock_reset(&table_lock);
    lock_reset(&creation_lock);
    if (port_fork_mark) {
        *port_fork_mark = 1; /* from here on ports are this process's own */
    }
}

/* By the environment: for comparison, and for whoever suspects them. */
static bool inboxes_are_refused(void)
{
    const char *wanted = kernel_ports.environment("CORERUNLOOP_MESSAGES");

    return wanted && strcmp(wanted, "socket") == 0;
}

static void prepare_once(void)
{
    for (int i = 0; i < bucket_count; i++) {
        link_init(&buckets[i]);
    }
    link_init(&republished);
    inboxes_are_off |= inboxes_are_refused();
    port_fork_mark = kernel_ports.fork_mark();
    if (port_fork_mark) {
        *port_fork_mark = 1;
    }
    /* After the run loop's own handlers: in the child, its locks are free again when ours runs. */
    thread_loop_prepare();
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- the table ---- */

void port_table_begin_creation(void)
{
    (void)pthread_once(&once, prepare_once);
    if (port_is_orphan()) {
        after_fork_in_child(); /* made by _Fork or clone, which run no handlers */
    }
    lock_take(&creation_lock);
}

void port_table_end_creation(void)
{
    struct link held;

    link_init(&held);
    list_append_all(&held, &republished);
    lock_drop(&creation_lock);
    while (!list_is_empty(&held)) {
        CFMessagePortRef port = container_of(held.next, struct __CFMessagePort, republished_link);

        list_remove(&port->republished_link);
        object_release(port);
    }
}

CFMessagePortRef port_table_find(bool is_remote, const struct port_name *name)
{
    CFMessagePortRef found = NULL;

    lock_take(&table_lock);
    list_for_each(link, bucket_of(name)) {
        CFMessagePortRef port = port_of(link);

        if (port->is_remote == is_remote && port_is_valid(port) && port_name_equal(&port->name, name) && object_try_retain(port)) {
            found = port;
            break;
        }
    }
    lock_drop(&table_lock);
    return found;
}

void port_table_add(CFMessagePortRef port)
{
    lock_take(&table_lock);
    list_append(bucket_of(&port->name), &port->table_link);
    lock_drop(&table_lock);
}

void port_table_remove(CFMessagePortRef port)
{
    lock_take(&table_lock);
    list_remove(&port->table_link);
    lock_drop(&table_lock);
}

/* A local port, with a reference, that others cannot find and that has had no turn in this round; NULL when there is none. */
static CFMessagePortRef find_lost(void)
{
    CFMessagePortRef found = NULL;

    lock_take(&table_lock);
    for (int i = 0; i < bucket_count && !found; i++) {
        list_for_each(link, &buckets[i]) {
            CFMessagePortRef port = port_of(link);
            bool is_lost;

            port_lock(port);
            is_lost = !port->is_remote && port_is_valid(port) && port->name.length > 0 && port->republish_round != republish_round &&
                      !registry_is_published(&port->side.local.publication);
            port_unlock(port);
            if (is_lost && object_try_retain(port)) {
                port->republish_round = republish_round;
                found = port;
                break;
            }
        }
    }
    lock_drop(&table_lock);
    return found;
}

void port_table_republish(void)
{
    CFMessagePortRef lost;

    republish_round++; /* one that cannot be registered again now has another turn the next time, and keeps nobody from theirs */
    while ((lost = find_lost()) != NULL) {
        local_port_republish(lost);
        list_append(&republished, &lost->republished_link);
    }
}
