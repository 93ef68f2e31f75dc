/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream, and how it tells its events. Whoever waits for its wait set, a loop or a queue, calls event_stream_serve when it is readable:
 * the thread reads what the kernel has, and tells it when the latency is over, for which there is an alarm in the set.
 *
 * One thread tells at a time, without the lock. The others leave what they read to it, and to the alarm that it sets afterwards.
 */
#ifndef CRL_SERVICES_EVENT_STREAM_H
#define CRL_SERVICES_EVENT_STREAM_H

#include "services_link_names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "CoreServices/FSEvents.h"
#include "Events/pending_events.h"
#include "Events/stream_roots.h"
#include "service_lock.h"

enum { event_buffer_size = 65536, excluded_most = 8 };

struct __FSEventStream {
    _Atomic uint32_t references;
    FSEventStreamCallback callback; /* constant, as all to the lock */
    FSEventStreamContext context;
    CFArrayRef paths;
    FSEventStreamCreateFlags flags;
    int64_t latency_ns;
    dev_t device;
    char *device_path; /* what paths are relative to; NULL: nothing */
    pid_t process; /* that made it */
    int set;
    int alarm;
    _Atomic FSEventStreamEventId latest; /* that was told */
    struct service_lock lock; /* the_service_lock */
    pthread_cond_t told; /* nobody is telling */
    bool is_valid GUARDED_BY(the_service_lock);
    bool is_started GUARDED_BY(the_service_lock);
    bool has_history GUARDED_BY(the_service_lock); /* the next start tells that there is none */
    bool owes_history_done GUARDED_BY(the_service_lock); /* it is to be told, and there was no memory yet */
    bool is_telling GUARDED_BY(the_service_lock);
    pthread_t teller GUARDED_BY(the_service_lock);
    int64_t due_ns GUARDED_BY(the_service_lock); /* when what is pending is to be told; 0: nothing is */
    int64_t alarm_ns GUARDED_BY(the_service_lock); /* what the alarm is set to */
    int64_t told_ns GUARDED_BY(the_service_lock); /* when something was told last */
    struct untold_events pending GUARDED_BY(the_service_lock);
    struct pending_event *unmade GUARDED_BY(the_service_lock); /* was taken out of these; there was no memory to tell it */
    struct stream_roots roots GUARDED_BY(the_service_lock);
    char *excluded[excluded_most] GUARDED_BY(the_service_lock);
    CFRunLoopSourceRef source GUARDED_BY(the_service_lock); /* a reference; NULL: it was in no loop yet */
    _Atomic(CFRunLoopSourceRef) performed; /* the same without a reference, for the child of a fork; it stays when the stream is invalid */
    CFIndex mode_count GUARDED_BY(the_service_lock); /* how many modes of loops it is in */
    void *queue_source GUARDED_BY(the_service_lock); /* of libdispatch; NULL: it is in no queue */
    char *buffer GUARDED_BY(the_service_lock); /* for events of the kernel */
};

/* False in the child of a fork: there, nothing of the stream is used. */
bool event_stream_is_ours(const struct __FSEventStream *stream);
EXCLUDES(the_service_lock) void event_stream_serve(struct __FSEventStream *stream);
/* Reads and tells what has happened until now. */
EXCLUDES(the_service_lock) void event_stream_flush(struct __FSEventStream *stream);
/* Reads what has happened, and has it told soon. Returns the last id. */
EXCLUDES(the_service_lock) FSEventStreamEventId event_stream_hurry(struct __FSEventStream *stream);
EXCLUDES(the_service_lock) bool event_stream_start(struct __FSEventStream *stream);
EXCLUDES(the_service_lock) void event_stream_stop(struct __FSEventStream *stream);
void event_stream_retain(struct __FSEventStream *stream);
void event_stream_release(struct __FSEventStream *stream);

#endif
