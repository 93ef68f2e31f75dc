// SPDX-License-Identifier: Apache-2.0
//
// The toolchain's Core Foundation is declared here by hand: its headers would have to stand on the search path of every program that uses
// this package, where ours may stand as well.

#include "CoreRunLoopFoundationShims.h"

#include <poll.h>
#include <stddef.h>

struct source_context {
    long version;
    void *info;
    const void *(*retain)(const void *info);
    void (*release)(const void *info);
    const void *(*copyDescription)(const void *info);
    bool (*equal)(const void *info1, const void *info2);
    unsigned long (*hash)(const void *info);
    int (*getPort)(void *info);
    void (*perform)(void *info);
};

extern const void *const kCFRunLoopDefaultMode;
extern void *CFRunLoopGetCurrent(void);
extern int32_t CFRunLoopRunInMode(const void *mode, double seconds, bool return_after_source_handled);
extern void *CFRunLoopSourceCreate(const void *allocator, long order, struct source_context *context);
extern void CFRunLoopAddSource(void *loop, void *source, const void *mode);
extern void CFRunLoopSourceInvalidate(void *source);
extern void CFRelease(const void *object);

static int port(void *info) {
    return (int)(intptr_t)info;
}

// The run's end is all that is wanted.
static void nothing(void *info) {
    (void)info;
}

void *foundation_loop_watch(int descriptor) {
    struct source_context context = {.version = 1, .info = (void *)(intptr_t)descriptor, .getPort = port, .perform = nothing};
    void *source = CFRunLoopSourceCreate(NULL, 0, &context);

    if (source) {
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    }
    return source;
}

void foundation_loop_forget(void *watch) {
    CFRunLoopSourceInvalidate(watch);
    CFRelease(watch);
}

int32_t foundation_loop_run(double seconds) {
    return CFRunLoopRunInMode(kCFRunLoopDefaultMode, seconds, true);
}

bool foundation_loop_is_readable(int descriptor) {
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN};

    return poll(&wanted, 1, 0) > 0;
}
