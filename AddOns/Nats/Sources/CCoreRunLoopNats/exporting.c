/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are reached here; see exporting.h. */
#include "exporting.h"
#include "kept_delivery.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { under_way_max = 8192 };

static const size_t under_way_bytes_max = (size_t)64 << 20;
static const int64_t working_ns = 1000000000; /* between two signs that a message is under way */

/* A message on its way from the server to the port. */
struct incoming {
    struct incoming *next;
    struct incoming **place; /* the pointer to it */
    struct exported_name *exported;
    CRLSentMessageRef sent; /* with a reference */
    uint64_t sender;
    uint64_t number;
    int64_t said_ns; /* when it came, or when its sender was last told that it is under way */
    size_t length;
    bool is_request;
    char reply[]; /* the subject that its sender waits at; may be empty */
};

struct exported_name {
    struct exported_name *next;
    struct CRLNatsBridge *bridge;
    char name[port_name_max + 1];
    bool shares;
    uint64_t since; /* ns since 1970: who came first has the name */
    char any_subject[subject_max];
    char machine_subject[subject_max];
    char control_subject[subject_max];
    CFMessagePortRef port; /* a reference to the remote port; NULL: nobody has the name here */
    struct subscription *any; /* these are NULL without a port, and the first also while another machine has the name */
    struct subscription *at_machine;
    struct subscription *control;
    int64_t rival_heard_ns; /* when another machine that has the name was heard last; 0: there is none */
    uint64_t rival; /* its bridge's sender */
    struct kept_delivery *kept; /* for the name, and for this machine's; NULL: the bridge is not durable */
    struct kept_delivery *kept_here;
    struct incoming *incoming;
    size_t under_way;
    size_t under_way_bytes;
};

const char *exporting_name(const struct exported_name *exported)
{
    return exported->name;
}

struct exported_name *exporting_next(const struct exported_name *exported)
{
    return exported->next;
}

/* ---- answers ---- */

static void answer(struct exported_name *exported, const char *subject, enum bridge_frame_type type, uint64_t number, uint32_t detail,
                   const void *data, size_t length)
{
    struct bridge_frame frame = {.type = type, .number = number, .detail = detail, .data = data, .length = length};

    if (subject[0] != '\0') {
        (void)bridge_publish(exported->bridge, subject, NULL, &frame);
    }
}

static void answer_failed(struct exported_name *exported, const char *subject, uint64_t number, CRLReplyStatus status, const char *text)
{
    answer(exported, subject, bridge_failed, number, status, text, strlen(text));
}

/* Answers a request with what came of it. */
static void answer_request(struct incoming *incoming, SInt32 result, CRLReplyStatus status, CFDataRef reply)
{
    struct exported_name *exported = incoming->exported;
    size_t length = reply ? (size_t)CFDataGetLength(reply) : 0;
    const void *bytes = reply ? CFDataGetBytePtr(reply) : NULL;
    size_t most = connection_message_max(exported->bridge->connection);

    if (result == kCRLMessageCancelled) {
        return;
    }
    if (result == kCFMessagePortReceiveTimeout || result == kCFMessagePortSendTimeout) {
        answer_failed(exported, incoming->reply, incoming->number, kCRLReplyFailed, "the receiver has not answered in time");
    } else if (result != kCFMessagePortSuccess) {
        answer_failed(exported, incoming->reply, incoming->number, kCRLReplyFailed, "the receiver has gone, or failed");
    } else if (length + bridge_frame_size > most) {
        bridge_tell(exported->bridge, kCRLNatsMessageDropped, exported->name, "%s: a reply of %zu bytes is more than the server takes, %zu",
                    exported->name, length, most);
        answer_failed(exported, incoming->reply, incoming->number, kCRLReplyFailed, "the reply is larger than the server takes");
    } else if (status != kCRLReplyAnswered) {
        answer(exported, incoming->reply, bridge_failed, incoming->number, status, bytes, length);
    } else {
        answer(exported, incoming->reply, bridge_reply, incoming->number, 0, bytes, length);
    }
}

/* ---- messages under way ---- */

