/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ports of this process by name. In the child of a fork they become invalid, and their descriptors are closed without telling any peer:
 * a child that kept them would keep the parent's names alive.
 */
#define _GNU_SOURCE
#include "Port/Core/port_table.h"

#include <pthread.h>
#include <string.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Port/Wire/peer_descriptor.h"
#include "Loop/Run/stall_report.h"
#include "Loop/Run/thread_registry.h"
#include "Loop/Signal/source.h"

enum {
    bucket_count = 64,
    looked_at_for_each = 8, /* ports whose files a creation looks at on average; with fewer ports every creation looks at all */
};

static struct lock creation_lock;
static struct lock table_lock;
static struct link buckets[bucket_count]; /* guarded by the table lock; ports without a name are in the first */
static uint32_t republish_round; /* creation lock */
static uint32_t creations_until_look; /* creation lock; creations before the files of all local ports are looked at again */
static struct link republished; /* creation lock; ports with a reference, given up when the lock is free: user code may follow */
static pthread_once_t once = PTHREAD_ONCE_INIT;

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

/* Not checked: a fork handler takes the locks that the next one drops. */
NOT_CHECKED static void before_fork(void)
{
    lock_take(&creation_lock);
    lock_take(&table_lock);
    for (int i = 0; i < bucket_count; i++) {
        list_for_each(link, &buckets[i]) {
            CFMessagePortRef port = port_of(link);

            port_lock(port);
            if (!port->is_remote && port->side.local.local_queue) {
                local_queue_lock(port->side.local.local_queue);
            }
        }
    }
    name_registry_before_fork();
    peer_descriptors_before_fork();
}

/* Not checked: a fork handler takes the locks that the next one drops. */
NOT_CHECKED static void after_fork_in_parent(void)
{
    peer_descriptors_after_fork(false);
    name_registry_after_fork(false);
    for (int i = 0; i < bucket_count; i++) {
        list_for_each(link, &buckets[i]) {
            CFMessagePortRef port = port_of(link);

            if (!port->is_remote && port->side.local.local_queue) {
                local_queue_unlock(port->side.local.local_queue);
            }
            port_unlock(port);
        }
    }
    lock_drop(&table_lock);
    lock_drop(&creation_lock);
}

static void after_fork_in_child(void)
{
    peer_descriptors_after_fork(true);
    name_registry_after_fork(true);
    for (int i = 0; i < bucket_count; i++) {
        list_for_each_removable(link, &buckets[i]) {
            CFMessagePortRef port = port_of(link);

            lock_reset(&port->lock);
            list_remove(link);
            atomic_store_explicit(&port->is_valid, false, memory_order_release);
            port->functions->abandon(port);
        }
    }
    lock_reset(&table_lock);
    lock_reset(&creation_lock);
}

/* The environment may switch local queues off: to compare both ways, or when they are suspected of a fault. */
static bool local_queues_are_refused(void)
{
    const char *wanted = kernel_ports.environment("CORERUNLOOP_MESSAGES");

    return wanted && strcmp(wanted, "socket") == 0;
}

/* For whoever tells of loops that wait for each other. */
static CFRunLoopRef copy_server(const char *text)
{
    struct port_name name;
    CFMessagePortRef port = port_name_of_bytes(text, strlen(text), &name) ? port_table_find(false, &name) : NULL;
    CFRunLoopSourceRef source = NULL;
    CFRunLoopRef loop = NULL;

    if (port) {
        port_lock(port);
        source = port->side.local.source;
        if (source) {
            object_retain(source);
        }
        port_unlock(port);
        object_release(port);
    }
    if (source) {
        loop = binding_copy_loop(source, &source->first_binding);
        object_release(source);
    }
    return loop;
}

