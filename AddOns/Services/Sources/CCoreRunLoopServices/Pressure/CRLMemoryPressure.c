/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of memory pressure: a version-1 source of a wait set. In the set are what tells of pressure, the changes of memory.events,
 * and an alarm.
 *
 * Signs of scarcity raise the level at once. From then on the alarm comes at the end of each span, and the level becomes the highest of
 * which there was a sign in the span. So a level is told at most once in a span, and after the last sign it becomes normal.
 *
 * All that the set holds stays readable until it is read: whoever waits for the set, also as a part of another, loses nothing.
 */
#define _GNU_SOURCE
#include "CRLMemoryPressure.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "File/notify_kernel.h"
#include "Pressure/pressure_kernel.h"
#include "Pressure/pressure_plan.h"
#include "Support/invariant.h"
#include "event_source.h"

enum { queue_size = 4096, text_size = 1024, groups_size = 16384 };

static const int64_t span_ns = 5000000000; /* more than two windows of the kernel, so that signs of a lasting scarcity join */

struct pressure_source {
    struct event_source event_source; /* its descriptor is the wait set */
    int alarm; /* constant once the source is made, as the next two */
    int notify; /* of memory.events; -1: none */
    char events[PATH_MAX];
    int watch GUARDED_BY(the_service_lock); /* -1: none, or gone */
    struct pressure_poll poll GUARDED_BY(the_service_lock); /* of the watch, if it is a pressure file; else its counter is -1 */
    unsigned long long sum GUARDED_BY(the_service_lock); /* of the counters in memory.events, as last read */
    CFOptionFlags level GUARDED_BY(the_service_lock); /* the last one: one bit, as the next */
    CFOptionFlags seen GUARDED_BY(the_service_lock); /* the highest of which there was a sign in the present span */
};

/* ---- what is watched ---- */

static void close_if_open(int descriptor)
{
    if (descriptor >= 0) {
        (void)notify_kernel.close(descriptor);
    }
}

/* In the child of a fork there is no poll, and its context may stand for one of the child's own. */
REQUIRES(the_service_lock) static void end_watch(struct pressure_source *state)
{
    if (state->poll.counter >= 0 && getpid() == state->event_source.process) {
        pressure_kernel.poll_end(&state->poll);
    }
    close_if_open(state->poll.counter);
    close_if_open(state->watch);
    state->poll.counter = state->watch = -1;
}

/* Returns 0 or a negative errno, and then nothing is watched. */
REQUIRES(the_service_lock) static int begin_watch(struct pressure_source *state, const char *path, const struct pressure_plan *plan)
{
    bool is_file = false;
    ssize_t result = state->watch = pressure_kernel.watch_open(path, &is_file);

    if (result >= 0 && plan->size > 0) {
        result = pressure_kernel.watch_write(state->watch, plan->request, plan->size);
    }
    if (result >= 0 && is_file) {
        result = pressure_kernel.poll_begin(&state->poll, state->watch);
        state->poll.counter = result < 0 ? -1 : state->poll.counter;
    }
    result = result < 0 ? result : notify_kernel.set_add(state->event_source.descriptor, is_file ? state->poll.counter : state->watch);
    if (result < 0) {
        end_watch(state);
    }
    return result < 0 ? (int)result : 0;
}

REQUIRES(the_service_lock) static CFOptionFlags look_at_events(struct pressure_source *state)
{
    unsigned long long last = state->sum;
    char text[text_size];

    if (pressure_kernel.text_read(state->events, text, sizeof text) >= 0) {
        state->sum = pressure_events_sum(text);
    }
    return state->sum != last ? kCRLMemoryPressureCritical : 0;
}

/* Watches before it reads, so that no change is lost in between. */
REQUIRES(the_service_lock) static int begin_events(struct pressure_source *state)
{
    int result = state->notify = notify_kernel.notify_create();

    result = result < 0 ? result : notify_kernel.watch_add(state->notify, state->events, IN_MODIFY);
    result = result < 0 ? result : notify_kernel.set_add(state->event_source.descriptor, state->notify);
    if (result < 0) {
        close_if_open(state->notify);
        state->notify = -1;
        return result;
    }
    (void)look_at_events(state);
    return 0;
}

/* ---- what was told ---- */

