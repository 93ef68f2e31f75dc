/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's two loops, and the turns that Foundation's loop takes in runs of this library's. */

#define _GNU_SOURCE
#include "foundation_turn.h"

#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "foundation_loop.h"
#include "toolchain_loop.h"

const char foundation_default_mode[] = "kCFRunLoopDefaultMode";

/* ---- what a thread has ---- */

/* A mode in which this library's loop has been served. */
struct joined_mode {
    struct joined_mode *next;
    const void *name;
    bool is_watched; /* the thread's watch is in it */
    char text[];
};

/* A sleep of this library's loop that Foundation's loop does. On the stack. */
struct turn {
    struct turn *outer;
    struct joined_mode *mode;
    int descriptor; /* readable when this library's loop has something to do; -1: nobody sleeps */
    bool ends_after_source;
    bool ends_when_empty;
    int passes; /* that Foundation's loop has begun in it */
    bool has_slept; /* since Foundation's loop has last looked at its sources of version 0 */
    bool was_woken; /* by the descriptor */
};

/* One thread's two loops. The thread's own; `next`, `loop` and `library_loop` are also read with `sides_lock`. */
struct side {
    struct side *next;
    void *loop; /* Foundation's */
    void *library_loop;
    struct joined_mode *modes;
    struct turn *turn; /* the innermost */
    int descriptor; /* of `watch` */
    void *watch; /* a source that ends a run when the descriptor becomes readable */
    void *observer; /* of the run's steps */
};

static pthread_mutex_t sides_lock = PTHREAD_MUTEX_INITIALIZER;
static struct side *sides;
static pthread_key_t key; /* its destructor frees a thread's side */
static __thread struct side *thread_side;

/* ---- the watch of this library's loop ---- */

static void *port_of(void *info)
{
    return (void *)(intptr_t)((struct side *)info)->descriptor;
}

/* The turn ends. */
static void note_wake(void *info)
{
    struct side *side = info;

    if (side->turn) {
        side->turn->was_woken = true;
        if (!side->turn->ends_after_source) {
            toolchain_loop.stop(side->loop);
        }
    }
}

static bool is_readable(int descriptor)
{
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN};

    return poll(&wanted, 1, 0) > 0;
}

static void unwatch(struct side *side, struct joined_mode *mode)
{
    if (mode->is_watched) {
        CFRunLoopRemoveSource(side->loop, side->watch, mode->name);
        mode->is_watched = false;
    }
}

static bool is_empty_without_watch(struct side *side, struct joined_mode *mode)
{
    unwatch(side, mode);
    return toolchain_loop.is_finished(side->loop, mode->name);
}

static void watch_in(struct side *side, struct joined_mode *mode)
{
    if (!mode->is_watched) {
        CFRunLoopAddSource(side->loop, side->watch, mode->name);
        CFRunLoopAddObserver(side->loop, side->observer, mode->name);
        mode->is_watched = true;
    }
}

static void note_step(void *observer, unsigned long activity, void *info);

static void drop_watch(struct side *side)
{
    for (struct joined_mode *mode = side->modes; mode; mode = mode->next) {
        mode->is_watched = false;
    }
    if (side->watch) {
        CFRunLoopSourceInvalidate(side->watch);
        CFRelease(side->watch);
        side->watch = NULL;
    }
}

/* Makes the watch for the descriptor. Returns false without memory. */
static bool make_watch(struct side *side, int descriptor)
{
    struct source_context context = {.version = 1, .info = side, .schedule_or_port = port_of, .cancel_or_perform = (void *)note_wake};
    struct observer_context observed = {.info = side};

    if (!side->observer) {
        side->observer = CFRunLoopObserverCreate(NULL, before_sources | before_waiting, true, 2000000, note_step, &observed);
    }
    if (side->watch && side->descriptor != descriptor) {
        drop_watch(side);
    }
    if (!side->watch) {
        side->descriptor = descriptor;
        side->watch = CFRunLoopSourceCreate(NULL, 0, &context);
    }
    return side->observer && side->watch;
}

/*
 * Foundation's wait set reports a descriptor only when it becomes readable. So each sleep looks first whether it is. It also watches anew:
 * a callback may have run this library's loop in the same mode, or asked whether that is empty, which takes the watch away.
 */
static void note_step(void *observer, unsigned long activity, void *info)
{
    struct side *side = info;
    struct turn *turn = side->turn;
    bool ends;

    (void)observer;
    if (!turn) {
        return;
    }
    turn->has_slept = activity == before_waiting;
    turn->passes += activity == before_sources;
    if (activity != before_waiting || turn->descriptor < 0) {
        return;
    }
    ends = is_readable(turn->descriptor);
    if (!ends && turn->ends_when_empty && turn->passes > 1) { /* a run looks at that after each pass, so not in the first */
        ends = is_empty_without_watch(side, turn->mode);
    }
    if (ends || !make_watch(side, turn->descriptor)) {
        toolchain_loop.stop(side->loop);
    } else {
        watch_in(side, turn->mode);
    }
}