/* When the library is loaded: see Loop/Run/thread_registry.c. */
static __attribute__((constructor)) void watch_forks(void)
{
    for (int i = 0; i < bucket_count; i++) {
        link_init(&buckets[i]);
    }
    link_init(&republished);
    stall_copy_server = copy_server;
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void prepare_once(void)
{
    local_queues_are_off |= local_queues_are_refused();
    thread_registry_prepare();
}

/* ---- the table ---- */

/* Not checked: one of a pair, of which the other drops or takes the lock. */
NOT_CHECKED void port_table_begin_creation(void)
{
    (void)pthread_once(&once, prepare_once);
    lock_take(&creation_lock);
}

/* Creation lock. */
static CFMessagePortRef take_republished(void)
{
    CFMessagePortRef port = NULL;

    invariant_held(&creation_lock);
    if (!list_is_empty(&republished)) {
        port = container_of(republished.next, struct __CFMessagePort, republished_link);
        list_remove(&port->republished_link);
    }
    return port;
}

/* Not checked: one of a pair, of which the other drops or takes the lock. */
NOT_CHECKED void port_table_end_creation(void)
{
    CFMessagePortRef port;

    while ((port = take_republished()) != NULL) {
        lock_drop(&creation_lock);
        object_release(port);
        lock_take(&creation_lock);
    }
    lock_drop(&creation_lock);
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
    invariant(!link_is_linked(&port->table_link));
    list_append(bucket_of(&port->name), &port->table_link);
    lock_drop(&table_lock);
}

void port_table_remove(CFMessagePortRef port)
{
    lock_take(&table_lock);
    list_remove(&port->table_link);
    lock_drop(&table_lock);
}

/* Not checked: one of a pair, of which the other drops or takes the lock. */
NOT_CHECKED void port_table_begin_change(void)
{
    lock_take(&table_lock);
}

/* Not checked: one of a pair, of which the other drops or takes the lock. */
NOT_CHECKED void port_table_end_change(CFMessagePortRef port)
{
    invariant_held(&table_lock);
    if (link_is_linked(&port->table_link)) { /* otherwise the port has ended meanwhile */
        list_remove(&port->table_link);
        list_append(bucket_of(&port->name), &port->table_link);
    }
    lock_drop(&table_lock);
}

/* Returns true if others should find the port; `ret_can` says whether they do. The table lock is held. */
static bool should_be_found(CFMessagePortRef port, bool *ret_can)
{
    invariant_held(&table_lock);
    bool should;

    if (!port->functions->republish) {
        return false;
    }
    port_lock(port);
    should = port_is_valid(port) && port->name.length > 0;
    *ret_can = should && name_registry_is_published(&port->side.local.publication);
    port_unlock(port);
    return should;
}

/* Returns a local port, with a reference, that others cannot find and that has had no turn in this round; or NULL. */
static CFMessagePortRef find_lost(uint32_t *looked_at)
{
    CFMessagePortRef found = NULL;

    lock_take(&table_lock);
    for (int i = 0; i < bucket_count && !found; i++) {
        list_for_each(link, &buckets[i]) {
            CFMessagePortRef port = port_of(link);
            bool can_be_found;

            if (port->republish_round == republish_round || !should_be_found(port, &can_be_found)) {
                continue;
            }
            port->republish_round = republish_round;
            ++*looked_at;
            if (!can_be_found && object_try_retain(port)) {
                found = port;
                break;
            }
        }
    }
    lock_drop(&table_lock);
    return found;
}

/* True if others cannot find the local port called `name`. NULL asks about the first port, whose files go if the directory goes. */
static bool is_one_lost(const struct port_name *name)
{
    int first = name ? (int)(bucket_of(name) - buckets) : 0;
    int end = name ? first + 1 : bucket_count;
    bool can_be_found = true;
    bool is_seen = false;

    lock_take(&table_lock);
    for (int i = first; i < end && !is_seen; i++) {
        list_for_each(link, &buckets[i]) {
            CFMessagePortRef port = port_of(link);

            is_seen = (!name || port_name_equal(&port->name, name)) && should_be_found(port, &can_be_found);
            if (is_seen) {
                break;
            }
        }
    }
    lock_drop(&table_lock);
    return is_seen && !can_be_found;
}

void port_table_republish(const struct port_name *name)
{
    CFMessagePortRef lost;
    uint32_t looked_at = 0;

    invariant_held(&creation_lock);
    if (creations_until_look > 0 && !is_one_lost(NULL) && !(name && is_one_lost(name))) {
        creations_until_look--;
        return;
    }
    republish_round++; /* a port that cannot be registered now is tried again in a later round, and holds up no other port in this one */
    while ((lost = find_lost(&looked_at)) != NULL) {
        lost->functions->republish(lost);
        if (link_is_linked(&lost->republished_link)) {
            object_release(lost); /* not the last reference: `republished` still holds one from an earlier round */
        } else {
            list_append(&republished, &lost->republished_link);
        }
    }
    creations_until_look = looked_at / looked_at_for_each;
}
