/* SPDX-License-Identifier: Apache-2.0 */
/* Reply channels of a remote port; see client_channel.h. */
#include "Port/Message/client_channel.h"

#include <errno.h>
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Source/descriptor_source.h"
#include "Port/Wire/packet.h"
#include "Port/Wire/port_log.h"
#include "Port/Message/remote_send.h"
#include "Port/Core/port_use.h"

/* ---- reading ---- */

static void finish_with_memory(struct client_channel *channel, struct packet *packet)
{
    struct pending_reply *pending = channel->pending;
    bool is_read = packet->descriptor_count == 1 && payload_read(packet->descriptors[0], pending->memory_length, &pending->reply) == 0;

    invariant(pending->state == pending_memory);
    pending->state = is_read ? pending_replied : pending_broken;
}

static void take_reply(struct client_channel *channel, const struct wire_frame *frame)
{
    struct pending_reply *pending = channel->pending;

    invariant(pending->state == pending_open && !pending->reply);
    if (frame->message_id != (int32_t)(0u - (uint32_t)pending->message_id)) {
        pending->state = pending_broken;
        return;
    }
    if ((frame->flags & wire_has_status) && !pending->wants_status) {
        pending->state = pending_broken;
        return;
    }
    pending->status = frame->extra < wire_failed ? (uint32_t)frame->extra : wire_failed; /* a later version may have other reasons */
    pending->says_kept = frame->flags & wire_kept;
    pending->refuses_arena = frame->flags & wire_no_arena;
    if (frame->flags & wire_in_memory) {
        pending->memory_length = frame->length;
        pending->state = pending_memory;
        return;
    }
    if (frame->flags & wire_in_arena) {
        pending->reply = frame->length <= channel->arena.size ? payload_copy(channel->arena.address, frame->length) : NULL;
    } else {
        pending->reply = payload_copy(frame->data, frame->length);
    }
    pending->state = pending->reply ? pending_replied : pending_broken;
}

/* Logs why the receiver has dropped the request. */
static void log_dropped(uint64_t reason)
{
    static const char *const texts[] = {
        [wire_drop_malformed] = "its data is not in memory that the receiver trusts",
        [wire_drop_budget] = "its data is beyond the receiver's budget of memory",
        [wire_drop_memory] = "it lacks memory or a descriptor, its callback failed or did not return, or a bridge reached nobody",
    };
    const char *text = reason < sizeof texts / sizeof texts[0] ? texts[reason] : NULL;

    port_log("CFMessagePortSendRequest", "the receiver has dropped a request: %s", text ? text : "it gives no known reason");
}

/* Takes one packet. A channel that carries anything but this call's answer is broken. */
static void take_packet(struct client_channel *channel, struct packet *packet)
{
    struct pending_reply *pending = channel->pending;
    struct wire_frame frame;
    bool awaits_memory = pending->state == pending_memory;
    enum wire_error error = packet->is_cut ? wire_error_length : wire_decode(wire_to_client, channel->buffer, packet->size, &frame);

    if (error != wire_ok) {
        port_log("CFMessagePortSendRequest", "a reply cannot be understood: %s", wire_error_text(error));
        pending->state = pending_broken;
        return;
    }
    if (frame.conversation != pending->conversation || (frame.type == wire_descriptor) != awaits_memory ||
        wire_descriptor_count(&frame) != packet->descriptor_count) {
        pending->state = pending_broken;
        return;
    }
    pending->has_sequence = true;
    pending->sequence = frame.sequence;
    if (awaits_memory) {
        finish_with_memory(channel, packet);
    } else if (frame.type == wire_reply) {
        take_reply(channel, &frame);
    } else if (frame.type == wire_dropped) {
        pending->says_kept = frame.flags & wire_kept;
        pending->state = pending_dropped;
        log_dropped(frame.extra);
    } else {
        pending->state = pending_broken;
    }
}

static void note_end(struct pending_reply *pending)
{
    if (!pending_is_open(pending)) {
        atomic_store_explicit(&pending->is_over, 1, memory_order_relaxed);
    }
}

