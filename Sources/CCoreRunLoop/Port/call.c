/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One CFMessagePortSendRequest: where its data travels, sending it, and waiting for the reply in the calling thread's loop.
 */
#include <errno.h>
#include <math.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Loop/brief_run.h"
#include "Loop/instant.h"
#include "Loop/pass.h"
#include "Loop/thread_loop.h"
#include "Port/aftermath.h"
#include "Port/client_line.h"
#include "Port/message_port.h"
#include "Port/port_log.h"

static const CFTimeInterval once_below_s = 0.001;
static const CFTimeInterval for_ever_from_s = 864000;

/* How long to ask whether a receiver that never took our line is dying, and how often: its descriptors close one after another. */
static const int64_t dying_ns = 50000000;
static const int64_t asking_ns = 2000000;
static const int64_t slice_ns = 10000000;

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

/* `now_ns` is the time, or 0 until somebody has asked for it. */
static int64_t deadline_after(CFTimeInterval seconds, CFTimeInterval once_below, int64_t *now_ns)
{
    if (is_for_ever(seconds)) {
        return kernel_never;
    }
    if (seconds <= 0 || seconds < once_below) {
        return 0;
    }
    if (*now_ns == 0) {
        *now_ns = kernel.monotonic_ns();
    }
    return instant_after(*now_ns, seconds);
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

static SInt32 send_one_way(CFMessagePortRef port, SInt32 message_id, const void *bytes, uint64_t length, CFTimeInterval timeout)
{
    struct wire_frame frame = {.type = wire_one_way, .message_id = message_id};
    struct load load = {.inline_data = NULL};
    SInt32 result = kCFMessagePortTransportError;
    int64_t now_ns = 0;
    int64_t deadline_ns = deadline_after(timeout, once_below_s, &now_ns);
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
        client_line_wait(line, deadline_ns - now_ns > slice_ns ? now_ns + slice_ns : deadline_ns);
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
    slice_end_ns = kernel.monotonic_ns() + slice_ns;
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

static void end_by_socket(CFMessagePortRef port)
{
    if (port->side.remote.inbox) {
        port_lock(port);
        port->side.remote.sends_by_socket--;
        port_unlock(port);
    }
}

/* A callback in the wait has ended the thread, or jumped out: nobody is left who would end the request. */
static void end_left_request(const void *waiting)
{
    struct client_line *line = (struct client_line *)(uintptr_t)waiting;
    CFMessagePortRef port = line->call->port;
    CFDataRef reply = line->call->reply;

    client_line_give(port, line, false);
    end_by_socket(port);
    if (reply) {
        CFRelease(reply);
    }
    object_release(port);
}

static SInt32 request(CFMessagePortRef port, SInt32 message_id, const void *bytes, uint64_t length, CFTimeInterval send_timeout,
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
    result = send_on_line(port, line, end, bytes, length, deadline_after(send_timeout, once_below_s, &now_ns), &now_ns, &frame);
    if (result != kCFMessagePortSuccess) {
        take_back(port, line, &frame);
        return result;
    }
    deadline_ns = deadline_after(receive_timeout, 0, &now_ns);
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

/* ---- within the process ---- */

/* Puts a letter in, waiting for room; as remote_port_send. */
static SInt32 put_letter(CFMessagePortRef port, struct letter *letter, int64_t deadline_ns, int64_t *now_ns)
{
    struct inbox *inbox = port->side.remote.inbox;
    enum inbox_put outcome = inbox_gone;
    SInt32 gone = kCFMessagePortIsInvalid;
    int64_t looked_ns;
    uint32_t taken;

    while (port_is_valid(port) && (outcome = inbox_put(inbox, letter, &taken)) == inbox_full) {
        *now_ns = 0;
        looked_ns = kernel.monotonic_ns();
        if (looked_ns >= deadline_ns) {
            return kCFMessagePortSendTimeout;
        }
        gone = kCFMessagePortBecameInvalidError;
        inbox_wait_for_room(inbox, taken, deadline_ns - looked_ns > slice_ns ? looked_ns + slice_ns : deadline_ns);
        outcome = inbox_gone;
    }
    return outcome == inbox_took ? kCFMessagePortSuccess : gone;
}

static SInt32 no_letter(void)
{
    port_log("CFMessagePortSendRequest", "there is no memory for a message: %s", port_error_text(-ENOMEM));
    return kCFMessagePortTransportError;
}

static SInt32 post_one_way(CFMessagePortRef port, SInt32 message_id, CFDataRef data, CFTimeInterval timeout)
{
    struct letter *letter = letter_create(message_id, data, NULL);
    int64_t now_ns = 0;
    SInt32 result;

    if (!letter) {
        return no_letter();
    }
    result = put_letter(port, letter, deadline_after(timeout, once_below_s, &now_ns), &now_ns);
    if (result != kCFMessagePortSuccess) {
        letter_release(letter);
    }
    return result;
}

static bool is_waiting(const struct letter *letter)
{
    return atomic_load_explicit(&letter->state, memory_order_acquire) == letter_waiting;
}

/* As await, for a letter. */
static enum letter_state await_letter(CFMessagePortRef port, struct letter *letter, int64_t deadline_ns, CFStringRef mode, int64_t now_ns)
{
    const struct brief_run brief = {.awaited = &letter->state, .deadline_ns = deadline_ns, .now_ns = now_ns};
    bool goes_on = port_is_valid(port);

    if (mode_name_is_common(mode)) {
        mode = kCFRunLoopDefaultMode; /* 217 */
    }
    if (goes_on && deadline_ns != 0 && run_briefly(letter->loop, mode, &brief)) {
        return letter_give_up(letter);
    }
    while (goes_on) { /* once at least, even if the reply is there: the mode's observers see a run */
        if (run_in_mode_until(letter->loop, mode, deadline_ns, true, &letter->state) == kCFRunLoopRunFinished) {
            int64_t slice_end_ns = kernel.monotonic_ns() + slice_ns; /* the thread's loop has ended */

            letter_wait(letter, slice_end_ns < deadline_ns ? slice_end_ns : deadline_ns);
        }
        goes_on = is_waiting(letter) && port_is_valid(port) && (deadline_ns == kernel_never || kernel.monotonic_ns() < deadline_ns);
    }
    return letter_give_up(letter);
}

static SInt32 result_of_letter(CFMessagePortRef port, enum letter_state state)
{
    switch (state) {
    case letter_replied:
        return kCFMessagePortSuccess;
    case letter_dropped:
        return kCFMessagePortTransportError;
    case letter_gone:
        return kCFMessagePortBecameInvalidError;
    case letter_waiting:
    case letter_given_up:
        break;
    }
    return port_is_valid(port) ? kCFMessagePortReceiveTimeout : kCFMessagePortBecameInvalidError;
}

/* Lets the end of the port wake the wait for the letter, or no longer. */
static void note_letter(CFMessagePortRef port, struct letter *letter, bool waits)
{
    port_lock(port);
    if (waits) {
        list_append(&port->side.remote.letters, &letter->sender_link);
    } else {
        list_remove(&letter->sender_link);
    }
    port_unlock(port);
}

/* As end_left_request. */
static void end_left_letter(const void *waiting)
{
    struct letter *letter = (struct letter *)(uintptr_t)waiting;
    CFMessagePortRef port = letter->remote;

    if (letter->is_noted) {
        note_letter(port, letter, false);
    }
    (void)letter_give_up(letter);
    letter_release(letter);
    object_release(port);
}

static SInt32 post_request(CFMessagePortRef port, SInt32 message_id, CFDataRef data, CFTimeInterval send_timeout,
                           CFTimeInterval receive_timeout, CFStringRef mode, CFDataRef *ret_reply)
{
    CFRunLoopRef loop = thread_loop_current();
    struct letter *letter = letter_create(message_id, data, loop);
    int64_t now_ns = 0;
    int64_t deadline_ns;
    enum letter_state state;
    SInt32 result;
    uint32_t begun;
    bool waits;

    if (!letter) {
        return no_letter();
    }
    letter->remote = port;
    result = put_letter(port, letter, deadline_after(send_timeout, once_below_s, &now_ns), &now_ns);
    waits = result == kCFMessagePortSuccess && is_waiting(letter);
    letter->is_noted = waits;
    if (waits) {
        note_letter(port, letter, true); /* before the port is looked at: who finds it valid will be told of its end */
    }
    if (result == kCFMessagePortSuccess) {
        deadline_ns = deadline_after(receive_timeout, 0, &now_ns);
        begun = aftermath_begin(loop, end_left_letter, letter);
        state = await_letter(port, letter, deadline_ns, mode, now_ns);
        aftermath_end(loop, begun);
        result = result_of_letter(port, state);
    } else {
        letter_release(letter); /* the receiver's reference: it never came to that */
    }
    if (waits) {
        note_letter(port, letter, false);
    }
    if (result == kCFMessagePortSuccess && ret_reply) {
        *ret_reply = letter->reply;
        letter->reply = NULL;
    }
    letter_release(letter);
    return result;
}

/* Whether the receiver is in this process and is reached without the kernel. If not, end_by_socket has to follow. */
static bool is_here(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;
    bool result;

    if (!remote->inbox || atomic_load_explicit(&remote->uses_inbox, memory_order_relaxed)) {
        return remote->inbox != NULL;
    }
    port_lock(port);
    result = remote_port_uses_inbox(remote);
    remote->sends_by_socket += result ? 0 : 1;
    port_unlock(port);
    return result;
}

/* ---- all ways ---- */

SInt32 message_send(CFMessagePortRef port, SInt32 message_id, CFDataRef data, CFTimeInterval send_timeout, CFTimeInterval receive_timeout,
                    CFStringRef reply_mode, CFDataRef *ret_reply)
{
    uint64_t length = data ? (uint64_t)CFDataGetLength(data) : 0;
    const UInt8 *bytes = length > 0 ? CFDataGetBytePtr(data) : NULL;
    SInt32 result;

    if (length > wire_payload_max || length > port->side.remote.budget) {
        port_log("CFMessagePortSendRequest", "a message of %llu bytes is more than the receiver takes", (unsigned long long)length);
        return port_is_valid(port) ? kCFMessagePortTransportError : kCFMessagePortIsInvalid;
    }
    if (is_here(port)) {
        return reply_mode ? post_request(port, message_id, data, send_timeout, receive_timeout, reply_mode, ret_reply)
                          : post_one_way(port, message_id, data, send_timeout);
    }
    result = reply_mode ? request(port, message_id, bytes, length, send_timeout, receive_timeout, reply_mode, ret_reply)
                        : send_one_way(port, message_id, bytes, length, send_timeout);
    end_by_socket(port);
    return result;
}
