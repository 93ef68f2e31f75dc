/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of Mach-style ports: a slot of the table, and above it how often the slot was used, so that a number is not soon used again.
 *
 * One lock guards the table; nothing else is locked while it is held. A fork takes it, and gives the child's ports eventfds of their own:
 * a descriptor that the child shared with the parent would wake the parent. The table stays until the process ends.
 */
#include <pthread.h>
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/Run/thread_registry.h"
#include "Port/Mach/mach_port_table.h"

enum { use_bits = 12, use_mask = (1 << use_bits) - 1, growth = 64 };

struct place {
    CFMachPortRef port; /* weak; NULL: free */
    uint32_t uses;
};

static struct lock table_lock;
static struct place *places; /* table_lock */
static size_t capacity; /* table_lock */
static size_t next; /* table_lock; where the search for a free place begins: places rest before they are used again */

static mach_port_t number_of(size_t place)
{
    return (mach_port_t)((place + 1) << use_bits | (places[place].uses & use_mask));
}

/* ---- fork ---- */

/* Not checked: a fork handler takes the locks that the next one drops. */
NOT_CHECKED static void before_fork(void)
{
    lock_take(&table_lock);
}

/* Not checked: a fork handler takes the locks that the next one drops. */
NOT_CHECKED static void after_fork_in_parent(void)
{
    lock_drop(&table_lock);
}

/* The only thread there is. Another one may have been changing a queue, and does not exist here: queues are forgotten, not walked. */
NOT_CHECKED static void after_fork_in_child(void)
{
    lock_reset(&table_lock);
    for (size_t i = 0; i < capacity; i++) {
        CFMachPortRef port = places[i].port;

        if (!port) {
            continue;
        }
        link_init(&port->queue);
        port->queued = 0;
        port->is_posted = false;
        port->waiting_senders = 0;
        if (port->event >= 0) {
            (void)kernel.event_renew(port->event);
        }
    }
}

/* When the library is loaded: see Loop/Run/thread_registry.c. */
static __attribute__((constructor)) void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- the table ---- */

static bool grow(void)
{
    struct place *table = realloc(places, (capacity + growth) * sizeof *table);

    invariant_held(&table_lock);
    if (!table) {
        return false;
    }
    for (size_t i = capacity; i < capacity + growth; i++) {
        table[i] = (struct place){NULL, 0};
    }
    places = table;
    capacity += growth;
    return true;
}

/* A free place, or `capacity`. */
static size_t find_free(void)
{
    invariant_held(&table_lock);
    for (size_t i = 0; i < capacity; i++) {
        size_t place = (next + i) % capacity;

        if (!places[place].port) {
            return place;
        }
    }
    return capacity;
}

bool mach_port_table_add(CFMachPortRef port, mach_port_t *ret_number)
{
    size_t place;
    bool has_room;

    thread_registry_prepare(); /* its mark frees the locks of items in a child that ran no handlers of fork */
    lock_take(&table_lock);
    place = find_free();
    has_room = place < capacity || grow();
    if (has_room) {
        places[place].port = port;
        places[place].uses++;
        next = place + 1;
        *ret_number = number_of(place);
    }
    lock_drop(&table_lock);
    return has_room;
}

static size_t place_of(mach_port_t number)
{
    return (size_t)(number >> use_bits) - 1;
}

CFMachPortRef mach_port_table_find(mach_port_t number)
{
    size_t place = place_of(number);
    CFMachPortRef port = NULL;

    lock_take(&table_lock);
    if (place < capacity && places[place].port && number_of(place) == number && object_try_retain(places[place].port)) {
        port = places[place].port;
    }
    lock_drop(&table_lock);
    return port;
}

void mach_port_table_remove(CFMachPortRef port)
{
    size_t place = place_of(port->number);

    lock_take(&table_lock);
    if (place < capacity && places[place].port == port) {
        places[place].port = NULL;
    }
    lock_drop(&table_lock);
}
