/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Article 004, section 1.2: a source with schedule, cancel and perform, added to a loop that is not running, signalled, and run by hand. A
 * loop with nothing in it is not entered. The article says that a source is removed by itself after it has run once; it is not: it stays
 * until it is removed or the thread ends, and `cancel` is called then. The article's runMode:beforeDate: becomes CFRunLoopRunInMode, to
 * return after one source.
 * Rules: 27 72 75 76 96 170
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"

struct object {
    char calls[64];
    int retained;
    int released;
};

static void note(struct object *self, const char *call) {
    size_t used = strlen(self->calls);
    snprintf(self->calls + used, sizeof self->calls - used, "%s ", call);
}

static void schedule(void *info, CFRunLoopRef rl, CFRunLoopMode mode) {
    (void)rl;
    CHECK(CFEqual(mode, kCFRunLoopDefaultMode));
    note(info, "schedule");
}

static void cancel(void *info, CFRunLoopRef rl, CFRunLoopMode mode) {
    (void)rl;
    CHECK(CFEqual(mode, kCFRunLoopDefaultMode));
    note(info, "cancel");
}

static void perform(void *info) {
    note(info, "perform");
}

static const void *retainObject(const void *info) {
    ((struct object *)info)->retained++;
    return info;
}

static void releaseObject(const void *info) {
    ((struct object *)info)->released++;
}

static CFStringRef copyDescription(const void *info) {
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("object %p"), info);
}

static Boolean equal(const void *info1, const void *info2) {
    return info1 == info2;
}

static void *addSourceToThread(void *object) {
    struct object *self = object;
    CFRunLoopRef rl = CFRunLoopGetCurrent();
    CFRunLoopSourceContext context = {0, self, retainObject, releaseObject, &copyDescription, &equal, NULL, &schedule, &cancel, &perform};
    CFRunLoopSourceRef sourceRef = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context);
    CHECK(CFRunLoopSourceIsValid(sourceRef));
    CHECK(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, TRUE) == kCFRunLoopRunFinished); /* nothing in it yet */
    CHECK(strcmp(self->calls, "") == 0);

    CFRunLoopAddSource(rl, sourceRef, kCFRunLoopDefaultMode);
    CHECK(strcmp(self->calls, "schedule ") == 0);
    CFRunLoopSourceSignal(sourceRef);
    CFRunLoopWakeUp(rl); /* without effect: the loop does not run yet */
    CHECK(strcmp(self->calls, "schedule ") == 0);

    CHECK(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, TRUE) == kCFRunLoopRunHandledSource);
    CHECK(strcmp(self->calls, "schedule perform ") == 0);
    CHECK(CFRunLoopContainsSource(rl, sourceRef, kCFRunLoopDefaultMode)); /* it stays */
    CHECK(CFRunLoopSourceIsValid(sourceRef));

    CFRunLoopRemoveSource(rl, sourceRef, kCFRunLoopDefaultMode);
    CHECK(strcmp(self->calls, "schedule perform cancel ") == 0);
    CFRunLoopAddSource(rl, sourceRef, kCFRunLoopDefaultMode);
    if (sourceRef) CFRelease(sourceRef); /* the loop has the last reference, and this thread's end takes it */
    CHECK(self->retained == 1);
    CHECK(self->released == 0);
    return NULL;
}

int main(void) {
    struct object self = {0};
    listing_begin();
    listing_on_thread(addSourceToThread, &self);
    CHECK(strcmp(self.calls, "schedule perform cancel schedule cancel ") == 0);
    CHECK(self.retained == 1);
    CHECK(self.released == 1);
    return listing_end();
}
