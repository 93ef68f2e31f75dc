/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches for the end of a remote port's owner; see owner_watch.h. The port's lock guards the watch, and a lock of its own guards its way
 * back to the port, which it does not keep alive. The program is called without a lock.
 */
#include "Port/Object/owner_watch.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_descriptors.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Loop/Source/descriptor_source.h"
#include "Loop/Run/thread_registry.h"
#include "Loop/Watch/watch.h"
#include "Port/Core/callback_cleanup.h"
#include "Port/Core/port_use.h"
#include "Port/Message/client_channel.h"
#include "Port/Message/remote_send.h"
#include "Port/Wire/packet.h"

/* Between two probes of an owner that keeps no watch channel. */
static const int64_t probe_every_ns = 20000000;
int64_t owner_watch_offer_every_ns = 1000000000;

struct owner_watch {
    CFRunLoopSourceRef source; /* constant: with a reference; owns this structure */
    CFRunLoopRef loop; /* constant: of the thread that set the callback, with a reference */
    int descriptor; /* constant: the end of a watch channel, or an alarm */
    struct lock lock;
    CFMessagePortRef port GUARDED_BY(&lock); /* without a reference; NULL once the watch is destroyed */
    bool probes GUARDED_BY(the_port_lock); /* the descriptor is an alarm */
    int64_t offered_ns GUARDED_BY(the_port_lock); /* when a watch channel was last offered */
    CFMessagePortRef due GUARDED_BY(the_port_lock); /* with a reference: the callback is left to the loop. NULL: it is not */
};

/* ---- the descriptor ---- */

/* Makes an alarm that is due at that instant. Returns its descriptor or a negative errno. */
static int make_alarm(int64_t due_ns)
{
    int alarm = kernel_above_streams(kernel.alarm_create());

    if (alarm >= 0) {
        (void)kernel.alarm_set(alarm, due_ns);
    }
    return alarm;
}

/* Offers the owner a watch channel. If it does not take one now, makes an alarm. Returns the descriptor or a negative errno. */
REQUIRES(the_port_lock) static int make_descriptor(CFMessagePortRef port, int64_t now_ns, bool *ret_probes)
{
    int end = -1;
    int result = remote_port_offer_watch(port, &end);

    *ret_probes = result < 0;
    return result < 0 ? make_alarm(now_ns + probe_every_ns) : end;
}

enum renewed { renewed_alarm, renewed_file, renewed_nothing };

/*
 * The owner lives, though its watch channel has ended or an alarm is due. Sets the alarm, or puts a new channel or a new alarm in the place
 * of the descriptor's file. Does nothing if there are no means.
 */
REQUIRES(the_port_lock) static enum renewed renew(CFMessagePortRef port, struct owner_watch *watch)
{
    int64_t now_ns = kernel.monotonic_ns();
    bool is_offered = now_ns - watch->offered_ns >= owner_watch_offer_every_ns;
    bool probes = true;
    int fresh;

    if (!is_offered && watch->probes) {
        (void)kernel.alarm_set(watch->descriptor, now_ns + probe_every_ns);
        return renewed_alarm;
    }
    watch->offered_ns = is_offered ? now_ns : watch->offered_ns;
    fresh = is_offered ? make_descriptor(port, now_ns, &probes) : make_alarm(now_ns + probe_every_ns);
    if (fresh < 0) {
        return renewed_nothing;
    }
    watch->probes = probes;
    return packet_socket_replace(fresh, watch->descriptor) < 0 ? renewed_nothing : renewed_file;
}

/* ---- in a loop ---- */

/* Returns the port, with a reference, or NULL if the watch is destroyed or the port is being freed. */
static CFMessagePortRef copy_port(struct owner_watch *watch)
{
    CFMessagePortRef port;

    lock_take(&watch->lock);
    port = watch->port && object_try_retain(watch->port) ? watch->port : NULL;
    lock_drop(&watch->lock);
    return port;
}

/* True if the loop of the thread that set the callback runs in a mode with the watch, and so is the one to call. */
static bool is_for_other_loop(const struct owner_watch *watch)
{
    CFStringRef mode = thread_loop_is_current(watch->loop) ? NULL : CFRunLoopCopyCurrentMode(watch->loop);
    bool result = mode && CFRunLoopContainsSource(watch->loop, watch->source, mode);

    object_release_if_any(mode);
    return result;
}

