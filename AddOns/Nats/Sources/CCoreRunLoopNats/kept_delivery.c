/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that the server keeps, at their receiver; see kept_delivery.h. Used by the bridge's thread. */
#include "kept_delivery.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"
#include "Wire/stream_api.h"

enum {
    begun_max = 8, /* messages that are claimed at a time, and so may be in doubt after a crash */
    held_max = 128, /* messages in all; the server delivers at most 64 that are not acknowledged */
    handled_max = 1024, /* ids of messages that are done: a server that was killed may have lost an acknowledgement, and deliver again */
};

static const int64_t claim_again_ns = 3500000000; /* after which the server is asked again for a claim */

enum delivery_state { delivery_waiting, delivery_claiming, delivery_claimed, delivery_handed_over, delivery_done };

struct delivered_message {
    struct delivered_message *next;
    struct delivered_message *earlier;
    enum delivery_state state; /* set by set_state */
    struct kept_delivery *delivery; /* constant, as all down to the data */
    uint64_t sender; /* with the number, the message's id */
    uint64_t number;
    SInt32 message_id;
    CFDataRef data; /* a reference */
    uint64_t claim_question; /* the number of the question for the claim; 0: none is open */
    int64_t claim_asked_ns; /* when the server was asked for the claim last */
    int64_t reported_ns; /* when it came, or was last reported to the server as under way */
    const char *last_word; /* of a message that is done: the acknowledgement that the server has not got yet */
    char acknowledgement[]; /* constant: the subject for acknowledgements */
};

struct kept_delivery {
    struct CRLNatsBridge *bridge; /* constant */
    char name[port_name_max + 1]; /* constant */
    char subject[subject_max]; /* constant; at which the messages are sent */
    char delivery_subject[subject_max]; /* at which the server delivers them; set with the question for the consumer */
    struct subscription *subscription; /* NULL without a port */
    CFMessagePortRef port; /* NULL: there is none; the exported name has the reference */
    bool has_consumer; /* the connection's server has it */
    uint64_t consumer_question; /* the number of the question for it; 0: none is open */
    struct delivered_message *first; /* in their order */
    struct delivered_message *last;
    int begun; /* how many of them are not waiting any more */
    int count;
    struct handled_id {
        uint64_t sender;
        uint64_t number;
    } handled[handled_max]; /* the latest messages that are done, in a ring */
    size_t handled_count; /* since the beginning */
};

/* ---- states ---- */

static bool may_follow(enum delivery_state state, enum delivery_state next)
{
    static const unsigned followers[] = {
        [delivery_waiting] = 1U << delivery_claiming,
        [delivery_claiming] = 1U << delivery_claiming | 1U << delivery_claimed | 1U << delivery_done,
        [delivery_claimed] = 1U << delivery_handed_over,
        [delivery_handed_over] = 1U << delivery_claimed | 1U << delivery_done,
        [delivery_done] = 0,
    };

    return followers[state] >> next & 1;
}

static void set_state(struct delivered_message *message, enum delivery_state state)
{
    struct kept_delivery *delivery = message->delivery;

    invariant(may_follow(message->state, state));
    delivery->begun += message->state == delivery_waiting;
    message->state = state;
    invariant(delivery->begun > 0 && delivery->begun <= begun_max && delivery->begun <= delivery->count);
}

/* ---- the list ---- */

static void append_message(struct kept_delivery *delivery, struct delivered_message *message)
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
    if (message->claim_question != 0) {
        bridge_forget(delivery->bridge, message->claim_question);
    }
    delivery->begun -= message->state != delivery_waiting;
    delivery->count--;
    invariant(delivery->begun >= 0 && delivery->begun <= delivery->count && !delivery->first == (delivery->count == 0));
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

