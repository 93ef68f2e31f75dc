/* SPDX-License-Identifier: Apache-2.0 */
/* Where ends of work are told: see work.h. */
#include <stdlib.h>

#include "Support/invariant.h"
#include "Work/work.h"

enum { ends_in_a_pass = 256 };

static struct work_port *work_ports GUARDED_BY(the_service_lock);

/* ---- calls without the lock ---- */

void work_port_call_make(struct work_port_call call)
{
    if (call.signalled) {
        CFRunLoopSourceSignal(call.signalled);
        CFRunLoopWakeUp(call.woken);
        CFRelease(call.signalled);
        CFRelease(call.woken);
    }
    if (call.ended) {
        CFRunLoopSourceInvalidate(call.ended);
        CFRelease(call.ended);
    }
}

REQUIRES(the_service_lock) static void signal_port(struct work_port *port, struct work_port_call *call)
{
    if (!port->is_signalled) {
        port->is_signalled = true;
        call->signalled = (CFRunLoopSourceRef)(uintptr_t)CFRetain(port->source);
        call->woken = (CFRunLoopRef)(uintptr_t)CFRetain(port->loop);
    }
}

/* ---- telling ---- */

struct work_port_call work_port_tell(CRLWorkRef work, CRLWorkEnd end)
{
    struct work_port_call call = {NULL, NULL, NULL};

    invariant(work->port && work->state != work_ended);
    work->state = work_ended;
    work->end = end;
    work_list_append(&work->port->ended, work);
    signal_port(work->port, &call);
    return call;
}

static void unlink_port(struct work_port *port)
{
    struct work_port **place = &work_ports;

    while (*place != port) {
        place = &(*place)->next;
    }
    *place = port->next;
}

struct work_port_call work_port_leave(CRLWorkRef work)
{
    struct work_port *port = work->port;
    struct work_port_call call = {NULL, NULL, NULL};

    work->state = work_told;
    work->port = NULL;
    invariant(port->open > 0);
    if (--port->open == 0) {
        invariant(!port->ended.first);
        unlink_port(port);
        call.ended = port->source;
    }
    return call;
}

/*
 * The callback need not return. So the source is signalled for what is behind the work before it, which lets a run within the callback go
 * on as well; and the work is left to the pass, or to the end of the thread.
 */
static bool tell_first(struct work_port *port)
{
    struct work_port_call call = {NULL, NULL, NULL};
    struct work_port_call behind = {NULL, NULL, NULL};
    CRLWorkRef work;

    service_lock_take(&work_lock);
    work = port->ended.first;
    if (work) {
        work_list_remove(&port->ended, work);
        if (port->ended.first) {
            signal_port(port, &behind);
        }
        call = work_port_leave(work);
    }
    service_lock_drop(&work_lock);
    work_port_call_make(behind);
    work_port_call_make(call);
    if (!work) {
        return false;
    }
    (void)CFAutorelease(work);
    if (work->done) {
        work->done(work, work->end, work->context.info);
    }
    return !call.ended;
}

static void perform(void *info)
{
    struct work_port *port = info;

    (void)CFAutorelease(CFRetain(port->source)); /* a run within a callback may tell the last end, and end the source */
    service_lock_take(&work_lock);
    port->is_signalled = false;
    service_lock_drop(&work_lock);
    for (int i = 0; i < ends_in_a_pass && tell_first(port); i++) {
    }
}

/* ---- the loop's end ---- */

static void drop_list(struct work_list list)
{
    while (list.first) {
        CRLWorkRef work = list.first;

        work_list_remove(&list, work);
        CFRelease(work);
    }
}

/* What is in the list will not be told. */
REQUIRES(the_service_lock) static void leave_all(struct work_list list, struct work_port_call *call)
{
    for (CRLWorkRef work = list.first; work; work = work->next) {
        struct work_port_call left = work_port_leave(work);

        call->ended = left.ended ? left.ended : call->ended;
    }
}

/* The source has left a mode. That is the port's own doing, once it has no work, or the end of the loop. */
static void port_left(void *info, CFRunLoopRef loop, CFRunLoopMode mode)
{
    struct work_port *port = info;
    struct work_port_call call = {NULL, NULL, NULL};
    struct work_list waiting = {NULL, NULL};
    struct work_list ended = {NULL, NULL};

    (void)loop;
    (void)mode;
    service_lock_take(&work_lock);
    if (port->open > 0) {
        waiting = work_pool_remove_all(port);
        ended = port->ended;
        port->ended = (struct work_list){NULL, NULL};
        port->is_gone = true;
        leave_all(waiting, &call);
        leave_all(ended, &call);
    }
    service_lock_drop(&work_lock);
    drop_list(waiting);
    drop_list(ended);
    work_port_call_make(call);
}

/* ---- the port ---- */

static void free_port(const void *info)
{
    struct work_port *port = (struct work_port *)(uintptr_t)info;

    CFRelease(port->mode);
    CFRelease(port->loop);
    free(port);
}

static CFStringRef copy_description(const void *info)
{
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("<ends of background work %p>"), info);
}

/* In its mode. NULL: the loop has ended, or there is no memory. */
static struct work_port *make_port(CFRunLoopRef loop, CFRunLoopMode mode)
{
    CFRunLoopSourceContext context = {.release = free_port, .copyDescription = copy_description, .cancel = port_left, .perform = perform};
    struct work_port *port = calloc(1, sizeof *port);

    if (!port) {
        return NULL;
    }
    context.info = port;
    port->loop = (CFRunLoopRef)(uintptr_t)CFRetain(loop);
    port->mode = CFRetain(mode);
    port->source = CFRunLoopSourceCreate(NULL, 0, &context);
    if (!port->source) {
        free_port(port);
        return NULL;
    }
    CFRunLoopAddSource(loop, port->source, mode);
    if (!CFRunLoopContainsSource(loop, port->source, mode)) {
        CFRelease(port->source);
        return NULL;
    }
    return port;
}

struct work_port *work_port_enter(CFRunLoopRef loop, CFRunLoopMode mode)
{
    struct work_port *port = work_ports;

    while (port && (port->loop != loop || port->is_gone || !CFEqual(port->mode, mode))) {
        port = port->next;
    }
    if (!port) {
        port = make_port(loop, mode);
        if (!port) {
            return NULL;
        }
        port->next = work_ports;
        work_ports = port;
    }
    port->open++;
    return port;
}

void work_port_reset(void)
{
    struct work_port *ports;

    service_lock_take(&work_lock);
    ports = work_ports;
    work_ports = NULL;
    service_lock_drop(&work_lock);
    for (struct work_port *port = ports; port; port = port->next) {
        port->open = 0;
        CFRunLoopSourceInvalidate(port->source); /* it is not released: its work has the port still */
    }
}
