/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of a socket's streams: the descriptor, the peer, who closes the socket, and TLS. */
#ifndef CRL_STREAM_CONNECTION_PROPERTIES_H
#define CRL_STREAM_CONNECTION_PROPERTIES_H

#include "Stream/link_names.h"

#include "Stream/Connection/stream_connection.h"

/* Entries of the kind's table; struct stream_kind says what each does. */
CFTypeRef connection_copy_property(struct stream *s, CFStringRef name);
bool connection_set_property(struct stream *s, CFStringRef name, CFTypeRef value);

#endif
