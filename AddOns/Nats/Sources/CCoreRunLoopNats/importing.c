/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are reached elsewhere; see importing.h. Used by the bridge's thread. */
#include "importing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CRLRunLoop.h"
#include "Support/invariant.h"
#include "asker.h"
#include "kept_name.h"

enum {
    exporters_max = 64, /* further machines that export the name are not noted */
    queue_limit = 256,
    mark_every = 64, /* one-way messages: the receiver confirms each marked one */
    marks_max = 16, /* that are not confirmed yet */
    pending_high = pending_answers_max - 64,
};

static const size_t mark_every_bytes = (size_t)256 << 10;
static const size_t backlog_high = (size_t)4 << 20; /* bytes that wait for the server */

struct exporter {
    uint64_t sender; /* of its bridge */
    int64_t heard_ns; /* when it announced the name last */
};

struct imported_name {
    struct imported_name *next;
    /* Constant. */
    struct CRLNatsBridge *bridge;
    char name[port_name_max + 1];
    char machine[machine_name_max + 1]; /* empty: any */
    char local_name[port_name_max + 1];
    char subject[subject_max];
    char control_subject[subject_max];
    struct subscription *control_subscription;
    struct kept_name *kept; /* by which the server keeps its one-way messages; NULL: the bridge is not durable */
    /* Changes. */
    struct exporter exporters[exporters_max];
    size_t exporter_count;
    CFMessagePortRef port; /* a reference; NULL: nobody exports the name */
    CFRunLoopSourceRef source; /* a reference: the port's; NULL without a port */
    bool is_scheduled; /* the source is in the loop, so that the port takes messages */
    bool is_unusable; /* another program has the local name; the program was told */
    uint32_t since_mark; /* one-way messages since the last marked one */
    size_t bytes_since_mark;
    uint32_t marks; /* marked messages that are not confirmed yet */
};

/* Holds between any two functions of this file. */
static bool is_consistent(const struct imported_name *imported)
{
    return !imported->port == !imported->source && (imported->port || !imported->is_scheduled) && imported->exporter_count <= exporters_max;
}

const char *importing_local_name(const struct imported_name *imported)
{
    return imported->local_name;
}

struct imported_name *importing_next(const struct imported_name *imported)
{
    return imported->next;
}

/* ---- whether the port takes messages ---- */

void importing_update_intake(struct imported_name *imported)
{
    struct CRLNatsBridge *bridge = imported->bridge;
    bool takes = imported->port && nats_connection_is_ready(bridge->connection) && imported->marks < marks_max &&
                 bridge->pending.count < pending_high && nats_connection_backlog(bridge->connection) < backlog_high &&
                 (!imported->kept || kept_name_has_room(imported->kept));

    invariant(is_consistent(imported));
    bridge->has_paused_ports |= imported->port && !takes;
    if (imported->port && takes != imported->is_scheduled) {
        if (takes) {
            CFRunLoopAddSource(CFRunLoopGetCurrent(), imported->source, kCFRunLoopDefaultMode);
            takes = CFRunLoopContainsSource(CFRunLoopGetCurrent(), imported->source, kCFRunLoopDefaultMode); /* not without memory */
        } else {
            CFRunLoopRemoveSource(CFRunLoopGetCurrent(), imported->source, kCFRunLoopDefaultMode);
        }
        imported->is_scheduled = takes;
    }
}

/* ---- pending answers ---- */

static void end_pending(struct CRLNatsBridge *bridge, struct pending_answer *pending, CRLReplyStatus status, const void *bytes,
                        size_t length)
{
    struct imported_name *imported = pending->name;
    CRLDeferredReplyRef reply = pending->reply;
    CFDataRef data = reply && length > 0 ? CFDataCreate(NULL, bytes, (CFIndex)length) : NULL;

    invariant(imported && !pending->answered);
    if (!reply) {
        invariant(imported->marks > 0);
        imported->marks--;
    }
    pending_answers_remove(&bridge->pending, pending);
    if (reply) {
        CRLDeferredReplySend(reply, status == kCRLReplyAnswered && length > 0 && !data ? kCRLReplyFailed : status, data);
    }
    if (data) {
        CFRelease(data);
    }
    importing_update_intake(imported);
}

