/* SPDX-License-Identifier: Apache-2.0 */
/* Streams by the functions of an add-on library, which tells their state itself and is not asked; see CRLAddOn.h. */
#include "CRLAddOn.h"

#include "Stream/Core/stream_events.h"

struct add_on_stream {
    struct stream stream;
    const CRLStreamFunctions *functions; /* constant, as is `info` */
    void *info;
    _Atomic CFIndex state; /* what `look` finds */
};

static struct add_on_stream *of(const void *stream)
{
    return (struct add_on_stream *)(uintptr_t)stream;
}

static int go_on_opening(struct stream *s, bool waits)
{
    return of(s)->functions->open(of(s)->info, waits);
}

static CFIndex read_bytes(struct stream *s, UInt8 *bytes, CFIndex size, bool *ret_at_end)
{
    CFIndex result = of(s)->functions->read(of(s)->info, bytes, size);

    *ret_at_end = result == 0;
    return result;
}

static CFIndex write_bytes(struct stream *s, const UInt8 *bytes, CFIndex size)
{
    return of(s)->functions->write(of(s)->info, bytes, size);
}

static int look(struct stream *s, uint32_t ready)
{
    (void)ready;
    return (int)atomic_load_explicit(&of(s)->state, memory_order_acquire);
}

static void forget(struct stream *s)
{
    of(s)->functions->forget(of(s)->info);
}

static void close_stream(struct stream *s)
{
    of(s)->functions->close(of(s)->info);
}

static void finalize(struct stream *s)
{
    of(s)->functions->finalize(of(s)->info);
}

static CFTypeRef copy_property(struct stream *s, CFStringRef name)
{
    return of(s)->functions->copyProperty(of(s)->info, name);
}

static bool set_property(struct stream *s, CFStringRef name, CFTypeRef value)
{
    return of(s)->functions->setProperty(of(s)->info, name, value);
}

static const struct stream_kind add_on_kind = {
    .size = sizeof(struct add_on_stream),
    .finish_open = go_on_opening,
    .read = read_bytes,
    .write = write_bytes,
    .look = look,
    .forget = forget,
    .close = close_stream,
    .finalize = finalize,
    .copy_property = copy_property,
    .set_property = set_property,
};

CFTypeRef CRLStreamCreate(CFAllocatorRef allocator, const CRLStreamFunctions *functions, void *info)
{
    struct stream *s = stream_create(allocator, &add_on_kind, functions->read != NULL);

    if (s) {
        of(s)->functions = functions;
        of(s)->info = info;
    }
    return s;
}

void CRLStreamSetState(CFTypeRef stream, CFIndex state)
{
    atomic_store_explicit(&of(stream)->state, state, memory_order_release);
    atomic_store_explicit(&of(stream)->stream.is_over, state < 0 || (state & kCFStreamEventEndEncountered), memory_order_relaxed);
    atomic_store_explicit(&of(stream)->stream.is_ready, state != 0, memory_order_release);
}

void CRLStreamTellState(CFTypeRef stream)
{
    stream_events_nudge(&of(stream)->stream); /* a stream that is opening goes on */
}
