/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The argument of a local port's callouts: the context's info, or the object of a receiver that is called in its place. Any thread; the
 * port's lock guards both, and the program is called without it.
 */
#include "Port/Core/local_info.h"

#include <stdlib.h>

void local_port_retain_info(CFMessagePortRef port, const CFMessagePortContext *context)
{
    struct context_info *hold = &port->side.local.info.hold;
    void *info = (void *)(uintptr_t)context->retain(context->info);

    port_lock(port);
    hold->info = info;
    port_unlock(port);
    if (context_info_end_use(hold, &port->lock, &info) && context->release) {
        context->release(info);
    }
}

bool receiver_call_ended(const struct local_port *local, struct receiver *receiver, void **ret_object)
{
    bool is_last = --receiver->calls == 0 && receiver != local->receiver;

    invariant(receiver->calls != UINT32_MAX); /* no callout ended that had not begun */
    if (is_last) {
        *ret_object = receiver->object;
        free(receiver);
    }
    return is_last;
}

/* Replaces the receiver by `fresh`, or by none if that is NULL. Returns the same as receiver_call_ended, for the old receiver. */
REQUIRES(the_port_lock) static bool replace_receiver(struct local_port *local, struct receiver *fresh, void **ret_object)
{
    struct receiver *old = local->receiver;

    local->receiver = fresh;
    if (!old) {
        return false;
    }
    old->calls++; /* count one more callout, which ends in the next call: the object goes at once if none is under way */
    return receiver_call_ended(local, old, ret_object);
}

bool local_port_set_receiver(CFMessagePortRef port, void *object)
{
    struct local_port *local = &port->side.local;
    struct receiver *receiver = malloc(sizeof *receiver);
    void *released = object;
    bool is_taken;
    bool releases = true;

    if (!receiver) {
        return false;
    }
    *receiver = (struct receiver){.object = object};
    port_lock(port);
    is_taken = port_is_valid(port);
    if (is_taken) {
        releases = replace_receiver(local, receiver, &released);
    }
    port_unlock(port);
    if (!is_taken) {
        free(receiver);
    }
    if (releases && local->context.release) {
        local->context.release(released);
    }
    return true;
}

CFStringRef local_port_describe_info(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;

    return port_is_valid(port)
               ? context_info_describe(&local->info.hold, &port->lock, local->context.copyDescription, local->context.release)
               : NULL;
}

void local_port_release_info(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;
    void *info = NULL;
    void *object = NULL;
    bool releases;
    bool releases_object;

    port_lock(port);
    releases = callout_info_retire(&local->info, &info);
    releases_object = replace_receiver(local, NULL, &object);
    port_unlock(port);
    if (releases && local->context.release) {
        local->context.release(info);
    }
    if (releases_object && local->context.release) {
        local->context.release(object);
    }
}
