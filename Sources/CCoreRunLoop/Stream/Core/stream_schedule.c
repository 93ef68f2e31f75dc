/* SPDX-License-Identifier: Apache-2.0 */
/* The modes that a stream is scheduled in, and its source; see stream_schedule.h. No lock is held over calls on loops. */
#include "Stream/Core/stream_schedule.h"

#include <stdlib.h>

#include "Loop/Source/descriptor_source.h"
#include "Loop/Watch/watch.h"
#include "Stream/Core/stream_events.h"
#include "Stream/Core/stream_queue.h"
#include "Support/fault.h"

/* The info of a stream's source, which frees it. */
struct stream_link {
    struct stream *stream GUARDED_BY(the_item_lock); /* the link's own lock; NULL: the stream is closed, or has another source */
};

/* ---- the link ---- */

static void cut_link(struct stream_link *link)
{
    lock_take(item_lock(link));
    link->stream = NULL;
    lock_drop(item_lock(link));
}

/* Returns the stream with a reference, or NULL if it is closed, freed, or has another source. */
static struct stream *retain_stream(struct stream_link *link)
{
    struct stream *s;

    lock_take(item_lock(link));
    s = link->stream && object_try_retain(link->stream) ? link->stream : NULL;
    lock_drop(item_lock(link));
    return s;
}

static void free_link(const void *info)
{
    free((void *)(uintptr_t)info);
}

static CFStringRef describe_link(const void *info)
{
    struct stream *s = retain_stream((struct stream_link *)(uintptr_t)info);
    CFStringRef text = s ? CFCopyDescription(s) : NULL;

    if (s) {
        object_release(s);
    }
    return text;
}

/* ---- the source ---- */

/* Returns the source with a reference, or NULL. */
REQUIRES(the_item_lock) static CFRunLoopSourceRef retain_source(const struct stream *s)
{
    if (s->carriers.source) {
        object_retain(s->carriers.source);
    }
    return s->carriers.source;
}

/* Whether the stream is scheduled in the mode that runs on this thread. */
EXCLUDES(the_item_lock) static bool is_in_running_mode(struct stream *s)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFStringRef mode = CFRunLoopCopyCurrentMode(loop);
    CFRunLoopSourceRef source;
    bool answer;

    stream_lock(s);
    source = retain_source(s);
    stream_unlock(s);
    answer = source && mode && CFRunLoopContainsSource(loop, source, mode);
    if (source) {
        object_release(source);
    }
    if (mode) {
        CFRelease(mode);
    }
    return answer;
}

/* A pass performs what was signalled when it began, also what a callback has taken out of the mode since. Such a stream stays signalled. */
static void perform_signalled(void *info)
{
    struct stream *s = retain_stream(info);

    if (!s) {
        return;
    }
    if (is_in_running_mode(s)) {
        s->deliver(s, 0);
    } else {
        stream_events_nudge(s);
        object_release(s);
    }
}

static void perform_ready(void *info, CFRunLoopSourceRef source, uint32_t ready)
{
    struct stream *s = retain_stream(info);

    if (ready & watch_posted) {
        descriptor_source_take_post(source);
    }
    if (s) {
        s->deliver(s, ready & ~(uint32_t)(watch_posted | watch_still_installed));
    }
}

static CFRunLoopSourceRef make_source(struct stream_link *link, int descriptor)
{
    if (descriptor >= 0) {
        const struct descriptor_source_context context = {
            .info = link, .release = free_link, .perform = perform_ready, .copy_description = describe_link, .is_version_0 = true};

        return descriptor_source_create(NULL, 0, descriptor, &context);
    }
    CFRunLoopSourceContext context = {.info = link, .release = free_link, .copyDescription = describe_link, .perform = perform_signalled};

    return CFRunLoopSourceCreate(NULL, 0, &context);
}

/* Invalidates a source that the stream has given up, and drops the stream's reference. Its loops wake. */
static void end_source(CFRunLoopSourceRef source, struct stream_link *link)
{
    if (source) {
        cut_link(link); /* before the source may free it */
        descriptor_source_invalidate(source);
        object_release(source);
    }
}

static void log_lack_of_memory(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    fault_log_once(&logged, "CFStream: no memory to schedule a stream; its client is told nothing until it is scheduled again");
}

/* ---- the modes ---- */

/* Takes the stream off its queue. Returns false if there is no memory, or the stream is closed, or it is in the mode already. */
EXCLUDES(the_item_lock) static bool add_mode(struct stream *s, struct scheduled_mode added)
{
    struct stream_queue *queue = NULL;
    bool is_new;
    bool is_added;

    stream_lock(s);
    is_new = s->status != kCFStreamStatusClosed && !scheduled_modes_contain(&s->modes, added.loop, added.mode);
    is_added = is_new && scheduled_modes_add(&s->modes, added);
    if (is_added) {
        queue = stream_queue_take(s); /* under the same lock: another thread may be giving it a queue */
    }
    stream_check_invariants(s);
    stream_unlock(s);
    stream_queue_detach(queue);
    if (is_new && !is_added) {
        log_lack_of_memory();
    }
    return is_added;
}

struct added_source {
    struct stream *stream;
    CFRunLoopSourceRef source;
};

/* Adds the source to a mode. Takes it out again if the stream has left the mode meanwhile, or has another source. */
static void add_source(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    const struct added_source *added = info;
    struct stream *s = added->stream;
    bool is_wanted;

    CFRunLoopAddSource(loop, added->source, mode);
    stream_lock(s);
    is_wanted = s->carriers.source == added->source && scheduled_modes_contain(&s->modes, loop, mode);
    stream_unlock(s);
    if (!is_wanted) {
        CFRunLoopRemoveSource(loop, added->source, mode);
    }
}

