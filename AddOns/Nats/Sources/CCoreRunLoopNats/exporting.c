/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are reached here; see exporting.h. Used by the bridge's thread. */
#include "exporting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "Support/invariant.h"
#include "kept_delivery.h"

enum { under_way_max = 8192 };

static const size_t under_way_bytes_max = (size_t)64 << 20;

/* A message that was handed to the port and has no outcome yet. All but `sent`, `next`, `place` and `reported_ns` is constant. */
struct incoming {
    struct incoming *next;
    struct incoming **place; /* the pointer to this one in the list */
    struct exported_name *exported;
    CRLSentMessageRef sent; /* a reference */
    uint64_t sender;
    uint64_t number;
    int64_t reported_ns; /* when it came, or was last reported to its sender */
    size_t length;
    bool is_request;
    char reply[]; /* the subject for answers to its sender; empty: the sender awaits none */
};

struct exported_name {
    struct exported_name *next;
    /* Constant. */
    struct CRLNatsBridge *bridge;
    char name[port_name_max + 1];
    bool shares;
    uint64_t since_ns; /* since 1970: whoever came first has the name */
    char any_subject[subject_max]; /* for all machines that have the name */
    char machine_subject[subject_max]; /* for this machine */
    char control_subject[subject_max];
    struct kept_delivery *kept; /* for the name; NULL: the bridge is not durable */
    struct kept_delivery *kept_at_machine; /* for the name at this machine */
    /* Changes. */
    CFMessagePortRef port; /* a reference to the remote port; NULL: no port of this machine has the name */
    struct subscription *any_subscription; /* NULL without a port, and while another machine has the name */
    struct subscription *machine_subscription; /* NULL without a port, as the next */
    struct subscription *control_subscription;
    int64_t rival_heard_ns; /* when another machine that has the name was heard last; 0: no other machine has it */
    uint64_t rival; /* the sender of that machine's bridge */
    struct incoming *incoming; /* a list, with the latest in front */
    size_t under_way; /* how many there are in the list */
    size_t under_way_bytes;
};

/* Holds between any two functions of this file. */
static bool is_consistent(const struct exported_name *exported)
{
    bool is_subscribed = exported->any_subscription || exported->machine_subscription || exported->control_subscription;

    return (exported->port || (!is_subscribed && exported->rival_heard_ns == 0)) &&
           (!exported->any_subscription || exported->rival_heard_ns == 0) && !exported->kept == !exported->kept_at_machine &&
           !exported->incoming == (exported->under_way == 0) && (exported->under_way > 0 || exported->under_way_bytes == 0);
}

const char *exporting_name(const struct exported_name *exported)
{
    return exported->name;
}

struct exported_name *exporting_next(const struct exported_name *exported)
{
    return exported->next;
}

/* ---- answers ---- */

static void send_answer(struct exported_name *exported, const char *subject, enum bridge_frame_type type, uint64_t number, uint32_t detail,
                        const void *data, size_t length)
{
    struct bridge_frame frame = {.type = type, .number = number, .detail = detail, .data = data, .length = length};

    if (subject[0] != '\0') {
        (void)bridge_publish(exported->bridge, subject, NULL, &frame);
    }
}

static void send_failure(struct exported_name *exported, const char *subject, uint64_t number, CRLReplyStatus status, const char *text)
{
    send_answer(exported, subject, bridge_failed, number, status, text, strlen(text));
}

/* Answers a request with its outcome. */
static void answer_request(struct incoming *incoming, SInt32 result, CRLReplyStatus status, CFDataRef reply)
{
    struct exported_name *exported = incoming->exported;
    size_t length = reply ? (size_t)CFDataGetLength(reply) : 0;
    const void *bytes = reply ? CFDataGetBytePtr(reply) : NULL;
    size_t most = nats_connection_message_max(exported->bridge->connection);

    if (result == kCRLMessageCancelled) {
        return;
    }
    if (result == kCFMessagePortReceiveTimeout || result == kCFMessagePortSendTimeout) {
        send_failure(exported, incoming->reply, incoming->number, kCRLReplyFailed, "the receiver has not answered in time");
    } else if (result != kCFMessagePortSuccess) {
        send_failure(exported, incoming->reply, incoming->number, kCRLReplyFailed, "the receiver has gone, or failed");
    } else if (length + bridge_frame_size > most) {
        bridge_tell(exported->bridge, kCRLNatsMessageDropped, exported->name, "%s: a reply of %zu bytes is more than the server takes, %zu",
                    exported->name, length, most);
        send_failure(exported, incoming->reply, incoming->number, kCRLReplyFailed, "the reply is larger than the server takes");
    } else if (status != kCRLReplyAnswered) {
        send_answer(exported, incoming->reply, bridge_failed, incoming->number, status, bytes, length);
    } else {
        send_answer(exported, incoming->reply, bridge_reply, incoming->number, 0, bytes, length);
    }
}