/* ---- the sides of the threads ---- */

static void free_side(void *value)
{
    struct side *side = value;
    struct side **place = &sides;

    pthread_mutex_lock(&sides_lock);
    while (*place != side) {
        place = &(*place)->next;
    }
    *place = side->next;
    pthread_mutex_unlock(&sides_lock);
    drop_watch(side);
    if (side->observer) {
        CFRunLoopObserverInvalidate(side->observer);
        CFRelease(side->observer);
    }
    while (side->modes) {
        struct joined_mode *mode = side->modes;

        side->modes = mode->next;
        CFRelease(mode->name);
        free(mode);
    }
    library_loop_release(side->library_loop);
    free(side);
    thread_side = NULL;
}

/* Returns the calling thread's side, made at the first call, or NULL without memory. */
static struct side *side_of_thread(void)
{
    struct side *side = thread_side;

    if (side) {
        return side;
    }
    side = calloc(1, sizeof *side);
    if (!side || pthread_setspecific(key, side) != 0) {
        free(side);
        return NULL;
    }
    side->loop = toolchain_loop.get_current();
    side->library_loop = library_loop_copy();
    side->descriptor = -1;
    pthread_mutex_lock(&sides_lock);
    side->next = sides;
    sides = side;
    pthread_mutex_unlock(&sides_lock);
    thread_side = side;
    return side;
}

static struct joined_mode *mode_of(struct side *side, const char *text)
{
    size_t size = strlen(text) + 1;
    struct joined_mode *mode;

    for (mode = side->modes; mode; mode = mode->next) {
        if (strcmp(mode->text, text) == 0) {
            return mode;
        }
    }
    mode = malloc(sizeof *mode + size);
    if (!mode) {
        return NULL;
    }
    mode->name = strcmp(text, foundation_default_mode) == 0 ? CFRetain(kCFRunLoopDefaultMode) : CFStringCreateWithCString(NULL, text, utf8);
    if (!mode->name) {
        free(mode);
        return NULL;
    }
    mode->is_watched = false;
    memcpy(mode->text, text, size);
    mode->next = side->modes;
    side->modes = mode;
    return mode;
}

/* ---- turns of Foundation's loop ---- */

bool foundation_loop_is_empty(const char *text)
{
    struct side *side = side_of_thread();
    struct joined_mode *mode = side ? mode_of(side, text) : NULL;

    return !mode || is_empty_without_watch(side, mode);
}

/* Serves what is ready, or sleeps until there is something to do. Returns what CFRunLoopRunInMode does. */
static int32_t run_turn(struct side *side, struct turn *turn)
{
    bool sleeps = turn->descriptor >= 0;
    int32_t result;

    if (sleeps) {
        watch_in(side, turn->mode);
    }
    turn->outer = side->turn;
    while (turn->outer && (uintptr_t)turn->outer < (uintptr_t)turn) { /* a callback has jumped out of it: stacks grow downwards */
        turn->outer = turn->outer->outer;
    }
    side->turn = turn;
    result = toolchain_loop.run_in_mode(turn->mode->name, sleeps ? for_ever : 0, turn->ends_after_source);
    side->turn = turn->outer;
    return result;
}

bool foundation_loop_serve(const char *text, int descriptor, bool ends_after_source, bool ends_when_empty)
{
    struct side *side = side_of_thread();
    struct turn turn = {.mode = side ? mode_of(side, text) : NULL,
                        .descriptor = descriptor,
                        .ends_after_source = ends_after_source,
                        .ends_when_empty = ends_when_empty};

    if (!turn.mode || (descriptor >= 0 && !make_watch(side, descriptor))) {
        struct pollfd wanted = {.fd = descriptor, .events = POLLIN};

        (void)poll(&wanted, 1, 10); /* there is no memory: this library's loop alone is served meanwhile */
        return false;
    }
    return run_turn(side, &turn) == run_handled_source && !(turn.was_woken && (turn.has_slept || descriptor < 0));
}

/* ---- all threads ---- */

bool foundation_turns_begin(void)
{
    return pthread_key_create(&key, free_side) == 0;
}

void foundation_turns_note_thread(void)
{
    (void)side_of_thread();
}

bool foundation_turns_stop(void *loop)
{
    bool is_stopped = false;

    pthread_mutex_lock(&sides_lock);
    for (const struct side *side = sides; side && !is_stopped; side = side->next) {
        is_stopped = side->loop == loop && library_loop_stop(side->library_loop);
    }
    pthread_mutex_unlock(&sides_lock);
    return is_stopped;
}

void foundation_turns_part_in_child(void)
{
    pthread_mutex_init(&sides_lock, NULL);
}