/* Leaves what has happened to the other loop: this one would find it again in each pass. The other brings the source back. */
static void leave_to_other_loop(const struct owner_watch *watch, bool is_posted)
{
    CFRunLoopRemoveSource(thread_loop_if_any(), watch->source, kCFRunLoopCommonModes);
    if (is_posted) {
        descriptor_source_post(watch->source);
    }
}

/* Probes the owner of a valid port. If it has gone, ends the port, and so leaves the callback to this watch. */
static void look_after_owner(CFMessagePortRef port, struct owner_watch *watch)
{
    enum renewed renewed = renewed_alarm;

    if (!remote_port_is_alive(port)) {
        object_retain(port);
        message_port_end_gone(port);
        return;
    }
    port_lock(port);
    if (port->side.remote.watch == watch && kernel.descriptor_ready(watch->descriptor, kernel_readable) != 0) {
        renewed = renew(port, watch);
    }
    port_unlock(port);
    if (renewed == renewed_file) {
        descriptor_source_file_replaced(watch->source);
    } else if (renewed == renewed_nothing) {
        descriptor_source_set_interest(watch->source, 0); /* rests until a call finds the owner gone */
    }
    CFRunLoopAddSource(thread_registry_main(), watch->source, kCFRunLoopCommonModes);
}

/*
 * Takes over the callback that is due, unless a request of this port waits in this loop: the program may hold a lock over it, and has not
 * been told yet. The end of that request posts the source again. Returns NULL if nothing is to be called.
 */
static CFMessagePortInvalidationCallBack take_callback(CFMessagePortRef port, const struct owner_watch *watch, CFRunLoopRef loop)
{
    struct remote_port *remote = &port->side.remote;
    CFMessagePortInvalidationCallBack callout = NULL;
    bool is_in_request;
    bool is_due;

    port_lock(port);
    is_due = remote->watch == watch && watch->due;
    is_in_request = client_channels_are_used_in(remote, loop);
    list_for_each(link, &remote->local_messages) {
        is_in_request |= container_of(link, struct local_message, sender_link)->loop == loop;
    }
    if (is_due && !is_in_request) {
        remote->watch = NULL;
        callout = port->invalidated;
    }
    port_unlock(port);
    if (is_due && is_in_request) {
        descriptor_source_set_interest(watch->source, 0); /* the descriptor stays ready, and would end each wait */
    }
    return callout;
}

static void release_port(const void *port)
{
    object_release(port);
}

/* Takes over a reference to the port. */
static void tell(CFMessagePortRef port, struct owner_watch *watch)
{
    CFRunLoopRef loop = thread_registry_current();
    CFMessagePortInvalidationCallBack callout = take_callback(port, watch, loop);
    uint32_t begun;

    if (callout) {
        owner_watch_destroy(watch);
        begun = callback_cleanup_begin(loop, release_port, port);
        callout(port, NULL);
        callback_cleanup_end(loop, begun);
    }
    object_release(port);
}

static void perform(void *info, CFRunLoopSourceRef source, uint32_t ready)
{
    struct owner_watch *watch = info;
    CFMessagePortRef port = copy_port(watch);
    bool is_posted = (ready & watch_posted) != 0;

    if (is_posted) {
        descriptor_source_take_post(source);
    }
    if (port && is_for_other_loop(watch)) {
        leave_to_other_loop(watch, is_posted);
        object_release(port);
    } else if (port) {
        if (port_is_valid(port)) {
            look_after_owner(port, watch);
        }
        tell(port, watch);
    }
}

/* The loop of the thread that set the callback ends, or that thread has left it for good: the main loop watches alone. */
static void cancel(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    const struct owner_watch *watch = info;

    (void)mode;
    if (loop == watch->loop && loop != thread_registry_main()) {
        CFRunLoopAddSource(thread_registry_main(), watch->source, kCFRunLoopCommonModes); /* refused if the watch is destroyed */
    }
}

static CFStringRef describe(const void *info)
{
    (void)info;
    return CFRetain(CFSTR("<watch for the end of a message port>"));
}

/* ---- life ---- */

/* Not checked: no other thread knows the watch any more. */
NOT_CHECKED static void release_watch(const void *info)
{
    struct owner_watch *watch = (struct owner_watch *)(uintptr_t)info;

    object_release_if_any(watch->due);
    object_release(watch->loop);
    free(watch);
}

