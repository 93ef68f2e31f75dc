/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that the server keeps, at their receiver; see kept_delivery.h. */
#include "kept_delivery.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream_api.h"

enum {
    begun_max = 8, /* messages that are claimed at once, and so may be in doubt after a crash */
    held_max = 128, /* messages in all: the server has at most 64 of a consumer under way */
    handled_max = 1024, /* ids of messages that were handled or given up: a server that was killed may have lost what it had confirmed */
};

static const int64_t working_ns = 1000000000; /* between two signs that a message is under way */
static const int64_t again_ns = 3500000000; /* after which the server is asked again for what it has not answered */

enum delivery_state { delivery_waiting, delivery_claiming, delivery_claimed, delivery_handed_over, delivery_done };

struct delivered_message {
    struct delivered_message *next;
    struct delivered_message *earlier;
    struct kept_delivery *delivery;
    enum delivery_state state;
    uint64_t sender;
    uint64_t number;
    uint64_t awaited; /* the number of the question for the claim; 0: none */
    int64_t said_ns; /* when the server last heard of it */
    const char *last_word; /* of one that is done: it waits for a connection to be said */
    int64_t asked_ns;
    SInt32 message_id;
    CFDataRef data; /* a reference */
    char acknowledgement[]; /* the subject for it */
};

struct kept_delivery {
    struct CRLNatsBridge *bridge;
    char name[port_name_max + 1];
    char subject[subject_max]; /* of the messages */
    char delivery[subject_max]; /* at which the server delivers them */
    struct subscription *subscription; /* NULL without a port */
    CFMessagePortRef port; /* NULL: there is none; the exported name has the reference */
    bool has_consumer;
    uint64_t consumer_asked; /* the number of the question; 0: none */
    struct delivered_message *first; /* in their order */
    struct delivered_message *last;
    int begun; /* of these, those that do not wait any more */
    int count;
    struct message_id {
        uint64_t sender;
        uint64_t number;
    } handled[handled_max]; /* the latest, in a ring */
    size_t handled_count; /* in all */
};

/* ---- the list ---- */

static void append(struct kept_delivery *delivery, struct delivered_message *message)
{
    message->earlier = delivery->last;
    *(delivery->last ? &delivery->last->next : &delivery->first) = message;
    delivery->last = message;
    delivery->count++;
}

static void free_message(struct delivered_message *message)
{
    struct kept_delivery *delivery = message->delivery;

    *(message->earlier ? &message->earlier->next : &delivery->first) = message->next;
    *(message->next ? &message->next->earlier : &delivery->last) = message->earlier;
    if (message->awaited != 0) {
        bridge_forget(delivery->bridge, message->awaited);
    }
    delivery->begun -= message->state != delivery_waiting;
    delivery->count--;
    CFRelease(message->data);
    free(message);
}

static struct delivered_message *find_message(struct kept_delivery *delivery, const struct bridge_frame *frame)
{
    for (struct delivered_message *message = delivery->first; message; message = message->next) {
        if (message->sender == frame->sender && message->number == frame->number) {
            return message;
        }
    }
    return NULL;
}

static void note_handled(const struct delivered_message *message)
{
    struct kept_delivery *delivery = message->delivery;

    delivery->handled[delivery->handled_count++ % handled_max] = (struct message_id){message->sender, message->number};
}

static bool was_handled(const struct kept_delivery *delivery, const struct bridge_frame *frame)
{
    for (size_t i = 0; i < handled_max && i < delivery->handled_count; i++) {
        if (delivery->handled[i].sender == frame->sender && delivery->handled[i].number == frame->number) {
            return true;
        }
    }
    return false;
}

/* ---- words to the server ---- */

/* Returns false if there is no connection. */
static bool say(const struct delivered_message *message, const char *word)
{
    return connection_publish(message->delivery->bridge->connection, message->acknowledgement, NULL, word, strlen(word), NULL, 0);
}

static void say_last_word(struct delivered_message *message)
{
    if (say(message, message->last_word)) {
        free_message(message);
    }
}

/* Nothing more is done with the message. Should the server deliver it again, it is not handed over. */
static void finish(struct delivered_message *message, const char *last_word)
{
    note_handled(message);
    message->state = delivery_done;
    message->last_word = last_word;
    say_last_word(message);
}

static void claim_subject(const struct delivered_message *message, char ret_subject[subject_max])
{
    (void)snprintf(ret_subject, subject_max, "crl.1.claim.%llx-%llx", (unsigned long long)message->sender,
                   (unsigned long long)message->number);
}

static void give_up_in_doubt(struct delivered_message *message, const char *why)
{
    struct kept_delivery *delivery = message->delivery;
    unsigned long long sender = message->sender;
    unsigned long long number = message->number;
    int message_id = (int)message->message_id;

    finish(message, "+TERM"); /* before the program is told, which may run the loop */
    delivery->bridge->told_ns[-kCRLNatsMessageInDoubt] = 0; /* each of them is told */
    bridge_tell(delivery->bridge, kCRLNatsMessageInDoubt, delivery->name, "%s: the message %d of bridge %llx, number %llu, is in doubt: %s",
                delivery->name, message_id, sender, number, why);
}

