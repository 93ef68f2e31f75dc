/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a bridge need of it; see bridge_link.h. */
#include "bridge_link.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"

enum { text_max = 512 };

static const int64_t error_interval_ns = 1000000000;

/* ---- life ---- */

struct bridge_life *bridge_life_retain(struct bridge_life *life)
{
    int before = atomic_fetch_add(&life->references, 1);

    invariant(before > 0);
    return life;
}

void bridge_life_release(struct bridge_life *life)
{
    int before = atomic_fetch_sub(&life->references, 1);

    invariant(before > 0);
    if (before == 1) {
        invariant(!life->bridge); /* the bridge has a reference as long as it lives */
        free(life);
    }
}

/* ---- telling ---- */

static void deliver_event(struct CRLNatsBridge *bridge, CRLNatsEvent event, const char *name, const char *text)
{
    if (bridge->callback) {
        bridge->callback(bridge, event, name, text, bridge->info);
    } else if (event < 0) {
        (void)fprintf(stderr, "CoreRunLoop: bridge: %s\n", text);
    }
}

/* Peers and servers may have put anything into the text; the program gets one line. */
static void replace_control_characters(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7F) {
            *text = '?';
        }
    }
}

/* The place of an event's kind in the tables: 0 for all that are no errors. */
static size_t kind_of_event(CRLNatsEvent event)
{
    size_t kind = event < 0 ? (size_t)-event : 0;

    invariant(kind < event_kinds);
    return kind;
}

/* Returns false, and counts the event, if it is an error whose kind was told less than a second ago. */
static bool may_tell(struct CRLNatsBridge *bridge, CRLNatsEvent event)
{
    size_t kind = kind_of_event(event);

    if (kind > 0 && bridge->told_ns[kind] != 0 && bridge_now_ns() - bridge->told_ns[kind] < error_interval_ns) {
        bridge->untold[kind]++;
        return false;
    }
    return true;
}

static void tell_format(struct CRLNatsBridge *bridge, CRLNatsEvent event, const char *name, const char *format, va_list arguments)
    __attribute__((format(printf, 4, 0)));
static void tell_format(struct CRLNatsBridge *bridge, CRLNatsEvent event, const char *name, const char *format, va_list arguments)
{
    size_t kind = kind_of_event(event);
    char text[text_max];
    size_t length;

    (void)vsnprintf(text, sizeof text, format, arguments);
    replace_control_characters(text);
    length = strlen(text);
    invariant(kind > 0 || bridge->untold[kind] == 0); /* only errors are left out */
    if (bridge->untold[kind] > 0) {
        (void)snprintf(text + length, sizeof text - length, " (and %llu more)", (unsigned long long)bridge->untold[kind]);
    }
    bridge->untold[kind] = 0;
    bridge->told_ns[kind] = bridge_now_ns();
    deliver_event(bridge, event, name, text);
}

void bridge_tell(struct CRLNatsBridge *bridge, CRLNatsEvent event, const char *name, const char *format, ...)
{
    va_list arguments;

    if (may_tell(bridge, event)) {
        va_start(arguments, format);
        tell_format(bridge, event, name, format, arguments);
        va_end(arguments);
    }
}

void bridge_tell_always(struct CRLNatsBridge *bridge, CRLNatsEvent event, const char *name, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    tell_format(bridge, event, name, format, arguments);
    va_end(arguments);
}

/* ---- frames and questions ---- */

bool bridge_publish(struct CRLNatsBridge *bridge, const char *subject, const char *reply, const struct bridge_frame *frame)
{
    struct bridge_frame own = *frame;
    uint8_t head[bridge_frame_size];

    own.sender = bridge->sender;
    invariant(bridge_frame_check(&own) == bridge_frame_ok); /* else the other bridges would drop it */
    bridge_frame_encode(&own, head);
    return nats_connection_publish(bridge->connection, subject, reply, head, sizeof head, frame->data, frame->length);
}

/* Returns what is wrong with the machine's name that is the frame's data, or NULL. */
static const char *machine_fault(const struct bridge_frame *frame)
{
    char machine[machine_name_max + 1];

    invariant(frame->length <= machine_name_max); /* bridge_frame_decode has refused longer ones */
    (void)snprintf(machine, sizeof machine, "%.*s", (int)frame->length, (const char *)frame->data);
    return strlen(machine) < frame->length ? "has a zero in it" : name_fault(machine, machine_name_max);
}

bool bridge_decode(struct CRLNatsBridge *bridge, natsMsg *message, const char *what, struct bridge_frame *ret_frame)
{
    const uint8_t *bytes = (const uint8_t *)natsMsg_GetData(message);
    enum bridge_frame_error error = bridge_frame_decode(bytes, (size_t)natsMsg_GetDataLength(message), ret_frame);
    const char *fault = NULL;

    if (error != bridge_frame_ok) {
        bridge_tell(bridge, kCRLNatsPeerMisbehaves, what, "%s: a message was dropped: %s", what, bridge_frame_error_text(error));
    } else if (ret_frame->type == bridge_here || ret_frame->type == bridge_bye) {
        fault = machine_fault(ret_frame);
    }
    if (fault) {
        bridge_tell(bridge, kCRLNatsPeerMisbehaves, what, "%s: a message was dropped: its machine's name %s", what, fault);
    }
    return error == bridge_frame_ok && !fault;
}

void bridge_make_inbox(const struct CRLNatsBridge *bridge, uint64_t number, char ret_subject[subject_max])
{
    (void)snprintf(ret_subject, subject_max, "%s.%llx", bridge->inbox, (unsigned long long)number);
}

uint64_t bridge_ask(struct CRLNatsBridge *bridge, const struct server_question *question, server_answer_callback answered, void *info)
{
    struct pending_answer *pending = nats_connection_is_ready(bridge->connection) ? pending_answers_add(&bridge->pending) : NULL;
    struct message_fields fields = {question->id, question->is_first};
    struct bridge_frame frame = {.data = NULL};
    uint8_t head[bridge_frame_size];
    char inbox[subject_max];

    invariant(!question->frame != !question->text);
    if (!pending) {
        return 0;
    }
    pending->answered = answered;
    pending->info = info;
    pending->heard_ns = bridge_now_ns();
    bridge_make_inbox(bridge, pending->number, inbox);
    if (question->frame) {
        frame = *question->frame;
        frame.sender = bridge->sender;
        invariant(bridge_frame_check(&frame) == bridge_frame_ok);
        bridge_frame_encode(&frame, head);
    } else {
        frame.data = (const uint8_t *)question->text;
        frame.length = strlen(question->text);
    }
    if (!nats_connection_publish_with_fields(bridge->connection, question->subject, inbox, &fields, head, question->frame ? sizeof head : 0,
                                             frame.data, frame.length)) {
        pending_answers_remove(&bridge->pending, pending);
        return 0;
    }
    return pending->number;
}

void bridge_forget(struct CRLNatsBridge *bridge, uint64_t number)
{
    struct pending_answer *pending = pending_answers_find(&bridge->pending, number);

    if (pending) {
        invariant(pending->answered); /* the number is a question's, not that of a message to another bridge */
        pending_answers_remove(&bridge->pending, pending);
    }
}