static void take_from_page(struct client_channel *channel)
{
    bool is_open = channel->page && channel->pending->state == pending_open;
    uint32_t size = is_open ? reply_page_take(channel->page, channel->buffer) : 0;
    struct packet packet = {.size = size, .is_cut = size > reply_page_room};

    if (size > 0 && !atomic_load_explicit(&channel->reply_comes_too_late, memory_order_acquire)) {
        take_packet(channel, &packet);
    }
}

void client_channel_look(struct client_channel *channel)
{
    take_from_page(channel);
    note_end(channel->pending);
}

void client_channel_hang_up(struct client_channel *channel)
{
    if (channel->page && atomic_load_explicit(&channel->page->size, memory_order_relaxed) == 0) {
        atomic_store_explicit(&channel->reply_comes_too_late, true, memory_order_release);
    }
    (void)kernel_ports.hang_up(channel->descriptor);
}

/* The socket has ended. A reply that the server wrote into the page before its end still counts (rule 231). */
static void note_hang_up(struct client_channel *channel)
{
    take_from_page(channel);
    if (pending_is_open(channel->pending)) {
        channel->pending->state = pending_hung_up;
    }
}

void client_channel_read(struct client_channel *channel)
{
    struct pending_reply *pending = channel->pending;
    int resets = 0;

    take_from_page(channel);
    while (pending_is_open(pending)) {
        struct packet packet;
        int result = packet_receive(channel->descriptor, channel->buffer, &packet);

        if (result == -ECONNRESET && resets++ == 0) {
            continue; /* the kernel reports the end before it hands out the packets that came earlier */
        }
        if (result == -EINTR) {
            continue; /* stopping here could lose the packet: a source on a wait set is not told of it again */
        }
        if (result == -EAGAIN) {
            break;
        }
        if (result < 0 || packet.size == 0) {
            packet_close(&packet);
            note_hang_up(channel);
            break;
        }
        take_packet(channel, &packet);
        packet_close(&packet);
    }
    note_end(pending);
}

void client_channel_wait(struct client_channel *channel, int64_t deadline_ns)
{
    struct kernel_event event;

    if (channel->page) {
        (void)kernel.set_wait(channel->set, &event, 1, deadline_ns);
    } else {
        (void)kernel_ports.wait(channel->descriptor, kernel_readable, deadline_ns);
    }
}

/* ---- channels ---- */

/* On a serving loop: a thread that sends by the channel just then is let finish first. */
static void serve(struct client_channel *channel)
{
    bool has_ended;

    lock_take(&channel->lock);
    if (channel->pending) {
        client_channel_read(channel);
    } else { /* its server has closed it: the next request finds out */
        (void)descriptor_source_set_suspended(channel->source, channel->serving_loop, kCFRunLoopDefaultMode, true);
    }
    has_ended = channel->pending && channel->ended && !pending_is_open(channel->pending);
    lock_drop(&channel->lock);
    if (has_ended) {
        channel->ended(channel->ended_info);
    }
}

static void perform(void *info, CFRunLoopSourceRef source, uint32_t ready)
{
    struct client_channel *channel = info;

    (void)source;
    (void)ready;
    if (channel->serving_loop) {
        serve(channel);
    } else if (channel->pending) {
        client_channel_read(channel);
    }
}

static void release_channel(const void *info)
{
    struct client_channel *channel = (struct client_channel *)(uintptr_t)info;

    free(channel->buffer);
    free(channel);
}

static uint64_t random_token(void)
{
    uint64_t token;

    do {
        kernel_ports.random_bytes(&token, sizeof token);
    } while (token == 0);
    return token;
}

static struct client_channel *create_channel(const int ends[2])
{
    struct descriptor_source_context context = {.release = release_channel, .perform = perform};
    struct client_channel *channel = calloc(1, sizeof *channel);

    if (!channel) {
        return NULL;
    }
    context.info = channel;
    link_init(&channel->link);
    channel->token = random_token();
    channel->descriptor = ends[0];
    channel->buffer = malloc(wire_frame_max);
    channel->source = channel->buffer ? descriptor_source_create(NULL, 0, ends[0], &context) : NULL;
    if (!channel->source) {
        release_channel(channel);
        return NULL;
    }
    descriptor_source_keep_in_epoll(channel->source);
    descriptor_source_set_interest(channel->source, kernel_readable);
    return channel;
}

