/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Article 003's variant of listings 3-3 to 3-9: the names are the article's, the client is told of the source's beginning and end without
 * waiting, and the article's init takes no retain and release. With waitUntilDone:NO the worker may end before its client has heard of it:
 * what the client is given must not be taken from the worker's stack.
 * Rules: 54 61 75 76 77 88 89 95
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"
#include "performer.h"

typedef struct RunLoopSource {
    CFRunLoopSourceRef runLoopSource;
    atomic_int commands; /* how many wait in the buffer */
    int handled; /* the worker's until it has ended */
} RunLoopSource;

typedef struct RunLoopContext {
    CFRunLoopRef runLoop;
    RunLoopSource *source;
} RunLoopContext;

static struct {
    struct performer main;
    pthread_t worker;
    int registered;
    int removed;
} adg;

static RunLoopContext *initWithSource(RunLoopSource *src, CFRunLoopRef loop) {
    RunLoopContext *context = malloc(sizeof *context);
    if (context == NULL) abort();
    *context = (RunLoopContext){(CFRunLoopRef)CFRetain(loop), src}; /* the worker may end before its loop has been woken */
    return context;
}

static void freeContext(RunLoopContext *context) {
    CFRelease(context->runLoop);
    free(context);
}

static void addCommad(RunLoopSource *self) {
    atomic_fetch_add(&self->commands, 1);
}

static void fireAllCommandsOnRunloop(RunLoopSource *self, CFRunLoopRef runloop) {
    CFRunLoopSourceSignal(self->runLoopSource);
    CFRunLoopWakeUp(runloop);
}

static void registerSource(void *sourceInfo) {
    RunLoopContext *context = sourceInfo;
    adg.registered++;
    addCommad(context->source);
    addCommad(context->source);
    addCommad(context->source);
    fireAllCommandsOnRunloop(context->source, context->runLoop);
    /* The worker does not wait for us to hear of its end: it ends while we do nothing but wait for it. */
    pthread_join(adg.worker, NULL);
    CHECK(adg.removed == 0);
    freeContext(context);
}

static void removeSource(void *sourceInfo) {
    adg.removed++;
    freeContext(sourceInfo);
}

static void RunLoopSourceScheduleRoutine(void *info, CFRunLoopRef rl, CFStringRef mode) {
    CHECK(CFEqual(mode, kCFRunLoopDefaultMode));
    performer_perform(&adg.main, registerSource, initWithSource(info, rl), false);
}

static void RunLoopSourceCancelRoutine(void *info, CFRunLoopRef rl, CFStringRef mode) {
    RunLoopSource *obj = info;
    CHECK(CFEqual(mode, kCFRunLoopDefaultMode));
    CHECK(!CFRunLoopSourceIsValid(obj->runLoopSource));
    performer_perform(&adg.main, removeSource, initWithSource(obj, rl), false);
}

static void sourceFired(RunLoopSource *self) {
    self->handled += atomic_exchange(&self->commands, 0);
    if (self->handled < 3) return;
    CFRunLoopSourceInvalidate(self->runLoopSource);
    /* It cannot come back. */
    CFRunLoopAddSource(CFRunLoopGetCurrent(), self->runLoopSource, kCFRunLoopDefaultMode);
    CHECK(!CFRunLoopContainsSource(CFRunLoopGetCurrent(), self->runLoopSource, kCFRunLoopDefaultMode));
}

static void RunLoopSourcePerformRoutine(void *info) {
    sourceFired(info);
}

static void *workerMain(void *object) {
    RunLoopSource *self = object;
    CFRunLoopSourceContext context = {0, self, NULL, NULL, NULL, NULL, NULL,
                                      RunLoopSourceScheduleRoutine,
                                      RunLoopSourceCancelRoutine,
                                      RunLoopSourcePerformRoutine};
    self->runLoopSource = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), self->runLoopSource, kCFRunLoopDefaultMode);
    CFRunLoopRun();
    CFRelease(self->runLoopSource);
    return NULL;
}

int main(void) {
    static RunLoopSource source;
    listing_begin();
    performer_install(&adg.main);
    adg.worker = listing_detach(workerMain, &source);
    while (adg.removed == 0) CHECK(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, TRUE) == kCFRunLoopRunHandledSource);

    CHECK(adg.registered == 1);
    CHECK(adg.removed == 1);
    CHECK(source.handled == 3);
    performer_remove(&adg.main);
    return listing_end();
}