/* ---- messages under way ---- */

static void free_incoming(struct incoming *incoming)
{
    struct exported_name *exported = incoming->exported;

    invariant(*incoming->place == incoming);
    invariant(exported->under_way > 0 && exported->under_way_bytes >= incoming->length);
    *incoming->place = incoming->next;
    if (incoming->next) {
        incoming->next->place = incoming->place;
    }
    exported->under_way--;
    exported->under_way_bytes -= incoming->length;
    if (incoming->sent) {
        CRLSentMessageRelease(incoming->sent);
    }
    free(incoming);
}

static struct incoming *add_incoming(struct exported_name *exported, const struct bridge_frame *frame, const char *reply)
{
    struct incoming *incoming = calloc(1, sizeof *incoming + strlen(reply) + 1);

    if (!incoming) {
        return NULL;
    }
    strcpy(incoming->reply, reply);
    incoming->exported = exported;
    incoming->sender = frame->sender;
    incoming->number = frame->number;
    incoming->length = frame->length;
    incoming->is_request = frame->type == bridge_request;
    incoming->reported_ns = bridge_now_ns();
    incoming->next = exported->incoming;
    incoming->place = &exported->incoming;
    if (incoming->next) {
        incoming->next->place = &incoming->next;
    }
    exported->incoming = incoming;
    exported->under_way++;
    exported->under_way_bytes += incoming->length;
    return incoming;
}

static void on_delivered(void *info, SInt32 result, CRLReplyStatus status, CFDataRef reply)
{
    struct incoming *incoming = info;

    if (incoming->is_request) {
        answer_request(incoming, result, status, reply);
    } else {
        if (result != kCFMessagePortSuccess && result != kCRLMessageCancelled) {
            bridge_tell(incoming->exported->bridge, kCRLNatsMessageDropped, incoming->exported->name,
                        "%s: a message was dropped: its receiver has gone, or does not take it", incoming->exported->name);
        }
        send_answer(incoming->exported, incoming->reply, bridge_taken, incoming->number, 0, NULL, 0);
    }
    free_incoming(incoming);
}

/* Hands a message to the port. Returns false if there is no memory. */
static bool deliver_message(struct exported_name *exported, const struct bridge_frame *frame, const char *reply)
{
    CFDataRef data = CFDataCreate(NULL, frame->data, (CFIndex)frame->length);
    struct incoming *incoming = data ? add_incoming(exported, frame, reply) : NULL;
    double limit_s = frame->detail != 0 ? (double)frame->detail / 1000 : INFINITY;

    invariant(exported->port); /* without a port there is no subscription that a message could come by */
    if (incoming) {
        incoming->sent = CRLMessageSenderSend(exported->bridge->messages, exported->port, frame->message_id, data, limit_s,
                                              incoming->is_request, on_delivered, incoming);
        if (!incoming->sent) {
            free_incoming(incoming);
            incoming = NULL;
        }
    }
    if (data) {
        CFRelease(data);
    }
    return incoming != NULL;
}

static void refuse_message(struct exported_name *exported, const struct bridge_frame *frame, const char *reply, const char *why)
{
    bridge_tell(exported->bridge, kCRLNatsMessageDropped, exported->name, "%s: a message was dropped: %s", exported->name, why);
    if (frame->type == bridge_request) {
        send_failure(exported, reply, frame->number, kCRLReplyFailed, why);
    }
}

static void on_message(void *info, natsMsg *message)
{
    struct exported_name *exported = info;
    const char *reply = natsMsg_GetReply(message) ? natsMsg_GetReply(message) : "";
    struct bridge_frame frame;

    if (!bridge_decode(exported->bridge, message, exported->name, &frame)) {
        return;
    }
    if (frame.type != bridge_request && frame.type != bridge_one_way) {
        bridge_tell(exported->bridge, kCRLNatsPeerMisbehaves, exported->name, "%s: what came as a message is none", exported->name);
    } else if (exported->under_way >= under_way_max || exported->under_way_bytes + frame.length > under_way_bytes_max) {
        refuse_message(exported, &frame, reply, "too many wait for the receiver");
    } else if (!deliver_message(exported, &frame, reply)) {
        refuse_message(exported, &frame, reply, "there is no memory");
    }
}