static void remember_handled(const struct delivered_message *message)
{
    struct kept_delivery *delivery = message->delivery;

    delivery->handled[delivery->handled_count++ % handled_max] = (struct handled_id){message->sender, message->number};
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

/* ---- acknowledgements ---- */

/* Sends one of JetStream's acknowledgements: +ACK, -NAK, +WPI, +TERM. Returns false if there is no connection. */
static bool acknowledge_with(const struct delivered_message *message, const char *word)
{
    return nats_connection_publish(message->delivery->bridge->connection, message->acknowledgement, NULL, word, strlen(word), NULL, 0);
}

/* Frees the message, unless there is no connection: then a tick tries again. */
static void send_last_word(struct delivered_message *message)
{
    invariant(message->state == delivery_done && message->last_word);
    if (acknowledge_with(message, message->last_word)) {
        free_message(message);
    }
}

/* The message is done. If the server delivers it again, it is acknowledged and not handed over. */
static void finish_message(struct delivered_message *message, const char *last_word)
{
    remember_handled(message);
    set_state(message, delivery_done);
    message->last_word = last_word;
    send_last_word(message);
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

    finish_message(message, "+TERM"); /* before the program is told, which may run the loop */
    bridge_tell_always(delivery->bridge, kCRLNatsMessageInDoubt, delivery->name,
                       "%s: the message %d of bridge %llx, number %llu, is in doubt: %s", delivery->name, message_id, sender, number, why);
}

static void claim_next(struct kept_delivery *delivery);

/* ---- handing over ---- */

static void on_handed_over(void *info, SInt32 result, CRLReplyStatus status, CFDataRef reply)
{
    struct delivered_message *message = info;
    struct kept_delivery *delivery = message->delivery;

    (void)status;
    (void)reply;
    invariant(message->state == delivery_handed_over);
    if (result == kCFMessagePortSuccess) {
        finish_message(message, "+ACK");
        claim_next(delivery);
    } else if (result == kCFMessagePortIsInvalid) {
        set_state(message, delivery_claimed); /* nothing was sent: it waits for the next port */
    } else {
        give_up_in_doubt(message, "its receiver died, or failed");
    }
}

static void hand_over_message(struct delivered_message *message)
{
    struct kept_delivery *delivery = message->delivery;
    CRLSentMessageRef sent;

    invariant(message->state == delivery_claimed);
    if (!delivery->port) {
        return;
    }
    sent = CRLMessageSenderSend(delivery->bridge->messages, delivery->port, message->message_id, message->data, INFINITY, true,
                                on_handed_over, message);
    if (sent) { /* otherwise there is no memory, and the next tick tries again */
        set_state(message, delivery_handed_over);
        CRLSentMessageRelease(sent);
    }
}

/* ---- claims ---- */

static void on_claim_answered(void *info, const char *text, size_t length)
{
    struct delivered_message *message = info;
    struct api_answer answer = api_read_answer(text ? text : "", length);

    invariant(message->state == delivery_claiming && message->claim_question != 0);
    message->claim_question = 0;
    if (answer.is_stored) {
        set_state(message, delivery_claimed);
        hand_over_message(message);
    } else if (answer.error == api_wrong_last_sequence) {
        give_up_in_doubt(message, "another bridge had begun to hand it over");
    }
}

/* Asks for the claim. May ask again: the id makes the server give the same answer to the same bridge. */
static void claim_message(struct delivered_message *message)
{
    struct bridge_frame frame = {.type = bridge_taken, .number = message->number};
    struct CRLNatsBridge *bridge = message->delivery->bridge;
    char subject[subject_max];
    char id[64];

    claim_subject(message, subject);
    (void)snprintf(id, sizeof id, "%llx-%llx-%llx", (unsigned long long)message->sender, (unsigned long long)message->number,
                   (unsigned long long)bridge->sender);
    message->claim_asked_ns = bridge_now_ns();
    set_state(message, delivery_claiming);
    message->claim_question = bridge_ask(bridge, &(struct server_question){.subject = subject, .id = id, .is_first = true, .frame = &frame},
                                         on_claim_answered, message);
}

/* Claims the messages whose turn it is, if there is a port for them. */
static void claim_next(struct kept_delivery *delivery)
{
    for (struct delivered_message *message = delivery->first; message && delivery->port && delivery->begun < begun_max;
         message = message->next) {
        if (message->state == delivery_waiting) {
            claim_message(message);
        }
    }
}

/* ---- messages ---- */

static void on_message(void *info, natsMsg *came)
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
        return; /* a redelivery of a message that is still being handled */
    }
    if (was_handled(delivery, &frame)) {
        (void)nats_connection_publish(delivery->bridge->connection, acknowledgement, NULL, "+ACK", 4, NULL, 0);
        return;
    }
    if (delivery->count == held_max) {
        bridge_tell(delivery->bridge, kCRLNatsPeerMisbehaves, delivery->name,
                    "%s: a kept message was dropped: the server has not delivered so many", delivery->name);
        return; /* if it is the server's after all, it is delivered again */
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
        message->reported_ns = bridge_now_ns();
        append_message(delivery, message);
        claim_next(delivery);
    }
}

