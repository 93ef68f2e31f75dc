/* SPDX-License-Identifier: Apache-2.0 */
/* cnats on a run loop; see loop_adapter.h. */
#include "loop_adapter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct loop_adapter {
    _Atomic int references; /* the maker's, and cnats's as long as it is attached */
    CFRunLoopRef loop; /* constant: a reference */
    pthread_t thread; /* constant: the loop's. cnats's threads are to get no loop, which asking for it would make */
    CFRunLoopObserverRef observer; /* constant: a reference. It writes before the loop sleeps */
    void (*has_moved)(void *info); /* constant */
    void *info; /* constant */
    atomic_bool wants_write; /* cnats has bytes to write */
    natsConnection *nats; /* used by the loop's thread; NULL: none is served */
    pthread_mutex_t lock; /* guards what follows; inside cnats's lock, and never held over a call of cnats */
    CFFileDescriptorRef descriptor; /* a reference; NULL: cnats has no socket */
    bool is_entered; /* the descriptor belongs into the loop */
};

static void ready(CFFileDescriptorRef descriptor, CFOptionFlags kinds, void *info);

/* ---- the socket; the lock is held ---- */

/* Returns false if there is no memory: nothing would be read then. */
static bool add_to_loop(struct loop_adapter *adapter)
{
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, adapter->descriptor, 0);
    bool is_added = false;

    if (source) {
        CFRunLoopAddSource(adapter->loop, source, kCFRunLoopDefaultMode);
        is_added = CFRunLoopContainsSource(adapter->loop, source, kCFRunLoopDefaultMode);
        CFRelease(source);
        CFFileDescriptorEnableCallBacks(adapter->descriptor, kCFFileDescriptorReadCallBack);
    }
    return is_added;
}

static void drop_socket(struct loop_adapter *adapter)
{
    if (adapter->descriptor) {
        CFFileDescriptorInvalidate(adapter->descriptor);
        CFRelease(adapter->descriptor);
        adapter->descriptor = NULL;
    }
}

void loop_adapter_release(struct loop_adapter *adapter)
{
    if (atomic_fetch_sub(&adapter->references, 1) == 1) {
        CFRelease(adapter->loop);
        (void)pthread_mutex_destroy(&adapter->lock);
        free(adapter);
    }
}

/* ---- what cnats calls, with its own lock held ---- */

static natsStatus attach(void **ret_data, void *info, natsConnection *nats, natsSock socket)
{
    struct loop_adapter *adapter = info;
    CFFileDescriptorContext context = {.info = adapter};
    natsStatus status = NATS_OK;

    (void)nats;
    (void)pthread_mutex_lock(&adapter->lock);
    drop_socket(adapter);
    adapter->descriptor = CFFileDescriptorCreate(NULL, socket, false, ready, &context);
    if (!adapter->descriptor || (adapter->is_entered && !add_to_loop(adapter))) {
        drop_socket(adapter);
        status = NATS_NO_MEMORY; /* cnats tries again */
    }
    (void)pthread_mutex_unlock(&adapter->lock);
    if (status == NATS_OK && !*ret_data) {
        (void)atomic_fetch_add(&adapter->references, 1); /* until it detaches */
        *ret_data = adapter;
    }
    return status;
}

static natsStatus want_read(void *data, bool adds)
{
    struct loop_adapter *adapter = data;

    if (!adds) { /* the socket is about to be closed */
        (void)pthread_mutex_lock(&adapter->lock);
        drop_socket(adapter);
        (void)pthread_mutex_unlock(&adapter->lock);
    }
    return NATS_OK;
}

static natsStatus want_write(void *data, bool adds)
{
    struct loop_adapter *adapter = data;

    atomic_store(&adapter->wants_write, adds);
    if (adds && !pthread_equal(pthread_self(), adapter->thread)) {
        CFRunLoopWakeUp(adapter->loop);
    }
    return NATS_OK;
}

