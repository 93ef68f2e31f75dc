/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the requests to each port when it has room, and, on the loop's thread, ends them. See async_request.h. */
#include "Port/Async/async_dispatch.h"

#include <errno.h>
#include <stdlib.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"
#include "Loop/Run/thread_registry.h"
#include "Loop/Timer/timer.h"
#include "Port/Async/async_request_parts.h"
#include "Port/Core/message_trace.h"
#include "Port/Message/remote_send.h"
#include "Port/Wire/port_log.h"

enum { in_flight_max = 256, descriptor_share = 8 }; /* requests in flight to one port */

/*
 * The waits between two looks at a port that has no room. The first is about the time in which a receiver takes a few messages; each look
 * in vain doubles it. A reply of the port is a look, too.
 */
static const int64_t look_first_ns = 100000;
static const int64_t look_last_ns = 10000000;

/* How long a receiver may take to die, see socket_request_dying_ns. It may be longer here: nobody is blocked meanwhile. */
static const int64_t dying_ns = 500000000;

static const int64_t once_ns = 0; /* the deadline of a send that does not wait: the loop waits for room */

static const CFTimeInterval timer_interval_s = 1e9; /* the timer is set anew each time */

/* ---- outlets ---- */

REQUIRES(the_requests_lock) static struct outlet *outlet_for(struct async_requests *requests, CFMessagePortRef port)
{
    struct outlet *outlet;

    list_for_each(link, &requests->outlets) {
        outlet = container_of(link, struct outlet, link);
        if (outlet->port == port) {
            return outlet;
        }
    }
    outlet = requests->spare ? requests->spare : malloc(sizeof *outlet);
    requests->spare = NULL;
    if (outlet) {
        *outlet = (struct outlet){.port = port};
        link_init(&outlet->link);
        link_init(&outlet->waiting);
        list_append(&requests->outlets, &outlet->link);
    }
    return outlet;
}

REQUIRES(the_requests_lock) static void put_away_if_unused(struct async_requests *requests, struct outlet *outlet)
{
    if (outlet->in_flight == 0 && outlet->users == 0 && list_is_empty(&outlet->waiting)) {
        list_remove(&outlet->link);
        free(requests->spare);
        requests->spare = outlet;
    }
}

/* ---- the end of a request ---- */

/* Gives the channel back. Returns the reply that it has brought, with a reference, or NULL. */
REQUIRES(the_requests_lock) static CFDataRef give_channel(struct async_request *request)
{
    struct client_channel *channel = request->channel;
    CFDataRef reply = channel->pending->reply;

    request->channel = NULL;
    request->status = channel->pending->status;
    channel->ended = NULL;
    socket_request_end_channel(request->port, channel);
    return reply;
}

/* Drops the lock while it calls the program's code, which may run the loop. */
REQUIRES(the_requests_lock) static void end_request(struct async_request *request, SInt32 result)
{
    struct async_requests *requests = request->requests;
    CFDataRef reply = NULL;

    invariant(request->state != state_over);
    if (request->channel) {
        request->outlet->in_flight--;
        reply = give_channel(request);
    }
    list_remove(&request->link);
    if (heap_contains(&request->deadline)) {
        heap_remove(&requests->deadlines, &request->deadline);
    }
    request->state = state_over;
    requests_unlock(requests);
    if (result == kCFMessagePortSuccess && trace_is_on()) {
        trace_write(trace_reply_comes, trace_by_socket,
                    message_trace_id(&request->port->name, kernel_ports.process_id(), request->sequence), (uintptr_t)request->port);
    }
    if (request->ends_port && (result == kCFMessagePortIsInvalid || result == kCFMessagePortBecameInvalidError)) {
        object_retain(request->port);
        message_port_end_gone(request->port);
    }
    request->ended(request->info, result, request->status, result == kCFMessagePortSuccess ? reply : NULL);
    object_release_if_any(reply);
    async_request_release(request);
    requests_lock(requests);
}

/*
 * Ends a request whose channel has brought its last packet, or was hung up. The latter may have to be looked at again, unless the request's
 * time is over: a receiver that lives gives such a request up by itself, and hangs up.
 */
