/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a stream that wait to be told: one for each path, with the flags of all that happened to it, the one that changed last at
 * the end. Guarded by the stream's lock; a list that was taken belongs to whoever took it.
 */
#ifndef CRL_SERVICES_PENDING_EVENTS_H
#define CRL_SERVICES_PENDING_EVENTS_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "CoreServices/FSEvents.h"
#include "Events/name_table.h"

/* Events of different kinds are not told as one. */
enum event_kind { event_of_path, event_of_root, event_of_history };

struct pending_event {
    struct pending_event *next;
    struct pending_event *previous;
    struct name_entry entry; /* by its path */
    FSEventStreamEventFlags flags;
    FSEventStreamEventId id;
    uint32_t cookie; /* of the latest move from or to the path; 0: none */
    bool is_looked_at; /* when it is told, its kind is that of the file that is there then */
    char path[];
};

struct untold_events {
    struct pending_event *first;
    struct pending_event *last;
    size_t count;
    size_t bytes; /* of those of paths */
    struct name_table paths;
};

bool pending_events_init(struct untold_events *events);
void pending_events_deinit(struct untold_events *events);
/* Returns false without memory, or if there are too many. */
bool pending_events_note(struct untold_events *events, const char *path, FSEventStreamEventFlags flags, enum event_kind kind,
                         bool is_looked_at);
/* Drops all of them. */
void pending_events_clear(struct untold_events *events);
/* Drops those of paths. */
void pending_events_clear_paths(struct untold_events *events);
/* Takes all of them out, as a list that pending_event_list_free frees. */
struct pending_event *pending_events_take(struct untold_events *events);
void pending_event_list_free(struct pending_event *list);

/* The ids of events, over all streams. Any thread. */
FSEventStreamEventId event_id_next(void);
FSEventStreamEventId event_id_current(void);

#endif
