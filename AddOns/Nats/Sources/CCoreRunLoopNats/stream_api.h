/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the bridge says to JetStream, the part of the server that keeps messages, and what it hears: requests and answers in JSON.
 *
 * Pure functions. One stream, "CRL", keeps the messages of all names until they are acknowledged; "CRLCLAIMS" notes which were begun, for a
 * day. A name has a consumer, which all machines that export it share.
 */
#ifndef CRL_NATS_STREAM_API_H
#define CRL_NATS_STREAM_API_H

#include "nats_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "subject.h"

enum { consumer_name_max = 72, api_text_max = 1024, api_error_max = 160 };

/* The numbers of errors that mean something to a bridge. */
enum { api_stream_exists = 10058, api_wrong_last_sequence = 10071 };

extern const char *const api_create_messages_subject;
extern const char *const api_create_claims_subject;
extern const char *const api_purge_claims_subject;
extern const char *const api_create_messages;
extern const char *const api_create_claims;

/* The name of the consumer for a subject: its readable beginning, and a hash of all of it. */
void api_consumer_name(const char *subject, char ret_name[consumer_name_max]);
/* The subject and the text of the request that makes the consumer for the messages of a subject. It delivers to `ret_delivery`. */
void api_create_consumer(const char *subject, char ret_api_subject[subject_max], char ret_text[api_text_max],
                         char ret_delivery[subject_max]);

/* What JetStream has answered. */
struct api_answer {
    bool is_answer; /* false: it is not JSON of JetStream */
    bool is_stored; /* it has the number that a stored message has got */
    int error; /* 0: none */
    char description[api_error_max]; /* of the error */
};
struct api_answer api_read_answer(const char *text, size_t length);

#endif