static natsStatus detach(void *data)
{
    (void)want_read(data, false);
    loop_adapter_release(data);
    return NATS_OK;
}

/* ---- the loop's callouts ---- */

/* Asks the kernel to tell of room or of bytes, if there is a socket. */
static void enable(struct loop_adapter *adapter, CFOptionFlags kinds)
{
    (void)pthread_mutex_lock(&adapter->lock);
    if (adapter->descriptor) {
        CFFileDescriptorEnableCallBacks(adapter->descriptor, kinds);
    }
    (void)pthread_mutex_unlock(&adapter->lock);
}

void loop_adapter_flush(struct loop_adapter *adapter)
{
    if (!adapter->nats || !atomic_load(&adapter->wants_write)) {
        return;
    }
    natsConnection_ProcessWriteEvent(adapter->nats);
    if (atomic_load(&adapter->wants_write)) {
        enable(adapter, kCFFileDescriptorWriteCallBack);
    }
}

static void ready(CFFileDescriptorRef descriptor, CFOptionFlags kinds, void *info)
{
    struct loop_adapter *adapter = info;

    (void)descriptor;
    if (!adapter->nats) {
        return;
    }
    if (kinds & kCFFileDescriptorReadCallBack) {
        natsConnection_ProcessReadEvent(adapter->nats);
        enable(adapter, kCFFileDescriptorReadCallBack);
    } else {
        loop_adapter_flush(adapter);
    }
    adapter->has_moved(adapter->info);
    loop_adapter_flush(adapter);
}

static void before_sleep(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    loop_adapter_flush(info);
}

/* ---- life ---- */

/* Returns NULL if the loop has no memory for it: without it nothing would be written. */
static CFRunLoopObserverRef create_observer(CFRunLoopRef loop, CFRunLoopObserverContext *context)
{
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting, true, 0, before_sleep, context);

    if (observer) {
        CFRunLoopAddObserver(loop, observer, kCFRunLoopDefaultMode);
        if (CFRunLoopContainsObserver(loop, observer, kCFRunLoopDefaultMode)) {
            return observer;
        }
        CFRelease(observer);
    }
    return NULL;
}

struct loop_adapter *loop_adapter_create(CFRunLoopRef loop, void (*has_moved)(void *info), void *info)
{
    struct loop_adapter *adapter = calloc(1, sizeof *adapter);
    CFRunLoopObserverContext context = {.info = adapter};

    if (!adapter) {
        return NULL;
    }
    adapter->observer = create_observer(loop, &context);
    if (!adapter->observer) {
        free(adapter);
        return NULL;
    }
    atomic_init(&adapter->references, 1);
    adapter->loop = (CFRunLoopRef)(uintptr_t)CFRetain(loop);
    adapter->thread = pthread_self();
    adapter->has_moved = has_moved;
    adapter->info = info;
    (void)pthread_mutex_init(&adapter->lock, NULL);
    return adapter;
}

void loop_adapter_end(struct loop_adapter *adapter)
{
    loop_adapter_leave(adapter);
    CFRunLoopObserverInvalidate(adapter->observer);
    CFRelease(adapter->observer);
}

natsStatus loop_adapter_set(struct loop_adapter *adapter, natsOptions *options)
{
    return natsOptions_SetEventLoop(options, adapter, attach, want_read, want_write, detach);
}

bool loop_adapter_enter(struct loop_adapter *adapter, natsConnection *nats)
{
    bool result;

    (void)pthread_mutex_lock(&adapter->lock);
    result = !adapter->descriptor || add_to_loop(adapter);
    adapter->is_entered = result;
    (void)pthread_mutex_unlock(&adapter->lock);
    adapter->nats = result ? nats : NULL;
    return result;
}

void loop_adapter_leave(struct loop_adapter *adapter)
{
    adapter->nats = NULL;
    (void)pthread_mutex_lock(&adapter->lock);
    adapter->is_entered = false;
    drop_socket(adapter);
    (void)pthread_mutex_unlock(&adapter->lock);
}
