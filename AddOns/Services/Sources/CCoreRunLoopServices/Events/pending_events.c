/* SPDX-License-Identifier: Apache-2.0 */
/* See pending_events.h. */
#include "Events/pending_events.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Beyond so much a program is better told to look for itself. Of events of other kinds there are no more than given paths. */
enum { pending_bytes_most = 1 << 25 };

static _Atomic FSEventStreamEventId last_id;

static FSEventStreamEventId microseconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (FSEventStreamEventId)now.tv_sec * 1000000 + (FSEventStreamEventId)now.tv_nsec / 1000;
}

FSEventStreamEventId event_id_next(void)
{
    FSEventStreamEventId now = microseconds_now();
    FSEventStreamEventId last = atomic_load_explicit(&last_id, memory_order_relaxed);
    FSEventStreamEventId next;

    do {
        next = now > last ? now : last + 1;
    } while (!atomic_compare_exchange_weak_explicit(&last_id, &last, next, memory_order_relaxed, memory_order_relaxed));
    return next;
}

FSEventStreamEventId event_id_current(void)
{
    FSEventStreamEventId last = atomic_load_explicit(&last_id, memory_order_relaxed);

    return last != 0 ? last : event_id_next();
}

bool pending_events_init(struct untold_events *events)
{
    events->first = events->last = NULL;
    events->count = events->bytes = 0;
    return name_table_init(&events->paths);
}

void pending_events_clear(struct untold_events *events)
{
    pending_event_list_free(pending_events_take(events));
}

void pending_events_deinit(struct untold_events *events)
{
    if (events->paths.places) {
        pending_events_clear(events);
    }
    name_table_deinit(&events->paths);
}

static void unlink_event(struct untold_events *events, struct pending_event *event)
{
    *(event->previous ? &event->previous->next : &events->first) = event->next;
    *(event->next ? &event->next->previous : &events->last) = event->previous;
}

static void append_event(struct untold_events *events, struct pending_event *event)
{
    event->next = NULL;
    event->previous = events->last;
    *(events->last ? &events->last->next : &events->first) = event;
    events->last = event;
}

/* Each kind is an owner in the table of paths. */
static const char kinds[event_of_history + 1];

void pending_events_clear_paths(struct untold_events *events)
{
    for (struct pending_event *event = events->first, *next; event; event = next) {
        next = event->next;
        if (event->entry.owner == &kinds[event_of_path]) {
            name_table_remove(&events->paths, &event->entry);
            unlink_event(events, event);
            events->count--;
            free(event);
        }
    }
    events->bytes = 0;
}

static struct pending_event *make_event(struct untold_events *events, const char *path, enum event_kind kind)
{
    size_t size = strlen(path) + 1;
    size_t bytes = kind == event_of_path ? sizeof(struct pending_event) + size : 0;
    struct pending_event *event = events->bytes + bytes <= pending_bytes_most ? malloc(sizeof *event + size) : NULL;

    if (event) {
        events->bytes += bytes;
        memcpy(event->path, path, size);
        event->flags = 0;
        event->cookie = 0;
        event->is_looked_at = false;
        name_table_add(&events->paths, &event->entry, &kinds[kind], event->path);
        append_event(events, event);
        events->count++;
    }
    return event;
}

bool pending_events_note(struct untold_events *events, const char *path, FSEventStreamEventFlags flags, enum event_kind kind,
                         bool is_looked_at)
{
    const struct name_entry *entry = name_table_find(&events->paths, &kinds[kind], path);
    struct pending_event *event;

    if (entry) {
        event = (struct pending_event *)(void *)((char *)(uintptr_t)entry - offsetof(struct pending_event, entry));
        unlink_event(events, event);
        append_event(events, event);
    } else {
        event = make_event(events, path, kind);
    }
    if (!event) {
        return false;
    }
    event->flags |= flags;
    event->is_looked_at = event->is_looked_at || is_looked_at;
    event->id = kind == event_of_root ? 0 : event_id_next();
    return true;
}

struct pending_event *pending_events_take(struct untold_events *events)
{
    struct pending_event *list = events->first;
    size_t from = 0;

    while (name_table_take(&events->paths, &from)) {
    }
    events->first = events->last = NULL;
    events->count = events->bytes = 0;
    return list;
}

void pending_event_list_free(struct pending_event *list)
{
    while (list) {
        struct pending_event *next = list->next;

        free(list);
        list = next;
    }
}