REQUIRES(the_requests_lock) static void conclude(struct async_request *request, bool has_expired)
{
    SInt32 result = kCFMessagePortTransportError;
    int64_t now_ns;

    if (request->channel->pending->state == pending_replied) {
        result = kCFMessagePortSuccess;
    } else if (request->channel->pending->state == pending_hung_up) {
        now_ns = kernel.monotonic_ns();
        if (request->state == state_sent) {
            request->state = state_judged;
            request->judged_until_ns = now_ns + dying_ns;
            request->channel->ended = NULL;
            client_channel_rest(request->channel, request->requests->loop, kCFRunLoopDefaultMode); /* the channel stays ready */
            list_append(&request->requests->judged, &request->link);
        }
        result = socket_request_judge_hang_up(request->port, request->channel, now_ns >= request->judged_until_ns);
        if (result == kCFMessagePortSuccess) {
            if (!has_expired) {
                return;
            }
            result = kCFMessagePortReceiveTimeout;
        }
    }
    end_request(request, result);
}

/* Ends a request whose deadline has come. A reply that came before the deadline counts. */
REQUIRES(the_requests_lock) static void expire(struct async_request *request)
{
    SInt32 result = kCFMessagePortSendTimeout;

    if (request->state == state_sent) {
        client_channel_read(request->channel);
    }
    if (request->channel && !pending_is_open(request->channel->pending)) {
        conclude(request, true);
        return;
    }
    if (request->channel) {
        result = port_is_valid(request->port) ? kCFMessagePortReceiveTimeout : kCFMessagePortBecameInvalidError;
    }
    end_request(request, result);
}

/* ---- sending ---- */

static void channel_ended(void *info);

static bool is_too_long(const struct async_request *request)
{
    uint64_t length = request_length(&request->request);

    return length > wire_payload_max || length > request->port->side.remote.budget;
}

/* Sends the request. Returns kCFMessagePortSendTimeout, and 0 or why in `ret_error`, if there is no room or no channel. */
REQUIRES(the_requests_lock) static SInt32 put(struct async_request *request, int *ret_error)
{
    struct pending_reply pending = pending_reply_to(request->port, &request->request);
    struct client_channel *channel = NULL;
    struct wire_frame frame;
    SInt32 result = kCFMessagePortSendTimeout;
    int end;

    *ret_error = 0;
    if (remote_port_has_room(request->port)) {
        channel = client_channel_take(request->port, request->requests->loop, &pending, &end, ret_error);
    }
    if (channel) {
        channel->ended = channel_ended;
        channel->ended_info = request;
        *ret_error = 0;
        result = socket_request_put(request->port, channel, end, &request->request, &frame, once_ns);
    }
    if (result == kCFMessagePortSuccess) {
        request->channel = channel;
        request->sequence = frame.sequence;
        list_remove(&request->link);
        request->state = state_sent;
        request->outlet->in_flight++;
    }
    return result;
}

/* Sends the message, which nobody answers, or ends it. Returns false if it has to wait for room. */
REQUIRES(the_requests_lock) static bool start_one_way(struct async_request *request)
{
    SInt32 result = socket_one_way_put(request->port, &request->request, once_ns);

    if (result == kCFMessagePortSendTimeout) {
        return false;
    }
    end_request(request, result);
    return true;
}

/* Sends the request, or ends it. Returns false if it has to wait for room or for a descriptor. */
REQUIRES(the_requests_lock) static bool start(struct async_request *request)
{
    SInt32 result;
    int error;

    if (is_too_long(request)) {
        port_log("a request", "a message of %llu bytes is more than the receiver takes",
                 (unsigned long long)request_length(&request->request));
        end_request(request, port_is_valid(request->port) ? kCFMessagePortTransportError : kCFMessagePortIsInvalid);
        return true;
    }
    if (request->is_one_way) {
        return remote_port_has_room(request->port) && start_one_way(request);
    }
    result = put(request, &error);
    if (error == -ENOTCONN) {
        result = kCFMessagePortIsInvalid;
    } else if (error != 0 && request->outlet->in_flight == 0) { /* otherwise a request that ends gives its descriptor back */
        port_log("a request", "there is no means to take a reply: %s", port_error_text(error));
        result = kCFMessagePortTransportError;
    }
    if (result != kCFMessagePortSuccess && result != kCFMessagePortSendTimeout) {
        end_request(request, result);
    }
    return result != kCFMessagePortSendTimeout;
}

REQUIRES(the_requests_lock) static bool may_start(struct async_requests *requests, const struct outlet *outlet)
{
    if (outlet->in_flight >= requests->share) { /* the limit may have grown */
        requests->share = kernel_ports.descriptor_limit() / descriptor_share;
    }
    return outlet->in_flight < in_flight_max && (outlet->in_flight < requests->share || outlet->in_flight == 0);
}

