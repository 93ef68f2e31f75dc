/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of events for tests, on this thread's loop, and what it has told. */
#ifndef CRL_TESTS_EVENTS_PROBE_H
#define CRL_TESTS_EVENTS_PROBE_H

#include "CoreFoundation/CoreFoundation.h"
#include "CoreServices/CoreServices.h"

enum { probe_events_most = 64 };

struct events_probe {
    FSEventStreamRef stream;
    size_t count;
    char *paths[probe_events_most]; /* more than these are counted and not kept */
    FSEventStreamEventFlags flags[probe_events_most];
    FSEventStreamEventId ids[probe_events_most];
};

/* Makes a stream of the path, schedules and starts it. Returns false where one of these is refused. */
bool events_probe_start(struct events_probe *probe, const char *path, FSEventStreamEventId since, FSEventStreamCreateFlags flags);
bool events_probe_start_all(struct events_probe *probe, CFArrayRef paths, FSEventStreamEventId since, FSEventStreamCreateFlags flags);
/* Has all told that has happened. */
void events_probe_flush(struct events_probe *probe);
/* The flags that were told of the path, all together; 0: none was. */
FSEventStreamEventFlags events_probe_flags(const struct events_probe *probe, const char *path);
void events_probe_forget(struct events_probe *probe);
/* Invalidates and releases the stream. */
void events_probe_end(struct events_probe *probe);

CFArrayRef events_probe_copy_paths(const char *path);

#endif
