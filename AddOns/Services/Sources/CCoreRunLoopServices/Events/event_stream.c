/* SPDX-License-Identifier: Apache-2.0 */
/* See event_stream.h. */
#include "Events/event_stream.h"

#include <stdlib.h>
#include <unistd.h>

#include "Events/event_batch.h"
#include "File/notify_kernel.h"
#include "Support/invariant.h"

enum { serve_most = 4 * event_buffer_size };

static const int64_t retry_ns = 1000000000; /* after there was no memory */

bool event_stream_is_ours(const struct __FSEventStream *stream)
{
    return getpid() == stream->process;
}

/* ---- life ---- */

void event_stream_retain(struct __FSEventStream *stream)
{
    atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
}

static void close_if_open(int descriptor)
{
    if (descriptor >= 0) {
        (void)notify_kernel.close(descriptor);
    }
}

/* No other thread knows it (NOT_CHECKED). */
NOT_CHECKED static void free_stream(struct __FSEventStream *stream)
{
    invariant(!stream->source && !stream->queue_source);
    if (stream->roots.tree.notify >= 0) {
        stream_roots_stop(&stream->roots);
    }
    for (size_t i = 0; stream->roots.roots && i < stream->roots.count; i++) {
        free(stream->roots.roots[i].path);
    }
    for (size_t i = 0; i < excluded_most; i++) {
        free(stream->excluded[i]);
    }
    free(stream->roots.roots);
    watch_tree_deinit(&stream->roots.tree);
    pending_events_deinit(&stream->pending);
    pending_event_list_free(stream->unmade);
    close_if_open(stream->alarm);
    close_if_open(stream->set);
    if (stream->paths) {
        CFRelease(stream->paths);
    }
    if (stream->context.release) {
        stream->context.release(stream->context.info);
    }
    service_lock_destroy(&stream->lock);
    (void)pthread_cond_destroy(&stream->told);
    free(stream->device_path);
    free(stream->buffer);
    free(stream);
}

void event_stream_release(struct __FSEventStream *stream)
{
    uint32_t before = atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel);

    invariant(before > 0);
    if (before == 1) {
        free_stream(stream);
    }
}

/* ---- telling ---- */

REQUIRES(the_service_lock) static void set_alarm(struct __FSEventStream *stream)
{
    int64_t when = stream->is_telling ? 0 : stream->due_ns;

    if (when != stream->alarm_ns) {
        (void)notify_kernel.alarm_set(stream->alarm, when);
        stream->alarm_ns = when;
    }
}

/* Notes what is owed to the program: that events were lost, and that there is no history. False: there is no memory yet. */
REQUIRES(the_service_lock) static bool note_owed(struct __FSEventStream *stream)
{
    FSEventStreamEventFlags lost = stream->roots.tree.lost;

    if (lost != 0) {
        stream->roots.tree.lost = 0;
        if (!stream_roots_tell(&stream->roots, lost)) {
            pending_events_clear_paths(&stream->pending); /* all that these say, the lost ones say too */
            if (!stream_roots_tell(&stream->roots, lost)) {
                stream->roots.tree.lost = lost;
                return false;
            }
        }
    }
    if (stream->owes_history_done) {
        stream->owes_history_done = !pending_events_note(&stream->pending, stream->roots.roots[0].path, kFSEventStreamEventFlagHistoryDone,
                                                         event_of_history, false);
    }
    return !stream->owes_history_done;
}

/* Decides when what is pending is told. */
REQUIRES(the_service_lock) static void set_due(struct __FSEventStream *stream)
{
    int64_t now = notify_kernel.now_ns();
    int64_t from = stream->flags & kFSEventStreamCreateFlagNoDefer ? stream->told_ns : now;
    bool is_noted = note_owed(stream);

    if (stream->due_ns == 0 && (stream->pending.count > 0 || stream->unmade || !is_noted)) {
        stream->due_ns = stream->latency_ns > now - from ? from + stream->latency_ns : now;
        stream->due_ns += is_noted && !stream->unmade ? 0 : retry_ns;
    }
}

