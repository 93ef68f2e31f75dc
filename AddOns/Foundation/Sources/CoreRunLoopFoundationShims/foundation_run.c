/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that begin with Foundation's loop: of both loops, or of Foundation's alone until the thread has another. */

#define _GNU_SOURCE
#include "foundation_run.h"

#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "foundation_loop.h"
#include "toolchain_loop.h"

/* A run of Foundation's loop on a thread that has no other loop yet. On the stack. */
struct plain_run {
    struct plain_run *outer;
    const void *mode;
    void *joiner; /* a signalled source that ends the run, once the thread has another loop */
};

static __thread struct plain_run *innermost_plain_run;

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

char *foundation_run_text(const void *mode, char *short_text, long size)
{
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

int32_t foundation_run_both(const void *mode, double seconds, bool returns_after_source)
{
    char short_text[128];
    char *text;
    int32_t result;

    if (mode == kCFRunLoopDefaultMode) {
        return library_loop_run(foundation_default_mode, seconds, returns_after_source);
    }
    text = foundation_run_text(mode, short_text, sizeof short_text);
    if (!text) {
        return toolchain_loop.run_in_mode(mode, seconds, returns_after_source);
    }
    result = library_loop_run(text, seconds, returns_after_source);
    if (text != short_text) {
        free(text);
    }
    return result;
}

/* A signalled source ends a run that returns after a source. */
static void *add_joiner(void *loop, const void *mode, void (*perform)(void *info))
{
    struct source_context context = {.perform = perform};
    void *joiner = CFRunLoopSourceCreate(NULL, 0, &context);

    if (joiner) {
        CFRunLoopAddSource(loop, joiner, mode);
        CFRunLoopSourceSignal(joiner);
        CFRunLoopWakeUp(loop);
    }
    return joiner;
}

static void do_nothing(void *info)
{
    (void)info;
}

void foundation_loop_join(bool is_main)
{
    void *loop;

    if (is_main && getpid() != gettid()) {
        void *joiner = add_joiner(toolchain_loop.get_main(), kCFRunLoopCommonModes, do_nothing);

        if (joiner) {
            CFRelease(joiner); /* stays in the loop, and is never signalled again */
        }
        return;
    }
    loop = innermost_plain_run ? toolchain_loop.get_current() : NULL;
    for (struct plain_run *run = innermost_plain_run; run; run = run->outer) {
        run->joiner = run->joiner ? run->joiner : add_joiner(loop, run->mode, do_nothing);
    }
}

int32_t foundation_run_plain(const void *mode, double seconds, bool returns_after_source)
{
    struct plain_run run = {.outer = innermost_plain_run, .mode = mode};
    int64_t begin_ns = seconds > 0 && seconds < for_ever ? now_ns() : 0;
    double left = seconds;
    int32_t result;

    while (run.outer && (uintptr_t)run.outer < (uintptr_t)&run) { /* a callback has jumped out of it */
        run.outer = run.outer->outer;
    }
    innermost_plain_run = &run;
    do {
        result = toolchain_loop.run_in_mode(mode, left, true);
        if (begin_ns != 0) {
            left = seconds - (double)(now_ns() - begin_ns) / 1e9;
        }
    } while (result == run_handled_source && !returns_after_source && !library_loop_exists() && left > 0);
    innermost_plain_run = run.outer;
    if (run.joiner) {
        CFRunLoopSourceInvalidate(run.joiner);
        CFRelease(run.joiner);
    }
    if (result != run_handled_source || returns_after_source) {
        return result;
    }
    return left > 0 ? foundation_run_both(mode, left, false) : run_timed_out;
}