static void claim_next(struct kept_delivery *delivery);

/* ---- handing over ---- */

static void handed_over(void *info, SInt32 result, CRLReplyStatus status, CFDataRef reply)
{
    struct delivered_message *message = info;
    struct kept_delivery *delivery = message->delivery;

    (void)status;
    (void)reply;
    if (result == kCFMessagePortSuccess) {
        finish(message, "+ACK");
        claim_next(delivery);
    } else if (result == kCFMessagePortIsInvalid) {
        message->state = delivery_claimed; /* nothing was sent: it waits for the next port */
    } else {
        give_up_in_doubt(message, "its receiver died, or failed");
    }
}

static void hand_over(struct delivered_message *message)
{
    struct kept_delivery *delivery = message->delivery;
    CRLSentMessageRef sent;

    if (!delivery->port) {
        return;
    }
    sent = CRLMessageSenderSend(delivery->bridge->messages, delivery->port, message->message_id, message->data, INFINITY, true, handed_over,
                                message);
    if (sent) { /* otherwise the next tick tries again */
        message->state = delivery_handed_over;
        CRLSentMessageRelease(sent);
    }
}

/* ---- claims ---- */

static void claimed(void *info, const char *text, size_t length)
{
    struct delivered_message *message = info;
    struct api_answer answer = api_read_answer(text ? text : "", length);

    message->awaited = 0;
    if (answer.is_stored) {
        message->state = delivery_claimed;
        hand_over(message);
    } else if (answer.error == api_wrong_last_sequence) {
        give_up_in_doubt(message, "another bridge had begun to hand it over");
    }
}

/* Asks for the claim, or asks again: the id makes the server give the same answer to the same bridge. */
static void claim(struct delivered_message *message)
{
    struct bridge_frame frame = {.type = bridge_taken, .number = message->number};
    struct CRLNatsBridge *bridge = message->delivery->bridge;
    char subject[subject_max];
    char id[64];

    claim_subject(message, subject);
    (void)snprintf(id, sizeof id, "%llx-%llx-%llx", (unsigned long long)message->sender, (unsigned long long)message->number,
                   (unsigned long long)bridge->sender);
    message->asked_ns = bridge_now_ns();
    message->delivery->begun += message->state == delivery_waiting;
    message->state = delivery_claiming;
    message->awaited =
        bridge_ask(bridge, &(struct question){.subject = subject, .id = id, .is_first = true, .frame = &frame}, claimed, message);
}

/* Begins with those whose turn it is, if they can be handed over. */
static void claim_next(struct kept_delivery *delivery)
{
    for (struct delivered_message *message = delivery->first; message && delivery->port && delivery->begun < begun_max;
         message = message->next) {
        if (message->state == delivery_waiting) {
            claim(message);
        }
    }
}

/* ---- messages ---- */

static void message_came(void *info, natsMsg *came)
{
    struct kept_delivery *delivery = info;
    const char *acknowledgement = natsMsg_GetReply(came) ? natsMsg_GetReply(came) : "";
    struct delivered_message *message;
    struct bridge_frame frame;

    if (!bridge_decode(delivery->bridge, came, delivery->name, &frame)) {
        return;
    }
    if (frame.type != bridge_one_way || strncmp(acknowledgement, "$JS.ACK.CRL.", 12) != 0) {
        bridge_tell(delivery->bridge, kCRLNatsPeerMisbehaves, delivery->name, "%s: what came as a kept message is none", delivery->name);
        return;
    }
    if (find_message(delivery, &frame)) {
        return; /* the server has lost patience, and this bridge is at it */
    }
    if (was_handled(delivery, &frame)) {
        (void)connection_publish(delivery->bridge->connection, acknowledgement, NULL, "+ACK", 4, NULL, 0);
        return;
    }
    if (delivery->count == held_max) {
        bridge_tell(delivery->bridge, kCRLNatsPeerMisbehaves, delivery->name,
                    "%s: a kept message was dropped: the server has not delivered so many", delivery->name);
        return; /* if the server has, it does so again */
    }
    message = calloc(1, sizeof *message + strlen(acknowledgement) + 1);
    if (message) {
        message->data = CFDataCreate(NULL, frame.data, (CFIndex)frame.length);
        if (!message->data) {
            free(message);
            return; /* the server delivers it again */
        }
        strcpy(message->acknowledgement, acknowledgement);
        message->delivery = delivery;
        message->sender = frame.sender;
        message->number = frame.number;
        message->message_id = frame.message_id;
        message->said_ns = bridge_now_ns();
        append(delivery, message);
        claim_next(delivery);
    }
}

