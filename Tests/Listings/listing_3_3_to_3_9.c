/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings 3-3 to 3-9, "Defining a custom input source": a source with a command buffer, installed by a worker thread and used by the main
 * thread. Classes become structs with functions of the same names, and performSelectorOnMainThread: is performer.h. Listing 3-6 waits for
 * the main thread in the cancel routine. That is safe only while the main thread is not itself waiting for the worker, and only because no
 * lock is held meanwhile: removeSource looks into the worker's loop to prove it. Listing 3-8 compares contexts with isEqual:, which is
 * identity unless it is overridden, and each callback makes a context of its own; here two contexts are equal when they name the same
 * source and loop.
 * Rules: 6 54 61 75 76 77 86 88 90
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"
#include "performer.h"

/* --- Listing 3-3: the custom input source object definition --- */

enum { most_commands = 8 };
enum { commandNote = 1, commandQuit = 2 };

struct Command {
    CFIndex command;
    CFStringRef data;
};

typedef struct RunLoopSource {
    CFRunLoopSourceRef runLoopSource;
    pthread_mutex_t lock;
    struct Command commands[most_commands]; /* guarded by lock */
    int commandCount; /* guarded by lock */
    pthread_t worker;
    char notes[64]; /* the worker's until it has ended */
    int timesFired; /* likewise */
} RunLoopSource;

static void RunLoopSource_invalidate(RunLoopSource *self);
static void RunLoopSource_sourceFired(RunLoopSource *self);

/* RunLoopContext is a container object used during registration of the input source. */
typedef struct RunLoopContext {
    CFRunLoopRef runLoop;
    RunLoopSource *source;
} RunLoopContext;

static RunLoopContext *RunLoopContext_initWithSource(RunLoopSource *source, CFRunLoopRef loop) {
    RunLoopContext *self = malloc(sizeof *self);
    if (self == NULL) abort();
    self->runLoop = loop;
    self->source = source;
    return self;
}

static bool RunLoopContext_isEqual(const RunLoopContext *self, const RunLoopContext *other) {
    return self->runLoop == other->runLoop && self->source == other->source;
}

/* --- Listing 3-8: registering and removing an input source with the application delegate --- */

struct AppDelegate {
    struct performer main;
    pthread_t mainThread;
    CFMutableArrayRef sourcesToPing; /* the main thread's */
    int rounds;
    int registered;
    int removed;
};

static struct AppDelegate sharedAppDelegate;

static void fireCommands(RunLoopContext *context);

static void registerSource(void *sourceInfo) {
    struct AppDelegate *self = &sharedAppDelegate;
    CHECK(pthread_equal(pthread_self(), self->mainThread));
    CFArrayAppendValue(self->sourcesToPing, sourceInfo);
    self->registered++;
    fireCommands(sourceInfo);
}

static void removeSource(void *object) {
    struct AppDelegate *self = &sharedAppDelegate;
    RunLoopContext *sourceInfo = object;
    CHECK(pthread_equal(pthread_self(), self->mainThread));

    /* The worker is in its cancel routine: its source is invalid and out of the loop already, and the loop is not locked. */
    CHECK(!CFRunLoopSourceIsValid(sourceInfo->source->runLoopSource));
    CHECK(!CFRunLoopContainsSource(sourceInfo->runLoop, sourceInfo->source->runLoopSource, kCFRunLoopDefaultMode));

    for (CFIndex i = 0; i < CFArrayGetCount(self->sourcesToPing); i++) {
        RunLoopContext *context = (RunLoopContext *)CFArrayGetValueAtIndex(self->sourcesToPing, i);
        if (!RunLoopContext_isEqual(context, sourceInfo)) continue;
        CFArrayRemoveValueAtIndex(self->sourcesToPing, i);
        free(context);
        self->removed++;
        break;
    }
    free(sourceInfo);
}

/* --- Listing 3-4: scheduling a run loop source --- */

static void RunLoopSourceScheduleRoutine(void *info, CFRunLoopRef rl, CFStringRef mode) {
    RunLoopSource *obj = info;
    CHECK(pthread_equal(pthread_self(), obj->worker));
    CHECK(rl == CFRunLoopGetCurrent());
    CHECK(CFEqual(mode, kCFRunLoopDefaultMode));
    RunLoopContext *theContext = RunLoopContext_initWithSource(obj, rl);
    performer_perform(&sharedAppDelegate.main, registerSource, theContext, false);
}

/* --- Listing 3-5: performing work in the input source --- */

static void RunLoopSourcePerformRoutine(void *info) {
    RunLoopSource *obj = info;
    RunLoopSource_sourceFired(obj);
}

/* --- Listing 3-6: invalidating an input source --- */

static void RunLoopSourceCancelRoutine(void *info, CFRunLoopRef rl, CFStringRef mode) {
    RunLoopSource *obj = info;
    CHECK(pthread_equal(pthread_self(), obj->worker));
    CHECK(CFEqual(mode, kCFRunLoopDefaultMode));
    RunLoopContext *theContext = RunLoopContext_initWithSource(obj, rl);
    performer_perform(&sharedAppDelegate.main, removeSource, theContext, true);
}