static void cancel_incoming(struct exported_name *exported, uint64_t sender, uint64_t number)
{
    for (struct incoming *incoming = exported->incoming; incoming; incoming = incoming->next) {
        if (incoming->sender == sender && incoming->number == number) {
            CRLSentMessageCancel(incoming->sent);
            return;
        }
    }
}

/* Tells the senders of messages that are still under way. */
static void report_working(struct exported_name *exported, int64_t now_ns)
{
    for (struct incoming *incoming = exported->incoming; incoming; incoming = incoming->next) {
        if (now_ns - incoming->reported_ns >= working_interval_ns) {
            incoming->reported_ns = now_ns;
            send_answer(exported, incoming->reply, bridge_working, incoming->number, 0, NULL, 0);
        }
    }
}

/* ---- who has the name ---- */

static void announce_name(struct exported_name *exported, enum bridge_frame_type type)
{
    const char *machine = exported->bridge->machine;
    struct bridge_frame frame = {
        .type = type,
        .flags = (uint16_t)((exported->shares ? bridge_shares : 0) | (exported->any_subscription ? 0 : bridge_at_machine_only)),
        .number = exported->since_ns,
        .data = (const uint8_t *)machine,
        .length = strlen(machine)};

    (void)bridge_publish(exported->bridge, exported->control_subject, NULL, &frame);
}

static void subscribe_any(struct exported_name *exported)
{
    if (!exported->any_subscription) {
        exported->any_subscription =
            nats_connection_subscribe(exported->bridge->connection, exported->any_subject, QUEUE_GROUP, on_message, exported);
    }
}

static void drop_subscription(struct exported_name *exported, struct subscription **subscription)
{
    if (*subscription) {
        nats_connection_unsubscribe(exported->bridge->connection, *subscription);
        *subscription = NULL;
    }
}

static void set_kept_port(struct exported_name *exported, CFMessagePortRef port, bool has_name)
{
    if (exported->kept) {
        kept_delivery_set_port(exported->kept, has_name ? port : NULL);
        kept_delivery_set_port(exported->kept_at_machine, port);
    }
}

/* Another machine announces the name. The one that came later gives it up, unless both share it. */
static void note_rival(struct exported_name *exported, const struct bridge_frame *frame)
{
    bool is_first = exported->since_ns < frame->number || (exported->since_ns == frame->number && exported->bridge->sender < frame->sender);

    if ((exported->shares && (frame->flags & bridge_shares)) || (frame->flags & bridge_at_machine_only) || is_first) {
        return;
    }
    exported->rival_heard_ns = bridge_now_ns();
    exported->rival = frame->sender;
    if (exported->any_subscription) {
        drop_subscription(exported, &exported->any_subscription);
        set_kept_port(exported, exported->port, false);
        bridge_tell(exported->bridge, kCRLNatsNameTaken, exported->name, "%s: the machine %.*s exports it already, and does not share it",
                    exported->name, (int)frame->length, (const char *)frame->data);
        announce_name(exported, bridge_here);
    }
}

/* The other machine that had the name does not export it any more. */
static void reclaim_name(struct exported_name *exported)
{
    invariant(exported->port && !exported->any_subscription);
    exported->rival_heard_ns = 0;
    subscribe_any(exported);
    set_kept_port(exported, exported->port, true);
    announce_name(exported, bridge_here);
}

static void on_control_message(void *info, natsMsg *message)
{
    struct exported_name *exported = info;
    struct bridge_frame frame;

    if (!bridge_decode(exported->bridge, message, exported->name, &frame)) {
        return;
    }
    if (frame.type == bridge_who) {
        announce_name(exported, bridge_here);
    } else if (frame.type == bridge_here) {
        note_rival(exported, &frame);
    } else if (frame.type == bridge_cancel) {
        cancel_incoming(exported, frame.sender, frame.number);
    } else if (frame.type == bridge_bye && exported->rival_heard_ns != 0 && frame.sender == exported->rival) {
        reclaim_name(exported);
    } else if (frame.type != bridge_bye) {
        bridge_tell(exported->bridge, kCRLNatsPeerMisbehaves, exported->name, "%s: what came is no word about a name", exported->name);
    }
}

/* ---- the port ---- */