static void fail_pending(struct CRLNatsBridge *bridge, struct pending_answer *pending, const char *text)
{
    end_pending(bridge, pending, kCRLReplyFailed, text, strlen(text));
}

/* The status that a failed answer has as its detail. An unknown one counts as a failure. */
static CRLReplyStatus reply_status(uint32_t detail)
{
    return detail == kCRLReplyUnhandled || detail == kCRLReplyMalformed ? (CRLReplyStatus)detail : kCRLReplyFailed;
}

void importing_take_answer(struct CRLNatsBridge *bridge, struct pending_answer *pending, const struct bridge_frame *frame)
{
    if (frame->type == bridge_working) {
        pending->heard_ns = bridge_now_ns();
    } else if (frame->type == bridge_reply) {
        end_pending(bridge, pending, kCRLReplyAnswered, frame->data, frame->length);
    } else if (frame->type == bridge_failed) {
        end_pending(bridge, pending, reply_status(frame->detail), frame->data, frame->length);
    } else if (frame->type == bridge_taken && !pending->reply) {
        end_pending(bridge, pending, kCRLReplyAnswered, NULL, 0);
    } else {
        bridge_tell(bridge, kCRLNatsPeerMisbehaves, pending->name->name, "%s: what came is no answer", pending->name->name);
    }
}

void importing_fail_unreachable(struct CRLNatsBridge *bridge, struct pending_answer *pending)
{
    fail_pending(bridge, pending, "nobody exports the name any more");
}

void importing_fail_silent(struct CRLNatsBridge *bridge, struct pending_answer *pending)
{
    fail_pending(bridge, pending, "there was no sign of the receiver for 3 seconds");
}

/* The request's sender does not wait any more. */
static void cancel_request(struct CRLNatsBridge *bridge, struct pending_answer *pending)
{
    struct bridge_frame frame = {.type = bridge_cancel, .number = pending->number};

    invariant(pending->name && pending->reply);
    (void)bridge_publish(bridge, pending->name->control_subject, NULL, &frame);
    end_pending(bridge, pending, kCRLReplyFailed, NULL, 0);
}

/* ---- messages of this machine's programs ---- */

static void close_port(struct imported_name *imported);

/*
 * Defers the reply. Returns NULL if there is no memory: then the sender would get an empty reply that no receiver has given. So the port is
 * closed, which fails the request. It is opened again when an exporter announces the name.
 */
static CRLDeferredReplyRef defer_reply(struct imported_name *imported, CRLReceivedMessageRef message)
{
    CRLDeferredReplyRef reply = CRLReceivedMessageDeferReply(message);

    if (!reply) {
        close_port(imported);
        bridge_tell(imported->bridge, kCRLNatsNameVanished, imported->local_name, "%s: there is no memory for a request",
                    imported->local_name);
    }
    return reply;
}

static void send_request(struct imported_name *imported, SInt32 message_id, CFDataRef data, CRLReceivedMessageRef message)
{
    struct CRLNatsBridge *bridge = imported->bridge;
    double limit_s = CRLReceivedMessageGetTimeLimit(message);
    struct bridge_frame frame = {.type = bridge_request,
                                 .message_id = message_id,
                                 .detail = limit_s <= 0    ? 0
                                           : limit_s > 4e6 ? UINT32_MAX
                                                           : (uint32_t)(limit_s * 1000) + 1,
                                 .data = CFDataGetBytePtr(data),
                                 .length = (size_t)CFDataGetLength(data)};
    CRLDeferredReplyRef reply = defer_reply(imported, message);
    struct pending_answer *pending = reply ? pending_answers_add(&bridge->pending) : NULL;
    char inbox[subject_max];

    if (!pending) {
        if (reply) {
            CRLDeferredReplySend(reply, kCRLReplyFailed, NULL);
        }
        return;
    }
    pending->name = imported;
    pending->reply = reply;
    pending->heard_ns = bridge_now_ns();
    frame.number = pending->number;
    bridge_make_inbox(bridge, pending->number, inbox);
    if (bridge_publish(bridge, imported->subject, inbox, &frame)) {
        asker_watch(bridge, pending, cancel_request);
    } else {
        fail_pending(bridge, pending, "there is no connection to the server");
    }
}

