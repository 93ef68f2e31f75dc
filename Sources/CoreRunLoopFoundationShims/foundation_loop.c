// SPDX-License-Identifier: Apache-2.0
//
// Foundation's side of the two loops of a thread.
//
// A run of Foundation's loop becomes a run of this library's loop, once the thread has one. That run lets Foundation's loop do each of its
// sleeps. For this, some functions of the toolchain's Core Foundation are defined here a second time. Foundation calls them through
// the dynamic linker, which finds the program's own first; each of them ends in the toolchain's.
//
//   CFRunLoopGetCurrent, CFRunLoopGetMain   a thread asks for its loop: only from then on does its other loop have a companion
//   CFRunLoopRunInMode, CFRunLoopRun        run both loops
//   CFRunLoopStop                           stops the run of both
//   _CFRunLoopFinished                      says whether a run would end at once; private, and looked up once
//
// Where they are not found first, as in a program that is linked with Foundation statically, each loop serves its own items only.
//
// The toolchain's Core Foundation is declared here by hand: its headers would have to stand on the search path of every program that uses
// this package, where ours may stand as well.

#define _GNU_SOURCE
#include "foundation_loop.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "CoreRunLoopFoundationShims.h"

// ---- the toolchain's Core Foundation ----

enum { run_finished = 1, run_stopped = 2, run_timed_out = 3, run_handled_source = 4 };
enum { before_sources = 1 << 2, before_waiting = 1 << 5 };
enum { utf8 = 0x08000100 };

static const double for_ever = 1e10; // no timer is made for it

struct source_context {
    long version;
    void *info;
    const void *(*retain)(const void *info);
    void (*release)(const void *info);
    const void *(*copyDescription)(const void *info);
    bool (*equal)(const void *info1, const void *info2);
    unsigned long (*hash)(const void *info);
    void *(*schedule_or_port)(void *info);
    void *cancel_or_perform;
    void (*perform)(void *info);
};

struct observer_context {
    long version;
    void *info;
    const void *(*retain)(const void *info);
    void (*release)(const void *info);
    const void *(*copyDescription)(const void *info);
};

extern const void *const kCFRunLoopDefaultMode;
extern const void *const kCFRunLoopCommonModes;
extern void *CFRunLoopSourceCreate(const void *allocator, long order, struct source_context *context);
extern void CFRunLoopAddSource(void *loop, void *source, const void *mode);
extern void CFRunLoopRemoveSource(void *loop, void *source, const void *mode);
extern void CFRunLoopSourceInvalidate(void *source);
extern void CFRunLoopSourceSignal(void *source);
extern void CFRunLoopWakeUp(void *loop);
extern void *CFRunLoopObserverCreate(const void *allocator, unsigned long activities, unsigned char repeats, long order,
                                     void (*callout)(void *observer, unsigned long activity, void *info), struct observer_context *context);
extern void CFRunLoopAddObserver(void *loop, void *observer, const void *mode);
extern void CFRunLoopObserverInvalidate(void *observer);
extern const void *CFStringCreateWithCString(const void *allocator, const char *text, uint32_t encoding);
extern unsigned char CFStringGetCString(const void *string, char *buffer, long size, uint32_t encoding);
extern long CFStringGetLength(const void *string);
extern const void *CFRetain(const void *object);
extern void CFRelease(const void *object);

// The toolchain's functions behind those of this file. `finished` is private: without it the loops stay apart.
static struct {
    void *(*get_current)(void);
    void *(*get_main)(void);
    int32_t (*run_in_mode)(const void *mode, double seconds, unsigned char returns_after_source);
    void (*stop)(void *loop);
    unsigned char (*is_finished)(void *loop, const void *mode);
} toolchain;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool is_joined; // runs of either loop serve both
static atomic_bool main_has_loop; // somebody has asked for the main thread's loop of Foundation
static __thread bool has_loop; // the thread has asked for its loop of Foundation