static CFMessagePortRef find_port(const char *name)
{
    CFStringRef string = CFStringCreateWithCString(NULL, name, kCFStringEncodingUTF8);
    CFMessagePortRef port = string ? CFMessagePortCreateRemote(NULL, string) : NULL;

    if (string) {
        CFRelease(string);
    }
    return port;
}

/* Subscribes what is not subscribed yet, and what there was no memory for earlier. */
static void subscribe_missing(struct exported_name *exported)
{
    struct nats_connection *connection = exported->bridge->connection;

    if (!exported->control_subscription) {
        exported->control_subscription =
            nats_connection_subscribe(connection, exported->control_subject, NULL, on_control_message, exported);
    }
    if (!exported->machine_subscription) {
        exported->machine_subscription =
            nats_connection_subscribe(connection, exported->machine_subject, QUEUE_GROUP, on_message, exported);
    }
    if (exported->rival_heard_ns == 0) {
        subscribe_any(exported);
    }
}

static void start_export(struct exported_name *exported)
{
    struct CRLNatsBridge *bridge = exported->bridge;

    subscribe_missing(exported);
    set_kept_port(exported, exported->port, true);
    announce_name(exported, bridge_here);
    bridge_tell(bridge, kCRLNatsNameAppeared, exported->name, "%s: is exported", exported->name);
}

static void stop_export(struct exported_name *exported)
{
    invariant(exported->port);
    announce_name(exported, bridge_bye);
    drop_subscription(exported, &exported->any_subscription);
    drop_subscription(exported, &exported->machine_subscription);
    drop_subscription(exported, &exported->control_subscription);
    exported->rival_heard_ns = 0;
    set_kept_port(exported, NULL, false);
    CFRelease(exported->port);
    exported->port = NULL;
}

static void update_port(struct exported_name *exported)
{
    if (exported->port && !CFMessagePortIsValid(exported->port)) {
        stop_export(exported);
        bridge_tell(exported->bridge, kCRLNatsNameVanished, exported->name, "%s: its port has gone", exported->name);
    }
    if (!exported->port) {
        exported->port = find_port(exported->name);
        if (exported->port) {
            start_export(exported);
        }
    }
}

void exporting_handle_connected(struct exported_name *exported)
{
    if (exported->kept) {
        kept_delivery_handle_connected(exported->kept);
        kept_delivery_handle_connected(exported->kept_at_machine);
    }
}

void exporting_tick(struct exported_name *exported, int64_t now_ns, bool announces)
{
    invariant(is_consistent(exported));
    update_port(exported);
    if (exported->kept) {
        kept_delivery_tick(exported->kept, now_ns);
        kept_delivery_tick(exported->kept_at_machine, now_ns);
    }
    if (!exported->port) {
        return;
    }
    if (exported->rival_heard_ns != 0 && now_ns - exported->rival_heard_ns > silence_max_ns) {
        reclaim_name(exported);
    }
    subscribe_missing(exported);
    if (announces) {
        announce_name(exported, bridge_here);
    }
    report_working(exported, now_ns);
    invariant(is_consistent(exported));
}

/* ---- life ---- */

static void destroy_kept(struct exported_name *exported)
{
    if (exported->kept) {
        kept_delivery_destroy(exported->kept);
    }
    if (exported->kept_at_machine) {
        kept_delivery_destroy(exported->kept_at_machine);
    }
}

struct exported_name *exporting_create(struct CRLNatsBridge *bridge, const char *name, bool shares)
{
    struct exported_name *exported = calloc(1, sizeof *exported);
    struct timespec now;

    if (!exported) {
        return NULL;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    exported->bridge = bridge;
    exported->shares = shares;
    exported->since_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    (void)snprintf(exported->name, sizeof exported->name, "%s", name);
    subject_make(exported->any_subject, "any", NULL, name);
    subject_make(exported->machine_subject, "at", bridge->machine, name);
    subject_make(exported->control_subject, "ctl", NULL, name);
    if (bridge->is_durable) {
        exported->kept = kept_delivery_create(bridge, name, NULL);
        exported->kept_at_machine = kept_delivery_create(bridge, name, bridge->machine);
        if (!exported->kept || !exported->kept_at_machine) {
            destroy_kept(exported);
            free(exported);
            return NULL;
        }
    }
    exported->next = bridge->exported;
    bridge->exported = exported;
    return exported;
}

void exporting_destroy(struct exported_name *exported)
{
    if (exported->port) {
        stop_export(exported);
    }
    while (exported->incoming) {
        free_incoming(exported->incoming);
    }
    invariant(is_consistent(exported));
    destroy_kept(exported);
    free(exported);
}
