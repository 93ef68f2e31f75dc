/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * A GMainContext inside a run loop: GLib's timeouts, idle functions, sockets and buses are served by CFRunLoopRun, without a GMainLoop.
 * `pkg-config --cflags --libs corerunloop glib-2.0`. CRLHostGLib.h has the reverse.
 *
 *     CFRunLoopSourceRef source = CRLGLibSourceCreate(NULL);
 *     CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopCommonModes);
 *     CFRunLoopRun();
 */

#if !defined(CRL_GLIB_SOURCE_H)
#define CRL_GLIB_SOURCE_H 1

#if !defined(CRL_GLIB_IS_DECLARED)
#include <glib.h>
#endif

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CFFileDescriptor.h"

CF_EXTERN_C_BEGIN

/** What such a source has. Only the loop's thread uses it. */
typedef struct CRLGLibSource {
    GMainContext *context; /**< Retained. */
    CFIndex modes; /**< In how many modes the source is. */
    Boolean isOwner; /**< The thread owns the context. Otherwise another one runs it. */
    gint priority; /**< Which of the context's sources are to be asked: from the last prepare. */
    GPollFD *descriptors; /**< Which descriptors the context waits for. */
    gint count, room; /**< How many they are, and for how many there is room. */
    GPollFD *watched; /**< The same of the time before, in an array of the same size. */
    gint watchedCount; /**< How many these are. */
    int set; /**< The wait set of these descriptors. */
    CFRunLoopSourceRef signal; /**< The source itself, not retained: signalled when the context has something to do. */
    CFFileDescriptorRef descriptor; /**< Of `set`. */
    CFRunLoopSourceRef descriptorSource; /**< Its source. */
    CFRunLoopTimerRef timer; /**< Fires when the context's next timeout is due. */
    CFRunLoopObserverRef observer; /**< Asks the context before each sleep what it waits for. */
} CRLGLibSource;

/** Has the context asked in this pass or in the next one. */
CF_INLINE void CRLGLibSourceSignal(CRLGLibSource *self)
{
    CFRunLoopSourceSignal(self->signal);
    CFRunLoopWakeUp(CFRunLoopGetCurrent());
}

/** Makes room for `count` descriptors. Without memory the context is asked again a little later. */
CF_INLINE Boolean CRLGLibSourceGrow(CRLGLibSource *self, gint count)
{
    GPollFD *descriptors = (GPollFD *)realloc(self->descriptors, (size_t)count * sizeof *descriptors);
    GPollFD *watched = (GPollFD *)realloc(self->watched, (size_t)count * sizeof *watched);

    self->descriptors = descriptors ? descriptors : self->descriptors;
    self->watched = watched ? watched : self->watched;
    if (!descriptors || !watched) {
        return 0;
    }
    self->room = count;
    return 1;
}

/**
 * Brings the wait set up to date. A number may stand for another file than before, so each is given to the kernel anew. Returns false if
 * one cannot be waited for, as a plain file: it is always ready.
 */
CF_INLINE Boolean CRLGLibSourceWatch(CRLGLibSource *self)
{
    Boolean canWait = 1;
    gint i, j;

    for (i = 0; i < self->watchedCount; i++) {
        for (j = 0; j < self->count && self->descriptors[j].fd != self->watched[i].fd; j++) {
        }
        if (j == self->count) {
            (void)epoll_ctl(self->set, EPOLL_CTL_DEL, self->watched[i].fd, NULL);
        }
    }
    for (i = 0; i < self->count; i++) {
        struct epoll_event event;

        event.events = self->descriptors[i].events;
        event.data.ptr = NULL;
        self->watched[i] = self->descriptors[i];
        canWait &= epoll_ctl(self->set, EPOLL_CTL_MOD, self->watched[i].fd, &event) == 0 ||
                   epoll_ctl(self->set, EPOLL_CTL_ADD, self->watched[i].fd, &event) == 0;
    }
    self->watchedCount = self->count;
    return canWait;
}

/** The observer's callback: asks the context what is ready, and for what and how long it would wait. */
CF_INLINE void CRLGLibSourcePrepare(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    CRLGLibSource *self = (CRLGLibSource *)info;
    gint timeout_ms = -1;
    Boolean isReady;

    (void)observer, (void)activity;
    if (!self->isOwner) {
        return;
    }
    isReady = g_main_context_prepare(self->context, &self->priority) != 0;
    for (;;) {
        self->count = g_main_context_query(self->context, self->priority, &timeout_ms, self->descriptors, self->room);
        if (self->count <= self->room) {
            break;
        }
        if (!CRLGLibSourceGrow(self, self->count + 8)) {
            self->count = self->room;
            timeout_ms = 100;
            break;
        }
    }
    if (!CRLGLibSourceWatch(self) || isReady || timeout_ms == 0) {
        CRLGLibSourceSignal(self);
        return;
    }
    CFRunLoopTimerSetNextFireDate(self->timer, CFAbsoluteTimeGetCurrent() + (timeout_ms < 0 ? 1e10 : timeout_ms / 1e3));
}

/** The source's callback: dispatches what is ready. */
CF_INLINE void CRLGLibSourcePerform(void *info)
{
    CRLGLibSource *self = (CRLGLibSource *)info;
    gint i;

    for (i = 0; i < self->count; i++) {
        self->descriptors[i].revents = 0;
    }
    (void)poll((struct pollfd *)(void *)self->descriptors, (nfds_t)self->count, 0);
    if (self->isOwner && g_main_context_check(self->context, self->priority, self->descriptors, self->count)) {
        g_main_context_dispatch(self->context);
    }
}