/* Takes the source out of its mode, and its descriptor out of the loop's wait set. */
static void leave_loop(struct client_channel *channel)
{
    if (channel->loop) {
        CFRunLoopRemoveSource(channel->loop, channel->source, channel->mode);
        descriptor_source_remove_from_epoll(channel->source, channel->loop, channel->mode);
        object_release(channel->loop);
        CFRelease(channel->mode);
        channel->loop = NULL;
    }
}

bool client_channel_is_in(const struct client_channel *channel, CFRunLoopRef loop, CFStringRef mode)
{
    return channel->loop == loop && (channel->mode == mode || CFEqual(channel->mode, mode));
}

bool client_channel_enter(struct client_channel *channel, CFRunLoopRef loop, CFStringRef mode)
{
    if (client_channel_is_in(channel, loop, mode) && descriptor_source_set_suspended(channel->source, loop, mode, false)) {
        return true;
    }
    leave_loop(channel);
    channel->mode = CFStringCreateCopy(NULL, mode);
    if (channel->mode) { /* without memory no mode is noted, and nobody removes the source: the loop itself finds the descriptor closed */
        object_retain(loop);
        channel->loop = loop;
    }
    CFRunLoopAddSource(loop, channel->source, mode);
    return CFRunLoopContainsSource(loop, channel->source, mode);
}

void client_channel_rest(struct client_channel *channel, CFRunLoopRef loop, CFStringRef mode)
{
    if (channel->loop) {
        (void)descriptor_source_set_suspended(channel->source, loop, mode, true);
    } else {
        CFRunLoopRemoveSource(loop, channel->source, mode);
    }
}

void client_channel_close(struct client_channel *channel)
{
    int descriptor = channel->descriptor;
    int set = channel->page ? channel->set : -1;
    CFRunLoopSourceRef source = channel->source;

    arena_release(&channel->arena);
    reply_page_release(channel->page);
    channel->page = NULL;
    invariant(!channel->pending);
    CFRunLoopSourceInvalidate(source);
    leave_loop(channel);
    if (set >= 0) {
        (void)kernel.close(set);
    }
    packet_socket_close(descriptor);
    object_release(source);
}

/* Takes a free channel and puts it among the busy ones. Returns NULL if there is none. */
REQUIRES(the_port_lock) static struct client_channel *take_free(struct remote_port *remote, CFRunLoopRef serving_loop)
{
    list_for_each(link, &remote->free_channels) {
        struct client_channel *channel = container_of(link, struct client_channel, link);

        if (channel->serving_loop == serving_loop) {
            list_remove(&channel->link);
            remote->free_count--;
            remote->free_least = remote->free_count < remote->free_least ? remote->free_count : remote->free_least;
            invariant(!channel->pending);
            channel->user_loop = serving_loop ? serving_loop : thread_loop_if_any();
            list_append(&remote->busy_channels, &channel->link);
            return channel;
        }
    }
    remote->free_least = 0;
    return NULL;
}

/* Returns how many channels may wait, as each has two descriptors. */
static uint32_t free_most(void)
{
    uint64_t share = kernel_ports.descriptor_limit() / free_channels_descriptor_share;

    share = share < free_channels_max ? share : free_channels_max;
    return share > free_channels_least ? (uint32_t)share : free_channels_least;
}

static struct client_channel *make_channel(CFMessagePortRef port, CFRunLoopRef serving_loop, int *ret_end, int *ret_error)
{
    struct remote_port *remote = &port->side.remote;
    struct client_channel *channel;
    uint32_t most = free_most();
    int ends[2];

