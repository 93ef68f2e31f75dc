/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the server that is no bridge and speaks the server's protocol by itself, over a plain socket. */
#ifndef CRL_TESTS_RAW_PEER_H
#define CRL_TESTS_RAW_PEER_H

#include <stddef.h>

#include "bridge_frame.h"

/* Returns a socket that the caller closes. */
int connect_peer(void);
void send_all(int peer, const void *bytes, size_t length);
/* Writes the words that publish a message. Returns how many bytes they have. */
size_t put_message(char *text, const char *subject, const void *payload, size_t length);
void publish(int peer, const char *subject, const void *payload, size_t length);
void publish_frame(int peer, const char *subject, struct bridge_frame frame, const char *data);
/* Waits until the server has taken all that was sent: its own words are read meanwhile. */
void flush_peer(int peer);

#endif