/* --- Listing 3-7: installing the run loop source --- */

static RunLoopSource *RunLoopSource_init(RunLoopSource *self) {
    CFRunLoopSourceContext context = {0, self, NULL, NULL, NULL, NULL, NULL,
                                      &RunLoopSourceScheduleRoutine,
                                      RunLoopSourceCancelRoutine,
                                      RunLoopSourcePerformRoutine};
    self->runLoopSource = CFRunLoopSourceCreate(NULL, 0, &context);
    pthread_mutex_init(&self->lock, NULL);
    self->commandCount = 0;
    return self;
}

static void RunLoopSource_addToCurrentRunLoop(RunLoopSource *self) {
    CFRunLoopRef runLoop = CFRunLoopGetCurrent();
    CFRunLoopAddSource(runLoop, self->runLoopSource, kCFRunLoopDefaultMode);
}

static void RunLoopSource_invalidate(RunLoopSource *self) {
    CFRunLoopSourceInvalidate(self->runLoopSource);
}

/* --- The client interface, and Listing 3-9: waking up the run loop --- */

static void RunLoopSource_addCommand(RunLoopSource *self, CFIndex command, CFStringRef data) {
    pthread_mutex_lock(&self->lock);
    CHECK(self->commandCount < most_commands);
    self->commands[self->commandCount++] = (struct Command){command, CFRetain(data)};
    pthread_mutex_unlock(&self->lock);
}

static void RunLoopSource_fireCommandsOnRunLoop(RunLoopSource *self, CFRunLoopRef runloop) {
    CFRunLoopSourceSignal(self->runLoopSource);
    CFRunLoopWakeUp(runloop);
}

/* --- The application: two rounds of commands, the second of which ends the worker --- */

static void fireCommands(RunLoopContext *context) {
    int round = ++sharedAppDelegate.rounds;
    /* A sleeping worker is the case that needs the wake-up. */
    while (!CFRunLoopIsWaiting(context->runLoop)) sched_yield();
    if (round == 1) {
        RunLoopSource_addCommand(context->source, commandNote, CFSTR("one"));
        RunLoopSource_addCommand(context->source, commandNote, CFSTR("two"));
    } else {
        RunLoopSource_addCommand(context->source, commandNote, CFSTR("three"));
        RunLoopSource_addCommand(context->source, commandQuit, CFSTR("bye"));
    }
    RunLoopSource_fireCommandsOnRunLoop(context->source, context->runLoop);
}

static void roundIsDone(void *object) {
    struct AppDelegate *self = &sharedAppDelegate;
    (void)object;
    CHECK(CFArrayGetCount(self->sourcesToPing) == 1);
    fireCommands((RunLoopContext *)CFArrayGetValueAtIndex(self->sourcesToPing, 0));
}

static void RunLoopSource_sourceFired(RunLoopSource *self) {
    struct Command taken[most_commands];
    bool quits = false;
    CHECK(pthread_equal(pthread_self(), self->worker));
    self->timesFired++;

    pthread_mutex_lock(&self->lock);
    int count = self->commandCount;
    for (int i = 0; i < count; i++) taken[i] = self->commands[i];
    self->commandCount = 0;
    pthread_mutex_unlock(&self->lock);

    for (int i = 0; i < count; i++) {
        char text[16] = "?";
        size_t used = strlen(self->notes);
        CFStringGetCString(taken[i].data, text, sizeof text, kCFStringEncodingASCII);
        snprintf(self->notes + used, sizeof self->notes - used, "%s ", text);
        quits = quits || taken[i].command == commandQuit;
        CFRelease(taken[i].data);
    }
    if (quits)
        RunLoopSource_invalidate(self);
    else
        performer_perform(&sharedAppDelegate.main, roundIsDone, NULL, false);
}

static void *workerMain(void *object) {
    RunLoopSource *source = object;
    source->worker = pthread_self();
    RunLoopSource_init(source);
    RunLoopSource_addToCurrentRunLoop(source);
    CFRunLoopRun(); /* returns when the source is gone */
    CHECK(!CFRunLoopSourceIsValid(source->runLoopSource));
    CFRelease(source->runLoopSource);
    return NULL;
}

int main(void) {
    static RunLoopSource source;
    listing_begin();
    sharedAppDelegate.mainThread = pthread_self();
    sharedAppDelegate.sourcesToPing = CFArrayCreateMutable(NULL, 0, NULL);
    performer_install(&sharedAppDelegate.main);

    pthread_t worker = listing_detach(workerMain, &source);
    while (sharedAppDelegate.removed == 0)
        CHECK(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, TRUE) == kCFRunLoopRunHandledSource);
    pthread_join(worker, NULL);

    CHECK(sharedAppDelegate.registered == 1);
    CHECK(sharedAppDelegate.removed == 1);
    CHECK(CFArrayGetCount(sharedAppDelegate.sourcesToPing) == 0);
    CHECK(strcmp(source.notes, "one two three bye ") == 0);
    CHECK(source.timesFired == 2);

    performer_remove(&sharedAppDelegate.main);
    CFRelease(sharedAppDelegate.sourcesToPing);
    return listing_end();
}
