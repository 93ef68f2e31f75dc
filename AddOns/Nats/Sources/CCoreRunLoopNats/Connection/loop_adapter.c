/* SPDX-License-Identifier: Apache-2.0 */
/* cnats on a run loop; see loop_adapter.h. */
#include "Connection/loop_adapter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "Support/guard.h"
#include "Support/invariant.h"

/* The lock of an adapter. Taken with cnats's lock held; no call of cnats is made under it. */
extern struct lock_role the_adapter_lock;

struct loop_adapter {
    _Atomic int references; /* any thread; the creator's, and cnats's while it is attached */
    CFRunLoopRef loop; /* constant; a reference */
    pthread_t thread; /* constant: the loop's. CFRunLoopGetCurrent would give cnats's threads loops */
    CFRunLoopObserverRef observer; /* the loop's thread; a reference until loop_adapter_end. It writes before the loop sleeps */
    void (*on_progress)(void *info); /* constant */
    void *info; /* constant */
    atomic_bool wants_write; /* any thread: cnats has bytes to write */
    natsConnection *nats; /* the loop's thread; NULL: none is served */
    pthread_mutex_t lock; /* the_adapter_lock */
    CFFileDescriptorRef descriptor GUARDED_BY(the_adapter_lock); /* a reference; NULL: cnats has no socket */
    bool is_entered GUARDED_BY(the_adapter_lock); /* the descriptor is to be in the loop */
};

static void on_descriptor_ready(CFFileDescriptorRef descriptor, CFOptionFlags kinds, void *info);

/* ---- the socket ---- */

/* clang does not know a pthread mutex (NOT_CHECKED), here and in the next. */
ACQUIRES(the_adapter_lock) NOT_CHECKED static void lock_adapter(struct loop_adapter *adapter)
{
    (void)pthread_mutex_lock(&adapter->lock);
}

RELEASES(the_adapter_lock) NOT_CHECKED static void unlock_adapter(struct loop_adapter *adapter)
{
    (void)pthread_mutex_unlock(&adapter->lock);
}

static bool is_loops_thread(const struct loop_adapter *adapter)
{
    return pthread_equal(pthread_self(), adapter->thread);
}

/* Returns false if there is no memory: nothing would be read then. */
REQUIRES(the_adapter_lock) static bool schedule_descriptor(struct loop_adapter *adapter)
{
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, adapter->descriptor, 0);
    bool is_added = false;

    invariant(adapter->descriptor);
    if (source) {
        CFRunLoopAddSource(adapter->loop, source, kCFRunLoopDefaultMode);
        is_added = CFRunLoopContainsSource(adapter->loop, source, kCFRunLoopDefaultMode);
        CFRelease(source);
        CFFileDescriptorEnableCallBacks(adapter->descriptor, kCFFileDescriptorReadCallBack);
    }
    return is_added;
}

REQUIRES(the_adapter_lock) static void drop_descriptor(struct loop_adapter *adapter)
{
    if (adapter->descriptor) {
        CFFileDescriptorInvalidate(adapter->descriptor);
        CFRelease(adapter->descriptor);
        adapter->descriptor = NULL;
    }
}

void loop_adapter_release(struct loop_adapter *adapter)
{
    int before = atomic_fetch_sub(&adapter->references, 1);

    invariant(before > 0);
    if (before == 1) {
        CFRelease(adapter->loop);
        (void)pthread_mutex_destroy(&adapter->lock);
        free(adapter);
    }
}

/* ---- what cnats calls, with its own lock held ---- */

static natsStatus on_attach(void **ret_data, void *info, natsConnection *nats, natsSock socket)
{
    struct loop_adapter *adapter = info;
    CFFileDescriptorContext context = {.info = adapter};
    natsStatus status = NATS_OK;

    (void)nats;
    lock_adapter(adapter);
    drop_descriptor(adapter);
    adapter->descriptor = CFFileDescriptorCreate(NULL, socket, false, on_descriptor_ready, &context);
    if (!adapter->descriptor || (adapter->is_entered && !schedule_descriptor(adapter))) {
        drop_descriptor(adapter);
        status = NATS_NO_MEMORY; /* cnats connects again later */
    }
    unlock_adapter(adapter);
    if (status == NATS_OK && !*ret_data) {
        (void)atomic_fetch_add(&adapter->references, 1); /* until it detaches */
        *ret_data = adapter;
    }
    return status;
}

