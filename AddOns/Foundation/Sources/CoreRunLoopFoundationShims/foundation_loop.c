/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foundation's side of the two loops of a thread.
 *
 * A run of Foundation's loop becomes a run of this library's loop, once the thread has one. That run lets Foundation's loop do each of its
 * sleeps. For this, some functions of the toolchain's Core Foundation are defined here a second time. Foundation calls them through
 * the dynamic linker, which finds the program's own first; each of them ends in the toolchain's.
 *
 *   CFRunLoopGetCurrent, CFRunLoopGetMain   a thread asks for its loop: only from then on does its other loop have a companion
 *   CFRunLoopRunInMode, CFRunLoopRun        run both loops
 *   CFRunLoopStop                           stops the run of both
 *   _CFRunLoopFinished                      says whether a run would end at once; private, and looked up once
 *
 * Where they are not found first, as in a program that is linked with Foundation statically, each loop serves its own items only.
 */

#define _GNU_SOURCE
#include "foundation_loop.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "CoreRunLoopFoundationShims.h"
#include "foundation_run.h"
#include "foundation_turn.h"
#include "toolchain_loop.h"

struct toolchain_loop toolchain_loop;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool is_joined; /* runs of either loop serve both */
static atomic_bool main_has_loop; /* somebody has asked for the main thread's loop of Foundation */
static __thread bool has_loop; /* the thread has asked for its loop of Foundation */

bool foundation_loop_exists(bool is_main)
{
    return is_main ? atomic_load(&main_has_loop) : has_loop;
}

/* ---- the functions that Foundation finds first ---- */

static void load_toolchain(void);

static bool joined(void)
{
    pthread_once(&once, load_toolchain);
    return atomic_load_explicit(&is_joined, memory_order_acquire);
}

static void *get_current(void)
{
    bool is_known = has_loop;
    bool is_on = joined();
    void *loop = toolchain_loop.get_current();

    if (!is_known) {
        has_loop = true;
        if (getpid() == gettid()) {
            atomic_store(&main_has_loop, true);
        }
        if (is_on) {
            library_loop_gain_companion(false);
            if (library_loop_exists()) {
                foundation_turns_note_thread();
            }
        }
    }
    return loop;
}

static void *get_main(void)
{
    bool is_on = joined();
    void *loop = toolchain_loop.get_main();

    if (!atomic_exchange(&main_has_loop, true) && is_on) {
        library_loop_gain_companion(true);
    }
    return loop;
}

static int32_t run_in_mode(const void *mode, double seconds, unsigned char returns_after_source)
{
    if (!joined()) {
        return toolchain_loop.run_in_mode(mode, seconds, returns_after_source);
    }
    (void)get_current();
    if (!library_loop_exists()) {
        return foundation_run_plain(mode, seconds, returns_after_source);
    }
    foundation_turns_note_thread();
    return foundation_run_both(mode, seconds, returns_after_source);
}

static void run(void)
{
    int32_t result;

    do {
        result = run_in_mode(kCFRunLoopDefaultMode, for_ever, false);
    } while (result != run_stopped && result != run_finished);
}

/* Foundation asks this before a run, and does not begin one that would end at once. */
static unsigned char is_finished(void *loop, const void *mode)
{
    char short_text[128];
    char *text = NULL;
    bool is_empty;

    if (joined() && library_loop_exists() && loop == toolchain_loop.get_current()) {
        text = foundation_run_text(mode, short_text, sizeof short_text);
    }
    if (!text) {
        return toolchain_loop.is_finished(loop, mode);
    }
    is_empty = both_are_empty(text);
    if (text != short_text) {
        free(text);
    }
    return is_empty;
}

static void stop(void *loop)
{
    if (!joined() || !foundation_turns_stop(loop)) {
        toolchain_loop.stop(loop);
    }
}

/* Weak, so that a program that is linked with Foundation statically has one definition of each. */
#define FOUND_FIRST(_function) __attribute__((weak, visibility("default"), alias(#_function)))
FOUND_FIRST(get_current) void *CFRunLoopGetCurrent(void);
FOUND_FIRST(get_main) void *CFRunLoopGetMain(void);
FOUND_FIRST(run_in_mode) int32_t CFRunLoopRunInMode(const void *mode, double seconds, unsigned char returns_after_source);
FOUND_FIRST(run) void CFRunLoopRun(void);
FOUND_FIRST(stop) void CFRunLoopStop(void *loop);
FOUND_FIRST(is_finished) unsigned char _CFRunLoopFinished(void *loop, const void *mode);

/* ---- setting up ---- */

/* In the child of a fork Foundation's loop waits for what is its parent's. */
static void part_in_child(void)
{
    atomic_store(&is_joined, false);
    foundation_turns_part_in_child();
}

static bool find_toolchain(void)
{
    bool is_first =
        CFRunLoopGetCurrent == get_current && CFRunLoopGetMain == get_main && CFRunLoopRunInMode == run_in_mode && CFRunLoopStop == stop;

    toolchain_loop.get_current = (void *(*)(void))dlsym(RTLD_NEXT, "CFRunLoopGetCurrent");
    toolchain_loop.get_main = (void *(*)(void))dlsym(RTLD_NEXT, "CFRunLoopGetMain");
    toolchain_loop.run_in_mode = (int32_t (*)(const void *, double, unsigned char))dlsym(RTLD_NEXT, "CFRunLoopRunInMode");
    toolchain_loop.stop = (void (*)(void *))dlsym(RTLD_NEXT, "CFRunLoopStop");
    toolchain_loop.is_finished = (unsigned char (*)(void *, const void *))dlsym(RTLD_NEXT, "_CFRunLoopFinished");
    return is_first && toolchain_loop.get_current && toolchain_loop.get_main && toolchain_loop.run_in_mode && toolchain_loop.stop &&
           toolchain_loop.is_finished;
}

static void load_toolchain(void)
{
    if (!find_toolchain()) {
        fprintf(stderr, "CoreRunLoopFoundation: this program is linked so that Foundation's run loop cannot be joined with CoreRunLoop's; "
                        "a run of either loop serves its own items only\n");
        return;
    }
    if (foundation_turns_begin() && pthread_atfork(NULL, NULL, part_in_child) == 0) {
        atomic_store_explicit(&is_joined, true, memory_order_release);
        library_loop_set_companion(true);
    }
}

__attribute__((constructor)) static void begin(void)
{
    pthread_once(&once, load_toolchain);
}

bool foundation_loops_are_joined(void)
{
    return joined();
}

void foundation_loops_part(void)
{
    pthread_once(&once, load_toolchain);
    atomic_store(&is_joined, false);
    library_loop_set_companion(false);
}
