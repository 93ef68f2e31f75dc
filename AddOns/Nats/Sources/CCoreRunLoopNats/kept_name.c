/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that the server keeps, at their sender; see kept_name.h. Used by the bridge's thread. */
#include "kept_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"
#include "Wire/stream_api.h"

enum { held_max = 512 };

static const size_t held_bytes_max = (size_t)16 << 20;
static const int64_t store_again_ns = 2000000000;

struct held_message {
    struct held_message *next;
    struct kept_name *kept; /* constant */
    uint64_t id; /* constant; unique among the bridge's messages */
    uint64_t question; /* the number of the question to store it; 0: none is open */
    int64_t tried_ns; /* when the server was asked last */
    SInt32 message_id; /* constant */
    CFDataRef data; /* constant; a reference */
};

struct kept_name {
    /* Constant. */
    struct CRLNatsBridge *bridge;
    char name[port_name_max + 1];
    char subject[subject_max];
    void (*on_progress)(void *info);
    void *info;
    /* Changes. */
    struct held_message *first; /* in their order */
    struct held_message **end; /* the pointer to the one that comes next */
    size_t count;
    size_t bytes; /* of data */
    bool is_behind; /* the held messages are to be sent before any other, once the server's streams are there */
};

/* Holds between any two functions of this file. */
static bool is_consistent(const struct kept_name *kept)
{
    return !*kept->end && (kept->end == &kept->first) == !kept->first && (kept->count == 0) == !kept->first &&
           (kept->count > 0 || kept->bytes == 0);
}

/* ---- the streams ---- */

static void note_stream_answer(struct CRLNatsBridge *bridge, enum kept_stream stream, const char *text, size_t length)
{
    struct api_answer answer = api_read_answer(text ? text : "", length);

    if (answer.is_answer && (answer.error == 0 || answer.error == api_stream_exists)) {
        bridge->streams_made |= stream;
    } else if (!(bridge->streams_made & stream)) { /* otherwise the question was of an earlier connection */
        bridge->has_asked_for_streams = false; /* the next tick asks again */
        bridge_tell(bridge, kCRLNatsServerComplains, NULL, "the server keeps no messages: %s",
                    answer.description[0] != '\0' ? answer.description : "JetStream does not answer");
    }
}

static void on_messages_stream_answered(void *info, const char *text, size_t length)
{
    note_stream_answer(info, kept_messages, text, length);
}

static void on_claims_stream_answered(void *info, const char *text, size_t length)
{
    note_stream_answer(info, kept_claims, text, length);
}

void kept_streams_request(struct CRLNatsBridge *bridge)
{
    const struct server_question messages = {.subject = api_create_messages_subject, .text = api_create_messages};
    const struct server_question claims = {.subject = api_create_claims_subject, .text = api_create_claims};

    if (!bridge->is_durable || bridge->streams_made == kept_streams || bridge->has_asked_for_streams ||
        !nats_connection_is_ready(bridge->connection)) {
        return;
    }
    bridge->has_asked_for_streams = bridge_ask(bridge, &messages, on_messages_stream_answered, bridge) &&
                                    bridge_ask(bridge, &claims, on_claims_stream_answered, bridge);
}

/* ---- messages ---- */

static void free_held(struct kept_name *kept, struct held_message **place)
{
    struct held_message *held = *place;

    invariant(kept->count > 0 && kept->bytes >= (size_t)CFDataGetLength(held->data));
    *place = held->next;
    if (!held->next) {
        kept->end = place;
    }
    kept->count--;
    kept->bytes -= (size_t)CFDataGetLength(held->data);
    if (held->question != 0) {
        bridge_forget(kept->bridge, held->question);
    }
    CFRelease(held->data);
    free(held);
    invariant(is_consistent(kept));
}

static void on_stored(void *info, const char *text, size_t length)
{
    struct held_message *held = info;
    struct kept_name *kept = held->kept;
    struct api_answer answer = api_read_answer(text ? text : "", length);

    invariant(held->question != 0);
    held->question = 0;
    if (!answer.is_stored) { /* a tick sends it again */
        bridge_tell(kept->bridge, kCRLNatsServerComplains, kept->name, "%s: a message is not stored yet: %s", kept->name,
                    answer.error != 0 ? answer.description : "no stream of the server takes it");
        return;
    }
    for (struct held_message **place = &kept->first; *place; place = &(*place)->next) {
        if (*place == held) {
            free_held(kept, place);
            break;
        }
    }
    kept->on_progress(kept->info);
}

