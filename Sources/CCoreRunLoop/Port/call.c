/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One CFMessagePortSendRequest: where its data travels, sending it, and waiting for the reply in the calling thread's loop.
 */
#include <errno.h>
#include <math.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Loop/instant.h"
#include "Loop/pass.h"
#include "Loop/thread_loop.h"
#include "Port/client_line.h"
#include "Port/message_port.h"
#include "Port/port_log.h"

static const CFTimeInterval once_below_s = 0.001;
static const CFTimeInterval for_ever_from_s = 864000;

/* How long to ask whether a receiver that never took our line is dying, and how often: its descriptors close one after another. */
static const int64_t dying_ns = 50000000;
static const int64_t asking_ns = 2000000;
static const int64_t slice_ns = 10000000;
static const CFTimeInterval slice_s = 0.01;

/* What goes along with a request. */
struct load {
    const void *inline_data; /* NULL: it is elsewhere */
    int descriptors[wire_descriptors_max];
    int count;
};

static void close_load(struct load *load)
{
    for (int i = 0; i < load->count; i++) {
        (void)kernel.close(load->descriptors[i]);
    }
    load->count = 0;
}

/* ---- time ---- */

static bool is_for_ever(CFTimeInterval seconds)
{
    return isnan(seconds) || seconds >= for_ever_from_s;
}

static int64_t send_deadline(CFTimeInterval seconds)
{
    if (is_for_ever(seconds)) {
        return kernel_never;
    }
    return seconds < once_below_s ? 0 : instant_after(kernel.monotonic_ns(), seconds);
}

static int64_t receive_deadline(CFTimeInterval seconds)
{
    if (is_for_ever(seconds)) {
        return kernel_never;
    }
    return seconds <= 0 ? 0 : instant_after(kernel.monotonic_ns(), seconds);
}

/* ---- loading ---- */

static bool wants_arena(struct client_line *line, uint64_t length)
{
    bool wanted = length > payload_arena_min || line->wish > payload_arena_min || (length > payload_arena_second && line->has_sent_much);

    line->has_sent_much |= length > payload_arena_second;
    return wanted && !line->refuses_arena && length <= payload_arena_max && line->arena.size < (length > line->wish ? length : line->wish);
}

/* Makes the line's arena anew; without the means for it the data goes another way. */
static void renew_arena(struct client_line *line, struct wire_frame *frame, struct load *load, uint64_t length)
{
    struct arena arena = {NULL, 0};
    int descriptor;
    uint64_t size = line->wish > length && line->wish <= payload_arena_max ? line->wish : length;

    if (arena_create(size, &arena, &descriptor) < 0) {
        return;
    }
    arena_release(&line->arena);
    line->arena = arena;
    load->descriptors[load->count++] = descriptor;
    frame->flags |= wire_new_arena;
}

/* Decides how `length` bytes travel. 0 or a negative errno. `line` is NULL for one-way messages. */
static int load_data(struct client_line *line, struct wire_frame *frame, struct load *load, const void *bytes, uint64_t length)
{
    int memory;

    frame->length = length;
    if (length == 0) {
        frame->flags |= wire_null_data;
        return 0;
    }
    if (line && wants_arena(line, length)) {
        renew_arena(line, frame, load, length);
    }
    if (line && length > payload_arena_from && length <= line->arena.size) {
        memcpy(line->arena.address, bytes, length);
        frame->flags |= wire_in_arena;
        return 0;
    }
    if (length <= wire_inline_max) {
        load->inline_data = bytes;
        return 0;
    }
    if (frame->flags & wire_new_arena) { /* for the reply only; it cannot travel beside the data */
        close_load(load);
        frame->flags &= (uint16_t)~wire_new_arena;
        arena_release(&line->arena);
    }
    memory = payload_put(bytes, length);
    if (memory < 0) {
        port_log("CFMessagePortSendRequest", "there is no memory to pass on %llu bytes: %s", (unsigned long long)length,
                 port_error_text(memory));
        return memory;
    }
    load->descriptors[load->count++] = memory;
    frame->flags |= wire_in_memory;
    return 0;
}

/* ---- one way ---- */

static SInt32 send_one_way(CFMessagePortRef port, SInt32 message_id, const void *bytes, uint64_t length, int64_t deadline_ns)
{
    struct wire_frame frame = {.type = wire_one_way, .message_id = message_id};
    struct load load = {.inline_data = NULL};
    SInt32 result = kCFMessagePortTransportError;

    if (load_data(NULL, &frame, &load, bytes, length) == 0) {
        result = remote_port_send(port, &frame, load.inline_data, load.descriptors, load.count, deadline_ns);
    }
    close_load(&load);
    return result;
}