/** The wait set's callback. The source does the work, as a run inside it can then do so, too. */
CF_INLINE void CRLGLibSourceReady(CFFileDescriptorRef descriptor, CFOptionFlags kinds, void *info)
{
    CFFileDescriptorEnableCallBacks(descriptor, kinds);
    CRLGLibSourceSignal((CRLGLibSource *)info);
}

/** The timer's callback. */
CF_INLINE void CRLGLibSourceDue(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    CRLGLibSourceSignal((CRLGLibSource *)info);
}

/** The source has joined a mode. */
CF_INLINE void CRLGLibSourceSchedule(void *info, CFRunLoopRef loop, CFRunLoopMode mode)
{
    CRLGLibSource *self = (CRLGLibSource *)info;

    if (self->modes++ == 0) {
        self->isOwner = g_main_context_acquire(self->context) != 0;
    }
    CFRunLoopAddObserver(loop, self->observer, mode);
    CFRunLoopAddSource(loop, self->descriptorSource, mode);
    CFRunLoopAddTimer(loop, self->timer, mode);
}

/** The source has left a mode. */
CF_INLINE void CRLGLibSourceCancel(void *info, CFRunLoopRef loop, CFRunLoopMode mode)
{
    CRLGLibSource *self = (CRLGLibSource *)info;

    CFRunLoopRemoveObserver(loop, self->observer, mode);
    CFRunLoopRemoveSource(loop, self->descriptorSource, mode);
    CFRunLoopRemoveTimer(loop, self->timer, mode);
    if (--self->modes == 0 && self->isOwner) {
        self->isOwner = 0;
        g_main_context_release(self->context);
    }
}

/** Nobody has the source any more, or it could not be made. */
CF_INLINE void CRLGLibSourceFree(const void *info)
{
    CRLGLibSource *self = (CRLGLibSource *)(uintptr_t)info;

    if (self->descriptorSource) {
        CFRunLoopSourceInvalidate(self->descriptorSource);
        CFRelease(self->descriptorSource);
    }
    if (self->descriptor) {
        CFFileDescriptorInvalidate(self->descriptor);
        CFRelease(self->descriptor);
    }
    if (self->timer) {
        CFRunLoopTimerInvalidate(self->timer);
        CFRelease(self->timer);
    }
    if (self->observer) {
        CFRunLoopObserverInvalidate(self->observer);
        CFRelease(self->observer);
    }
    if (self->set >= 0) {
        (void)close(self->set);
    }
    g_main_context_unref(self->context);
    free(self->descriptors);
    free(self->watched);
    free(self);
}

/** Makes what waits for the context. Returns false if something is missing. */
CF_INLINE Boolean CRLGLibSourceMakeParts(CRLGLibSource *self)
{
    CFFileDescriptorContext ofDescriptor = {0, self, NULL, NULL, NULL};
    CFRunLoopTimerContext ofTimer = {0, self, NULL, NULL, NULL};
    CFRunLoopObserverContext ofObserver = {0, self, NULL, NULL, NULL};

    self->set = epoll_create1(EPOLL_CLOEXEC);
    self->descriptor = self->set < 0 ? NULL : CFFileDescriptorCreate(NULL, self->set, 0, CRLGLibSourceReady, &ofDescriptor);
    self->descriptorSource = self->descriptor ? CFFileDescriptorCreateRunLoopSource(NULL, self->descriptor, 0) : NULL;
    self->timer = CFRunLoopTimerCreate(NULL, 1e10, 1e10, 0, 0, CRLGLibSourceDue, &ofTimer);
    self->observer =
        CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeSources | kCFRunLoopBeforeWaiting, 1, 2000000, CRLGLibSourcePrepare, &ofObserver);
    if (!self->descriptorSource || !self->timer || !self->observer || !CRLGLibSourceGrow(self, 8)) {
        return 0;
    }
    CFFileDescriptorEnableCallBacks(self->descriptor, kCFFileDescriptorReadCallBack);
    return 1;
}

/**
 * Creates a source whose loop serves `context`; NULL is the default context.
 *
 * It is for one loop, in as many modes of it as wished. The context belongs to the loop's thread, as to one in g_main_loop_run: functions
 * given to it from other threads are called here. A GLib callback may run the run loop, and either's callback may run the context by
 * g_main_context_iteration, which then serves the context alone.
 * Ownership: the caller releases the source. CFRunLoopSourceInvalidate takes the context out of the loop.
 * Threads: the loop's own, for adding, removing and invalidating it too.
 * Errors: NULL when there is no memory or no descriptor. A context that another thread runs while the source is added is not served.
 */
CF_INLINE CFRunLoopSourceRef CRLGLibSourceCreate(GMainContext *context)
{
    CFRunLoopSourceContext calls = {
        0, NULL, NULL, CRLGLibSourceFree, NULL, NULL, NULL, CRLGLibSourceSchedule, CRLGLibSourceCancel, CRLGLibSourcePerform};
    CRLGLibSource *self = (CRLGLibSource *)calloc(1, sizeof *self);

    if (!self) {
        return NULL;
    }
    self->context = g_main_context_ref(context ? context : g_main_context_default());
    calls.info = self;
    if (CRLGLibSourceMakeParts(self)) {
        self->signal = CFRunLoopSourceCreate(NULL, 0, &calls);
    }
    if (!self->signal) {
        CRLGLibSourceFree(self);
        return NULL;
    }
    return self->signal;
}

CF_EXTERN_C_END

#endif /* ! CRL_GLIB_SOURCE_H */
