/* SPDX-License-Identifier: Apache-2.0 */
/* The making of streams, their description, and their end. See stream.h. */
#include "Loop/Core/shown.h"
#include "Loop/Run/thread_registry.h"
#include "Stream/Core/stream.h"
#include "Stream/Core/stream_carriers.h"
#include "Stream/Core/stream_client.h"
#include "Stream/Core/stream_delivery.h"
#include "Stream/Core/stream_schedule.h"

/* Nothing else refers to the stream, so its fields are read without the lock (NOT_CHECKED). A claim needs a reference. */
NOT_CHECKED static void finalize(CFTypeRef object)
{
    struct stream *s = (struct stream *)(uintptr_t)object;

    invariant(!s->is_claimed && s->deliveries == 0); /* each has a reference */
    if (s->kind->forget) {
        s->kind->forget(s);
    }
    stream_schedule_end(s);
    if (s->is_opened && s->kind->close) {
        s->kind->close(s);
    }
    stream_client_release(s->client);
    if (s->kind->finalize) {
        s->kind->finalize(s);
    }
}

static const char *name_of_status(CFStreamStatus status)
{
    static const char *const names[] = {"not open", "opening", "open", "reading", "writing", "at end", "closed", "error"};

    return names[status];
}

static CFStringRef copy_description(CFTypeRef object)
{
    struct stream *s = (struct stream *)(uintptr_t)object;
    CFStringRef client = stream_client_describe(s);
    CFStreamStatus status = stream_status(s);
    CFStreamError error = stream_error(s);
    struct shown shown;
    uint32_t modes;
    int descriptor;
    CFStringRef text;

    stream_lock(s);
    descriptor = atomic_load_explicit(&s->descriptor, memory_order_relaxed);
    modes = s->modes.count;
    stream_unlock(s);
    text = CFStringCreateWithFormat(NULL, NULL, CFSTR("<%s %p>{status = %s, error = %d in domain %ld%@, scheduled in modes = %u%s%s}"),
                                    s->object.isa->name, object, name_of_status(status), (int)error.error, (long)error.domain,
                                    client ? client : CFSTR(""), (unsigned)modes, descriptor >= 0 ? ", descriptor = " : "",
                                    descriptor >= 0 ? shown_descriptor(&shown, descriptor) : "");
    object_release_if_any(client);
    return text;
}

const struct object_class stream_read_class = {
    .type_id = object_type_read_stream,
    .name = "CFReadStream",
    .finalize = finalize,
    .copy_description = copy_description,
};

const struct object_class stream_write_class = {
    .type_id = object_type_write_stream,
    .name = "CFWriteStream",
    .finalize = finalize,
    .copy_description = copy_description,
};

/* No other thread knows the stream yet (NOT_CHECKED). */
NOT_CHECKED struct stream *stream_create(CFAllocatorRef allocator, const struct stream_kind *kind, bool is_reader)
{
    struct stream *s;

    invariant(kind->size >= sizeof *s && (is_reader ? kind->read != NULL : kind->write != NULL));
    thread_registry_prepare(); /* its mark frees the locks of items in a child that ran no handlers of fork */
    s = object_create(allocator, is_reader ? &stream_read_class : &stream_write_class, kind->size);
    if (s) {
        s->kind = kind;
        s->deliver = stream_deliver;
        s->is_reader = is_reader;
        atomic_init(&s->descriptor, -1);
        s->carriers = stream_carriers_none;
        s->transfers = transfer_once;
    }
    return s;
}
