/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_dispatch.h"

#include <poll.h>
#include <stdint.h>
#include <string.h>

#include "Support/libdispatch.h"
#include "harness.h"

#if defined(HAS_FAKE_DISPATCH)

enum { calls_most = 8 };

extern void *dispatch_get_global_queue(intptr_t priority, uintptr_t flags);
extern void dispatch_async_f(void *queue, void *context, void (*work)(void *context));

static struct fake_call {
    void *context;
    void (*work)(void *context);
} calls[calls_most];
static size_t call_count;

/* ---- sources ---- */

const char _dispatch_source_type_read[1];
struct fake_source fake_sources[fake_sources_most];
size_t fake_source_count;
bool fake_dispatch_refuses;

void *dispatch_source_create(const void *type, uintptr_t handle, uintptr_t mask, void *queue)
{
    EXPECT(type == _dispatch_source_type_read && mask == 0);
    REQUIRE(fake_source_count < fake_sources_most);
    if (fake_dispatch_refuses) {
        return NULL;
    }
    fake_sources[fake_source_count] = (struct fake_source){.descriptor = (int)handle, .queue = queue};
    return &fake_sources[fake_source_count++];
}

void dispatch_set_context(void *object, void *context)
{
    ((struct fake_source *)object)->context = context;
}

void dispatch_source_set_event_handler_f(void *source, void (*handler)(void *context))
{
    ((struct fake_source *)source)->handle = handler;
}

void dispatch_source_set_cancel_handler_f(void *source, void (*handler)(void *context))
{
    ((struct fake_source *)source)->end = handler;
}

void dispatch_resume(void *object)
{
    struct fake_source *source = object;

    EXPECT(source->context && source->handle && source->end && !source->is_resumed);
    source->is_resumed = true;
}

void dispatch_source_cancel(void *source)
{
    ((struct fake_source *)source)->is_cancelled = true;
}

void dispatch_retain(void *object)
{
    (void)object;
}

void dispatch_release(void *object)
{
    struct fake_source *source = object;

    EXPECT(source->is_cancelled && !source->is_released);
    source->is_released = true;
}

/* ---- calls ---- */

void *dispatch_get_global_queue(intptr_t priority, uintptr_t flags)
{
    static int global;

    EXPECT(priority == 0 && flags == 0);
    return &global;
}

void dispatch_async_f(void *queue, void *context, void (*work)(void *context))
{
    REQUIRE(call_count < calls_most);
    EXPECT(queue && work);
    calls[call_count++] = (struct fake_call){context, work};
}

/* What they call meanwhile is for the next time. */
static void make_calls(void)
{
    struct fake_call made[calls_most];
    size_t count = call_count;

    memcpy(made, calls, sizeof made);
    call_count = 0;
    for (size_t i = 0; i < count; i++) {
        made[i].work(made[i].context);
    }
}

void fake_dispatch_run(void)
{
    for (size_t i = 0; i < fake_source_count; i++) {
        struct fake_source *source = &fake_sources[i];
        struct pollfd watched = {.fd = source->descriptor, .events = POLLIN};

        if (source->is_cancelled && source->end) {
            source->end(source->context);
            source->end = NULL;
        } else if (!source->is_cancelled && source->is_resumed && poll(&watched, 1, 0) > 0) {
            source->handle(source->context);
        }
    }
    make_calls();
}

#endif