static void free_incoming(struct incoming *incoming)
{
    struct exported_name *exported = incoming->exported;

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
    incoming->said_ns = bridge_now_ns();
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

static void delivered(void *info, SInt32 result, CRLReplyStatus status, CFDataRef reply)
{
    struct incoming *incoming = info;

    if (incoming->is_request) {
        answer_request(incoming, result, status, reply);
    } else {
        if (result != kCFMessagePortSuccess && result != kCRLMessageCancelled) {
            bridge_tell(incoming->exported->bridge, kCRLNatsMessageDropped, incoming->exported->name,
                        "%s: a message was dropped: its receiver has gone, or does not take it", incoming->exported->name);
        }
        answer(incoming->exported, incoming->reply, bridge_taken, incoming->number, 0, NULL, 0);
    }
    free_incoming(incoming);
}

/* Hands a message to the port. Returns false if there is no memory. */
static bool deliver(struct exported_name *exported, const struct bridge_frame *frame, const char *reply)
{
    CFDataRef data = CFDataCreate(NULL, frame->data, (CFIndex)frame->length);
    struct incoming *incoming = data ? add_incoming(exported, frame, reply) : NULL;
    double limit_s = frame->detail != 0 ? (double)frame->detail / 1000 : INFINITY;

    if (incoming) {
        incoming->sent = CRLMessageSenderSend(exported->bridge->messages, exported->port, frame->message_id, data, limit_s,
                                              incoming->is_request, delivered, incoming);
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

static void refuse(struct exported_name *exported, const struct bridge_frame *frame, const char *reply, const char *why)
{
    bridge_tell(exported->bridge, kCRLNatsMessageDropped, exported->name, "%s: a message was dropped: %s", exported->name, why);
    if (frame->type == bridge_request) {
        answer_failed(exported, reply, frame->number, kCRLReplyFailed, why);
    }
}

static void message_came(void *info, natsMsg *message)
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
        refuse(exported, &frame, reply, "too many wait for the receiver");
    } else if (!deliver(exported, &frame, reply)) {
        refuse(exported, &frame, reply, "there is no memory");
    }
}

static void cancel(struct exported_name *exported, uint64_t sender, uint64_t number)
{
    for (struct incoming *incoming = exported->incoming; incoming; incoming = incoming->next) {
        if (incoming->sender == sender && incoming->number == number) {
            CRLSentMessageCancel(incoming->sent);
            return;
        }
    }
}

/* Tells the senders of what is under way that it is. */
static void say_working(struct exported_name *exported, int64_t now_ns)
{
    for (struct incoming *incoming = exported->incoming; incoming; incoming = incoming->next) {
        if (now_ns - incoming->said_ns >= working_ns) {
            incoming->said_ns = now_ns;
            answer(exported, incoming->reply, bridge_working, incoming->number, 0, NULL, 0);
        }
    }
}

/* ---- who has the name ---- */

static void say(struct exported_name *exported, enum bridge_frame_type type)
{
    const char *machine = exported->bridge->machine;
    struct bridge_frame frame = {.type = type,
                                 .flags = (uint16_t)((exported->shares ? bridge_shares : 0) | (exported->any ? 0 : bridge_at_machine_only)),
                                 .number = exported->since,
                                 .data = (const uint8_t *)machine,
                                 .length = strlen(machine)};

    (void)bridge_publish(exported->bridge, exported->control_subject, NULL, &frame);
}

static void subscribe_any(struct exported_name *exported)
{
    if (!exported->any) {
        exported->any = connection_subscribe(exported->bridge->connection, exported->any_subject, QUEUE_GROUP, message_came, exported);
    }
}

static void unsubscribe(struct exported_name *exported, struct subscription **subscription)
{
    if (*subscription) {
        connection_unsubscribe(exported->bridge->connection, *subscription);
        *subscription = NULL;
    }
}

static void set_kept_port(struct exported_name *exported, CFMessagePortRef port, bool has_name)
{
    if (exported->kept) {
        kept_delivery_set_port(exported->kept, has_name ? port : NULL);
        kept_delivery_set_port(exported->kept_here, port);
    }
}

/* Another machine has the name. Whoever came later gives it up, unless both share it. */
static void meet_rival(struct exported_name *exported, const struct bridge_frame *frame)
{
    bool is_first = exported->since < frame->number || (exported->since == frame->number && exported->bridge->sender < frame->sender);

    if ((exported->shares && (frame->flags & bridge_shares)) || (frame->flags & bridge_at_machine_only) || is_first) {
        return;
    }
    exported->rival_heard_ns = bridge_now_ns();
    exported->rival = frame->sender;
    if (exported->any) {
        unsubscribe(exported, &exported->any);
        set_kept_port(exported, exported->port, false);
        bridge_tell(exported->bridge, kCRLNatsNameTaken, exported->name, "%s: the machine %.*s exports it already, and does not share it",
                    exported->name, (int)frame->length, (const char *)frame->data);
        say(exported, bridge_here);
    }
}

/* The other machine that had the name has it no more. */
static void take_over(struct exported_name *exported)
{
    exported->rival_heard_ns = 0;
    subscribe_any(exported);
    set_kept_port(exported, exported->port, true);
    say(exported, bridge_here);
}

static void control_came(void *info, natsMsg *message)
{
    struct exported_name *exported = info;
    struct bridge_frame frame;

    if (!bridge_decode(exported->bridge, message, exported->name, &frame)) {
        return;
    }
    if (frame.type == bridge_who) {
        say(exported, bridge_here);
    } else if (frame.type == bridge_here) {
        meet_rival(exported, &frame);
    } else if (frame.type == bridge_cancel) {
        cancel(exported, frame.sender, frame.number);
    } else if (frame.type == bridge_bye && exported->rival_heard_ns != 0 && frame.sender == exported->rival) {
        take_over(exported);
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

/* Begins those subscriptions that are not there yet: also those for which there was no memory earlier. */
static void subscribe(struct exported_name *exported)
{
    struct connection *connection = exported->bridge->connection;

    if (!exported->control) {
        exported->control = connection_subscribe(connection, exported->control_subject, NULL, control_came, exported);
    }
    if (!exported->at_machine) {
        exported->at_machine = connection_subscribe(connection, exported->machine_subject, QUEUE_GROUP, message_came, exported);
    }
    if (exported->rival_heard_ns == 0) {
        subscribe_any(exported);
    }
}

static void appear(struct exported_name *exported)
{
    struct CRLNatsBridge *bridge = exported->bridge;

    subscribe(exported);
    set_kept_port(exported, exported->port, true);
    say(exported, bridge_here);
    bridge_tell(bridge, kCRLNatsNameAppeared, exported->name, "%s: is exported", exported->name);
}

static void vanish(struct exported_name *exported)
{
    say(exported, bridge_bye);
    unsubscribe(exported, &exported->any);
    unsubscribe(exported, &exported->at_machine);
    unsubscribe(exported, &exported->control);
    exported->rival_heard_ns = 0;
    set_kept_port(exported, NULL, false);
    CFRelease(exported->port);
    exported->port = NULL;
}

static void look_for_port(struct exported_name *exported)
{
    if (exported->port && !CFMessagePortIsValid(exported->port)) {
        vanish(exported);
        bridge_tell(exported->bridge, kCRLNatsNameVanished, exported->name, "%s: its port has gone", exported->name);
    }
    if (!exported->port) {
        exported->port = find_port(exported->name);
        if (exported->port) {
            appear(exported);
        }
    }
}

void exporting_begin_anew(struct exported_name *exported)
{
    if (exported->kept) {
        kept_delivery_begin_anew(exported->kept);
        kept_delivery_begin_anew(exported->kept_here);
    }
}

void exporting_tick(struct exported_name *exported, int64_t now_ns, bool says_here)
{
    look_for_port(exported);
    if (exported->kept) {
        kept_delivery_tick(exported->kept, now_ns);
        kept_delivery_tick(exported->kept_here, now_ns);
    }
    if (!exported->port) {
        return;
    }
    if (exported->rival_heard_ns != 0 && now_ns - exported->rival_heard_ns > silence_max_ns) {
        take_over(exported);
    }
    subscribe(exported);
    if (says_here) {
        say(exported, bridge_here);
    }
    say_working(exported, now_ns);
}

/* ---- life ---- */

static void free_kept(struct exported_name *exported)
{
    if (exported->kept) {
        kept_delivery_destroy(exported->kept);
    }
    if (exported->kept_here) {
        kept_delivery_destroy(exported->kept_here);
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
    exported->since = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    (void)snprintf(exported->name, sizeof exported->name, "%s", name);
    subject_make(exported->any_subject, "any", NULL, name);
    subject_make(exported->machine_subject, "at", bridge->machine, name);
    subject_make(exported->control_subject, "ctl", NULL, name);
    if (bridge->is_durable) {
        exported->kept = kept_delivery_create(bridge, name, NULL);
        exported->kept_here = kept_delivery_create(bridge, name, bridge->machine);
        if (!exported->kept || !exported->kept_here) {
            free_kept(exported);
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
        vanish(exported);
    }
    while (exported->incoming) {
        free_incoming(exported->incoming);
    }
    free_kept(exported);
    free(exported);
}