/* Makes a new source for the stream's descriptor and puts it in the place of the old one. Returns false if there is no memory. */
EXCLUDES(the_item_lock) static bool replace_source(struct stream *s, int descriptor)
{
    struct stream_link *link = malloc(sizeof *link);
    CFRunLoopSourceRef source = link ? make_source(link, descriptor) : NULL;
    CFRunLoopSourceRef old_source = source;
    struct stream_link *old_link = link;

    if (!source) {
        free(link);
        return false;
    }
    lock_take(item_lock(link));
    link->stream = s;
    lock_drop(item_lock(link));
    stream_lock(s);
    if (s->modes.count > 0 && s->descriptor == descriptor) { /* else it was closed, or has changed: the new source is given up */
        old_source = s->carriers.source;
        old_link = s->link;
        s->carriers.source = source;
        s->carriers.descriptor = descriptor;
        s->link = link;
        stream_check_invariants(s);
    }
    stream_unlock(s);
    end_source(old_source, old_link);
    return true;
}

/* Returns the source with a reference if it watches the stream's descriptor; else NULL, and whether one is needed. */
EXCLUDES(the_item_lock) static CFRunLoopSourceRef retain_current_source(struct stream *s, int *ret_descriptor, bool *ret_is_needed)
{
    CFRunLoopSourceRef source;

    stream_lock(s);
    *ret_descriptor = s->descriptor;
    *ret_is_needed = s->modes.count > 0 && (!s->carriers.source || s->carriers.descriptor != s->descriptor);
    source = *ret_is_needed ? NULL : retain_source(s);
    stream_unlock(s);
    return source;
}

void stream_schedule_renew(struct stream *s)
{
    struct added_source added = {s, NULL};
    int descriptor;
    bool is_needed;

    if (stream_queue_renew(s)) {
        return;
    }
    added.source = retain_current_source(s, &descriptor, &is_needed);
    if (is_needed && !replace_source(s, descriptor)) {
        log_lack_of_memory();
    } else if (is_needed) {
        added.source = retain_current_source(s, &descriptor, &is_needed);
        if (added.source) { /* else another thread has closed the stream */
            scheduled_modes_each(s, &s->modes, add_source, &added);
        }
    }
    if (added.source) {
        object_release(added.source);
    }
}

void stream_schedule_add(struct stream *s, CFRunLoopRef loop, CFStringRef mode)
{
    struct added_source added = {s, NULL};
    struct scheduled_mode made;
    bool is_made = scheduled_mode_init(&made, loop, mode);
    int descriptor;
    bool is_needed;

    if (!is_made) {
        log_lack_of_memory();
    }
    if (!is_made || !add_mode(s, made)) {
        if (is_made) {
            scheduled_mode_release(made);
        }
        stream_schedule_renew(s); /* there may have been no memory for the source when the stream was scheduled here before */
        return;
    }
    added.source = retain_current_source(s, &descriptor, &is_needed);
    if (added.source) {
        add_source(&added, loop, mode);
        object_release(added.source);
    } else {
        stream_schedule_renew(s);
    }
    if (s->kind->scheduled) {
        s->kind->scheduled(s, loop, mode);
    }
    stream_events_changed(s);
}

void stream_schedule_remove(struct stream *s, CFRunLoopRef loop, CFStringRef mode)
{
    struct scheduled_mode removed;
    CFRunLoopSourceRef source;
    bool was_there;

    stream_lock(s);
    was_there = scheduled_modes_remove(&s->modes, loop, mode, &removed);
    s->departures += was_there;
    source = was_there ? retain_source(s) : NULL;
    stream_unlock(s);
    if (source) {
        CFRunLoopRemoveSource(loop, source, mode);
        object_release(source);
    }
    if (was_there) {
        if (s->kind->unscheduled) {
            s->kind->unscheduled(s, loop, mode);
        }
        scheduled_mode_release(removed);
    }
}

void stream_schedule_descriptor_changed(struct stream *s, int descriptor)
{
    CFRunLoopSourceRef source = NULL;

    stream_lock(s);
    if (s->status == kCFStreamStatusOpening || s->status == kCFStreamStatusOpen) {
        s->descriptor = descriptor;
        if (s->carriers.descriptor == descriptor) {
            source = retain_source(s);
        }
    }
    stream_unlock(s);
    stream_queue_forget(s);
    if (source) {
        descriptor_source_file_replaced(source);
        object_release(source);
    } else {
        stream_schedule_renew(s);
    }
}

/* ---- the end ---- */

/* All that a stream has in loops and on a queue. */
struct belongings {
    struct stream_carriers carriers;
    struct stream_link *link;
    struct scheduled_modes modes;
};

REQUIRES(the_item_lock) static struct belongings take_all(struct stream *s)
{
    struct belongings taken = {s->carriers, s->link, s->modes};

    s->carriers = stream_carriers_none;
    s->link = NULL;
    s->modes = (struct scheduled_modes){NULL, 0};
    s->departures++;
    atomic_store_explicit(&s->interest, 0, memory_order_relaxed);
    return taken;
}

static void end_all(struct belongings *taken)
{
    end_source(taken->carriers.source, taken->link);
    scheduled_modes_free(&taken->modes);
    stream_queue_detach(taken->carriers.queue);
}

void stream_schedule_take_and_unlock(struct stream *s)
{
    struct belongings taken = take_all(s);

    stream_check_invariants(s);
    stream_unlock(s);
    end_all(&taken);
}

/* Nobody else refers to the stream (NOT_CHECKED). */
NOT_CHECKED void stream_schedule_end(struct stream *s)
{
    struct belongings taken = take_all(s);

    end_all(&taken);
}
