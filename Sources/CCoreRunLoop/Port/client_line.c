/* SPDX-License-Identifier: Apache-2.0 */
/* Reply lines of a remote port; see client_line.h. */
#include "Port/client_line.h"

#include <errno.h>
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Loop/descriptor_source.h"
#include "Port/port_log.h"

/* ---- reading ---- */

static void finish_with_memory(struct client_line *line, struct packet *packet)
{
    struct call *call = line->call;
    bool is_read = packet->descriptor_count == 1 && payload_read(packet->descriptors[0], call->memory_length, &call->reply) == 0;

    call->state = is_read ? call_replied : call_broken;
}

static void take_reply(struct client_line *line, const struct wire_frame *frame)
{
    struct call *call = line->call;

    if (frame->message_id != (int32_t)(0u - (uint32_t)call->message_id)) {
        call->state = call_broken;
        return;
    }
    call->is_kept = frame->flags & wire_kept;
    call->refuses_arena = frame->flags & wire_no_arena;
    if (frame->flags & wire_in_memory) {
        call->memory_length = frame->length;
        call->state = call_awaits_memory;
        return;
    }
    if (frame->flags & wire_in_arena) {
        call->reply = frame->length <= line->arena.size ? payload_copy(line->arena.address, frame->length) : NULL;
    } else {
        call->reply = payload_copy(frame->data, frame->length);
    }
    call->state = call->reply ? call_replied : call_broken;
}

/* One packet. Only what belongs to the call counts; a line that carries anything else is broken. */
static void take_packet(struct client_line *line, struct packet *packet)
{
    struct call *call = line->call;
    struct wire_frame frame;
    bool awaits_memory = call->state == call_awaits_memory;
    enum wire_error error = packet->is_cut ? wire_error_length : wire_decode(wire_on_line, line->buffer, packet->size, &frame);

    if (error != wire_ok) {
        port_log("CFMessagePortSendRequest", "a reply cannot be understood: %s", wire_error_text(error));
        call->state = call_broken;
        return;
    }
    if (frame.conversation != call->conversation || (frame.type == wire_descriptor) != awaits_memory ||
        wire_descriptor_count(&frame) != packet->descriptor_count) {
        call->state = call_broken;
        return;
    }
    call->has_sequence = true;
    call->sequence = frame.sequence;
    if (awaits_memory) {
        finish_with_memory(line, packet);
    } else if (frame.type == wire_reply) {
        take_reply(line, &frame);
    } else if (frame.type == wire_dropped) {
        call->is_kept = frame.flags & wire_kept;
        call->state = call_dropped;
    } else {
        call->state = call_broken;
    }
}

/* A packet, or a negative errno. A reply's bytes are read without the means to take descriptors, which then cannot get in. */
static int receive(const struct client_line *line, struct packet *ret_packet)
{
    ssize_t size;

    if (line->call->state == call_awaits_memory) {
        return packet_receive(line->descriptor, line->buffer, ret_packet);
    }
    size = kernel_ports.receive(line->descriptor, line->buffer, wire_frame_max);
    *ret_packet = (struct packet){.size = size > 0 ? (size_t)size : 0, .is_cut = size > wire_frame_max};
    return size < 0 ? (int)size : 0;
}

static void note_end(struct call *call)
{
    if (!call_is_open(call)) {
        atomic_store_explicit(&call->is_over, 1, memory_order_relaxed);
    }
}

static void take_from_page(struct client_line *line)
{
    bool is_awaited = line->page && line->call->state == call_waiting;
    uint32_t size = is_awaited ? reply_page_take(line->page, line->buffer) : 0;
    struct packet packet = {.size = size, .is_cut = size > reply_page_room};

    if (size > 0 && !atomic_load_explicit(&line->has_ended, memory_order_acquire)) {
        take_packet(line, &packet);
    }
}

void client_line_look(struct client_line *line)
{
    take_from_page(line);
    note_end(line->call);
}

void client_line_hang_up(struct client_line *line)
{
    if (line->page && atomic_load_explicit(&line->page->size, memory_order_relaxed) == 0) {
        atomic_store_explicit(&line->has_ended, true, memory_order_release);
    }
    (void)kernel_ports.hang_up(line->descriptor);
}

