/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_carriers.h. */
#include "Stream/Core/stream_carriers.h"

#include "Loop/Source/descriptor_source.h"
#include "Stream/Core/stream_queue.h"

bool stream_carriers_watch(const struct stream *s)
{
    return s->carriers.kind == carrier_descriptor_source ||
           (s->carriers.kind == carrier_queue && atomic_load_explicit(&s->descriptor, memory_order_relaxed) >= 0);
}

struct stream_carriers stream_carriers_retain(const struct stream *s)
{
    struct stream_carriers carriers = s->carriers;

    if (carriers.source) {
        object_retain(carriers.source);
    }
    if (carriers.queue) {
        stream_queue_retain(carriers.queue);
    }
    return carriers;
}

void stream_carriers_tell(struct stream *s, struct stream_carriers carriers, bool signals)
{
    invariant_not_held(item_lock(s)); /* telling takes the locks of loops and of the queue's place */
    switch (carriers.kind) {
    case carrier_none:
        break;
    case carrier_signalled_source:
        if (signals) {
            CFRunLoopSourceSignal(carriers.source);
            scheduled_modes_wake(s, &s->modes);
        }
        object_release(carriers.source);
        break;
    case carrier_descriptor_source:
        descriptor_source_publish_interest(carriers.source, &s->interest);
        if (signals) {
            descriptor_source_post(carriers.source);
        }
        object_release(carriers.source);
        break;
    case carrier_queue:
        stream_queue_watch(carriers.queue, s);
        if (signals) {
            stream_queue_post(carriers.queue);
        }
        stream_queue_release(carriers.queue);
        break;
    }
}
