/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CFMessagePort with bytes in the place of CFData. A callback's result and an out-parameter carry references that Swift would not count.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "CoreFoundation/CFData.h"
#include "CoreRunLoopShims.h"
#include "Overlay/overlay.h"

struct shim_reply {
    CFDataRef data;
    struct received_message *message;
};

static _Atomic(shim_receive) receive_function;

/* ---- answering ---- */

static void set_data(struct shim_reply *reply, const void *bytes, intptr_t length)
{
    if (reply->data) {
        CFRelease(reply->data);
    }
    reply->data = overlay_data_to_give(bytes, (uint64_t)length);
}

void shim_reply_set(struct shim_reply *reply, const void *bytes, intptr_t length)
{
    set_data(reply, bytes, length);
    overlay_message_set_status(reply->message, overlay_answered);
}

void shim_reply_refuse(struct shim_reply *reply, uint32_t status, const uint8_t *text, intptr_t length)
{
    set_data(reply, text, length);
    overlay_message_set_status(reply->message, status);
}

int32_t shim_reply_process(const struct shim_reply *reply)
{
    return overlay_message_process(reply->message);
}

struct deferred_reply *shim_reply_defer(struct shim_reply *reply)
{
    return overlay_message_defer(reply->message);
}

void shim_deferred_watch(struct deferred_reply *deferred, void (*asker_left)(void *info), void *info, void (*release)(void *info))
{
    overlay_deferred_watch(deferred, asker_left, info, release);
}

int64_t shim_deferred_deadline(const struct deferred_reply *deferred)
{
    return overlay_deferred_deadline(deferred);
}

void shim_deferred_answer(struct deferred_reply *deferred, uint32_t status, const uint8_t *bytes, intptr_t length)
{
    CFDataRef data = overlay_data_to_give(bytes, (uint64_t)length);

    overlay_deferred_answer(deferred, data || status != overlay_answered ? status : overlay_failed, data);
    if (data) {
        CFRelease(data);
    }
}

static CFDataRef receive(CFMessagePortRef port, int32_t number, CFDataRef data, void *callee, struct received_message *message)
{
    struct shim_reply reply = {NULL, message};

    (void)port;
    atomic_load (&receive_function)(callee, number, CFDataGetBytePtr(data), CFDataGetLength(data), &reply);
    return reply.data;
}

CFMessagePortRef shim_message_port_create(CFStringRef name, shim_receive function, void *info, void (*release)(const void *reference))
{
    CFMessagePortContext context = {.info = info, .release = release};
    Boolean is_known = false;
    CFMessagePortRef port;

    atomic_store(&receive_function, function); /* the same value every time */
    port = CFMessagePortCreateLocal(NULL, name, NULL, &context, &is_known);
    if (port && is_known) {
        CFRelease(port);
        return NULL;
    }
    if (port) {
        overlay_port_set_callout(port, receive);
    }
    return port;
}

void shim_message_port_call(CFMessagePortRef port, void *callee)
{
    if (!overlay_port_set_receiver(port, callee)) {
        abort();
    }
}

/* ---- asking ---- */

static int64_t deadline_after(int64_t now_ns, int64_t limit_ns)
{
    return limit_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + limit_ns;
}

void shim_message_port_set_invalidation_callback(CFMessagePortRef remote, CFMessagePortInvalidationCallBack callout)
{
    overlay_port_set_invalidation_callback(remote, callout);
}

int32_t shim_message_port_send(CFMessagePortRef port, int32_t number, const void *bytes, intptr_t length, int64_t limit_ns,
                               struct shim_answer *ret_answer)
{
    CFDataRef data = overlay_data_to_give(bytes, (uint64_t)length);
    CFDataRef answer = NULL;
    uint32_t status = overlay_answered;
    int32_t result;

    if (!data) {
        return kCFMessagePortTransportError;
    }
    result = overlay_port_send(port, number, data, deadline_after(overlay_monotonic_ns(), limit_ns), ret_answer ? &status : NULL,
                               ret_answer ? &answer : NULL);
    CFRelease(data);
    if (answer && ret_answer) {
        *ret_answer = (struct shim_answer){CFDataGetBytePtr(answer), CFDataGetLength(answer), status, answer};
    }
    return result;
}

void shim_answer_drop(const struct shim_answer *answer)
{
    if (answer->data) {
        CFRelease(answer->data);
    }
}

/* ---- requests that block nobody ---- */

struct service_start {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_over;
    struct async_requests *requests;
    CFRunLoopRef loop;
};

/* The thread that serves the requests of the process. It blocks all signals, which are for the program's threads. */
static void *serve(void *info)
{
    struct service_start *start = info;
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    struct async_requests *requests = overlay_requests_create();

    pthread_mutex_lock(&start->mutex);
    start->requests = requests;
    start->loop = loop;
    start->is_over = true;
    pthread_cond_signal(&start->changed);
    pthread_mutex_unlock(&start->mutex);
    while (requests) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e9, false);
    }
    return NULL;
}

struct async_requests *shim_requests_start_here(void)
{
    return overlay_requests_create();
}

void shim_requests_end(struct async_requests *requests)
{
    overlay_requests_destroy(requests);
}

struct async_requests *shim_requests_start(CFRunLoopRef *ret_loop)
{
    struct service_start start = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    int error;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, NULL, serve, &start);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        return NULL;
    }
    (void)pthread_setname_np(thread, "requests");
    (void)pthread_detach(thread);
    pthread_mutex_lock(&start.mutex);
    while (!start.is_over) {
        pthread_cond_wait(&start.changed, &start.mutex);
    }
    pthread_mutex_unlock(&start.mutex);
    *ret_loop = start.loop; /* it lives as long as its thread, which does not end */
    return start.requests;
}

struct async_request *shim_request_create(CFMessagePortRef port, int32_t number, const uint8_t *bytes, intptr_t length, int64_t limit_ns,
                                          shim_request_ended ended)
{
    CFDataRef data = overlay_data_to_give(bytes, (uint64_t)length);
    struct async_request *request = NULL;
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* the clock of the thread that serves, not a test's */
    if (data) {
        request =
            overlay_request_create(port, number, data, deadline_after(now.tv_sec * INT64_C(1000000000) + now.tv_nsec, limit_ns), ended);
        CFRelease(data);
    }
    return request;
}

void shim_request_send(struct async_requests *requests, struct async_request *request, void *info)
{
    overlay_request_send(requests, request, info);
}

void shim_request_cancel(struct async_request *request)
{
    overlay_request_cancel(request);
}

void shim_request_release(struct async_request *request)
{
    overlay_request_release(request);
}

bool shim_port_listen(CFMessagePortRef port, CFRunLoopRef loop)
{
    return overlay_port_listen_for_askers(port, loop);
}
