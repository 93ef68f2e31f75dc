/* SPDX-License-Identifier: Apache-2.0 */
/* See host_schedule.h. No lock is held over calls on loops. */
#include "Host/host_schedule.h"

#include <stdlib.h>

#include "Host/question.h"

/* Returns the index of the place, or the count of places. */
REQUIRES(the_item_lock) static uint32_t find_place(CFHostRef host, CFRunLoopRef loop, CFStringRef mode)
{
    uint32_t i = 0;

    while (i < host->place_count && (host->places[i].loop != loop || !CFEqual(host->places[i].mode, mode))) {
        i++;
    }
    return i;
}

static void release_place(struct host_place place)
{
    CFRelease(place.loop);
    CFRelease(place.mode);
}

enum addition { addition_done, addition_known, addition_no_memory };

/* The place's references are the host's if it is added. */
EXCLUDES(the_item_lock) static enum addition add_place(CFHostRef host, struct host_place place)
{
    enum addition outcome = addition_known;

    host_lock(host);
    if (find_place(host, place.loop, place.mode) == host->place_count) {
        struct host_place *grown = realloc(host->places, (host->place_count + 1) * sizeof *grown);

        outcome = grown ? addition_done : addition_no_memory;
        if (grown) {
            host->places = grown;
            grown[host->place_count++] = place;
        }
    }
    host_unlock(host);
    return outcome;
}

EXCLUDES(the_item_lock) static bool is_there(CFHostRef host, CFRunLoopRef loop, CFStringRef mode)
{
    bool answer;

    host_lock(host);
    answer = find_place(host, loop, mode) < host->place_count;
    host_unlock(host);
    return answer;
}

bool host_schedule_add(CFHostRef host, CFRunLoopRef loop, CFStringRef mode)
{
    struct host_place place = {loop, CFStringCreateCopy(NULL, mode)};
    enum addition outcome = addition_no_memory;

    if (!place.mode) {
        return false;
    }
    object_retain(loop);
    outcome = add_place(host, place);
    if (outcome != addition_done) {
        release_place(place);
        return outcome == addition_known;
    }
    CFRunLoopAddSource(loop, host->source, mode);
    question_schedule(host, loop, mode);
    if (!is_there(host, loop, mode)) { /* another thread has taken the host out meanwhile */
        CFRunLoopRemoveSource(loop, host->source, mode);
    }
    return true;
}

void host_schedule_remove(CFHostRef host, CFRunLoopRef loop, CFStringRef mode)
{
    struct host_place place = {NULL, NULL};
    uint32_t index;

    host_lock(host);
    index = find_place(host, loop, mode);
    if (index < host->place_count) {
        place = host->places[index];
        host->places[index] = host->places[--host->place_count];
    }
    host_unlock(host);
    if (place.loop) {
        CFRunLoopRemoveSource(loop, host->source, mode);
        question_unschedule(host, loop, mode);
        release_place(place);
    }
}

/* Copies the place of that index, with references. Returns false if there are fewer. */
EXCLUDES(the_item_lock) static bool copy_place(CFHostRef host, uint32_t index, struct host_place *ret_place)
{
    bool is_there_one;

    host_lock(host);
    is_there_one = index < host->place_count;
    if (is_there_one) {
        *ret_place = host->places[index];
        object_retain(ret_place->loop);
        object_retain(ret_place->mode);
    }
    host_unlock(host);
    return is_there_one;
}

/* From the last one down: a place that is removed meanwhile leaves its index to the last one, which has been seen. */
void host_schedule_each(CFHostRef host, void (*function)(void *info, CFRunLoopRef loop, CFStringRef mode), void *info)
{
    struct host_place place;
    uint32_t count;

    host_lock(host);
    count = host->place_count;
    host_unlock(host);
    while (count-- > 0) {
        if (copy_place(host, count, &place)) {
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

void host_schedule_signal(CFHostRef host)
{
    CFRunLoopSourceSignal(host->source);
    host_schedule_each(host, wake, NULL);
}

/* Nobody else refers to the host (NOT_CHECKED). */
NOT_CHECKED void host_schedule_end(CFHostRef host)
{
    while (host->place_count > 0) {
        release_place(host->places[--host->place_count]);
    }
    free(host->places);
}
