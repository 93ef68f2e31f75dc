/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to JetStream, the part of the server that keeps messages, and its answers: both are JSON. Pure functions.
 *
 * The stream "CRL" keeps the messages of all names until they are acknowledged. "CRLCLAIMS" keeps the claims of messages (kept_delivery.h)
 * for a day. Each name has a consumer, which all machines that export the name share.
 */
#ifndef CRL_NATS_STREAM_API_H
#define CRL_NATS_STREAM_API_H

#include "nats_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "Wire/subject.h"

enum { consumer_name_max = 72, api_text_max = 1024, api_error_max = 160 };

/* The error numbers that a bridge handles. */
enum { api_stream_exists = 10058, api_wrong_last_sequence = 10071 };

extern const char *const api_create_messages_subject;
extern const char *const api_create_claims_subject;
extern const char *const api_purge_claims_subject;
extern const char *const api_create_messages;
extern const char *const api_create_claims;

/* The name of the consumer for a subject: the subject's beginning, for people, and a hash of all of it. */
void api_consumer_name(const char *subject, char ret_name[consumer_name_max]);
/* The subject and the text of the request that creates the consumer for a subject's messages. It delivers them to `ret_delivery`. */
void api_create_consumer(const char *subject, char ret_api_subject[subject_max], char ret_text[api_text_max],
                         char ret_delivery[subject_max]);

/* An answer of JetStream. */
struct api_answer {
    bool is_answer; /* false: the text is no JSON object */
    bool is_stored; /* it has the number that JetStream gives a stored message */
    int error; /* 0: none */
    char description[api_error_max]; /* of the error */
};
struct api_answer api_read_answer(const char *text, size_t length);

#endif
