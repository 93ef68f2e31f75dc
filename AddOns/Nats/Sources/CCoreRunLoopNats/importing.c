/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are reached elsewhere; see importing.h. */
#include "importing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CRLRunLoop.h"
#include "asker.h"
#include "kept_name.h"

enum {
    exporters_max = 64, /* more machines than that are not told apart */
    queue_limit = 256,
    mark_every = 64, /* one-way messages */
    marks_max = 16, /* that were not taken yet */
    awaited_high = awaited_max - 64,
};

static const size_t mark_every_bytes = (size_t)256 << 10;
static const size_t backlog_high = (size_t)4 << 20; /* bytes that wait for the server */

struct exporter {
    uint64_t sender;
    int64_t heard_ns;
};

struct imported_name {
    struct imported_name *next;
    struct CRLNatsBridge *bridge;
    char name[port_name_max + 1];
    char machine[machine_name_max + 1]; /* empty: any */
    char local_name[port_name_max + 1];
    char subject[subject_max];
    char control_subject[subject_max];
    struct subscription *control;
    struct exporter exporters[exporters_max];
    size_t exporter_count;
    CFMessagePortRef port; /* a reference; NULL: nobody exports the name */
    CFRunLoopSourceRef source; /* a reference: the port's */
    bool is_let_in; /* the source is in the loop */
    bool is_unusable; /* the local name is another program's, which was told */
    uint32_t since_mark; /* one-way messages since the last marked one */
    size_t bytes_since_mark;
    uint32_t marks; /* that were not taken yet */
    struct kept_name *kept; /* its one-way messages are kept by the server; NULL: they are not */
};

const char *importing_local_name(const struct imported_name *imported)
{
    return imported->local_name;
}

struct imported_name *importing_next(const struct imported_name *imported)
{
    return imported->next;
}

/* ---- letting messages in ---- */

void importing_let_in(struct imported_name *imported)
{
    struct CRLNatsBridge *bridge = imported->bridge;
    bool lets_in = imported->port && connection_is_ready(bridge->connection) && imported->marks < marks_max &&
                   bridge->awaited.count < awaited_high && connection_backlog(bridge->connection) < backlog_high &&
                   (!imported->kept || kept_name_has_room(imported->kept));

    bridge->is_holding_back |= imported->port && !lets_in;
    if (imported->port && lets_in != imported->is_let_in) {
        if (lets_in) {
            CFRunLoopAddSource(CFRunLoopGetCurrent(), imported->source, kCFRunLoopDefaultMode);
            lets_in = CFRunLoopContainsSource(CFRunLoopGetCurrent(), imported->source, kCFRunLoopDefaultMode); /* if there is memory */
        } else {
            CFRunLoopRemoveSource(CFRunLoopGetCurrent(), imported->source, kCFRunLoopDefaultMode);
        }
        imported->is_let_in = lets_in;
    }
}

/* ---- what is awaited ---- */

static void end_awaited(struct CRLNatsBridge *bridge, struct awaited *awaited, CRLReplyStatus status, const void *bytes, size_t length)
{
    struct imported_name *imported = awaited->name;
    CRLDeferredReplyRef reply = awaited->reply;
    CFDataRef data = reply && length > 0 ? CFDataCreate(NULL, bytes, (CFIndex)length) : NULL;

    imported->marks -= reply ? 0 : 1;
    awaited_remove(&bridge->awaited, awaited);
    if (reply) {
        CRLDeferredReplySend(reply, status == kCRLReplyAnswered && length > 0 && !data ? kCRLReplyFailed : status, data);
    }
    if (data) {
        CFRelease(data);
    }
    importing_let_in(imported);
}

static void end_failed(struct CRLNatsBridge *bridge, struct awaited *awaited, const char *text)
{
    end_awaited(bridge, awaited, kCRLReplyFailed, text, strlen(text));
}

/* The status of an answer; one that is not known counts as a failure. */
static CRLReplyStatus status_of(uint32_t detail)
{
    return detail == kCRLReplyUnhandled || detail == kCRLReplyMalformed ? (CRLReplyStatus)detail : kCRLReplyFailed;
}

void importing_take_answer(struct CRLNatsBridge *bridge, struct awaited *awaited, const struct bridge_frame *frame)
{
    if (frame->type == bridge_working) {
        awaited->heard_ns = bridge_now_ns();
    } else if (frame->type == bridge_reply) {
        end_awaited(bridge, awaited, kCRLReplyAnswered, frame->data, frame->length);
    } else if (frame->type == bridge_failed) {
        end_awaited(bridge, awaited, status_of(frame->detail), frame->data, frame->length);
    } else if (frame->type == bridge_taken && !awaited->reply) {
        end_awaited(bridge, awaited, kCRLReplyAnswered, NULL, 0);
    } else {
        bridge_tell(bridge, kCRLNatsPeerMisbehaves, awaited->name->name, "%s: what came is no answer", awaited->name->name);
    }
}