const char foundation_default_mode[] = "kCFRunLoopDefaultMode";

// ---- what a thread has ----

// A mode in which this library's loop has been served.
struct joined_mode {
    struct joined_mode *next;
    const void *name;
    bool is_watched; // the thread's watch is in it
    char text[];
};

// A sleep of this library's loop that Foundation's loop does. On the stack.
struct turn {
    struct turn *outer;
    struct joined_mode *mode;
    int descriptor; // readable when this library's loop has something to do; -1: nobody sleeps
    bool ends_after_source;
    bool ends_when_empty;
    int passes; // that Foundation's loop has begun in it
    bool has_slept; // since Foundation's loop has last looked at its sources of version 0
    bool was_woken; // by the descriptor
};

// A run of Foundation's loop on a thread that has no other loop yet. On the stack.
struct plain_run {
    struct plain_run *outer;
    const void *mode;
    void *joiner; // a signalled source that ends the run, once the thread has another loop
};

// One thread's two loops. The thread's own; `next`, `loop` and `companion` are also read with `sides_lock`.
struct side {
    struct side *next;
    void *loop; // Foundation's
    void *companion; // this library's
    struct joined_mode *modes;
    struct turn *turn; // the innermost
    int descriptor; // of `watch`
    void *watch; // a source that ends a run when the descriptor becomes readable
    void *observer; // of the run's steps
};

static pthread_mutex_t sides_lock = PTHREAD_MUTEX_INITIALIZER;
static struct side *sides;
static pthread_key_t key; // its destructor frees a thread's side
static __thread struct side *thread_side;
static __thread struct plain_run *innermost_plain_run;

// ---- the watch of this library's loop ----

static void *port_of(void *info) {
    return (void *)(intptr_t)((struct side *)info)->descriptor;
}

// The turn ends.
static void note_wake(void *info) {
    struct side *side = info;

    if (side->turn) {
        side->turn->was_woken = true;
        if (!side->turn->ends_after_source) {
            toolchain.stop(side->loop);
        }
    }
}

static bool is_readable(int descriptor) {
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN};

    return poll(&wanted, 1, 0) > 0;
}

static void unwatch(struct side *side, struct joined_mode *mode) {
    if (mode->is_watched) {
        CFRunLoopRemoveSource(side->loop, side->watch, mode->name);
        mode->is_watched = false;
    }
}

static bool is_empty_without_watch(struct side *side, struct joined_mode *mode) {
    unwatch(side, mode);
    return toolchain.is_finished(side->loop, mode->name);
}

static void watch_in(struct side *side, struct joined_mode *mode) {
    if (!mode->is_watched) {
        CFRunLoopAddSource(side->loop, side->watch, mode->name);
        CFRunLoopAddObserver(side->loop, side->observer, mode->name);
        mode->is_watched = true;
    }
}

static void note_step(void *observer, unsigned long activity, void *info);

static void drop_watch(struct side *side) {
    for (struct joined_mode *mode = side->modes; mode; mode = mode->next) {
        mode->is_watched = false;
    }
    if (side->watch) {
        CFRunLoopSourceInvalidate(side->watch);
        CFRelease(side->watch);
        side->watch = NULL;
    }
}

