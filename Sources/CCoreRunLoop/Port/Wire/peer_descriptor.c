/* SPDX-License-Identifier: Apache-2.0 */
/* Closing what a peer has sent; see peer_descriptor.h. The innermost lock of Port guards the list of what the thread has to close. */
#include "Port/Wire/peer_descriptor.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Support/lock.h"

enum { room_at_first = 16 };

static struct lock closing_lock;
static int *waiting GUARDED_BY(&closing_lock);
static size_t waiting_count GUARDED_BY(&closing_lock);
static size_t waiting_room GUARDED_BY(&closing_lock);
static bool thread_runs GUARDED_BY(&closing_lock);

/* Returns false without memory. */
REQUIRES(&closing_lock) static bool append(int descriptor)
{
    if (waiting_count == waiting_room) {
        size_t room = waiting_room > 0 ? 2 * waiting_room : room_at_first;
        int *larger = realloc(waiting, room * sizeof *larger);

        if (!larger) {
            return false;
        }
        waiting = larger;
        waiting_room = room;
    }
    waiting[waiting_count++] = descriptor;
    return true;
}

/* Takes a descriptor out of the list. Returns -1 if there is none: then the thread has to end. */
static int take_next(void)
{
    int result = -1;

    lock_take(&closing_lock);
    if (waiting_count > 0) {
        result = waiting[--waiting_count];
    } else {
        free(waiting);
        waiting = NULL;
        waiting_room = 0;
        thread_runs = false;
    }
    lock_drop(&closing_lock);
    return result;
}

static void *close_all(void *info)
{
    int descriptor;

    (void)info;
    while ((descriptor = take_next()) >= 0) {
        (void)kernel_ports.stop_lingering(descriptor); /* otherwise one socket would hold up the descriptors after it */
        (void)kernel.close(descriptor);
    }
    return NULL;
}

/* Without memory or a thread the caller closes it: a wait is better than a descriptor that is lost. */
static void close_on_thread(int descriptor)
{
    bool is_listed;
    bool starts;

    lock_take(&closing_lock);
    is_listed = append(descriptor);
    starts = is_listed && !thread_runs;
    thread_runs |= starts;
    lock_drop(&closing_lock);
    if (!is_listed) {
        (void)kernel.close(descriptor);
    } else if (starts && kernel.thread_start(close_all, "closing") < 0) {
        (void)close_all(NULL);
    }
}

void peer_descriptor_close(int descriptor)
{
    uint64_t size;

    if (kernel_ports.memory_size(descriptor, &size) == 0) {
        (void)kernel.close(descriptor);
    } else {
        close_on_thread(descriptor);
    }
}

/* Not checked: a fork handler takes the lock that the next one drops. */
NOT_CHECKED void peer_descriptors_before_fork(void)
{
    lock_take(&closing_lock);
}

/* Not checked: see above. */
NOT_CHECKED void peer_descriptors_after_fork(bool is_child)
{
    if (is_child) {
        thread_runs = false;
        lock_reset(&closing_lock);
    } else {
        lock_drop(&closing_lock);
    }
}