REQUIRES(the_service_lock) static CFOptionFlags look_at_watch(struct pressure_source *state)
{
    bool is_polled = state->poll.counter >= 0;
    char bytes[queue_size];
    int result = 0;
    ssize_t count;

    if (state->watch < 0) {
        return 0;
    }
    count = notify_kernel.notify_read(is_polled ? state->poll.counter : state->watch, bytes, is_polled ? sizeof(uint64_t) : sizeof bytes);
    if (count == -EAGAIN) {
        return 0;
    }
    if (count > 0 && is_polled) {
        result = pressure_kernel.poll_again(&state->poll, state->watch);
    }
    if (count <= 0 || result < 0) {
        end_watch(state);
    }
    return count > 0 && result != -ENODEV ? kCRLMemoryPressureWarning : 0;
}

static bool has_news(int descriptor)
{
    _Alignas(struct inotify_event) char bytes[queue_size];

    return descriptor >= 0 && notify_kernel.notify_read(descriptor, bytes, sizeof bytes) > 0;
}

REQUIRES(the_service_lock) static CFOptionFlags enter_level(struct pressure_source *state, CFOptionFlags level)
{
    invariant(level != 0 && (level & (level - 1)) == 0);
    state->level = level;
    state->seen = kCRLMemoryPressureNormal;
    (void)notify_kernel.alarm_set(state->alarm, level == kCRLMemoryPressureNormal ? 0 : notify_kernel.now_ns() + span_ns);
    return level;
}

/* Returns the level to be told, or 0. */
REQUIRES(the_service_lock) static CFOptionFlags take_level(struct event_source *event_source)
{
    struct pressure_source *state = (struct pressure_source *)(void *)event_source;
    CFOptionFlags sign = look_at_watch(state);
    CFOptionFlags limit = has_news(state->notify) ? look_at_events(state) : 0;
    bool is_due = has_news(state->alarm);

    sign = limit > sign ? limit : sign;
    state->seen = sign > state->seen ? sign : state->seen;
    return sign > state->level || is_due ? enter_level(state, state->seen) : 0;
}

/* ---- the source ---- */

/* Nobody else knows the state any more (NOT_CHECKED). */
NOT_CHECKED static void close_all(struct event_source *event_source)
{
    struct pressure_source *state = (struct pressure_source *)(void *)event_source;

    end_watch(state);
    close_if_open(state->notify);
    close_if_open(state->alarm);
    close_if_open(event_source->descriptor);
}

static int make_plan(struct pressure_plan *plan)
{
    char groups[groups_size];

    (void)pressure_kernel.text_read("/proc/self/cgroup", groups, sizeof groups);
    return pressure_plan_make(plan, secure_getenv("MEMORY_PRESSURE_WATCH"), secure_getenv("MEMORY_PRESSURE_WRITE"), groups);
}

/* Makes the wait set with its alarm: 0 or a negative errno. */
static int make_set(struct pressure_source *state)
{
    int set = state->event_source.descriptor = notify_kernel.set_create();

    state->alarm = set < 0 ? set : notify_kernel.alarm_create();
    return state->alarm < 0 ? state->alarm : notify_kernel.set_add(set, state->alarm);
}

/* Opens what the source watches. No other thread knows the state (NOT_CHECKED). */
NOT_CHECKED static int open_all(struct event_source *event_source, const void *what)
{
    struct pressure_source *state = (struct pressure_source *)(void *)event_source;
    struct pressure_plan plan;
    int result = make_plan(&plan);

    (void)what;
    state->alarm = state->notify = state->watch = state->poll.counter = -1;
    state->level = state->seen = kCRLMemoryPressureNormal;
    result = result < 0 ? result : make_set(state);
    if (result < 0) {
        return result;
    }
    result = -ENOENT;
    for (int i = 0; i < 2 && state->watch < 0; i++) {
        result = plan.paths[i][0] != '\0' ? begin_watch(state, plan.paths[i], &plan) : result;
    }
    if (state->watch < 0 && plan.is_given) {
        return result;
    }
    (void)memcpy(state->events, plan.events, sizeof state->events);
    return state->events[0] != '\0' && begin_events(state) == 0 ? 0 : result;
}

static const struct event_source_kind pressure_kind = {.name = "memory pressure source",
                                                       .size = sizeof(struct pressure_source),
                                                       .all = kCRLMemoryPressureNormal | kCRLMemoryPressureWarning |
                                                              kCRLMemoryPressureCritical,
                                                       .open = open_all,
                                                       .take = take_level,
                                                       .close = close_all};

CFRunLoopSourceRef CRLMemoryPressureSourceCreate(CFAllocatorRef allocator, CFOptionFlags levels, CFIndex order,
                                                 CRLMemoryPressureCallBack callout, const CRLSourceContext *context)
{
    return event_source_create(&pressure_kind, NULL, allocator, levels, order, callout, context);
}
