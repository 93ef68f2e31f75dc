/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run loop inside a program's own epoll loop: the program waits, for a pipe of its own and for the run loop's descriptor together.
 *
 * Prints what happens and ends by itself; the exit status is 0 if everything came that should.
 */
#define _GNU_SOURCE
#include <CRLRunLoop.h>
#include <CoreFoundation/CoreFoundation.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

static unsigned beats;
static unsigned commands;
static unsigned own_events;
static int pipe_ends[2];

/* What the run loop serves. */

static void beat(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    beats++;
    (void)printf("timer: beat %u\n", beats);
    if (beats == 2) {
        (void)!write(pipe_ends[1], "x", 1); /* for the program's own part */
    }
    if (beats == 4) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

static void obey(void *info)
{
    (void)info;
    commands++;
    (void)printf("source: a command from another thread\n");
}

static void *command(void *info)
{
    CFRunLoopSourceRef source = info;

    CFRunLoopSourceSignal(source);
    CFRunLoopWakeUp(CFRunLoopGetMain()); /* makes the descriptor readable */
    return NULL;
}

/* What the program serves itself. */

static void read_pipe(void)
{
    char byte;

    own_events += read(pipe_ends[0], &byte, 1) == 1;
    (void)printf("epoll: the program's own descriptor\n");
}

static void watch(int set, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};

    if (epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) < 0) {
        perror("epoll_ctl");
    }
}

/* The hosting: what the run loop prepares, the program waits for, and the run loop dispatches. */
static CFRunLoopRunResult run(CFRunLoopRef loop, int set)
{
    CFRunLoopRunResult result = (CFRunLoopRunResult)0;

    while (!result && CRLRunLoopPrepare(loop, kCFRunLoopDefaultMode)) {
        struct epoll_event events[8];
        int count = epoll_wait(set, events, 8, -1); /* the descriptor tells of timers, too */

        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == pipe_ends[0]) {
                read_pipe();
            }
        }
        result = CRLRunLoopDispatch(loop);
    }
    CRLRunLoopLeave(loop);
    return result;
}

int main(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceContext context = {.perform = obey};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 0.05, 0.05, 0, 0, beat, NULL);
    int set = epoll_create1(EPOLL_CLOEXEC);
    CFRunLoopRunResult result;
    pthread_t thread;

    CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode);
    CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode);
    if (set < 0 || pipe(pipe_ends) < 0) {
        perror("epoll-host");
        return 1;
    }
    watch(set, pipe_ends[0]);
    watch(set, CRLRunLoopGetDescriptor(loop));
    CFRunLoopSourceSignal(source); /* one before the run, to be found by its first pass */
    (void)pthread_create(&thread, NULL, command, source);
    result = run(loop, set);
    (void)pthread_join(thread, NULL);
    (void)printf("the run has ended: %s\n", result == kCFRunLoopRunStopped ? "stopped" : "?");
    CFRunLoopTimerInvalidate(timer);
    CFRunLoopSourceInvalidate(source);
    CFRelease(timer);
    CFRelease(source);
    (void)close(set);
    return result == kCFRunLoopRunStopped && beats == 4 && commands >= 1 && own_events == 1 ? 0 : 1;
}
