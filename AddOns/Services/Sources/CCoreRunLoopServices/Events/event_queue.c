/* SPDX-License-Identifier: Apache-2.0 */
/* See event_queue.h. */
#include "Events/event_queue.h"

#include "Events/event_stream.h"
#include "Support/libdispatch.h"

static void serve_on_queue(void *context)
{
    event_stream_serve(context);
}

static void end_on_queue(void *context)
{
    event_stream_release(context);
}

void *event_queue_attach(FSEventStreamRef stream, void *queue)
{
    void *source = libdispatch_is_there() ? dispatch_source_create(_dispatch_source_type_read, (uintptr_t)stream->set, 0, queue) : NULL;

    if (source) {
        event_stream_retain(stream);
        dispatch_set_context(source, stream);
        dispatch_source_set_event_handler_f(source, serve_on_queue);
        dispatch_source_set_cancel_handler_f(source, end_on_queue);
        dispatch_resume(source);
    }
    return source;
}

void event_queue_detach(void *queue_source)
{
    dispatch_source_cancel(queue_source);
    dispatch_release(queue_source);
}
