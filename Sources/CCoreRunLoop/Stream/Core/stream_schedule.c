/* SPDX-License-Identifier: Apache-2.0 */
/* The modes that a stream is scheduled in, and its source; see stream_schedule.h. No lock is held over calls on loops. */
#include "Stream/Core/stream_schedule.h"

#include <stdlib.h>

#include "Loop/Source/descriptor_source.h"
#include "Loop/Watch/watch.h"
#include "Stream/Core/stream_events.h"
#include "Stream/Core/stream_queue.h"
#include "Support/fault.h"

struct stream_place {
    CFRunLoopRef loop; /* a reference, as the mode */
    CFStringRef mode;
};

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

/* Whether the stream is scheduled in the mode that runs on this thread. */
EXCLUDES(the_item_lock) static bool is_in_running_mode(struct stream *s)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFStringRef mode = CFRunLoopCopyCurrentMode(loop);
    CFRunLoopSourceRef source;
    bool answer = false;

    stream_lock(s);
    source = s->source;
    if (source) {
        object_retain(source);
    }
    stream_unlock(s);
    if (source) {
        answer = mode && CFRunLoopContainsSource(loop, source, mode);
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
        stream_events_deliver(s, 0);
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
        stream_events_deliver(s, ready & ~(uint32_t)(watch_posted | watch_still_installed));
    }
}

