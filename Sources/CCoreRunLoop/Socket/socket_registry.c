/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of weak references to sockets, by descriptor.
 *
 * One lock guards the table. No other lock is taken while it is held. A fork takes it, so that the child finds the table whole. The table
 * only grows, and stays until the process ends.
 */
#include "Socket/socket_registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "Loop/Run/thread_registry.h"
#include "Socket/socket.h"

static struct lock registry_lock;
static CFSocketRef *sockets GUARDED_BY(&registry_lock); /* by descriptor; an object takes itself out before it is freed */
static size_t capacity GUARDED_BY(&registry_lock);

/* Held from here to one of the next two, over the fork. */
NOT_CHECKED static void before_fork(void)
{
    lock_take(&registry_lock);
}

NOT_CHECKED static void after_fork_in_parent(void)
{
    lock_drop(&registry_lock);
}

static void after_fork_in_child(void)
{
    lock_reset(&registry_lock);
}

/* When the library is loaded: see Loop/Run/thread_registry.c. */
static __attribute__((constructor)) void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Makes the table long enough for the number. False if there is no memory. */
REQUIRES(registry_lock) static bool make_room(size_t native)
{
    size_t wanted = capacity ? capacity : 64;
    CFSocketRef *table;

    invariant_held(&registry_lock);
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
    invariant(native < capacity);
    return true;
}

/* Returns the registered object, with a reference. An object whose count has come to 0 is being freed and does not count. */
REQUIRES(registry_lock) static CFSocketRef retain_if_alive(size_t native)
{
    CFSocketRef s = native < capacity ? sockets[native] : NULL;

    invariant_held(&registry_lock);
    return s && object_try_retain(s) ? s : NULL;
}

CFSocketRef socket_registry_find(int native)
{
    CFSocketRef s;

    if (native < 0) {
        return NULL;
    }
    lock_take(&registry_lock);
    s = retain_if_alive((size_t)native);
    lock_drop(&registry_lock);
    return s;
}

CFSocketRef socket_registry_add(int native, CFSocketRef s, bool *ret_failed)
{
    CFSocketRef other;

    invariant(native >= 0);
    thread_registry_prepare(); /* its mark frees the locks of items in a child that ran no handlers of fork */
    lock_take(&registry_lock);
    *ret_failed = !make_room((size_t)native);
    other = retain_if_alive((size_t)native);
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
    socket_lock(s); /* after the registry's lock is dropped: no thread holds both */
    s->lost_descriptor = true;
    socket_unlock(s);
    object_release(s);
}
