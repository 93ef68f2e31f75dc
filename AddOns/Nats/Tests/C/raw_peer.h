/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the server that is no bridge: it speaks the server's protocol over a plain socket. */
#ifndef CRL_TESTS_RAW_PEER_H
#define CRL_TESTS_RAW_PEER_H

#include <stddef.h>

#include "Wire/bridge_frame.h"

/* Returns a socket that the caller closes. */
int peer_connect(void);
void peer_send(int peer, const void *bytes, size_t length);
/* Writes the bytes that publish a message, whose `reply` may be "". Returns how many there are. */
size_t peer_format_message(char *text, const char *subject, const char *reply, const void *payload, size_t length);
void peer_publish(int peer, const char *subject, const char *reply, const void *payload, size_t length);
void peer_publish_frame(int peer, const char *subject, struct bridge_frame frame, const char *data);
/* Waits until the server has taken all that was sent, and drops what it sends meanwhile. */
void peer_flush(int peer);

#endif