/* Nothing more comes by the socket; what the server has written before it ended counts (231). */
static void note_hang_up(struct client_line *line)
{
    take_from_page(line);
    if (call_is_open(line->call)) {
        line->call->state = call_hung_up;
    }
}

void client_line_read(struct client_line *line)
{
    struct call *call = line->call;
    int resets = 0;

    take_from_page(line);
    while (call_is_open(call)) {
        struct packet packet;
        int result = receive(line, &packet);

        if (result == -ECONNRESET && resets++ == 0) {
            continue; /* the kernel tells of the end before it hands out what came before it */
        }
        if (result == -EINTR) {
            continue; /* what is there is not reported again where the source stands on a set */
        }
        if (result == -EAGAIN) {
            break;
        }
        if (result < 0 || packet.size == 0) {
            packet_close(&packet);
            note_hang_up(line);
            break;
        }
        take_packet(line, &packet);
        packet_close(&packet);
    }
    note_end(call);
}

void client_line_wait(struct client_line *line, int64_t deadline_ns)
{
    struct kernel_event event;

    if (line->page) {
        (void)kernel.set_wait(line->set, &event, 1, deadline_ns);
    } else {
        (void)kernel_ports.wait(line->descriptor, kernel_readable, deadline_ns);
    }
}

/* ---- lines ---- */

static void perform(void *info, CFRunLoopSourceRef source, uint32_t ready)
{
    struct client_line *line = info;

    (void)source;
    (void)ready;
    if (line->call) {
        client_line_read(line);
    }
}

static void release_line(const void *info)
{
    struct client_line *line = (struct client_line *)(uintptr_t)info;

    free(line->buffer);
    free(line);
}

static uint64_t random_token(void)
{
    uint64_t token;

    do {
        kernel_ports.random_bytes(&token, sizeof token);
    } while (token == 0);
    return token;
}

static struct client_line *create(const int ends[2])
{
    struct descriptor_source_context context = {.release = release_line, .perform = perform};
    struct client_line *line = calloc(1, sizeof *line);

    if (!line) {
        return NULL;
    }
    context.info = line;
    link_init(&line->link);
    line->token = random_token();
    line->descriptor = ends[0];
    line->buffer = malloc(wire_frame_max);
    line->source = line->buffer ? descriptor_source_create(NULL, 0, ends[0], &context) : NULL;
    if (!line->source) {
        release_line(line);
        return NULL;
    }
    descriptor_source_make_lingering(line->source);
    descriptor_source_set_interest(line->source, kernel_readable);
    return line;
}

/* The source is in no mode, and the line's descriptor in no wait set, after this. */
static void leave(struct client_line *line)
{
    if (line->loop) {
        CFRunLoopRemoveSource(line->loop, line->source, line->mode);
        descriptor_source_end_lingering(line->source, line->loop, line->mode);
        object_release(line->loop);
        CFRelease(line->mode);
        line->loop = NULL;
    }
}

bool client_line_is_in(const struct client_line *line, CFRunLoopRef loop, CFStringRef mode)
{
    return line->loop == loop && (line->mode == mode || CFEqual(line->mode, mode));
}

bool client_line_enter(struct client_line *line, CFRunLoopRef loop, CFStringRef mode)
{
    if (client_line_is_in(line, loop, mode) && descriptor_source_set_resting(line->source, loop, mode, false)) {
        return true;
    }
    leave(line);
    line->mode = CFStringCreateCopy(NULL, mode);
    if (line->mode) { /* without memory nothing is noted, and the loop finds out by itself that a descriptor is closed */
        object_retain(loop);
        line->loop = loop;
    }
    CFRunLoopAddSource(loop, line->source, mode);
    return CFRunLoopContainsSource(loop, line->source, mode);
}

void client_line_rest(struct client_line *line, CFRunLoopRef loop, CFStringRef mode)
{
    if (line->loop) {
        (void)descriptor_source_set_resting(line->source, loop, mode, true);
    } else {
        CFRunLoopRemoveSource(loop, line->source, mode);
    }
}

