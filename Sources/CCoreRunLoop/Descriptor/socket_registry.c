/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which socket object stands for a descriptor: a table by number, of weak references.
 *
 * One lock guards it; nothing else is locked while it is held, and a fork takes it. The table stays until the process ends.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "Descriptor/socket.h"

static struct lock registry_lock;
static CFSocketRef *sockets; /* registry_lock; by descriptor */
static size_t capacity; /* registry_lock */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    lock_take(&registry_lock);
}

static void after_fork_in_parent(void)
{
    lock_drop(&registry_lock);
}

static void after_fork_in_child(void)
{
    lock_reset(&registry_lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static bool make_room(size_t native)
{
    size_t wanted = capacity ? capacity : 64;
    CFSocketRef *table;

    if (native < capacity) {
        return true;
    }
    while (wanted <= native) {
        wanted *= 2;
    }
    table = realloc(sockets, wanted * sizeof(CFSocketRef));
    if (!table) {
        return false;
    }
    memset(table + capacity, 0, (wanted - capacity) * sizeof(CFSocketRef));
    sockets = table;
    capacity = wanted;
    return true;
}

/* One whose count has come to 0 is on its way out and does not count. */
static CFSocketRef living(size_t native)
{
    CFSocketRef s = native < capacity ? sockets[native] : NULL;

    return s && object_try_retain(s) ? s : NULL;
}

CFSocketRef socket_registry_find(int native)
{
    CFSocketRef s;

    if (native < 0) {
        return NULL;
    }
    lock_take(&registry_lock);
    s = living((size_t)native);
    lock_drop(&registry_lock);
    return s;
}

CFSocketRef socket_registry_add(int native, CFSocketRef s, bool *ret_failed)
{
    CFSocketRef other;

    (void)pthread_once(&once, watch_forks);
    lock_take(&registry_lock);
    *ret_failed = !make_room((size_t)native);
    other = living((size_t)native);
    if (!other && !*ret_failed) {
        sockets[native] = s;
    }
    lock_drop(&registry_lock);
    return other;
}

void socket_registry_remove(int native, CFSocketRef s)
{
    lock_take(&registry_lock);
    if (native >= 0 && (size_t)native < capacity && sockets[native] == s) {
        sockets[native] = NULL;
    }
    lock_drop(&registry_lock);
}

void socket_registry_evict(int native)
{
    CFSocketRef s = socket_registry_find(native);

    if (!s) {
        return;
    }
    socket_registry_remove(native, s);
    socket_lock(s);
    s->lost_descriptor = true;
    socket_unlock(s);
    object_release(s);
}