static void store_message(struct held_message *held)
{
    struct CRLNatsBridge *bridge = held->kept->bridge;
    struct bridge_frame frame = {.type = bridge_one_way,
                                 .message_id = held->message_id,
                                 .number = held->id,
                                 .data = CFDataGetBytePtr(held->data),
                                 .length = (size_t)CFDataGetLength(held->data)};
    char id[40];

    (void)snprintf(id, sizeof id, "%llx-%llx", (unsigned long long)bridge->sender, (unsigned long long)held->id);
    invariant(held->question == 0); /* the answer to an earlier one would be taken for this one's */
    held->tried_ns = bridge_now_ns();
    held->question =
        bridge_ask(bridge, &(struct server_question){.subject = held->kept->subject, .id = id, .frame = &frame}, on_stored, held);
}

bool kept_name_send(struct kept_name *kept, SInt32 message_id, CFDataRef data)
{
    struct held_message *held = calloc(1, sizeof *held);

    if (held) {
        held->data = CFDataCreateCopy(NULL, data);
        if (!held->data) {
            free(held);
            held = NULL;
        }
    }
    if (!held) {
        return false;
    }
    held->kept = kept;
    held->message_id = message_id;
    held->id = pending_answers_next_number(&kept->bridge->pending);
    *kept->end = held;
    kept->end = &held->next;
    kept->count++;
    kept->bytes += (size_t)CFDataGetLength(data);
    invariant(is_consistent(kept));
    store_message(held);
    return true;
}

/* Returns the place of a message that is too long for the present server, whose limit may be another one's; or NULL. */
static struct held_message **find_too_long(struct kept_name *kept)
{
    size_t most = nats_connection_message_max(kept->bridge->connection);

    for (struct held_message **place = &kept->first; most > 0 && *place; place = &(*place)->next) {
        if ((size_t)CFDataGetLength((*place)->data) + kept_head_max > most) {
            return place;
        }
    }
    return NULL;
}

static void drop_too_long(struct kept_name *kept)
{
    struct held_message **place;

    while ((place = find_too_long(kept)) != NULL) {
        CFIndex length = CFDataGetLength((*place)->data);

        free_held(kept, place);
        bridge_tell(kept->bridge, kCRLNatsMessageDropped, kept->name, "%s: a message of %ld bytes is more than the server takes now, %zu",
                    kept->name, (long)length, nats_connection_message_max(kept->bridge->connection));
    }
}

void kept_name_send_again(struct kept_name *kept)
{
    kept->is_behind = !kept_name_is_available(kept);
    if (kept->is_behind) {
        return;
    }
    drop_too_long(kept);
    for (struct held_message *held = kept->first; held; held = held->next) {
        if (held->question != 0) {
            bridge_forget(kept->bridge, held->question);
            held->question = 0;
        }
        store_message(held);
    }
}

void kept_name_tick(struct kept_name *kept, int64_t now_ns)
{
    if (kept_name_is_available(kept) && (kept->is_behind || (kept->first && now_ns - kept->first->tried_ns >= store_again_ns))) {
        kept_name_send_again(kept);
    }
}

bool kept_name_is_available(const struct kept_name *kept)
{
    return kept->bridge->streams_made == kept_streams && nats_connection_is_ready(kept->bridge->connection);
}

bool kept_name_has_room(const struct kept_name *kept)
{
    return kept_name_is_available(kept) && !kept->is_behind && kept->count < held_max && kept->bytes < held_bytes_max;
}

/* ---- life ---- */

struct kept_name *kept_name_create(struct CRLNatsBridge *bridge, const char *name, const char *machine, void (*on_progress)(void *info),
                                   void *info)
{
    struct kept_name *kept = calloc(1, sizeof *kept);

    if (kept) {
        kept->bridge = bridge;
        kept->on_progress = on_progress;
        kept->info = info;
        kept->end = &kept->first;
        (void)snprintf(kept->name, sizeof kept->name, "%s", name);
        subject_make(kept->subject, machine ? "keptat" : "kept", machine, name);
    }
    return kept;
}

void kept_name_destroy(struct kept_name *kept)
{
    if (kept->count > 0) {
        bridge_tell(kept->bridge, kCRLNatsMessageDropped, kept->name, "%s: %zu messages were not stored by the server before the end",
                    kept->name, kept->count);
    }
    while (kept->first) {
        free_held(kept, &kept->first);
    }
    free(kept);
}