/* Sends what waits, as far as there is room. The caller uses the outlet. */
REQUIRES(the_requests_lock) static void pump(struct async_requests *requests, struct outlet *outlet)
{
    while (!list_is_empty(&outlet->waiting) && may_start(requests, outlet)) {
        if (start(container_of(outlet->waiting.next, struct async_request, link))) {
            requests->look_wait_ns = look_first_ns;
        } else {
            if (requests->look_ns == 0) {
                requests->look_ns = kernel.monotonic_ns() + requests->look_wait_ns;
                requests->look_wait_ns = requests->look_wait_ns < look_last_ns / 2 ? 2 * requests->look_wait_ns : look_last_ns;
            }
            break;
        }
    }
}

REQUIRES(the_requests_lock) static void begin_use(struct outlet *outlet)
{
    outlet->users++;
}

REQUIRES(the_requests_lock) static void end_use(struct async_requests *requests, struct outlet *outlet)
{
    outlet->users--;
    put_away_if_unused(requests, outlet);
}

REQUIRES(the_requests_lock) static void pump_all(struct async_requests *requests)
{
    struct link *link = requests->outlets.next;

    while (link != &requests->outlets) {
        struct outlet *outlet = container_of(link, struct outlet, link);

        begin_use(outlet);
        pump(requests, outlet);
        link = link->next; /* the outlet is still in the list */
        end_use(requests, outlet);
    }
}

/* ---- the loop's callouts ---- */

REQUIRES(the_requests_lock) static void set_timer(struct async_requests *requests)
{
    int64_t due_ns = requests->deadlines.count > 0 ? requests->deadlines.block->entries[0].key : kernel_never;

    if (list_is_empty(&requests->judged)) {
        requests->judge_ns = 0;
    } else if (requests->judge_ns == 0) {
        requests->judge_ns = kernel.monotonic_ns() + socket_request_asking_ns;
    }
    due_ns = requests->judge_ns != 0 && requests->judge_ns < due_ns ? requests->judge_ns : due_ns;
    due_ns = requests->look_ns != 0 && requests->look_ns < due_ns ? requests->look_ns : due_ns;
    if (due_ns < requests->timer_ns) { /* a timer that is early finds nothing to do: deadlines come and go with each request */
        requests->timer_ns = due_ns;
        timer_set_date(requests->timer, date_of_instant(due_ns), due_ns);
    }
}

static void channel_ended(void *info)
{
    struct async_request *request = info;
    struct async_requests *requests = request->requests;
    struct outlet *outlet;

    requests_lock(requests);
    outlet = request->outlet;
    begin_use(outlet);
    conclude(request, false);
    pump(requests, outlet);
    end_use(requests, outlet);
    set_timer(requests);
    requests_unlock(requests);
}

/* Takes a new request in. Returns false if there is no memory. */
REQUIRES(the_requests_lock) static bool accept_request(struct async_requests *requests, struct async_request *request)
{
    request->outlet = outlet_for(requests, request->port);
    if (!request->outlet || !heap_reserve(&requests->deadlines, requests->deadlines.count + 1)) {
        return false;
    }
    (void)atomic_fetch_add_explicit(&request->references, 1, memory_order_relaxed); /* until it is over */
    request->deadline.sequence = ++requests->deadlines_set;
    heap_push(&requests->deadlines, &request->deadline, request->request.deadline_ns);
    request->state = state_waiting;
    list_append(&request->outlet->waiting, &request->link);
    return true;
}

bool async_request_take_in(struct async_requests *requests, struct async_request *request)
{
    bool is_taken;
    bool is_new;
    bool is_left = false; /* to the loop's thread, which looks at those that wait already */
    int error;

    requests_lock(requests);
    is_taken = request->state != state_new; /* a cancellation has brought it to its end */
    is_new = !is_taken && list_is_empty(&requests->inbox) && accept_request(requests, request);
    if (is_new && request->outlet->waiting.next == &request->link) {
        is_left = request->is_one_way || is_too_long(request) || !may_start(requests, request->outlet) ||
                  put(request, &error) != kCFMessagePortSuccess;
    }
    set_timer(requests);
    requests_unlock(requests);
    if (is_left) {
        CFRunLoopSourceSignal(requests->source);
        CFRunLoopWakeUp(requests->loop);
    }
    return is_taken || is_new;
}