/* Marks one message of many: its receiver confirms that it has it, which limits how many are under way. Returns NULL for the others. */
static struct pending_answer *mark_message(struct imported_name *imported, size_t length)
{
    struct pending_answer *pending;

    imported->since_mark++;
    imported->bytes_since_mark += length;
    if (imported->since_mark < mark_every && imported->bytes_since_mark < mark_every_bytes) {
        return NULL;
    }
    pending = pending_answers_add(&imported->bridge->pending);
    if (pending) {
        pending->name = imported;
        pending->heard_ns = bridge_now_ns();
        imported->since_mark = 0;
        imported->bytes_since_mark = 0;
        imported->marks++;
    }
    return pending;
}

static void send_one_way(struct imported_name *imported, SInt32 message_id, CFDataRef data)
{
    struct CRLNatsBridge *bridge = imported->bridge;
    struct bridge_frame frame = {
        .type = bridge_one_way, .message_id = message_id, .data = CFDataGetBytePtr(data), .length = (size_t)CFDataGetLength(data)};
    struct pending_answer *pending = mark_message(imported, frame.length);
    char inbox[subject_max];

    frame.number = pending ? pending->number : pending_answers_next_number(&bridge->pending);
    bridge_make_inbox(bridge, frame.number, inbox);
    if (!bridge_publish(bridge, imported->subject, pending ? inbox : NULL, &frame)) {
        if (pending) { /* before the program is told, which may run the loop and so end it */
            fail_pending(bridge, pending, "");
        }
        bridge_tell(bridge, kCRLNatsMessageDropped, imported->name, "%s: a message was dropped: there is no connection to the server",
                    imported->name);
    }
}

static void keep_one_way(struct imported_name *imported, SInt32 message_id, CFDataRef data)
{
    if (!kept_name_send(imported->kept, message_id, data)) {
        bridge_tell(imported->bridge, kCRLNatsMessageDropped, imported->name, "%s: a message was dropped: there is no memory",
                    imported->name);
    }
}

/* Returns true, and fails the request, if the server does not take so long a message. */
static bool refuses_length(struct imported_name *imported, CFIndex length, CRLReceivedMessageRef message)
{
    size_t most = nats_connection_message_max(imported->bridge->connection);
    bool is_to_be_kept = imported->kept && !CRLReceivedMessageWantsReply(message);
    CRLDeferredReplyRef reply;

    if ((size_t)length + (is_to_be_kept ? (size_t)kept_head_max : (size_t)bridge_frame_size) <= most) {
        return false;
    }
    bridge_tell(imported->bridge, kCRLNatsMessageDropped, imported->name, "%s: a message of %ld bytes is more than the server takes, %zu",
                imported->name, (long)length, most);
    reply = CRLReceivedMessageWantsReply(message) ? defer_reply(imported, message) : NULL;
    if (reply) {
        CRLDeferredReplySend(reply, kCRLReplyFailed, NULL);
    }
    return true;
}

static CFDataRef on_message(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info, CRLReceivedMessageRef message)
{
    struct imported_name *imported = info;

    (void)port;
    if (!refuses_length(imported, CFDataGetLength(data), message)) {
        if (CRLReceivedMessageWantsReply(message)) {
            send_request(imported, message_id, data, message);
        } else if (imported->kept) {
            keep_one_way(imported, message_id, data);
        } else {
            send_one_way(imported, message_id, data);
        }
    }
    importing_update_intake(imported);
    return NULL;
}