void importing_take_nobody(struct CRLNatsBridge *bridge, struct awaited *awaited)
{
    end_failed(bridge, awaited, "nobody exports the name any more");
}

void importing_take_silence(struct CRLNatsBridge *bridge, struct awaited *awaited)
{
    end_failed(bridge, awaited, "there was no sign of the receiver for 3 seconds");
}

static void take_left(struct CRLNatsBridge *bridge, struct awaited *awaited)
{
    struct bridge_frame frame = {.type = bridge_cancel, .number = awaited->number};

    (void)bridge_publish(bridge, awaited->name->control_subject, NULL, &frame);
    end_awaited(bridge, awaited, kCRLReplyFailed, NULL, 0);
}

/* ---- messages of this machine's programs ---- */

static void close_port(struct imported_name *imported);

/*
 * Defers the reply. Without memory it cannot be deferred, and the asker would get an empty reply, which nobody has given. So the port ends,
 * with which the request fails; it is made again when an exporter is heard. Returns NULL then.
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
                                 .detail = limit_s <= 0 ? 0 : limit_s > 4e6 ? UINT32_MAX : (uint32_t)(limit_s * 1000) + 1,
                                 .data = CFDataGetBytePtr(data),
                                 .length = (size_t)CFDataGetLength(data)};
    CRLDeferredReplyRef reply = defer_reply(imported, message);
    struct awaited *awaited = reply ? awaited_add(&bridge->awaited) : NULL;
    char inbox[subject_max];

    if (!awaited) {
        if (reply) {
            CRLDeferredReplySend(reply, kCRLReplyFailed, NULL);
        }
        return;
    }
    awaited->name = imported;
    awaited->reply = reply;
    awaited->heard_ns = bridge_now_ns();
    frame.number = awaited->number;
    bridge_make_inbox(bridge, awaited->number, inbox);
    if (bridge_publish(bridge, imported->subject, inbox, &frame)) {
        asker_watch(bridge, awaited, take_left);
    } else {
        end_failed(bridge, awaited, "there is no connection to the server");
    }
}

/* Every so often a message is marked: its receiver says when it has it. Only so many marked ones may be under way. */
static struct awaited *mark(struct imported_name *imported, size_t length)
{
    struct awaited *awaited;

    imported->since_mark++;
    imported->bytes_since_mark += length;
    if (imported->since_mark < mark_every && imported->bytes_since_mark < mark_every_bytes) {
        return NULL;
    }
    awaited = awaited_add(&imported->bridge->awaited);
    if (awaited) {
        awaited->name = imported;
        awaited->heard_ns = bridge_now_ns();
        imported->since_mark = 0;
        imported->bytes_since_mark = 0;
        imported->marks++;
    }
    return awaited;
}

static void send_one_way(struct imported_name *imported, SInt32 message_id, CFDataRef data)
{
    struct CRLNatsBridge *bridge = imported->bridge;
    struct bridge_frame frame = {.type = bridge_one_way,
                                 .message_id = message_id,
                                 .data = CFDataGetBytePtr(data),
                                 .length = (size_t)CFDataGetLength(data)};
    struct awaited *awaited = mark(imported, frame.length);
    char inbox[subject_max];

    frame.number = awaited ? awaited->number : awaited_next_number(&bridge->awaited);
    bridge_make_inbox(bridge, frame.number, inbox);
    if (!bridge_publish(bridge, imported->subject, awaited ? inbox : NULL, &frame)) {
        bridge_tell(bridge, kCRLNatsMessageDropped, imported->name, "%s: a message was dropped: there is no connection to the server",
                    imported->name);
        if (awaited) {
            end_failed(bridge, awaited, "");
        }
    }
}

static void keep_one_way(struct imported_name *imported, SInt32 message_id, CFDataRef data)
{
    if (!kept_name_send(imported->kept, message_id, data)) {
        bridge_tell(imported->bridge, kCRLNatsMessageDropped, imported->name, "%s: a message was dropped: there is no memory",
                    imported->name);
    }
}

