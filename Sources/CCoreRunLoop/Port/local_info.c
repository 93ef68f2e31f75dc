/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a local port's callouts get: the context's info, or the object of whoever is called in its place. Any thread; P guards both, and the
 * program is called without it.
 */
#include <stdlib.h>

#include "Port/local_port.h"

void local_port_retain_info(CFMessagePortRef port, const CFMessagePortContext *context)
{
    struct info_hold *hold = &port->side.local.info.hold;
    void *info = (void *)(uintptr_t)context->retain(context->info);

    port_lock(port);
    hold->info = info;
    port_unlock(port);
    if (info_hold_end_use(hold, &port->lock, &info) && context->release) {
        context->release(info);
    }
}

bool local_port_leave(const struct local_port *local, struct callee *callee, void **ret_object)
{
    bool is_last = --callee->calls == 0 && callee != local->callee;

    if (is_last) {
        *ret_object = callee->object;
        free(callee);
    }
    return is_last;
}

/* Puts `fresh` in the callee's place; NULL is nobody. As local_port_leave. P */
static bool replace_callee(struct local_port *local, struct callee *fresh, void **ret_object)
{
    struct callee *old = local->callee;

    local->callee = fresh;
    if (!old) {
        return false;
    }
    old->calls++; /* as if a callout of it ended now */
    return local_port_leave(local, old, ret_object);
}

bool local_port_call(CFMessagePortRef port, void *object)
{
    struct local_port *local = &port->side.local;
    struct callee *callee = malloc(sizeof *callee);
    void *released = object;
    bool is_taken;
    bool releases = true;

    if (!callee) {
        return false;
    }
    *callee = (struct callee){.object = object};
    port_lock(port);
    is_taken = port_is_valid(port);
    if (is_taken) {
        releases = replace_callee(local, callee, &released);
    }
    port_unlock(port);
    if (!is_taken) {
        free(callee);
    }
    if (releases && local->context.release) {
        local->context.release(released);
    }
    return true;
}

CFStringRef local_port_describe_info(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;

    return port_is_valid(port) ? info_hold_describe(&local->info.hold, &port->lock, local->context.copyDescription, local->context.release)
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
    releases = called_info_give_up(&local->info, &info);
    releases_object = replace_callee(local, NULL, &object);
    port_unlock(port);
    if (releases && local->context.release) {
        local->context.release(info);
    }
    if (releases_object && local->context.release) {
        local->context.release(object);
    }
}
