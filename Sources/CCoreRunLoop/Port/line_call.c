/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that go by the owner's socket: where their data travels, sending them, and waiting for the reply, which comes by a line, in the
 * calling thread's loop. No state of its own; a line belongs to the thread that has taken it, until it is given back.
 */
#include <errno.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Loop/brief_run.h"
#include "Loop/pass.h"
#include "Loop/thread_loop.h"
#include "Port/aftermath.h"
#include "Port/call.h"
#include "Port/client_line.h"
#include "Port/port_log.h"

/* How long to ask whether a receiver that never took our line is dying, and how often: its descriptors close one after another. */
static const int64_t dying_ns = 50000000;
static const int64_t asking_ns = 2000000;

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
static int load_data(CFMessagePortRef port, struct client_line *line, struct wire_frame *frame, struct load *load, const void *bytes,
                     uint64_t length)
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
        memcpy(line->arena.address, bytes, (size_t)length);
        frame->flags |= wire_in_arena;
        return 0;
    }
    if (length <= remote_port_packet_data_max(port, length)) {
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

SInt32 line_call_send(CFMessagePortRef port, SInt32 message_id, const void *bytes, uint64_t length, CFTimeInterval timeout)
{
    struct wire_frame frame = {.type = wire_one_way, .message_id = message_id};
    struct load load = {.inline_data = NULL};
    SInt32 result = kCFMessagePortTransportError;
    int64_t now_ns = 0;
    int64_t deadline_ns = call_send_deadline(timeout, &now_ns);
    bool can;

    port_lock(port);
    can = remote_port_use(port);
    port_unlock(port);
    if (!can) {
        return kCFMessagePortIsInvalid;
    }
    if (load_data(port, NULL, &frame, &load, bytes, length) == 0) {
        result = remote_port_send(port, &frame, load.inline_data, load.descriptors, load.count, deadline_ns, &now_ns);
    }
    close_load(&load);
    port_lock(port);
    remote_port_unuse(port);
    port_unlock(port);
    return result;
}

/* ---- waiting ---- */

/* A thread whose loop has ended already waits without one. */
static void wait_without_loop(struct client_line *line, int64_t deadline_ns)
{
    int64_t now_ns = kernel.monotonic_ns();

    if (deadline_ns > now_ns) {
        client_line_wait(line, deadline_ns - now_ns > call_slice_ns ? now_ns + call_slice_ns : deadline_ns);
    }
    client_line_read(line);
}

/* When a run has to end: without a watch on the line it is looked at again and again. */
static int64_t end_of_run(bool is_watched, int64_t deadline_ns)
{
    int64_t slice_end_ns;

    if (is_watched || deadline_ns == 0) {
        return deadline_ns;
    }
    slice_end_ns = kernel.monotonic_ns() + call_slice_ns;
    return slice_end_ns < deadline_ns ? slice_end_ns : deadline_ns;
}

/*
 * Runs the loop until the answer, the deadline, or the end of the port. Each activation ends after a source; the time that is left goes
 * on (214).
 */
static void await_in_runs(CFMessagePortRef port, struct client_line *line, CFRunLoopRef loop, int64_t deadline_ns, CFStringRef mode)
{
    struct call *call = line->call;
    bool is_watched = client_line_enter(line, loop, mode);
    bool goes_on = port_is_valid(port);

    client_line_look(line);
    while (goes_on) { /* once at least, even if the reply is there: the mode's observers see a run */
        if (run_in_mode_until(loop, mode, end_of_run(is_watched, deadline_ns), true, &call->is_over) == kCFRunLoopRunFinished) {
            wait_without_loop(line, deadline_ns);
        } else if (!is_watched) {
            client_line_read(line); /* there was no memory to watch the line */
        }
        if (call_is_open(call) && deadline_ns != kernel_never && kernel.monotonic_ns() >= deadline_ns) {
            client_line_read(line); /* what is there counts, even if another source had its turn (228) */
            break;
        }
        goes_on = call_is_open(call) && port_is_valid(port);
    }
    if (call_is_open(call)) {
        client_line_read(line); /* a reply that came while the port ended wins (231) */
    }
    client_line_rest(line, loop, mode);
}

/* The same, in the shortest way that the mode allows. `now_ns` is a time that has been read lately, or 0. */
static void await(CFMessagePortRef port, struct client_line *line, int64_t deadline_ns, CFStringRef mode, int64_t now_ns)
{
    CFRunLoopRef loop = thread_loop_current();
    struct brief_run brief = {.source = line->source, .deadline_ns = deadline_ns, .now_ns = now_ns};
    bool can_be_brief;

    if (mode_name_is_common(mode)) {
        mode = kCFRunLoopDefaultMode; /* 217 */
    }
    if (line->page) {
        reply_page_await(line->page);
        brief.awaited = &line->page->size;
    }
    can_be_brief = deadline_ns != 0 && client_line_is_in(line, loop, mode);
    while (can_be_brief && port_is_valid(port) && run_briefly(loop, mode, &brief)) {
        client_line_read(line);
        if (!call_is_open(line->call)) {
            return;
        }
        /* The bell may have been rung for the reply before, which was found without; or by a server that does nothing else. */
        brief.now_ns = kernel.monotonic_ns();
        can_be_brief = line->page && brief.now_ns < deadline_ns;
    }
    await_in_runs(port, line, loop, deadline_ns, mode);
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
    bool is_reusable = (call->state == call_replied || call->state == call_dropped) && call->is_kept;

    if (call->refuses_arena) {
        line->refuses_arena = true;
        arena_release(&line->arena);
    } else if (call->state == call_dropped) {
        arena_release(&line->arena); /* the receiver may not have looked at what came with the request */
    } else if (call->reply && (uint64_t)CFDataGetLength(call->reply) > line->wish) {
        line->wish = (uint64_t)CFDataGetLength(call->reply);
    }
    line->is_kept |= is_reusable;
    if (is_reusable) {
        client_line_offer_page(port, line);
    }
    client_line_give(port, line, is_reusable);
}

/* The request has not been sent: a kept line is as good as before, but for an arena that the receiver never saw. */
static void take_back(CFMessagePortRef port, struct client_line *line, const struct wire_frame *frame)
{
    client_line_give(port, line, line->is_kept && !(frame->flags & wire_new_arena));
}

static SInt32 send_on_line(CFMessagePortRef port, struct client_line *line, int end, const void *bytes, uint64_t length,
                           int64_t deadline_ns, int64_t *now_ns, struct wire_frame *frame)
{
    struct load load = {.inline_data = NULL};
    SInt32 result = kCFMessagePortTransportError;

    if (end >= 0) {
        frame->flags |= wire_new_line;
        frame->name = port->name.bytes;
        frame->name_length = port->name.length;
        load.descriptors[load.count++] = end;
    }
    if (load_data(port, line, frame, &load, bytes, length) == 0) {
        result = remote_port_send(port, frame, load.inline_data, load.descriptors, load.count, deadline_ns, now_ns);
    }
    close_load(&load);
    return result;
}

/* A callback in the wait has ended the thread, or jumped out: nobody is left who would end the request. */
static void end_left_request(const void *waiting)
{
    struct client_line *line = (struct client_line *)(uintptr_t)waiting;
    CFMessagePortRef port = line->call->port;
    CFDataRef reply = line->call->reply;

    client_line_give(port, line, false);
    call_end_by_socket(port);
    if (reply) {
        CFRelease(reply);
    }
    object_release(port);
}

SInt32 line_call_request(CFMessagePortRef port, SInt32 message_id, const void *bytes, uint64_t length, CFTimeInterval send_timeout,
                         CFTimeInterval receive_timeout, CFStringRef mode, CFDataRef *ret_reply)
{
    struct call call = {.state = call_waiting, .message_id = message_id, .port = port};
    CFRunLoopRef loop = thread_loop_current();
    struct wire_frame frame = {.type = wire_request, .message_id = message_id};
    int64_t now_ns = 0;
    int64_t deadline_ns;
    struct client_line *line;
    CFDataRef reply;
    SInt32 result;
    uint32_t begun;
    int error = 0;
    int end;

    line = client_line_take(port, &call, &end, &error);
    if (!line && error == -ENOTCONN) {
        return kCFMessagePortIsInvalid;
    }
    if (!line) {
        port_log("CFMessagePortSendRequest", "there is no means to take a reply: %s", port_error_text(error));
        return kCFMessagePortTransportError;
    }
    frame.conversation = line->call->conversation;
    frame.line = line->number;
    frame.token = line->token;
    result = send_on_line(port, line, end, bytes, length, call_send_deadline(send_timeout, &now_ns), &now_ns, &frame);
    if (result != kCFMessagePortSuccess) {
        take_back(port, line, &frame);
        return result;
    }
    deadline_ns = call_reply_deadline(receive_timeout, &now_ns);
    begun = aftermath_begin(loop, end_left_request, line);
    await(port, line, deadline_ns, mode, now_ns);
    aftermath_end(loop, begun);
    result = result_of(port, line);
    reply = line->call->reply;
    end_line(port, line);
    if (result == kCFMessagePortSuccess && ret_reply) {
        *ret_reply = reply;
    } else if (reply) {
        CFRelease(reply);
    }
    return result;
}