    *ret_error = kernel_ports.channel_create(ends);
    if (*ret_error < 0) {
        return NULL; /* `ends` is not read or closed: Linux may have written numbers there that it has taken back */
    }
    channel = create_channel(ends);
    if (!channel) {
        *ret_error = -ENOMEM;
        (void)kernel.close(ends[0]);
        (void)kernel.close(ends[1]);
        return NULL;
    }
    *ret_end = ends[1];
    channel->serving_loop = serving_loop;
    port_lock(port);
    remote->free_most = most;
    channel->number = ++remote->last_channel ? remote->last_channel : ++remote->last_channel;
    channel->user_loop = serving_loop ? serving_loop : thread_loop_if_any();
    list_append(&remote->busy_channels, &channel->link);
    port_unlock(port);
    return channel;
}

bool client_channels_are_used_in(const struct remote_port *remote, CFRunLoopRef loop)
{
    list_for_each(link, &remote->busy_channels) {
        if (container_of(link, struct client_channel, link)->user_loop == loop) {
            return true;
        }
    }
    return false;
}

struct client_channel *client_channel_take(CFMessagePortRef port, CFRunLoopRef serving_loop, struct pending_reply *pending, int *ret_end,
                                           int *ret_error)
{
    struct remote_port *remote = &port->side.remote;
    struct client_channel *channel = NULL;
    bool can;

    *ret_end = -1;
    *ret_error = -ENOTCONN;
    port_lock(port);
    can = remote_port_use(port);
    if (can) {
        pending->conversation = ++remote->last_conversation;
        channel = take_free(remote, serving_loop);
    }
    port_unlock(port);
    if (can && !channel) {
        channel = make_channel(port, serving_loop, ret_end, ret_error);
        if (!channel) {
            port_lock(port);
            remote_port_unuse(port);
            port_unlock(port);
        }
    }
    if (channel) {
        channel->own_pending = *pending;
    }
    if (channel && !serving_loop) {
        channel->pending = &channel->own_pending;
    }
    if (channel && channel->page) {
        reply_page_clear(channel->page);
    }
    return channel;
}

void client_channel_offer_page(CFMessagePortRef port, struct client_channel *channel)
{
    struct reply_page *page;
    int descriptors[wire_descriptors_max];

    if (channel->page || ++channel->uses % reply_page_after != 0 ||
        reply_page_create(channel->descriptor, &page, &descriptors[0], &descriptors[1]) < 0) {
        return;
    }
    if (remote_port_offer_page(port, channel->number, channel->token, descriptors) == 0) {
        leave_loop(channel);
        channel->set = descriptors[1];
        descriptor_source_stand_on_set(channel->source, channel->set);
        port_lock(port);
        channel->page = page;
        port_unlock(port);
    } else { /* the queue is full; a later call tries again */
        reply_page_release(page);
        (void)kernel.close(descriptors[1]);
    }
    (void)kernel.close(descriptors[0]);
}

/*
 * Puts the channel among the free ones. Returns one to close, or NULL: this channel if the port is invalid, the oldest of too many or of
 * more than are needed.
 */
REQUIRES(the_port_lock) static struct client_channel *put_free(CFMessagePortRef port, struct client_channel *channel)
{
    struct remote_port *remote = &port->side.remote;
    struct client_channel *oldest;
    bool is_one_too_many = false;

    invariant_held(&port->lock);
    if (!port_is_valid(port)) {
        return channel;
    }
    list_insert_after(&remote->free_channels, &channel->link);
    remote->free_count++;
    if (++remote->gives % free_channels_looked_over == 0) {
        is_one_too_many = remote->free_least > 0;
        remote->free_least = remote->free_count;
    }
    if (!is_one_too_many && remote->free_count <= remote->free_most) {
        return NULL;
    }
    oldest = container_of(remote->free_channels.prev, struct client_channel, link);
    list_remove(&oldest->link);
    remote->free_count--;
    return oldest;
}

void client_channel_give(CFMessagePortRef port, struct client_channel *channel, bool is_reusable)
{
    const struct pending_reply *pending = &channel->own_pending;
    struct client_channel *closing;

    invariant(!channel->pending);
    port_lock(port);
    if (pending->has_sequence) {
        pacing_confirm(&port->side.remote.pacing, pending->sequence);
    }
    list_remove(&channel->link);
    closing = is_reusable ? put_free(port, channel) : channel;
    remote_port_unuse(port);
    port_unlock(port);
    if (closing) {
        client_channel_close(closing);
    }
}