/* ---- waiting ---- */

/* A thread whose loop has ended already waits without one. */
static void wait_without_loop(struct client_line *line, int64_t deadline_ns)
{
    int64_t now_ns = kernel.monotonic_ns();

    if (deadline_ns > now_ns) {
        (void)kernel_ports.wait(line->descriptor, kernel_readable, deadline_ns - now_ns > slice_ns ? now_ns + slice_ns : deadline_ns);
    }
    client_line_read(line);
}

static CFTimeInterval seconds_until(int64_t deadline_ns)
{
    int64_t now_ns = deadline_ns == kernel_never || deadline_ns == 0 ? 0 : kernel.monotonic_ns();

    return deadline_ns == kernel_never ? for_ever_from_s : now_ns < deadline_ns ? (CFTimeInterval)(deadline_ns - now_ns) / 1e9 : 0;
}

static bool is_open(const struct call *call)
{
    return call->state == call_waiting || call->state == call_awaits_memory;
}

/*
 * Runs the loop until the answer, the deadline, or the end of the port. Each activation ends after a source; the time that is left goes
 * on (214).
 */
static void await(CFMessagePortRef port, struct client_line *line, CFTimeInterval timeout, CFStringRef mode)
{
    struct call *call = line->call;
    int64_t deadline_ns = receive_deadline(timeout);
    CFTimeInterval left = is_for_ever(timeout) ? for_ever_from_s : timeout;
    CFRunLoopRef loop = thread_loop_current();
    bool is_watched;

    if (CFEqual(mode, kCFRunLoopCommonModes)) {
        mode = kCFRunLoopDefaultMode; /* 217 */
    }
    client_line_enter(line, loop, mode);
    CFRunLoopAddSource(loop, line->source, mode);
    is_watched = CFRunLoopContainsSource(loop, line->source, mode);
    while (is_open(call) && port_is_valid(port)) {
        if (run_in_mode(loop, mode, is_watched || left < slice_s ? left : slice_s, true) == kCFRunLoopRunFinished) {
            wait_without_loop(line, deadline_ns);
        } else if (!is_watched) {
            client_line_read(line); /* there was no memory to watch the line */
        }
        if (is_open(call) && deadline_ns != kernel_never && kernel.monotonic_ns() >= deadline_ns) {
            client_line_read(line); /* what is there counts, even if another source had its turn (228) */
            break;
        }
        left = is_open(call) ? seconds_until(deadline_ns) : 0;
    }
    if (is_open(call)) {
        client_line_read(line); /* a reply that came while the port ended wins (231) */
    }
    CFRunLoopRemoveSource(loop, line->source, mode);
}

/* The line was hung up without a word. */
static SInt32 judge_hang_up(CFMessagePortRef port, const struct client_line *line)
{
    int64_t deadline_ns = kernel.monotonic_ns() + dying_ns;

    /*
     * A receiver that lives says why before it closes a line that it kept. One that never took it may have had no descriptor left for
     * it.
     */
    while (!line->is_kept && port_is_valid(port) && registry_probe(port->side.remote.place)) {
        if (kernel.monotonic_ns() >= deadline_ns) {
            port_log("CFMessagePortSendRequest",
                     "the receiver refused a request: it is of another version, or has no descriptor left for the reply's line");
            return kCFMessagePortTransportError;
        }
        kernel_ports.pause(asking_ns);
    }
    message_port_invalidate(port);
    return kCFMessagePortBecameInvalidError;
}

static SInt32 result_of(CFMessagePortRef port, struct client_line *line)
{
    switch (line->call->state) {
    case call_replied:
        return kCFMessagePortSuccess; /* even if the port died at the same time (231) */
    case call_dropped:
    case call_broken:
        return kCFMessagePortTransportError;
    case call_hung_up:
        return port_is_valid(port) ? judge_hang_up(port, line) : kCFMessagePortBecameInvalidError;
    case call_waiting:
    case call_awaits_memory:
        break;
    }
    return port_is_valid(port) ? kCFMessagePortReceiveTimeout : kCFMessagePortBecameInvalidError;
}

/* ---- requests ---- */