static void look_after(struct delivered_message *message, int64_t now_ns)
{
    if (message->state == delivery_done) {
        say_last_word(message);
        return;
    }
    if (now_ns - message->said_ns >= working_ns && say(message, "+WPI")) {
        message->said_ns = now_ns;
    }
    if (message->state == delivery_claiming && now_ns - message->asked_ns >= again_ns) {
        if (message->awaited != 0) {
            bridge_forget(message->delivery->bridge, message->awaited);
        }
        claim(message);
    } else if (message->state == delivery_claimed) {
        hand_over(message);
    }
}

/* ---- giving back ---- */

/* Takes the claim back, so that another bridge can have it. Returns false if there is no connection. */
static bool unclaim(const struct delivered_message *message)
{
    char subject[subject_max];
    char text[subject_max + 32];

    claim_subject(message, subject);
    (void)snprintf(text, sizeof text, "{\"filter\":\"%s\"}", subject);
    return connection_publish(message->delivery->bridge->connection, api_purge_claims_subject, NULL, text, strlen(text), NULL, 0);
}

/* The server gives the message to another bridge. A claim that cannot be taken back yet is kept, with the message. */
static void give_back(struct delivered_message *message)
{
    if (message->state == delivery_waiting || (message->state == delivery_claimed && unclaim(message))) {
        (void)say(message, "-NAK"); /* without a connection the server sees that nobody is at it */
        free_message(message);
    }
}

/* Those that the port has not got, which another bridge may have a port for. */
static void give_back_all(struct kept_delivery *delivery)
{
    struct delivered_message *next;

    for (struct delivered_message *message = delivery->first; message; message = next) {
        next = message->next;
        give_back(message);
    }
}

/* ---- the consumer ---- */

static void consumer_answered(void *info, const char *text, size_t length)
{
    struct kept_delivery *delivery = info;
    struct api_answer answer = api_read_answer(text ? text : "", length);

    delivery->consumer_asked = 0;
    delivery->has_consumer = answer.is_answer && answer.error == 0;
    if (answer.error != 0) {
        bridge_tell(delivery->bridge, kCRLNatsServerComplains, delivery->name, "%s: the server does not deliver what it keeps: %s",
                    delivery->name, answer.description);
    }
}

static void make_consumer(struct kept_delivery *delivery)
{
    char subject[subject_max];
    char text[api_text_max];

    if (!delivery->has_consumer && delivery->consumer_asked == 0 && delivery->bridge->streams_made == kept_streams) {
        api_create_consumer(delivery->subject, subject, text, delivery->delivery);
        delivery->consumer_asked =
            bridge_ask(delivery->bridge, &(struct question){.subject = subject, .text = text}, consumer_answered, delivery);
    }
}

static void subscribe(struct kept_delivery *delivery)
{
    if (delivery->port && delivery->has_consumer && !delivery->subscription) {
        delivery->subscription =
            connection_subscribe(delivery->bridge->connection, delivery->delivery, QUEUE_GROUP, message_came, delivery);
    }
}

static void unsubscribe(struct kept_delivery *delivery)
{
    if (delivery->subscription) {
        connection_unsubscribe(delivery->bridge->connection, delivery->subscription);
        delivery->subscription = NULL;
    }
}

void kept_delivery_set_port(struct kept_delivery *delivery, CFMessagePortRef port)
{
    delivery->port = port;
    if (port) {
        subscribe(delivery);
    } else {
        unsubscribe(delivery);
        give_back_all(delivery);
    }
}

void kept_delivery_begin_anew(struct kept_delivery *delivery)
{
    if (delivery->consumer_asked != 0) {
        bridge_forget(delivery->bridge, delivery->consumer_asked);
        delivery->consumer_asked = 0;
    }
    delivery->has_consumer = false;
}

void kept_delivery_tick(struct kept_delivery *delivery, int64_t now_ns)
{
    struct delivered_message *next;

    make_consumer(delivery);
    subscribe(delivery);
    for (struct delivered_message *message = delivery->first; message; message = next) {
        next = message->next;
        look_after(message, now_ns);
    }
    if (delivery->port) {
        claim_next(delivery);
    } else {
        give_back_all(delivery);
    }
}

/* ---- life ---- */

struct kept_delivery *kept_delivery_create(struct CRLNatsBridge *bridge, const char *name, const char *machine)
{
    struct kept_delivery *delivery = calloc(1, sizeof *delivery);

    if (delivery) {
        delivery->bridge = bridge;
        (void)snprintf(delivery->name, sizeof delivery->name, "%s", name);
        subject_make(delivery->subject, machine ? "keptat" : "kept", machine, name);
    }
    return delivery;
}

void kept_delivery_destroy(struct kept_delivery *delivery)
{
    unsubscribe(delivery);
    kept_delivery_begin_anew(delivery);
    give_back_all(delivery);
    while (delivery->first) {
        free_message(delivery->first);
    }
    free(delivery);
}
