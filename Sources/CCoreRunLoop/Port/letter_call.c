/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to a port of this process: letters in its inbox, and waiting for what is written on them, in the calling thread's loop. No state
 * of its own; a letter is the inbox's and the caller's, as inbox.h says.
 */
#include <errno.h>

#include "Kernel/kernel.h"
#include "Loop/brief_run.h"
#include "Loop/pass.h"
#include "Loop/thread_loop.h"
#include "Port/aftermath.h"
#include "Port/call.h"
#include "Port/port_log.h"

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
        inbox_wait_for_room(inbox, taken, deadline_ns - looked_ns > call_slice_ns ? looked_ns + call_slice_ns : deadline_ns);
        outcome = inbox_gone;
    }
    return outcome == inbox_took ? kCFMessagePortSuccess : gone;
}

static SInt32 no_letter(void)
{
    port_log("CFMessagePortSendRequest", "there is no memory for a message: %s", port_error_text(-ENOMEM));
    return kCFMessagePortTransportError;
}

SInt32 letter_call_send(CFMessagePortRef port, SInt32 message_id, CFDataRef data, CFTimeInterval timeout)
{
    struct letter *letter = letter_create(message_id, data, NULL);
    int64_t now_ns = 0;
    SInt32 result;

    if (!letter) {
        return no_letter();
    }
    result = put_letter(port, letter, call_send_deadline(timeout, &now_ns), &now_ns);
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
            int64_t slice_end_ns = kernel.monotonic_ns() + call_slice_ns; /* the thread's loop has ended */

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

SInt32 letter_call_request(CFMessagePortRef port, SInt32 message_id, CFDataRef data, CFTimeInterval send_timeout,
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
    result = put_letter(port, letter, call_send_deadline(send_timeout, &now_ns), &now_ns);
    waits = result == kCFMessagePortSuccess && is_waiting(letter);
    letter->is_noted = waits;
    if (waits) {
        note_letter(port, letter, true); /* before the port is looked at: who finds it valid will be told of its end */
    }
    if (result == kCFMessagePortSuccess) {
        deadline_ns = call_reply_deadline(receive_timeout, &now_ns);
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