/* Puts the line back if it can be used again. */
static void end_line(CFMessagePortRef port, struct client_line *line)
{
    const struct call *call = line->call;
    bool reusable = (call->state == call_replied || call->state == call_dropped) && call->is_kept;

    if (call->has_sequence) {
        port_lock(port);
        remote_port_confirm(&port->side.remote, call->sequence);
        port_unlock(port);
    }
    if (call->refuses_arena) {
        line->refuses_arena = true;
        arena_release(&line->arena);
    } else if (call->state == call_dropped) {
        arena_release(&line->arena); /* the receiver may not have looked at what came with the request */
    } else if (call->reply && (uint64_t)CFDataGetLength(call->reply) > line->wish) {
        line->wish = (uint64_t)CFDataGetLength(call->reply);
    }
    line->call = NULL;
    if (reusable) {
        line->is_kept = true;
        client_line_give(port, line);
    } else {
        client_line_discard(port, line);
    }
}

/* The request has not been sent: a kept line is as good as before, but for an arena that the receiver never saw. */
static void take_back(CFMessagePortRef port, struct client_line *line, const struct wire_frame *frame)
{
    line->call = NULL;
    if (line->is_kept && !(frame->flags & wire_new_arena)) {
        client_line_give(port, line);
    } else {
        client_line_discard(port, line);
    }
}

static uint64_t next_conversation(CFMessagePortRef port)
{
    uint64_t conversation;

    port_lock(port);
    conversation = ++port->side.remote.last_conversation;
    port_unlock(port);
    return conversation;
}

static SInt32 send_on_line(CFMessagePortRef port, struct client_line *line, int end, const void *bytes, uint64_t length,
                           int64_t deadline_ns, struct wire_frame *frame)
{
    struct load load = {.inline_data = NULL};
    SInt32 result = kCFMessagePortTransportError;

    if (end >= 0) {
        frame->flags |= wire_new_line;
        frame->name = port->name.bytes;
        frame->name_length = port->name.length;
        load.descriptors[load.count++] = end;
    }
    if (load_data(line, frame, &load, bytes, length) == 0) {
        result = remote_port_send(port, frame, load.inline_data, load.descriptors, load.count, deadline_ns);
    }
    close_load(&load);
    return result;
}

static SInt32 request(CFMessagePortRef port, SInt32 message_id, const void *bytes, uint64_t length, int64_t send_deadline_ns,
                      CFTimeInterval receive_timeout, CFStringRef mode, CFDataRef *ret_reply)
{
    struct call call = {.state = call_waiting, .message_id = message_id, .conversation = next_conversation(port)};
    struct wire_frame frame = {.type = wire_request, .message_id = message_id, .conversation = call.conversation};
    struct client_line *line;
    SInt32 result;
    int error = 0;
    int end;

    line = client_line_take(port, &end, &error);
    if (!line) {
        port_log("CFMessagePortSendRequest", "there is no means to take a reply: %s", port_error_text(error));
        return kCFMessagePortTransportError;
    }
    line->call = &call;
    frame.line = line->number;
    frame.token = line->token;
    result = send_on_line(port, line, end, bytes, length, send_deadline_ns, &frame);
    if (result != kCFMessagePortSuccess) {
        take_back(port, line, &frame);
        return result;
    }
    await(port, line, receive_timeout, mode);
    result = result_of(port, line);
    end_line(port, line);
    if (result == kCFMessagePortSuccess && ret_reply) {
        *ret_reply = call.reply;
    } else if (call.reply) {
        CFRelease(call.reply);
    }
    return result;
}

SInt32 message_send(CFMessagePortRef port, SInt32 message_id, CFDataRef data, CFTimeInterval send_timeout, CFTimeInterval receive_timeout,
                    CFStringRef reply_mode, CFDataRef *ret_reply)
{
    uint64_t length = data ? (uint64_t)CFDataGetLength(data) : 0;
    const UInt8 *bytes = length > 0 ? CFDataGetBytePtr(data) : NULL;
    int64_t deadline_ns = send_deadline(send_timeout);
    SInt32 result;

    if (!remote_port_use(port)) {
        return kCFMessagePortIsInvalid;
    }
    if (length > wire_payload_max || length > port->side.remote.budget) {
        port_log("CFMessagePortSendRequest", "a message of %llu bytes is more than the receiver takes", (unsigned long long)length);
        result = kCFMessagePortTransportError;
    } else if (reply_mode) {
        result = request(port, message_id, bytes, length, deadline_ns, receive_timeout, reply_mode, ret_reply);
    } else {
        result = send_one_way(port, message_id, bytes, length, deadline_ns);
    }
    remote_port_unuse(port);
    return result;
}
