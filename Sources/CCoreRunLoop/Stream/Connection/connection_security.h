/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program asks of TLS. Until the handshake the connection keeps the settings, and the attempt uses them. On an open connection TLS
 * begins where the streams stand.
 */
#ifndef CRL_STREAM_CONNECTION_SECURITY_H
#define CRL_STREAM_CONNECTION_SECURITY_H

#include "Stream/link_names.h"

#include "Stream/Connection/stream_connection.h"

/* The values of two properties. The calling thread has claimed the stream. Return false if the value is not followed. */
bool connection_set_level(struct stream *s, CFTypeRef level);
bool connection_set_settings(struct stream *s, CFTypeRef settings);

#endif
