/* SPDX-License-Identifier: Apache-2.0 */
/* JetStream's requests and answers; see stream_api.h. */
#define _GNU_SOURCE
#include "Wire/stream_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"

const char *const api_create_messages_subject = "$JS.API.STREAM.CREATE.CRL";
const char *const api_create_claims_subject = "$JS.API.STREAM.CREATE.CRLCLAIMS";
const char *const api_purge_claims_subject = "$JS.API.STREAM.PURGE.CRLCLAIMS";

/* Within the window for duplicates, a message that a bridge sends again, because it was not confirmed, is stored once. */
const char *const api_create_messages =
    "{\"name\":\"CRL\",\"subjects\":[\"crl.1.kept.>\",\"crl.1.keptat.>\"],\"retention\":\"workqueue\",\"storage\":\"file\","
    "\"max_consumers\":-1,\"max_msgs\":-1,\"max_bytes\":-1,\"max_age\":0,\"max_msg_size\":-1,\"discard\":\"new\",\"num_replicas\":1,"
    "\"duplicate_window\":600000000000}";
const char *const api_create_claims =
    "{\"name\":\"CRLCLAIMS\",\"subjects\":[\"crl.1.claim.>\"],\"retention\":\"limits\",\"storage\":\"file\",\"max_consumers\":-1,"
    "\"max_msgs\":-1,\"max_bytes\":-1,\"max_age\":86400000000000,\"max_msg_size\":-1,\"max_msgs_per_subject\":1,\"discard\":\"old\","
    "\"num_replicas\":1,\"duplicate_window\":600000000000}";

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xCBF29CE484222325;

    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * 0x100000001B3;
    }
    hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCD;
    return hash ^ hash >> 33;
}

/* nats-server 2.9 uses the name of a consumer as a format string: a % in it would break the connection. */
void api_consumer_name(const char *subject, char ret_name[consumer_name_max])
{
    int length = snprintf(ret_name, consumer_name_max, "%.47s~%016llx", subject, (unsigned long long)hash_text(subject));

    for (int i = 0; i < length; i++) {
        if (ret_name[i] == '.' || ret_name[i] == '%') {
            ret_name[i] = '_';
        }
    }
}

void api_create_consumer(const char *subject, char ret_api_subject[subject_max], char ret_text[api_text_max],
                         char ret_delivery[subject_max])
{
    char name[consumer_name_max];

    api_consumer_name(subject, name);
    (void)snprintf(ret_delivery, subject_max, "crl.1.push.%s", name);
    (void)snprintf(ret_api_subject, subject_max, "$JS.API.CONSUMER.DURABLE.CREATE.CRL.%s", name);
    (void)snprintf(ret_text, api_text_max,
                   "{\"stream_name\":\"CRL\",\"config\":{\"durable_name\":\"%s\",\"deliver_subject\":\"%s\","
                   "\"deliver_group\":\"" QUEUE_GROUP "\",\"deliver_policy\":\"all\",\"ack_policy\":\"explicit\","
                   "\"ack_wait\":5000000000,\"max_deliver\":-1,"
                   "\"max_ack_pending\":64,\"replay_policy\":\"instant\",\"filter_subject\":\"%s\"}}",
                   name, ret_delivery, subject);
}

/* Returns what follows "key": in the text; NULL if it is not there. */
static const char *find_key(const char *text, size_t length, const char *key)
{
    char quoted[32];
    int size = snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *found = memmem(text, length, quoted, (size_t)size);

    return found ? found + size : NULL;
}

/* JetStream writes its numbers and texts without spaces before them. */
struct api_answer api_read_answer(const char *text, size_t length)
{
    struct api_answer answer = {.is_answer = length >= 2 && text[0] == '{' && text[length - 1] == '}'};
    const char *error = answer.is_answer ? find_key(text, length, "error") : NULL;
    const char *number;
    const char *description;
    size_t left;

    if (!error) {
        answer.is_stored = answer.is_answer && find_key(text, length, "seq");
        return answer;
    }
    left = (size_t)(text + length - error);
    number = find_key(error, left, "err_code");
    answer.error = 1; /* for an error without a number */
    if (number) {
        for (answer.error = 0; *number >= '0' && *number <= '9' && answer.error < 100000; number++) { /* the text ends with a brace */
            answer.error = 10 * answer.error + (*number - '0');
        }
    }
    description = find_key(error, left, "description");
    if (description && *description == '"') {
        description++;
        (void)snprintf(answer.description, sizeof answer.description, "%.*s",
                       (int)strnlen(description, (size_t)(text + length - description)), description);
        answer.description[strcspn(answer.description, "\"")] = '\0';
    }
    return answer;
}
