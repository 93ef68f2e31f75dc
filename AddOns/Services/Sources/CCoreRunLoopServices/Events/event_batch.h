/* SPDX-License-Identifier: Apache-2.0 */
/* What a callback gets of a list of events: paths, flags and ids, in the types that the stream was created for. Any thread; no state. */
#ifndef CRL_SERVICES_EVENT_BATCH_H
#define CRL_SERVICES_EVENT_BATCH_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "CoreServices/FSEvents.h"
#include "Events/pending_events.h"

struct event_batch {
    size_t count;
    void *paths; /* char **, or a CFArrayRef */
    FSEventStreamEventFlags *flags;
    FSEventStreamEventId *ids;
    FSEventStreamEventId latest; /* of the ids */
    bool has_objects; /* the paths are an array of objects */
};

/* `device_path` is what paths are relative to, or NULL. The batch borrows paths from the list. False: there is no memory. */
bool event_batch_make(struct event_batch *batch, struct pending_event *list, FSEventStreamCreateFlags flags, const char *device_path);
void event_batch_free(struct event_batch *batch);

#endif
