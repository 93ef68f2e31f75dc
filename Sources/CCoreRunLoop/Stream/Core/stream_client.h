/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a stream: which events the program wants, and its function for them. */
#ifndef CRL_STREAM_STREAM_CLIENT_H
#define CRL_STREAM_STREAM_CLIENT_H

#include "Stream/link_names.h"

#include "Stream/Core/stream.h"

/* The functions of one kind of stream; the other is unused. */
union stream_callback {
    CFReadStreamClientCallBack reader;
    CFWriteStreamClientCallBack writer;
};

/* The stream has one reference, and each callout that is under way another one. */
struct stream_client {
    _Atomic uint32_t references;
    uint8_t events; /* constant, as all that follows */
    union stream_callback callback;
    CFStreamClientContext context;
};

/* Returns NULL if there is no memory. */
struct stream_client *stream_client_create(uint8_t events, union stream_callback callback, const CFStreamClientContext *context);
/* Returns the stream's client with a reference, or NULL. */
REQUIRES(the_item_lock) struct stream_client *stream_client_retain(const struct stream *s);
void stream_client_release(const void *client); /* NULL is allowed */
/* The client for the description of the stream: what the program says of its info, the events, the callout. NULL: none, or no memory. */
EXCLUDES(the_item_lock) CFStringRef stream_client_describe(struct stream *s);

#endif