static CFRunLoopSourceRef make_source(struct stream_link *link, int descriptor)
{
    if (descriptor >= 0) {
        const struct descriptor_source_context context = {
            .info = link, .release = free_link, .perform = perform_ready, .copy_description = describe_link, .is_version_0 = true};

        return descriptor_source_create(NULL, 0, descriptor, &context);
    }
    CFRunLoopSourceContext context = {
        .info = link, .release = free_link, .copyDescription = describe_link, .perform = perform_signalled};

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

/* ---- the places ---- */

/* Returns the index of the place, or the count of places. */
REQUIRES(the_item_lock) static uint32_t find_place(const struct stream *s, CFRunLoopRef loop, CFStringRef mode)
{
    uint32_t i = 0;

    while (i < s->place_count && (s->places[i].loop != loop || !CFEqual(s->places[i].mode, mode))) {
        i++;
    }
    return i;
}

bool stream_schedule_has_several_modes(const struct stream *s)
{
    return s->place_count > 1 || (s->place_count == 1 && CFEqual(s->places[0].mode, kCFRunLoopCommonModes));
}

static void release_place(struct stream_place place)
{
    CFRelease(place.loop);
    CFRelease(place.mode);
}

/* Takes the stream off its queue. Returns false if there is no memory, or the stream is closed, or it is there already. */
EXCLUDES(the_item_lock) static bool add_place(struct stream *s, struct stream_place place)
{
    struct stream_place *grown = NULL;
    struct stream_queue *queue = NULL;
    bool is_new;

    stream_lock(s);
    is_new = s->status != kCFStreamStatusClosed && find_place(s, place.loop, place.mode) == s->place_count;
    if (is_new) {
        grown = realloc(s->places, (s->place_count + 1) * sizeof *grown);
    }
    if (grown) {
        s->places = grown;
        grown[s->place_count++] = place;
        queue = stream_queue_take(s); /* under the same lock: another thread may be giving it a queue */
    }
    stream_unlock(s);
    stream_queue_detach(queue);
    if (is_new && !grown) {
        log_lack_of_memory();
    }
    return grown;
}

/* Copies the place of that index, with references. Returns false if there are fewer. */
EXCLUDES(the_item_lock) static bool copy_place(struct stream *s, uint32_t index, struct stream_place *ret_place)
{
    bool is_there;

    stream_lock(s);
    is_there = index < s->place_count;
    if (is_there) {
        *ret_place = s->places[index];
        object_retain(ret_place->loop);
        object_retain(ret_place->mode);
    }
    stream_unlock(s);
    return is_there;
}

/*
 * For walking over the places from the last one down: a place that is removed meanwhile leaves its index to the last one, which has been
 * seen. Whoever adds one meanwhile does with it what the walk does.
 */
EXCLUDES(the_item_lock) static uint32_t count_places(struct stream *s)
{
    uint32_t count;

    stream_lock(s);
    count = s->place_count;
    stream_unlock(s);
    return count;
}

/* Adds the source to a mode. Takes it out again if the stream has left the mode meanwhile, or has another source. */
EXCLUDES(the_item_lock) static void add_source(struct stream *s, CFRunLoopSourceRef source, struct stream_place place)
{
    bool is_wanted;

    CFRunLoopAddSource(place.loop, source, place.mode);
    stream_lock(s);
    is_wanted = s->source == source && find_place(s, place.loop, place.mode) < s->place_count;
    stream_unlock(s);
    if (!is_wanted) {
        CFRunLoopRemoveSource(place.loop, source, place.mode);
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
    if (s->place_count > 0 && s->descriptor == descriptor) { /* else it was closed, or has changed: the new source is given up */
        old_source = s->source;
        old_link = s->link;
        s->source = source;
        s->link = link;
        s->source_descriptor = descriptor;
    }
    stream_unlock(s);
    end_source(old_source, old_link);
    return true;
}

/* Returns the source with a reference if it watches the stream's descriptor; else NULL, and whether one is needed. */
EXCLUDES(the_item_lock) static CFRunLoopSourceRef retain_source(struct stream *s, int *ret_descriptor, bool *ret_is_needed)
{
    CFRunLoopSourceRef source = NULL;

    stream_lock(s);
    *ret_descriptor = s->descriptor;
    *ret_is_needed = s->place_count > 0 && (!s->source || s->source_descriptor != s->descriptor);
    if (s->source && !*ret_is_needed) {
        source = s->source;
        object_retain(source);
    }
    stream_unlock(s);
    return source;
}

void stream_schedule_renew(struct stream *s)
{
    struct stream_place place;
    CFRunLoopSourceRef source;
    int descriptor;
    bool is_needed;

    if (stream_queue_renew(s)) {
        return;
    }
    source = retain_source(s, &descriptor, &is_needed);
    if (!is_needed) {
        if (source) {
            object_release(source);
        }
        return;
    }
    if (!replace_source(s, descriptor)) {
        log_lack_of_memory();
        return;
    }
    source = retain_source(s, &descriptor, &is_needed);
    if (!source) {
        return; /* another thread has closed the stream */
    }
    for (uint32_t i = count_places(s); i-- > 0;) {
        if (copy_place(s, i, &place)) {
            add_source(s, source, place);
            release_place(place);
        }
    }
    object_release(source);
}

void stream_schedule_add(struct stream *s, CFRunLoopRef loop, CFStringRef mode)
{
    struct stream_place place = {loop, mode};
    CFRunLoopSourceRef source;
    int descriptor;
    bool is_needed;

    object_retain(loop);
    place.mode = CFStringCreateCopy(NULL, mode);
    if (!place.mode) {
        log_lack_of_memory();
    }
    if (!place.mode || !add_place(s, place)) {
        CFRelease(loop);
        if (place.mode) {
            CFRelease(place.mode);
        }
        stream_schedule_renew(s); /* there may have been no memory for the source when the stream was scheduled here before */
        return;
    }
    source = retain_source(s, &descriptor, &is_needed);
    if (source) {
        add_source(s, source, (struct stream_place){loop, mode});
        object_release(source);
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
    struct stream_place place = {NULL, NULL};
    CFRunLoopSourceRef source = NULL;
    uint32_t index;

    stream_lock(s);
    index = find_place(s, loop, mode);
    if (index < s->place_count) {
        place = s->places[index];
        s->places[index] = s->places[--s->place_count];
        s->departures++;
        source = s->source;
    }
    if (source) {
        object_retain(source);
    }
    stream_unlock(s);
    if (source) {
        CFRunLoopRemoveSource(loop, source, mode);
        object_release(source);
    }
    if (place.loop) {
        if (s->kind->unscheduled) {
            s->kind->unscheduled(s, loop, mode);
        }
        release_place(place);
    }
}

void stream_schedule_descriptor_changed(struct stream *s, int descriptor)
{
    CFRunLoopSourceRef source = NULL;

    stream_lock(s);
    if (s->status == kCFStreamStatusOpening || s->status == kCFStreamStatusOpen) {
        s->descriptor = descriptor;
        if (s->source && s->source_descriptor == descriptor) {
            source = s->source;
            object_retain(source);
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

void stream_schedule_each(struct stream *s, void (*function)(void *info, CFRunLoopRef loop, CFStringRef mode), void *info)
{
    struct stream_place place;

    for (uint32_t i = count_places(s); i-- > 0;) {
        if (copy_place(s, i, &place)) {
            function(info, place.loop, place.mode);
            release_place(place);
        }
    }
}

static void wake(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    (void)mode;
    CFRunLoopWakeUp(loop);
}

void stream_schedule_wake(struct stream *s)
{
    stream_schedule_each(s, wake, NULL);
}

/* ---- the end ---- */

static void free_places(struct stream_place *places, uint32_t count)
{
    while (count > 0) {
        release_place(places[--count]);
    }
    free(places);
}

/* What a stream has in loops and on a queue. */
struct belongings {
    CFRunLoopSourceRef source;
    struct stream_link *link;
    struct stream_place *places;
    uint32_t place_count;
    struct stream_queue *queue;
};

REQUIRES(the_item_lock) static struct belongings take_all(struct stream *s)
{
    struct belongings taken = {s->source, s->link, s->places, s->place_count, s->queue};

    s->source = NULL;
    s->link = NULL;
    s->source_descriptor = -1;
    s->places = NULL;
    s->place_count = 0;
    s->queue = NULL;
    s->departures++;
    atomic_store_explicit(&s->interest, 0, memory_order_relaxed);
    return taken;
}

static void end_all(const struct belongings *taken)
{
    end_source(taken->source, taken->link);
    free_places(taken->places, taken->place_count);
    stream_queue_detach(taken->queue);
}

void stream_schedule_take_and_unlock(struct stream *s)
{
    struct belongings taken = take_all(s);

    stream_unlock(s);
    end_all(&taken);
}

/* Nobody else refers to the stream (NOT_CHECKED). */
NOT_CHECKED void stream_schedule_end(struct stream *s)
{
    struct belongings taken = take_all(s);

    end_all(&taken);
}