void client_line_close(struct client_line *line)
{
    int descriptor = line->descriptor;
    int set = line->page ? line->set : -1;
    CFRunLoopSourceRef source = line->source;

    arena_release(&line->arena);
    reply_page_release(line->page);
    line->page = NULL;
    line->call = NULL;
    CFRunLoopSourceInvalidate(source);
    leave(line);
    if (set >= 0) {
        (void)kernel.close(set);
    }
    (void)kernel.close(descriptor);
    object_release(source);
}

/* Takes a free line and puts it among the busy ones; NULL if there is none. P */
static struct client_line *take_free(struct remote_port *remote)
{
    struct client_line *line;

    if (list_is_empty(&remote->free_lines)) {
        return NULL;
    }
    line = container_of(remote->free_lines.next, struct client_line, link);
    list_remove(&line->link);
    remote->free_count--;
    list_append(&remote->busy_lines, &line->link);
    return line;
}

static struct client_line *make_line(CFMessagePortRef port, int *ret_end, int *ret_error)
{
    struct remote_port *remote = &port->side.remote;
    struct client_line *line;
    int ends[2];

    *ret_error = kernel_ports.line_create(ends);
    if (*ret_error < 0) {
        return NULL; /* whatever is in `ends`: Linux may have written numbers there that it has taken back */
    }
    line = create(ends);
    if (!line) {
        *ret_error = -ENOMEM;
        (void)kernel.close(ends[0]);
        (void)kernel.close(ends[1]);
        return NULL;
    }
    *ret_end = ends[1];
    port_lock(port);
    line->number = ++remote->last_line ? remote->last_line : ++remote->last_line;
    list_append(&remote->busy_lines, &line->link);
    port_unlock(port);
    return line;
}

struct client_line *client_line_take(CFMessagePortRef port, struct call *call, int *ret_end, int *ret_error)
{
    struct remote_port *remote = &port->side.remote;
    struct client_line *line = NULL;
    bool can;

    *ret_end = -1;
    *ret_error = -ENOTCONN;
    port_lock(port);
    can = remote_port_use(port);
    if (can) {
        call->conversation = ++remote->last_conversation;
        line = take_free(remote);
    }
    port_unlock(port);
    if (can && !line) {
        line = make_line(port, ret_end, ret_error);
        if (!line) {
            port_lock(port);
            remote_port_unuse(port);
            port_unlock(port);
        }
    }
    if (line) {
        line->own_call = *call;
        line->call = &line->own_call;
    }
    if (line && line->page) {
        reply_page_clear(line->page);
    }
    return line;
}

void client_line_offer_page(CFMessagePortRef port, struct client_line *line)
{
    struct reply_page *page;
    int descriptors[wire_descriptors_max];

    if (line->page || ++line->uses % reply_page_after != 0 ||
        reply_page_create(line->descriptor, &page, &descriptors[0], &descriptors[1]) < 0) {
        return;
    }
    if (remote_port_offer_page(port, line->number, line->token, descriptors) == 0) {
        leave(line);
        line->set = descriptors[1];
        descriptor_source_stand_on_set(line->source, line->set);
        port_lock(port);
        line->page = page;
        port_unlock(port);
    } else { /* the queue is full; perhaps next time */
        reply_page_release(page);
        (void)kernel.close(descriptors[1]);
    }
    (void)kernel.close(descriptors[0]);
}

/* Puts the line among the free ones; the one that there is no room for, or NULL. P */
static struct client_line *put_free(CFMessagePortRef port, struct client_line *line)
{
    struct remote_port *remote = &port->side.remote;
    struct client_line *oldest;

    if (!port_is_valid(port)) {
        return line;
    }
    list_insert_after(&remote->free_lines, &line->link);
    if (++remote->free_count <= free_lines_max) {
        return NULL;
    }
    oldest = container_of(remote->free_lines.prev, struct client_line, link);
    list_remove(&oldest->link);
    remote->free_count--;
    return oldest;
}

void client_line_give(CFMessagePortRef port, struct client_line *line, bool is_reusable)
{
    const struct call *call = line->call;
    struct client_line *closing;

    line->call = NULL;
    port_lock(port);
    if (call->has_sequence) {
        remote_port_confirm(&port->side.remote, call->sequence);
    }
    list_remove(&line->link);
    closing = is_reusable ? put_free(port, line) : line;
    remote_port_unuse(port);
    port_unlock(port);
    if (closing) {
        client_line_close(closing);
    }
}
