/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_client.h. No lock is held over the client's functions. */
#include "Stream/Core/stream_client.h"

#include <stdlib.h>

#include "Loop/Core/shown.h"

void stream_client_release(const void *object)
{
    struct stream_client *client = (struct stream_client *)(uintptr_t)object;

    if (client && atomic_fetch_sub_explicit(&client->references, 1, memory_order_acq_rel) == 1) {
        if (client->context.release) {
            client->context.release(client->context.info);
        }
        free(client);
    }
}

struct stream_client *stream_client_retain(const struct stream *s)
{
    invariant_held(item_lock(s));
    if (s->client) {
        atomic_fetch_add_explicit(&s->client->references, 1, memory_order_relaxed);
    }
    return s->client;
}

struct stream_client *stream_client_create(uint8_t events, union stream_callback callback, const CFStreamClientContext *context)
{
    struct stream_client *client = malloc(sizeof *client);

    if (client) {
        atomic_init(&client->references, 1);
        client->events = events;
        client->callback = callback;
        client->context = *context;
        if (context->retain) {
            client->context.info = context->retain(context->info);
        }
    }
    return client;
}

CFStringRef stream_client_describe(struct stream *s)
{
    static const struct shown_bit names[] = {
        {kCFStreamEventOpenCompleted, "OpenCompleted"},   {kCFStreamEventHasBytesAvailable, "HasBytesAvailable"},
        {kCFStreamEventCanAcceptBytes, "CanAcceptBytes"}, {kCFStreamEventErrorOccurred, "ErrorOccurred"},
        {kCFStreamEventEndEncountered, "EndEncountered"}, {0, NULL}};
    struct stream_client *client;
    CFStringRef description = NULL;
    CFStringRef text = NULL;
    struct shown events;
    struct shown callout;

    stream_lock(s);
    client = stream_client_retain(s);
    stream_unlock(s);
    if (client) {
        description = client->context.copyDescription ? client->context.copyDescription(client->context.info) : NULL;
        text =
            CFStringCreateWithFormat(NULL, NULL, CFSTR("%@%@, events = %s, callout = %s"), description ? CFSTR(", client = ") : CFSTR(""),
                                     description ? description : CFSTR(""), shown_bits(&events, names, client->events),
                                     shown_callout(&callout, (void (*)(void))client->callback.reader));
    }
    object_release_if_any(description);
    stream_client_release(client);
    return text;
}
