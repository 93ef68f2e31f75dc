/* SPDX-License-Identifier: Apache-2.0 */
/* See event_source.h. The state belongs to the source, which frees it. */
#include "event_source.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static __CFPort source_descriptor(void *info)
{
    return ((const struct event_source *)info)->descriptor;
}

static void perform_source(void *info)
{
    struct event_source *state = info;
    CFOptionFlags flags;

    if (getpid() != state->process) {
        CFRunLoopSourceInvalidate(state->source);
        return;
    }
    service_lock_take(&state->lock);
    flags = state->kind->take(state) & state->wanted;
    service_lock_drop(&state->lock);
    if (flags != 0) {
        state->callout(state->source, flags, state->context.info);
    }
}

static void free_state(const void *info)
{
    struct event_source *state = (struct event_source *)(uintptr_t)info;

    state->kind->close(state);
    if (state->context.release && state->source) {
        state->context.release(state->context.info);
    }
    service_lock_destroy(&state->lock);
    free(state);
}

static CFStringRef copy_description(const void *info)
{
    const struct event_source *state = info;

    return state->context.copyDescription ? state->context.copyDescription(state->context.info)
                                          : CFStringCreateWithFormat(NULL, NULL, CFSTR("<%s %p>"), state->kind->name, (const void *)state);
}

/* Takes the state over. */
static CFRunLoopSourceRef make_source(CFAllocatorRef allocator, struct event_source *state, const void *what, CFIndex order)
{
    CFRunLoopSourceContext1 context = {.version = 1,
                                       .info = state,
                                       .release = free_state,
                                       .copyDescription = copy_description,
                                       .getPort = source_descriptor,
                                       .perform = perform_source};
    int result = state->kind->open(state, what);
    CFRunLoopSourceRef source = result < 0 ? NULL : CFRunLoopSourceCreate(allocator, order, (CFRunLoopSourceContext *)(void *)&context);

    if (!source) {
        free_state(state);
        errno = result < 0 ? -result : ENOMEM;
        return NULL;
    }
    if (state->context.retain) {
        state->context.info = (void *)(uintptr_t)state->context.retain(state->context.info);
    }
    state->source = source;
    return source;
}

CFRunLoopSourceRef event_source_create(const struct event_source_kind *kind, const void *what, CFAllocatorRef allocator,
                                       CFOptionFlags wanted, CFIndex order, event_source_callback *callout, const CRLSourceContext *context)
{
    struct event_source *state;

    if (!callout || (wanted & kind->all) == 0 || (context && context->version != 0)) {
        errno = EINVAL;
        return NULL;
    }
    state = calloc(1, kind->size);
    if (!state) {
        return NULL;
    }
    service_lock_init(&state->lock);
    state->kind = kind;
    state->callout = callout;
    state->context = context ? *context : (CRLSourceContext){0, NULL, NULL, NULL, NULL};
    state->wanted = wanted & kind->all;
    state->process = getpid();
    state->descriptor = -1;
    return make_source(allocator, state, what, order);
}
