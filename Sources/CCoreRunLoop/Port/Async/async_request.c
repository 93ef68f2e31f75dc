/* SPDX-License-Identifier: Apache-2.0 */
/* The part of any thread: makes requests, sends them or hands them over by the inbox, and cancels them. See async_request.h. */
#include "Port/Async/async_request.h"

#include <stdlib.h>

#include "Port/Async/async_request_parts.h"

/* ---- life ---- */

struct async_request *async_request_create(CFMessagePortRef port, SInt32 message_id, CFDataRef data, int64_t deadline_ns,
                                           async_request_ended ended, void *info)
{
    struct async_request *request = calloc(1, sizeof *request);

    if (!request) {
        return NULL;
    }
    atomic_init(&request->references, 1);
    link_init(&request->inbox_link);
    link_init(&request->link);
    heap_node_init(&request->deadline);
    object_retain(port);
    request->port = port;
    request->request = (struct request){.message_id = message_id, .data = data, .deadline_ns = deadline_ns, .ret_status = &request->status};
    if (data) {
        CFRetain(data);
    }
    request->ended = ended;
    request->info = info;
    return request;
}

void async_request_set_one_way(struct async_request *request)
{
    request->is_one_way = true;
}

void async_request_set_ends_port(struct async_request *request)
{
    request->ends_port = true;
}

void async_request_set_info(struct async_request *request, void *info)
{
    request->info = info;
}

void async_request_release(struct async_request *request)
{
    if (atomic_fetch_sub_explicit(&request->references, 1, memory_order_acq_rel) > 1) {
        return;
    }
    invariant(!request->channel);
    object_release_if_any(request->request.data);
    object_release(request->port);
    free(request);
}

/* ---- the inbox ---- */

/* Puts a request into the inbox, with a reference, unless it is there. */
static void put_into_inbox(struct async_requests *requests, struct async_request *request, bool cancels)
{
    bool is_new;

    requests_lock(requests);
    is_new = !link_is_linked(&request->inbox_link);
    request->is_cancelled |= cancels;
    if (is_new) {
        (void)atomic_fetch_add_explicit(&request->references, 1, memory_order_relaxed);
        list_append(&requests->inbox, &request->inbox_link);
    }
    requests_unlock(requests);
    if (is_new) {
        CFRunLoopSourceSignal(requests->source);
        CFRunLoopWakeUp(requests->loop);
    }
}

void async_request_send(struct async_requests *requests, struct async_request *request)
{
    uint32_t before;

    (void)atomic_fetch_add_explicit(&request->references, 1, memory_order_relaxed); /* it may be over before the return */
    request->requests = requests;
    before = atomic_fetch_or_explicit(&request->asked, asked_to_send, memory_order_acq_rel);
    if ((before & asked_to_cancel) || !async_request_take_in(requests, request)) {
        put_into_inbox(requests, request, (before & asked_to_cancel) != 0);
    }
    async_request_release(request);
}

void async_request_cancel(struct async_request *request)
{
    if (atomic_fetch_or_explicit(&request->asked, asked_to_cancel, memory_order_acq_rel) & asked_to_send) {
        put_into_inbox(request->requests, request, true);
    }
}
