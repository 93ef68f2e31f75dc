/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cocoa's performSelector:onThread:withObject:waitUntilDone: in C, as the listings need it: a custom input source of a thread's loop with a
 * queue of calls. The queue has its own lock, which is not held during a call. One source stays for good, where Cocoa's remove themselves.
 */
#ifndef CRL_TESTS_PERFORMER_H
#define CRL_TESTS_PERFORMER_H

#include <CoreFoundation/CoreFoundation.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct performer_call {
    void (*function)(void *object);
    void *object;
    bool is_waited_for; /* constant */
    bool is_done; /* guarded by the performer's lock */
    struct performer_call *next; /* guarded by the performer's lock */
};

struct performer {
    pthread_mutex_t lock;
    pthread_cond_t done;
    struct performer_call *first; /* guarded by lock */
    CFRunLoopSourceRef source; /* constant once installed */
    CFRunLoopRef runLoop; /* constant once installed */
};

static inline struct performer_call *performer_take(struct performer *performer) {
    pthread_mutex_lock(&performer->lock);
    struct performer_call *call = performer->first;
    if (call != NULL) performer->first = call->next;
    pthread_mutex_unlock(&performer->lock);
    return call;
}

static inline void performer_finish(struct performer *performer, struct performer_call *call) {
    if (!call->is_waited_for) {
        free(call);
        return;
    }
    pthread_mutex_lock(&performer->lock);
    call->is_done = true;
    pthread_cond_broadcast(&performer->done);
    pthread_mutex_unlock(&performer->lock);
}

static inline void performer_fired(void *info) {
    struct performer *performer = info;
    struct performer_call *call;
    while ((call = performer_take(performer)) != NULL) {
        call->function(call->object);
        performer_finish(performer, call);
    }
}

/* Installs the source in the default mode of the calling thread's loop. */
static inline void performer_install(struct performer *performer) {
    CFRunLoopSourceContext context = {0, performer, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &performer_fired};
    pthread_mutex_init(&performer->lock, NULL);
    pthread_cond_init(&performer->done, NULL);
    performer->first = NULL;
    performer->runLoop = CFRunLoopGetCurrent();
    performer->source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(performer->runLoop, performer->source, kCFRunLoopDefaultMode);
}

static inline void performer_remove(struct performer *performer) {
    CFRunLoopSourceInvalidate(performer->source);
    CFRelease(performer->source);
}

static inline void performer_perform(struct performer *performer, void (*function)(void *object), void *object, bool waitUntilDone) {
    struct performer_call *call = malloc(sizeof *call);
    if (call == NULL) abort();
    *call = (struct performer_call){.function = function, .object = object, .is_waited_for = waitUntilDone};
    pthread_mutex_lock(&performer->lock);
    struct performer_call **last = &performer->first;
    while (*last != NULL) last = &(*last)->next;
    *last = call;
    pthread_mutex_unlock(&performer->lock);
    CFRunLoopSourceSignal(performer->source);
    CFRunLoopWakeUp(performer->runLoop);
    if (!waitUntilDone) return;
    pthread_mutex_lock(&performer->lock);
    while (!call->is_done) pthread_cond_wait(&performer->done, &performer->lock);
    pthread_mutex_unlock(&performer->lock);
    free(call);
}

#endif