// Makes the watch for the descriptor. Returns false without memory.
static bool make_watch(struct side *side, int descriptor) {
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

// Foundation's wait set reports a descriptor only when it becomes readable. So each sleep looks first whether it is. It also watches anew:
// a callback may have run this library's loop in the same mode, or asked whether that is empty, which takes the watch away.
static void note_step(void *observer, unsigned long activity, void *info) {
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
    if (!ends && turn->ends_when_empty && turn->passes > 1) { // a run looks at that after each pass, so not in the first
        ends = is_empty_without_watch(side, turn->mode);
    }
    if (ends || !make_watch(side, turn->descriptor)) {
        toolchain.stop(side->loop);
    } else {
        watch_in(side, turn->mode);
    }
}

// ---- the sides of the threads ----

static void free_side(void *value) {
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
    companion_release_loop(side->companion);
    free(side);
    thread_side = NULL;
}

// Returns the calling thread's side, made at the first call, or NULL without memory. The thread has both loops.
static struct side *side_of_thread(void) {
    struct side *side = thread_side;

    if (side) {
        return side;
    }
    side = calloc(1, sizeof *side);
    if (!side || pthread_setspecific(key, side) != 0) {
        free(side);
        return NULL;
    }
    side->loop = toolchain.get_current();
    side->companion = companion_copy_loop();
    side->descriptor = -1;
    pthread_mutex_lock(&sides_lock);
    side->next = sides;
    sides = side;
    pthread_mutex_unlock(&sides_lock);
    thread_side = side;
    return side;
}

static struct joined_mode *mode_of(struct side *side, const char *text) {
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

// ---- turns of Foundation's loop ----

bool foundation_loop_exists(bool is_main) {
    return is_main ? atomic_load(&main_has_loop) : has_loop;
}

bool foundation_loop_is_empty(const char *text) {
    struct side *side = side_of_thread();
    struct joined_mode *mode = side ? mode_of(side, text) : NULL;

    return !mode || is_empty_without_watch(side, mode);
}

// Serves what is ready, or sleeps until there is something to do. Returns what CFRunLoopRunInMode does.
static int32_t run_turn(struct side *side, struct turn *turn) {
    bool sleeps = turn->descriptor >= 0;
    int32_t result;

    if (sleeps) {
        watch_in(side, turn->mode);
    }
    turn->outer = side->turn;
    while (turn->outer && (uintptr_t)turn->outer < (uintptr_t)turn) { // a callback has jumped out of it: stacks grow downwards
        turn->outer = turn->outer->outer;
    }
    side->turn = turn;
    result = toolchain.run_in_mode(turn->mode->name, sleeps ? for_ever : 0, turn->ends_after_source);
    side->turn = turn->outer;
    return result;
}

bool foundation_loop_serve(const char *text, int descriptor, bool ends_after_source, bool ends_when_empty) {
    struct side *side = side_of_thread();
    struct turn turn = {.mode = side ? mode_of(side, text) : NULL,
                        .descriptor = descriptor,
                        .ends_after_source = ends_after_source,
                        .ends_when_empty = ends_when_empty};

    if (!turn.mode || (descriptor >= 0 && !make_watch(side, descriptor))) {
        struct pollfd wanted = {.fd = descriptor, .events = POLLIN};

        (void)poll(&wanted, 1, 10); // there is no memory: this library's loop alone is served meanwhile
        return false;
    }
    return run_turn(side, &turn) == run_handled_source && !(turn.was_woken && (turn.has_slept || descriptor < 0));
}

// ---- runs of Foundation's loop ----

static int64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// Returns the mode's name in UTF-8, in `short_text` or from malloc, or NULL if it cannot be had.
static char *text_of(const void *mode, char *short_text, long size) {
    char *text;

    if (CFStringGetCString(mode, short_text, size, utf8)) {
        return short_text;
    }
    size = CFStringGetLength(mode) * 4 + 1;
    text = malloc((size_t)size);
    if (text && !CFStringGetCString(mode, text, size, utf8)) {
        free(text);
        return NULL;
    }
    return text;
}

// Runs both loops. A mode whose name cannot be had is Foundation's alone.
static int32_t run_both(const void *mode, double seconds, bool returns_after_source) {
    char short_text[128];
    char *text;
    int32_t result;

    if (mode == kCFRunLoopDefaultMode) {
        return companion_run(foundation_default_mode, seconds, returns_after_source);
    }
    text = text_of(mode, short_text, sizeof short_text);
    if (!text) {
        return toolchain.run_in_mode(mode, seconds, returns_after_source);
    }
    result = companion_run(text, seconds, returns_after_source);
    if (text != short_text) {
        free(text);
    }
    return result;
}

// A signalled source ends a run that returns after a source.
static void *add_joiner(void *loop, const void *mode, void (*perform)(void *info)) {
    struct source_context context = {.perform = perform};
    void *joiner = CFRunLoopSourceCreate(NULL, 0, &context);

    if (joiner) {
        CFRunLoopAddSource(loop, joiner, mode);
        CFRunLoopSourceSignal(joiner);
        CFRunLoopWakeUp(loop);
    }
    return joiner;
}

static void do_nothing(void *info) {
    (void)info;
}

void foundation_loop_join(bool is_main) {
    void *loop;

    if (is_main && getpid() != gettid()) {
        void *joiner = add_joiner(toolchain.get_main(), kCFRunLoopCommonModes, do_nothing);

        if (joiner) {
            CFRelease(joiner); // stays in the loop, and is never signalled again
        }
        return;
    }
    loop = innermost_plain_run ? toolchain.get_current() : NULL;
    for (struct plain_run *run = innermost_plain_run; run; run = run->outer) {
        run->joiner = run->joiner ? run->joiner : add_joiner(loop, run->mode, do_nothing);
    }
}

// Runs Foundation's loop alone, until the thread has another loop.
static int32_t run_plain(const void *mode, double seconds, bool returns_after_source) {
    struct plain_run run = {.outer = innermost_plain_run, .mode = mode};
    int64_t begin_ns = seconds > 0 && seconds < for_ever ? now_ns() : 0;
    double left = seconds;
    int32_t result;

    while (run.outer && (uintptr_t)run.outer < (uintptr_t)&run) { // a callback has jumped out of it
        run.outer = run.outer->outer;
    }
    innermost_plain_run = &run;
    do {
        result = toolchain.run_in_mode(mode, left, true);
        if (begin_ns != 0) {
            left = seconds - (double)(now_ns() - begin_ns) / 1e9;
        }
    } while (result == run_handled_source && !returns_after_source && !companion_has_loop() && left > 0);
    innermost_plain_run = run.outer;
    if (run.joiner) {
        CFRunLoopSourceInvalidate(run.joiner);
        CFRelease(run.joiner);
    }
    if (result != run_handled_source || returns_after_source) {
        return result;
    }
    return left > 0 ? run_both(mode, left, false) : run_timed_out;
}

// ---- the functions that Foundation finds first ----

static void load_toolchain(void);

static bool joined(void) {
    pthread_once(&once, load_toolchain);
    return atomic_load_explicit(&is_joined, memory_order_acquire);
}

static void *get_current(void) {
    bool is_known = has_loop;
    bool is_on = joined();
    void *loop = toolchain.get_current();

    if (!is_known) {
        has_loop = true;
        if (getpid() == gettid()) {
            atomic_store(&main_has_loop, true);
        }
        if (is_on) {
            companion_appears(false);
            if (companion_has_loop()) {
                (void)side_of_thread(); // so that others can stop the run that is under way
            }
        }
    }
    return loop;
}

static void *get_main(void) {
    bool is_on = joined();
    void *loop = toolchain.get_main();

    if (!atomic_exchange(&main_has_loop, true) && is_on) {
        companion_appears(true);
    }
    return loop;
}

static int32_t run_in_mode(const void *mode, double seconds, unsigned char returns_after_source) {
    if (!joined()) {
        return toolchain.run_in_mode(mode, seconds, returns_after_source);
    }
    (void)get_current();
    if (!companion_has_loop()) {
        return run_plain(mode, seconds, returns_after_source);
    }
    (void)side_of_thread(); // so that others can stop the run
    return run_both(mode, seconds, returns_after_source);
}

static void run(void) {
    int32_t result;

    do {
        result = run_in_mode(kCFRunLoopDefaultMode, for_ever, false);
    } while (result != run_stopped && result != run_finished);
}

// Foundation asks this before a run, and does not begin one that would end at once.
static unsigned char is_finished(void *loop, const void *mode) {
    char short_text[128];
    char *text = NULL;
    bool is_empty;

    if (joined() && companion_has_loop() && loop == toolchain.get_current()) {
        text = text_of(mode, short_text, sizeof short_text);
    }
    if (!text) {
        return toolchain.is_finished(loop, mode);
    }
    is_empty = both_are_empty(text);
    if (text != short_text) {
        free(text);
    }
    return is_empty;
}

static void stop(void *loop) {
    bool is_stopped = false;

    if (joined()) {
        pthread_mutex_lock(&sides_lock);
        for (const struct side *side = sides; side && !is_stopped; side = side->next) {
            is_stopped = side->loop == loop && companion_stop(side->companion);
        }
        pthread_mutex_unlock(&sides_lock);
    }
    if (!is_stopped) {
        toolchain.stop(loop);
    }
}

// Weak, so that a program that is linked with Foundation statically has one definition of each.
#define FOUND_FIRST(_function) __attribute__((weak, visibility("default"), alias(#_function)))
FOUND_FIRST(get_current) void *CFRunLoopGetCurrent(void);
FOUND_FIRST(get_main) void *CFRunLoopGetMain(void);
FOUND_FIRST(run_in_mode) int32_t CFRunLoopRunInMode(const void *mode, double seconds, unsigned char returns_after_source);
FOUND_FIRST(run) void CFRunLoopRun(void);
FOUND_FIRST(stop) void CFRunLoopStop(void *loop);
FOUND_FIRST(is_finished) unsigned char _CFRunLoopFinished(void *loop, const void *mode);

// ---- setting up ----

// In the child of a fork Foundation's loop waits for what is its parent's.
static void part_in_child(void) {
    atomic_store(&is_joined, false);
    pthread_mutex_init(&sides_lock, NULL);
}

static bool find_toolchain(void) {
    bool is_first = CFRunLoopGetCurrent == get_current && CFRunLoopGetMain == get_main && CFRunLoopRunInMode == run_in_mode &&
                    CFRunLoopStop == stop;

    toolchain.get_current = (void *(*)(void))dlsym(RTLD_NEXT, "CFRunLoopGetCurrent");
    toolchain.get_main = (void *(*)(void))dlsym(RTLD_NEXT, "CFRunLoopGetMain");
    toolchain.run_in_mode = (int32_t(*)(const void *, double, unsigned char))dlsym(RTLD_NEXT, "CFRunLoopRunInMode");
    toolchain.stop = (void (*)(void *))dlsym(RTLD_NEXT, "CFRunLoopStop");
    toolchain.is_finished = (unsigned char (*)(void *, const void *))dlsym(RTLD_NEXT, "_CFRunLoopFinished");
    return is_first && toolchain.get_current && toolchain.get_main && toolchain.run_in_mode && toolchain.stop && toolchain.is_finished;
}

static void load_toolchain(void) {
    if (!find_toolchain()) {
        fprintf(stderr, "CoreRunLoopFoundation: this program is linked so that Foundation's run loop cannot be joined with CoreRunLoop's; "
                        "a run of either loop serves its own items only\n");
        return;
    }
    if (pthread_key_create(&key, free_side) == 0 && pthread_atfork(NULL, NULL, part_in_child) == 0) {
        atomic_store_explicit(&is_joined, true, memory_order_release);
        companion_is_foundation(true);
    }
}

__attribute__((constructor)) static void begin(void) {
    pthread_once(&once, load_toolchain);
}

bool foundation_loops_are_joined(void) {
    return joined();
}

void foundation_loops_part(void) {
    pthread_once(&once, load_toolchain);
    atomic_store(&is_joined, false);
    companion_is_foundation(false);
}