/* Calls the callback, without the lock. */
REQUIRES(the_service_lock) static void tell_pending(struct __FSEventStream *stream)
{
    struct pending_event *list = stream->unmade ? stream->unmade : pending_events_take(&stream->pending);
    struct event_batch batch;
    bool is_made;

    stream->unmade = NULL;
    stream->due_ns = 0;
    if (!list) {
        return;
    }
    stream->is_telling = true;
    stream->teller = pthread_self();
    service_lock_drop(&stream->lock);
    is_made = event_batch_make(&batch, list, stream->flags, stream->device_path);
    if (is_made) {
        if (batch.latest != 0) {
            atomic_store_explicit(&stream->latest, batch.latest, memory_order_relaxed);
        }
        stream->callback(stream, stream->context.info, batch.count, batch.paths, batch.flags, batch.ids);
        event_batch_free(&batch);
        pending_event_list_free(list);
        list = NULL;
    }
    service_lock_take(&stream->lock);
    stream->is_telling = false;
    stream->told_ns = notify_kernel.now_ns();
    if (stream->is_started) {
        stream->unmade = list;
        list = NULL;
    }
    pending_event_list_free(list);
    (void)pthread_cond_broadcast(&stream->told);
}

REQUIRES(the_service_lock) static void read_kernel(struct __FSEventStream *stream, size_t most)
{
    stream_roots_read(&stream->roots, stream->buffer, event_buffer_size, most);
    set_due(stream);
}

void event_stream_serve(struct __FSEventStream *stream)
{
    service_lock_take(&stream->lock);
    if (stream->is_started) {
        read_kernel(stream, serve_most);
        if (!stream->is_telling && stream->due_ns != 0 && notify_kernel.now_ns() >= stream->due_ns) {
            tell_pending(stream);
        }
        set_due(stream);
        set_alarm(stream);
    }
    service_lock_drop(&stream->lock);
}

/* Waits for another thread to have told. clang does not know a condition (NOT_CHECKED). */
NOT_CHECKED static void wait_for_teller(struct __FSEventStream *stream)
{
    while (stream->is_telling && !pthread_equal(stream->teller, pthread_self())) {
        int cancel_state = stream->lock.cancel_state; /* which others change meanwhile */

        (void)pthread_cond_wait(&stream->told, &stream->lock.mutex);
        stream->lock.cancel_state = cancel_state;
    }
}

void event_stream_flush(struct __FSEventStream *stream)
{
    service_lock_take(&stream->lock);
    if (stream->is_started && !(stream->is_telling && pthread_equal(stream->teller, pthread_self()))) {
        int count = notify_kernel.notify_pending(stream->roots.tree.notify);

        read_kernel(stream, count > 0 ? (size_t)count : 1);
        wait_for_teller(stream);
        if (stream->is_started && !stream->is_telling) {
            bool had_unmade = stream->unmade;

            tell_pending(stream);
            if (had_unmade && !stream->unmade) {
                tell_pending(stream);
            }
            set_due(stream);
            set_alarm(stream);
        }
    }
    service_lock_drop(&stream->lock);
}

FSEventStreamEventId event_stream_hurry(struct __FSEventStream *stream)
{
    FSEventStreamEventId last = 0;

    service_lock_take(&stream->lock);
    if (stream->is_started) {
        int count = notify_kernel.notify_pending(stream->roots.tree.notify);

        read_kernel(stream, count > 0 ? (size_t)count : 1);
        if (stream->pending.last) {
            last = stream->pending.last->id;
            stream->due_ns = 1;
        }
        set_alarm(stream);
    }
    service_lock_drop(&stream->lock);
    return last;
}

/* ---- start and stop ---- */

REQUIRES(the_service_lock) static void tell_history(struct __FSEventStream *stream)
{
    if (stream->has_history) {
        stream->roots.tree.lost |= kFSEventStreamEventFlagMustScanSubDirs;
        stream->owes_history_done = true;
    }
    stream->has_history = true; /* of a stream that is started again */
}

bool event_stream_start(struct __FSEventStream *stream)
{
    bool is_started = false;

    service_lock_take(&stream->lock);
    if (stream->is_valid && !stream->is_started && (stream->mode_count > 0 || stream->queue_source)) {
        is_started = stream->is_started = stream_roots_start(&stream->roots);
    }
    if (is_started) {
        tell_history(stream);
        set_due(stream);
        set_alarm(stream);
    }
    service_lock_drop(&stream->lock);
    return is_started;
}

void event_stream_stop(struct __FSEventStream *stream)
{
    service_lock_take(&stream->lock);
    if (stream->is_started) {
        stream->is_started = false;
        stream_roots_stop(&stream->roots);
        pending_events_clear(&stream->pending);
        pending_event_list_free(stream->unmade);
        stream->unmade = NULL;
        stream->owes_history_done = false;
        stream->due_ns = 0;
        set_alarm(stream);
    }
    service_lock_drop(&stream->lock);
}