/* ---- the local port ---- */

/* Those who wait for replies see that the port has become invalid. */
static void fail_all_pending(struct imported_name *imported)
{
    struct CRLNatsBridge *bridge = imported->bridge;

    for (size_t i = 0; i < pending_answers_max && bridge->pending.count > 0; i++) {
        struct pending_answer *pending = &bridge->pending.places[i];

        if (pending->number != 0 && pending->name == imported) {
            fail_pending(bridge, pending, "the name has gone");
        }
    }
}

static void close_port(struct imported_name *imported)
{
    CFMessagePortRef port = imported->port;
    CFRunLoopSourceRef source = imported->source;

    if (!port) {
        return;
    }
    imported->port = NULL;
    imported->source = NULL;
    imported->is_scheduled = false;
    CFMessagePortInvalidate(port);
    fail_all_pending(imported);
    CFRelease(source);
    CFRelease(port);
}

static CFMessagePortRef create_port(struct imported_name *imported)
{
    CFMessagePortContext context = {.info = imported};
    CFStringRef name = CFStringCreateWithCString(NULL, imported->local_name, kCFStringEncodingUTF8);
    Boolean is_another = true;
    CFMessagePortRef port = name ? CFMessagePortCreateLocal(NULL, name, NULL, &context, &is_another) : NULL;

    if (name) {
        CFRelease(name);
    }
    if (port && (is_another || !CRLMessagePortSetCallBack(port, on_message))) {
        CFRelease(port); /* it is a port of this process that has the name already */
        port = NULL;
    }
    return port;
}

static void open_port(struct imported_name *imported)
{
    if (imported->port) {
        return;
    }
    imported->port = create_port(imported);
    imported->source = imported->port ? CFMessagePortCreateRunLoopSource(NULL, imported->port, 0) : NULL;
    if (imported->source) {
        CRLMessagePortSetQueueLimit(imported->port, queue_limit);
        imported->is_unusable = false;
        importing_update_intake(imported);
        bridge_tell(imported->bridge, kCRLNatsNameAppeared, imported->local_name, "%s: is there", imported->local_name);
        return;
    }
    if (imported->port) {
        CFMessagePortInvalidate(imported->port);
        CFRelease(imported->port);
        imported->port = NULL;
    }
    if (!imported->is_unusable) {
        imported->is_unusable = true;
        bridge_tell(imported->bridge, kCRLNatsNameUnusable, imported->local_name,
                    "%s: cannot be imported: a port of this machine has the name", imported->local_name);
    }
}

/* ---- who exports the name ---- */

static struct exporter *find_exporter(struct imported_name *imported, uint64_t sender)
{
    for (size_t i = 0; i < imported->exporter_count; i++) {
        if (imported->exporters[i].sender == sender) {
            return &imported->exporters[i];
        }
    }
    return NULL;
}

static void remove_exporter(struct imported_name *imported, struct exporter *exporter)
{
    invariant(imported->exporter_count > 0);
    *exporter = imported->exporters[--imported->exporter_count];
}

/* Whether the server keeps messages for the name, although perhaps nobody exports it at present. */
static bool is_kept_by_server(const struct imported_name *imported)
{
    return imported->kept && (imported->port || kept_name_is_available(imported->kept));
}

static void close_if_deserted(struct imported_name *imported)
{
    if (imported->exporter_count == 0 && imported->port && !is_kept_by_server(imported)) {
        close_port(imported);
        bridge_tell(imported->bridge, kCRLNatsNameVanished, imported->local_name, "%s: nobody exports it any more", imported->local_name);
    }
}