static natsStatus on_read_wanted(void *data, bool adds)
{
    struct loop_adapter *adapter = data;

    if (!adds) { /* the socket is about to be closed */
        lock_adapter(adapter);
        drop_descriptor(adapter);
        unlock_adapter(adapter);
    }
    return NATS_OK;
}

static natsStatus on_write_wanted(void *data, bool adds)
{
    struct loop_adapter *adapter = data;

    atomic_store(&adapter->wants_write, adds);
    if (adds && !is_loops_thread(adapter)) {
        CFRunLoopWakeUp(adapter->loop);
    }
    return NATS_OK;
}

static natsStatus on_detach(void *data)
{
    (void)on_read_wanted(data, false);
    loop_adapter_release(data);
    return NATS_OK;
}

/* ---- what the loop calls ---- */

/* Waits for bytes to read, or for room to write, if there is a socket. */
static void enable_callbacks(struct loop_adapter *adapter, CFOptionFlags kinds)
{
    lock_adapter(adapter);
    if (adapter->descriptor) {
        CFFileDescriptorEnableCallBacks(adapter->descriptor, kinds);
    }
    unlock_adapter(adapter);
}

void loop_adapter_flush(struct loop_adapter *adapter)
{
    invariant(is_loops_thread(adapter));
    if (!adapter->nats || !atomic_load(&adapter->wants_write)) {
        return;
    }
    natsConnection_ProcessWriteEvent(adapter->nats);
    if (atomic_load(&adapter->wants_write)) {
        enable_callbacks(adapter, kCFFileDescriptorWriteCallBack);
    }
}

static void on_descriptor_ready(CFFileDescriptorRef descriptor, CFOptionFlags kinds, void *info)
{
    struct loop_adapter *adapter = info;

    (void)descriptor;
    if (!adapter->nats) {
        return;
    }
    if (kinds & kCFFileDescriptorReadCallBack) {
        natsConnection_ProcessReadEvent(adapter->nats);
        enable_callbacks(adapter, kCFFileDescriptorReadCallBack);
    } else {
        loop_adapter_flush(adapter);
    }
    adapter->on_progress(adapter->info);
    loop_adapter_flush(adapter);
}

static void on_before_waiting(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    loop_adapter_flush(info);
}

/* ---- life ---- */

/* Returns NULL if there is no memory: nothing would be written without the observer. */
static CFRunLoopObserverRef create_observer(CFRunLoopRef loop, CFRunLoopObserverContext *context)
{
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting, true, 0, on_before_waiting, context);

    if (observer) {
        CFRunLoopAddObserver(loop, observer, kCFRunLoopDefaultMode);
        if (CFRunLoopContainsObserver(loop, observer, kCFRunLoopDefaultMode)) {
            return observer;
        }
        CFRelease(observer);
    }
    return NULL;
}

struct loop_adapter *loop_adapter_create(CFRunLoopRef loop, void (*on_progress)(void *info), void *info)
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
    adapter->on_progress = on_progress;
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
    return natsOptions_SetEventLoop(options, adapter, on_attach, on_read_wanted, on_write_wanted, on_detach);
}

bool loop_adapter_enter(struct loop_adapter *adapter, natsConnection *nats)
{
    bool result;

    invariant(is_loops_thread(adapter) && !adapter->nats);
    lock_adapter(adapter);
    result = !adapter->descriptor || schedule_descriptor(adapter);
    adapter->is_entered = result;
    unlock_adapter(adapter);
    adapter->nats = result ? nats : NULL;
    return result;
}

void loop_adapter_leave(struct loop_adapter *adapter)
{
    invariant(is_loops_thread(adapter));
    adapter->nats = NULL;
    lock_adapter(adapter);
    adapter->is_entered = false;
    drop_descriptor(adapter);
    unlock_adapter(adapter);
}