static void message_tick(struct delivered_message *message, int64_t now_ns)
{
    if (message->state == delivery_done) {
        send_last_word(message);
        return;
    }
    if (now_ns - message->reported_ns >= working_interval_ns && acknowledge_with(message, "+WPI")) {
        message->reported_ns = now_ns;
    }
    if (message->state == delivery_claiming && now_ns - message->claim_asked_ns >= claim_again_ns) {
        if (message->claim_question != 0) {
            bridge_forget(message->delivery->bridge, message->claim_question);
        }
        claim_message(message);
    } else if (message->state == delivery_claimed) {
        hand_over_message(message);
    }
}

/* ---- giving messages back ---- */

/* Deletes the claim, so that another bridge can have it. Returns false if there is no connection. */
static bool withdraw_claim(const struct delivered_message *message)
{
    char subject[subject_max];
    char text[subject_max + 32];

    claim_subject(message, subject);
    (void)snprintf(text, sizeof text, "{\"filter\":\"%s\"}", subject);
    return nats_connection_publish(message->delivery->bridge->connection, api_purge_claims_subject, NULL, text, strlen(text), NULL, 0);
}

/* The server delivers the message to another bridge. If there is no connection by which to withdraw a claim, the message is held. */
static void give_back_message(struct delivered_message *message)
{
    if (message->state == delivery_waiting || (message->state == delivery_claimed && withdraw_claim(message))) {
        (void)acknowledge_with(message, "-NAK"); /* without a connection, the server delivers it again after 5 s */
        free_message(message);
    }
}

/* Gives back all messages that the port has not got: another bridge may have a port for them. */
static void give_back_messages(struct kept_delivery *delivery)
{
    struct delivered_message *next;

    for (struct delivered_message *message = delivery->first; message; message = next) {
        next = message->next;
        give_back_message(message);
    }
}

/* ---- the consumer ---- */

static void on_consumer_answered(void *info, const char *text, size_t length)
{
    struct kept_delivery *delivery = info;
    struct api_answer answer = api_read_answer(text ? text : "", length);

    invariant(delivery->consumer_question != 0 && !delivery->has_consumer);
    delivery->consumer_question = 0;
    delivery->has_consumer = answer.is_answer && answer.error == 0;
    if (answer.error != 0) {
        bridge_tell(delivery->bridge, kCRLNatsServerComplains, delivery->name, "%s: the server does not deliver what it keeps: %s",
                    delivery->name, answer.description);
    }
}

static void request_consumer(struct kept_delivery *delivery)
{
    char subject[subject_max];
    char text[api_text_max];

    if (!delivery->has_consumer && delivery->consumer_question == 0 && delivery->bridge->streams_made == kept_streams) {
        api_create_consumer(delivery->subject, subject, text, delivery->delivery_subject);
        delivery->consumer_question =
            bridge_ask(delivery->bridge, &(struct server_question){.subject = subject, .text = text}, on_consumer_answered, delivery);
    }
}

static void subscribe_delivery(struct kept_delivery *delivery)
{
    if (delivery->port && delivery->has_consumer && !delivery->subscription) {
        delivery->subscription =
            nats_connection_subscribe(delivery->bridge->connection, delivery->delivery_subject, QUEUE_GROUP, on_message, delivery);
    }
}

static void unsubscribe_delivery(struct kept_delivery *delivery)
{
    if (delivery->subscription) {
        nats_connection_unsubscribe(delivery->bridge->connection, delivery->subscription);
        delivery->subscription = NULL;
    }
}

void kept_delivery_set_port(struct kept_delivery *delivery, CFMessagePortRef port)
{
    delivery->port = port;
    if (port) {
        subscribe_delivery(delivery);
    } else {
        unsubscribe_delivery(delivery);
        give_back_messages(delivery);
    }
}

void kept_delivery_handle_connected(struct kept_delivery *delivery)
{
    if (delivery->consumer_question != 0) {
        bridge_forget(delivery->bridge, delivery->consumer_question);
        delivery->consumer_question = 0;
    }
    delivery->has_consumer = false;
}

void kept_delivery_tick(struct kept_delivery *delivery, int64_t now_ns)
{
    struct delivered_message *next;

    request_consumer(delivery);
    subscribe_delivery(delivery);
    for (struct delivered_message *message = delivery->first; message; message = next) {
        next = message->next;
        message_tick(message, now_ns);
    }
    if (delivery->port) {
        claim_next(delivery);
    } else {
        give_back_messages(delivery);
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
    unsubscribe_delivery(delivery);
    kept_delivery_handle_connected(delivery);
    give_back_messages(delivery);
    while (delivery->first) {
        free_message(delivery->first);
    }
    free(delivery);
}
