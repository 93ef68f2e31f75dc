/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_carriers.h. */
#include "Stream/Core/stream_carriers.h"

#include "Loop/Source/descriptor_source.h"
#include "Stream/Core/stream_queue.h"

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

static void tell_source(struct stream *s, CFRunLoopSourceRef source, int descriptor, bool signals)
{
    if (descriptor >= 0) {
        descriptor_source_publish_interest(source, &s->interest);
        if (signals) {
            descriptor_source_post(source);
        }
    } else if (signals) {
        CFRunLoopSourceSignal(source);
        scheduled_modes_wake(s, &s->modes);
    }
}

void stream_carriers_tell(struct stream *s, struct stream_carriers carriers, bool signals)
{
    invariant_not_held(item_lock(s)); /* telling takes the locks of loops and of the queue's place */
    if (carriers.source) {
        tell_source(s, carriers.source, carriers.descriptor, signals);
        object_release(carriers.source);
    }
    if (carriers.queue) {
        stream_queue_watch(carriers.queue, s, carriers.descriptor);
        if (signals) {
            stream_queue_post(carriers.queue);
        }
        stream_queue_release(carriers.queue);
    }
}