/* Returns true if the server does not take so long a message. The asker gets the code for that. */
static bool refuses_length(struct imported_name *imported, CFIndex length, CRLReceivedMessageRef message)
{
    size_t most = connection_message_max(imported->bridge->connection);
    bool is_kept = imported->kept && !CRLReceivedMessageWantsReply(message);
    CRLDeferredReplyRef reply;

    if ((size_t)length + (is_kept ? (size_t)kept_head_max : (size_t)bridge_frame_size) <= most) {
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

static CFDataRef message_came(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info, CRLReceivedMessageRef message)
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
    importing_let_in(imported);
    return NULL;
}

/* ---- the local port ---- */

/* Ends what is awaited for the port, whose askers see that it has become invalid. */
static void end_all_awaited(struct imported_name *imported)
{
    struct CRLNatsBridge *bridge = imported->bridge;

    for (size_t i = 0; i < awaited_max && bridge->awaited.count > 0; i++) {
        struct awaited *awaited = &bridge->awaited.places[i];

        if (awaited->number != 0 && awaited->name == imported) {
            end_failed(bridge, awaited, "the name has gone");
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
    imported->is_let_in = false;
    CFMessagePortInvalidate(port);
    end_all_awaited(imported);
    CFRelease(source);
    CFRelease(port);
}

static CFMessagePortRef make_port(struct imported_name *imported)
{
    CFMessagePortContext context = {.info = imported};
    CFStringRef name = CFStringCreateWithCString(NULL, imported->local_name, kCFStringEncodingUTF8);
    Boolean is_another = true;
    CFMessagePortRef port = name ? CFMessagePortCreateLocal(NULL, name, NULL, &context, &is_another) : NULL;

    if (name) {
        CFRelease(name);
    }
    if (port && (is_another || !CRLMessagePortSetCallBack(port, message_came))) {
        CFRelease(port); /* a port of this process that has the name already */
        port = NULL;
    }
    return port;
}

static void open_port(struct imported_name *imported)
{
    if (imported->port) {
        return;
    }
    imported->port = make_port(imported);
    imported->source = imported->port ? CFMessagePortCreateRunLoopSource(NULL, imported->port, 0) : NULL;
    if (imported->source) {
        CRLMessagePortSetQueueLimit(imported->port, queue_limit);
        imported->is_unusable = false;
        importing_let_in(imported);
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
    *exporter = imported->exporters[--imported->exporter_count];
}

/* The server keeps messages for a name that nobody exports at present. */
static bool is_kept(const struct imported_name *imported)
{
    return imported->kept && (imported->port || kept_name_is_there(imported->kept));
}

static void close_if_deserted(struct imported_name *imported)
{
    if (imported->exporter_count == 0 && imported->port && !is_kept(imported)) {
        close_port(imported);
        bridge_tell(imported->bridge, kCRLNatsNameVanished, imported->local_name, "%s: nobody exports it any more", imported->local_name);
    }
}

static bool is_meant(const struct imported_name *imported, const struct bridge_frame *frame)
{
    if (imported->machine[0] == '\0') {
        return !(frame->flags & bridge_at_machine_only);
    }
    return strlen(imported->machine) == frame->length && memcmp(imported->machine, frame->data, frame->length) == 0;
}

static void note_exporter(struct imported_name *imported, const struct bridge_frame *frame)
{
    struct exporter *exporter = find_exporter(imported, frame->sender);
    bool is_here = frame->type == bridge_here && is_meant(imported, frame);

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

static void control_came(void *info, natsMsg *message)
{
    struct imported_name *imported = info;
    struct bridge_frame frame;

    if (bridge_decode(imported->bridge, message, imported->name, &frame) && (frame.type == bridge_here || frame.type == bridge_bye)) {
        note_exporter(imported, &frame);
    }
}

void importing_ask_who(struct imported_name *imported)
{
    struct bridge_frame frame = {.type = bridge_who};

    (void)bridge_publish(imported->bridge, imported->control_subject, NULL, &frame);
    if (imported->kept) {
        kept_name_send_again(imported->kept);
    }
    importing_let_in(imported);
}

void importing_tick(struct imported_name *imported, int64_t now_ns)
{
    for (size_t i = imported->exporter_count; i > 0; i--) {
        if (now_ns - imported->exporters[i - 1].heard_ns > silence_max_ns) {
            remove_exporter(imported, &imported->exporters[i - 1]);
        }
    }
    close_if_deserted(imported);
    if (imported->kept) {
        kept_name_tick(imported->kept, now_ns);
        if (is_kept(imported)) {
            open_port(imported);
        }
    }
    importing_let_in(imported);
}

/* ---- life ---- */

static void let_in_again(void *info)
{
    importing_let_in(info);
}

static void free_parts(struct imported_name *imported)
{
    if (imported->kept) {
        kept_name_destroy(imported->kept);
    }
    if (imported->control) {
        connection_unsubscribe(imported->bridge->connection, imported->control);
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
    imported->control = connection_subscribe(bridge->connection, imported->control_subject, NULL, control_came, imported);
    imported->kept = bridge->is_durable ? kept_name_create(bridge, name, machine, let_in_again, imported) : NULL;
    if (!imported->control || (bridge->is_durable && !imported->kept)) {
        free_parts(imported);
        return NULL;
    }
    imported->next = bridge->imported;
    bridge->imported = imported;
    importing_ask_who(imported);
    return imported;
}

void importing_destroy(struct imported_name *imported)
{
    close_port(imported);
    free_parts(imported);
}