/* Takes what is in the inbox. */
REQUIRES(the_requests_lock) static void empty_inbox(struct async_requests *requests)
{
    while (!list_is_empty(&requests->inbox)) {
        struct async_request *request = container_of(requests->inbox.next, struct async_request, inbox_link);

        list_remove(&request->inbox_link);
        if (request->state == state_new && !accept_request(requests, request)) {
            (void)atomic_fetch_add_explicit(&request->references, 1, memory_order_relaxed);
            end_request(request, kCFMessagePortTransportError);
        }
        if (request->is_cancelled && request->state != state_over) {
            end_request(request, async_request_cancelled);
        }
        requests_unlock(requests);
        async_request_release(request); /* the inbox's reference */
        requests_lock(requests);
    }
}

static void source_fires(void *info)
{
    struct async_requests *requests = info;

    requests_lock(requests);
    empty_inbox(requests);
    pump_all(requests);
    set_timer(requests);
    requests_unlock(requests);
}

/* Looks at each receiver that may be dying. A callback may run the loop, which then looks, too. */
REQUIRES(the_requests_lock) static void judge_all(struct async_requests *requests)
{
    size_t count = 0;

    list_for_each(link, &requests->judged) {
        count++;
    }
    for (; count > 0 && !list_is_empty(&requests->judged); count--) {
        struct link *link = requests->judged.next;

        list_remove(link);
        list_append(&requests->judged, link);
        conclude(container_of(link, struct async_request, link), false);
    }
}

static void timer_fires(CFRunLoopTimerRef timer, void *info)
{
    struct async_requests *requests = info;
    int64_t now_ns = kernel.monotonic_ns();

    (void)timer;
    requests_lock(requests);
    requests->timer_ns = kernel_never;
    if (requests->judge_ns <= now_ns) {
        requests->judge_ns = 0;
        judge_all(requests);
    }
    while (requests->deadlines.count > 0 && requests->deadlines.block->entries[0].key <= now_ns) {
        expire(container_of(requests->deadlines.block->entries[0].node, struct async_request, deadline));
    }
    if (requests->look_ns <= now_ns) {
        requests->look_ns = 0;
    }
    pump_all(requests);
    set_timer(requests);
    requests_unlock(requests);
}

/* ---- beginning and end ---- */

/* Not checked: no other thread has it yet. */
NOT_CHECKED struct async_requests *async_requests_create(void)
{
    struct async_requests *requests = calloc(1, sizeof *requests);
    CFRunLoopSourceContext source_context = {.info = requests, .perform = source_fires};
    CFRunLoopTimerContext timer_context = {.info = requests};

    if (!requests) {
        return NULL;
    }
    requests->loop = thread_registry_current();
    object_retain(requests->loop);
    link_init(&requests->inbox);
    link_init(&requests->outlets);
    link_init(&requests->judged);
    requests->look_wait_ns = look_first_ns;
    requests->timer_ns = kernel_never;
    requests->source = CFRunLoopSourceCreate(NULL, 0, &source_context);
    requests->timer = CFRunLoopTimerCreate(NULL, date_of_instant(kernel_never), timer_interval_s, 0, 0, timer_fires, &timer_context);
    if (!requests->source || !requests->timer) {
        async_requests_destroy(requests);
        return NULL;
    }
    CFRunLoopAddSource(requests->loop, requests->source, kCFRunLoopDefaultMode);
    CFRunLoopAddTimer(requests->loop, requests->timer, kCFRunLoopDefaultMode);
    return requests;
}

/* Ends all requests: those in the heap are all that are not over, once the inbox is empty. */
REQUIRES(the_requests_lock) static void end_all(struct async_requests *requests)
{
    struct async_request *request;

    empty_inbox(requests);
    while (requests->deadlines.count > 0) {
        request = container_of(requests->deadlines.block->entries[0].node, struct async_request, deadline);
        request->ends_port = false; /* the sender goes; the port's owner may live, and the program may use the port */
        end_request(request, kCFMessagePortBecameInvalidError);
    }
    list_for_each_removable(link, &requests->outlets) {
        put_away_if_unused(requests, container_of(link, struct outlet, link));
    }
}

/* Not checked: no other thread has it any more. */
NOT_CHECKED void async_requests_destroy(struct async_requests *requests)
{
    requests_lock(requests);
    end_all(requests);
    requests_unlock(requests);
    if (requests->timer) {
        CFRunLoopTimerInvalidate(requests->timer);
        CFRelease(requests->timer);
    }
    if (requests->source) {
        CFRunLoopSourceInvalidate(requests->source);
        CFRelease(requests->source);
    }
    object_release(requests->loop);
    heap_free(&requests->deadlines);
    free(requests->spare);
    free(requests);
}