/* Whether messages to this import go to the machine that announces the name. */
static bool is_meant_for_import(const struct imported_name *imported, const struct bridge_frame *frame)
{
    if (imported->machine[0] == '\0') {
        return !(frame->flags & bridge_at_machine_only);
    }
    return strlen(imported->machine) == frame->length && memcmp(imported->machine, frame->data, frame->length) == 0;
}

static void update_exporter(struct imported_name *imported, const struct bridge_frame *frame)
{
    struct exporter *exporter = find_exporter(imported, frame->sender);
    bool is_here = frame->type == bridge_here && is_meant_for_import(imported, frame);

    if (is_here && !exporter && imported->exporter_count < exporters_max) {
        exporter = &imported->exporters[imported->exporter_count++];
        exporter->sender = frame->sender;
    }
    if (is_here && exporter) {
        exporter->heard_ns = bridge_now_ns();
        open_port(imported);
    } else if (exporter) {
        remove_exporter(imported, exporter);
        close_if_deserted(imported);
    }
}

static void on_control_message(void *info, natsMsg *message)
{
    struct imported_name *imported = info;
    struct bridge_frame frame;

    if (bridge_decode(imported->bridge, message, imported->name, &frame) && (frame.type == bridge_here || frame.type == bridge_bye)) {
        update_exporter(imported, &frame);
    }
}

void importing_handle_connected(struct imported_name *imported)
{
    struct bridge_frame frame = {.type = bridge_who};

    (void)bridge_publish(imported->bridge, imported->control_subject, NULL, &frame);
    if (imported->kept) {
        kept_name_send_again(imported->kept);
    }
    importing_update_intake(imported);
}

void importing_tick(struct imported_name *imported, int64_t now_ns)
{
    invariant(is_consistent(imported));
    for (size_t i = imported->exporter_count; i > 0; i--) {
        if (now_ns - imported->exporters[i - 1].heard_ns > silence_max_ns) {
            remove_exporter(imported, &imported->exporters[i - 1]);
        }
    }
    close_if_deserted(imported);
    if (imported->kept) {
        kept_name_tick(imported->kept, now_ns);
        if (is_kept_by_server(imported)) {
            open_port(imported);
        }
    }
    importing_update_intake(imported);
}

/* ---- life ---- */

static void on_kept_progress(void *info)
{
    importing_update_intake(info);
}

static void free_imported(struct imported_name *imported)
{
    if (imported->kept) {
        kept_name_destroy(imported->kept);
    }
    if (imported->control_subscription) {
        nats_connection_unsubscribe(imported->bridge->connection, imported->control_subscription);
    }
    free(imported);
}

struct imported_name *importing_create(struct CRLNatsBridge *bridge, const char *name, const char *machine, const char *local_name)
{
    struct imported_name *imported = calloc(1, sizeof *imported);

    if (!imported) {
        return NULL;
    }
    imported->bridge = bridge;
    (void)snprintf(imported->name, sizeof imported->name, "%s", name);
    (void)snprintf(imported->machine, sizeof imported->machine, "%s", machine ? machine : "");
    (void)snprintf(imported->local_name, sizeof imported->local_name, "%s", local_name);
    subject_make(imported->subject, machine ? "at" : "any", machine, name);
    subject_make(imported->control_subject, "ctl", NULL, name);
    imported->control_subscription =
        nats_connection_subscribe(bridge->connection, imported->control_subject, NULL, on_control_message, imported);
    imported->kept = bridge->is_durable ? kept_name_create(bridge, name, machine, on_kept_progress, imported) : NULL;
    if (!imported->control_subscription || (bridge->is_durable && !imported->kept)) {
        free_imported(imported);
        return NULL;
    }
    imported->next = bridge->imported;
    bridge->imported = imported;
    importing_handle_connected(imported);
    return imported;
}

void importing_destroy(struct imported_name *imported)
{
    close_port(imported);
    invariant(is_consistent(imported) && imported->marks == 0); /* no answer is awaited any more */
    free_imported(imported);
}