static CFRunLoopSourceRef make_source(struct owner_watch *watch)
{
    const struct descriptor_source_context context = {
        .info = watch, .release = release_watch, .perform = perform, .copy_description = describe, .cancel = cancel};
    CFRunLoopSourceRef source = descriptor_source_create(NULL, 0, watch->descriptor, &context);

    if (source) {
        descriptor_source_let_runs_finish(source);
        descriptor_source_set_interest(source, kernel_readable);
    }
    return source;
}

/* Returns false if there is no memory to join a mode. */
static bool join_loop(const struct owner_watch *watch, CFRunLoopRef loop)
{
    CFRunLoopAddSource(loop, watch->source, kCFRunLoopCommonModes);
    return CFRunLoopContainsSource(loop, watch->source, kCFRunLoopDefaultMode);
}

/* Not checked: no other thread knows the watch yet. */
NOT_CHECKED struct owner_watch *owner_watch_create(CFMessagePortRef port)
{
    struct owner_watch *watch = calloc(1, sizeof *watch);
    bool is_joined;

    if (!watch) {
        return NULL;
    }
    watch->port = port;
    watch->loop = thread_registry_current();
    watch->offered_ns = kernel.monotonic_ns();
    port_lock(port);
    watch->descriptor = port_is_valid(port) ? make_descriptor(port, watch->offered_ns, &watch->probes) : -1;
    port_unlock(port);
    watch->source = watch->descriptor >= 0 ? make_source(watch) : NULL;
    if (!watch->source) {
        if (watch->descriptor >= 0) {
            (void)kernel.close(watch->descriptor);
        }
        free(watch);
        return NULL;
    }
    object_retain(watch->loop);
    is_joined = join_loop(watch, watch->loop);
    is_joined |= join_loop(watch, thread_registry_main());
    if (!is_joined) {
        owner_watch_destroy(watch); /* no memory */
        return NULL;
    }
    return watch;
}

/* Ends the watch, which its source owns. */
static void end_watch(struct owner_watch *watch, void (*close_descriptor)(int descriptor))
{
    CFRunLoopSourceRef source;
    int descriptor;

    lock_take(&watch->lock);
    watch->port = NULL;
    lock_drop(&watch->lock);
    source = watch->source;
    descriptor = watch->descriptor;
    CFRunLoopSourceInvalidate(source);
    close_descriptor(descriptor);
    object_release(source);
}

void owner_watch_destroy(struct owner_watch *watch)
{
    if (watch) {
        end_watch(watch, packet_socket_close);
    }
}

struct owner_watch *owner_watch_exchange(struct remote_port *remote, struct owner_watch *watch)
{
    struct owner_watch *old = remote->watch;

    remote->watch = watch;
    return old;
}

struct owner_watch *owner_watch_of_closed(struct remote_port *remote)
{
    struct owner_watch *watch = remote->watch;

    if (!watch || watch->due) {
        return NULL;
    }
    remote->watch = NULL;
    return watch;
}

bool owner_watch_leave_callback(CFMessagePortRef port)
{
    struct owner_watch *watch = port->side.remote.watch;

    if (watch) {
        object_retain(port);
        watch->due = port;
    }
    return watch != NULL;
}

void owner_watch_remind(CFMessagePortRef port)
{
    CFRunLoopSourceRef source = NULL;

    port_lock(port);
    if (port->side.remote.watch && port->side.remote.watch->due) {
        source = port->side.remote.watch->source;
        object_retain(source);
    }
    port_unlock(port);
    if (source) {
        descriptor_source_set_interest(source, kernel_readable); /* take_callback may have set it to 0 */
        descriptor_source_post(source);
        object_release(source);
    }
}

/* Closes the child's copy alone: the parent goes on with the channel. */
static void close_inherited(int descriptor)
{
    (void)kernel.close(descriptor);
}

/* Not checked: the child of a fork has one thread. */
NOT_CHECKED void owner_watch_abandon(struct remote_port *remote)
{
    struct owner_watch *watch = remote->watch;

    if (watch) {
        remote->watch = NULL;
        lock_reset(&watch->lock);
        end_watch(watch, close_inherited);
    }
}
