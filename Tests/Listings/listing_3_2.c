/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing 3-2, "Running a run loop": the skeleton that runs its loop until it is stopped or has nothing left to watch, and returns after
 * each source. Three threads use it: one whose source is handled four times before a timer stops the loop, one with a timer that fires
 * once, and one with nothing at all. The listing's comment says that a source may stop the loop: the pass in which it does reports
 * HandledSource, not Stopped (rule 48), so that a loop driven like this one goes on. Here it is a timer that stops it.
 * Rules: 27 48 49 51 54 124
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"

struct worker {
    void (*addSources)(struct worker *worker);
    CFRunLoopSourceRef source;
    int performed;
    int results[8];
    int resultCount;
};

static void *skeletonThreadMain(void *object) {
    struct worker *worker = object;
    Boolean done = FALSE;

    /* Add your sources or timers to the run loop and do any other setup. */
    worker->addSources(worker);

    do {
        /* Start the run loop but return after each source is handled. */
        SInt32 result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, TRUE);

        /* If a source explicitly stopped the run loop, or if there are no sources or timers, go ahead and exit. */
        if ((result == kCFRunLoopRunStopped) || (result == kCFRunLoopRunFinished)) done = TRUE;

        /* Check for any other exit conditions here and set the done variable as needed. */
        if (worker->resultCount < 8) worker->results[worker->resultCount++] = result;
        if (worker->resultCount == 8) done = TRUE;
    } while (!done);

    /* Clean up code here. */
    if (worker->source != NULL) {
        CFRunLoopSourceInvalidate(worker->source);
        CFRelease(worker->source);
    }
    return NULL;
}

static void addTimer(CFRunLoopTimerCallBack callout) {
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 0.01, 0, 0, 0, callout, NULL);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    CFRelease(timer);
}

static void stopLoop(CFRunLoopTimerRef timer, void *info) {
    (void)timer;
    (void)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static void doNothing(CFRunLoopTimerRef timer, void *info) {
    (void)timer;
    (void)info;
}

static void perform(void *info) {
    struct worker *worker = info;
    worker->performed++;
    if (worker->performed == 2) CFRunLoopStop(CFRunLoopGetCurrent()); /* loses to HandledSource */
    if (worker->performed < 4)
        CFRunLoopSourceSignal(worker->source);
    else
        addTimer(stopLoop);
}

static void addSource(struct worker *worker) {
    CFRunLoopSourceContext context = {0, worker, NULL, NULL, NULL, NULL, NULL, NULL, NULL, perform};
    worker->source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), worker->source, kCFRunLoopDefaultMode);
    CFRunLoopSourceSignal(worker->source);
}

static void addTimerThatFiresOnce(struct worker *worker) {
    (void)worker;
    addTimer(doNothing);
}

static void addNothing(struct worker *worker) {
    (void)worker;
}

int main(void) {
    struct worker withSource = {.addSources = addSource};
    struct worker withTimer = {.addSources = addTimerThatFiresOnce};
    struct worker withNothing = {.addSources = addNothing};
    listing_begin();

    listing_on_thread(skeletonThreadMain, &withSource);
    CHECK(withSource.performed == 4);
    CHECK(withSource.resultCount == 5);
    for (int i = 0; i < 4; i++) CHECK(withSource.results[i] == kCFRunLoopRunHandledSource);
    CHECK(withSource.results[4] == kCFRunLoopRunStopped);

    listing_on_thread(skeletonThreadMain, &withTimer);
    CHECK(withTimer.resultCount == 1 && withTimer.results[0] == kCFRunLoopRunFinished);

    listing_on_thread(skeletonThreadMain, &withNothing);
    CHECK(withNothing.resultCount == 1 && withNothing.results[0] == kCFRunLoopRunFinished);
    return listing_end();
}
