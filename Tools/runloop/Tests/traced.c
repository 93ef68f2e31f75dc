/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose trace is known: the tests of the command runloop compare every figure with what it says here. Rules: 515 516 517 518 519
 *
 * usage: traced [CASE]
 *
 * Without a case: 20 firings of a timer with function `tick`, each of which signals a source with function `served`; 3 posts of `posted`;
 * one callout `slow` of at least 0.3 s; and a thread that answers 5 messages with `answer`. With `fork` a child runs its loop as well, and
 * with `exec` the program becomes another one in the end. With `many N` a source is performed N times.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CoreFoundation.h"

enum { ticks = 20, posts = 3, messages = 5 };

static CFRunLoopSourceRef source;
static long left;

__attribute__((noinline)) static void served(void *info)
{
    (void)info;
    if (left > 0 && --left > 0) {
        CFRunLoopSourceSignal(source);
    }
}

__attribute__((noinline)) static void tick(CFRunLoopTimerRef timer, void *info)
{
    int *count = info;

    CFRunLoopSourceSignal(source);
    if (++*count == ticks) {
        CFRunLoopTimerInvalidate(timer);
    }
}

__attribute__((noinline)) static void posted(void *info)
{
    *(int *)info += 1;
}

__attribute__((noinline)) static void slow(void *info)
{
    struct timespec wanted = {0, 300000000};

    (void)info;
    while (nanosleep(&wanted, &wanted) != 0) {
    }
}

/* ---- the thread that answers ---- */

static CFRunLoopRef answering;
static pthread_barrier_t ready;

__attribute__((noinline)) static CFDataRef answer(CFMessagePortRef port, SInt32 number, CFDataRef data, void *info)
{
    (void)port, (void)number, (void)info;
    return data ? CFRetain(data) : NULL;
}

static void *serve(void *name)
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name, answer, NULL, NULL);
    CFRunLoopSourceRef own = CFMessagePortCreateRunLoopSource(NULL, port, 0);

    answering = CFRunLoopGetCurrent();
    CFRunLoopAddSource(answering, own, kCFRunLoopDefaultMode);
    (void)pthread_barrier_wait(&ready);
    CFRunLoopRun();
    CFRunLoopSourceInvalidate(own);
    CFRelease(own);
    CFMessagePortInvalidate(port);
    CFRelease(port);
    return NULL;
}

static void stop(void *info)
{
    (void)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static void ask(void)
{
    CFStringRef name = CFStringCreateWithFormat(NULL, NULL, CFSTR("traced.%d"), (int)getpid());
    CFMessagePortRef remote;
    pthread_t thread;

    (void)pthread_barrier_init(&ready, NULL, 2);
    (void)pthread_create(&thread, NULL, serve, (void *)(uintptr_t)name);
    (void)pthread_barrier_wait(&ready);
    remote = CFMessagePortCreateRemote(NULL, name);
    for (int i = 0; i < messages; i++) {
        CFDataRef reply = NULL;

        if (CFMessagePortSendRequest(remote, i, NULL, 10, 10, kCFRunLoopDefaultMode, &reply) != kCFMessagePortSuccess) {
            exit(1);
        }
        if (reply) {
            CFRelease(reply);
        }
    }
    CRLRunLoopPerformFunction(answering, kCFRunLoopDefaultMode, stop, NULL, NULL);
    CFRunLoopWakeUp(answering);
    (void)pthread_join(thread, NULL);
    CFRelease(remote);
    CFRelease(name);
}

/* ---- the cases ---- */

static void run_all(void)
{
    int counted = 0;
    int runs = 0;
    CFRunLoopTimerContext context = {.info = &counted};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 0.001, 0.001, 0, 0, tick, &context);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    while (counted < ticks) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, true);
    }
    CFRelease(timer);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false); /* for the last signal */
    for (int i = 0; i < posts; i++) {
        CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), CFSTR("posts"), posted, &runs, NULL);
    }
    CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), CFSTR("posts"), slow, NULL, NULL);
    (void)CFRunLoopRunInMode(CFSTR("posts"), 0, false);
    ask();
}

static void run_child(void)
{
    int runs = 0;

    CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), CFSTR("child"), posted, &runs, NULL);
    (void)CFRunLoopRunInMode(CFSTR("child"), 0, false);
}

int main(int count, char **words)
{
    CFRunLoopSourceContext context = {.perform = served};

    source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    if (count > 2 && strcmp(words[1], "many") == 0) {
        left = strtol(words[2], NULL, 10);
        CFRunLoopSourceSignal(source);
        while (left > 0) {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
        }
    } else if (count > 1 && strcmp(words[1], "fork") == 0) {
        int status = 0;
        pid_t child;

        run_child();
        child = fork();
        if (child == 0) {
            run_child();
            exit(0);
        }
        (void)waitpid(child, &status, 0);
    } else if (count > 1 && strcmp(words[1], "exec") == 0) {
        run_child();
        (void)execl(words[0], words[0], "fork", (char *)NULL);
        return 1;
    } else if (count > 1 && strcmp(words[1], "kill") == 0) {
        run_all();
        abort();
    } else {
        run_all();
    }
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
    return count > 1 && strcmp(words[1], "status") == 0 ? 7 : 0;
}
