/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket object below its public calls: users of the descriptor, the interest, the invalidation. Fields and guards are in socket.h.
 */
#include "Socket/socket.h"

#include "Loop/Source/descriptor_source.h"
#include "Socket/socket_registry.h"
#include "Support/locked_read.h"

#if defined(CRL_TESTING)
void socket_check_invariants(CFSocketRef s)
{
    invariant_held(item_lock(s));
    invariant((s->native >= 0) == s->is_valid);
    invariant((s->events & ~(uint32_t)socket_events_all) == 0);
    invariant((s->disabled & ~(uint32_t)socket_events_all) == 0);
    invariant((s->spent & ~(uint32_t)socket_events_all) == 0);
    invariant((s->renewed & ~(uint32_t)socket_events_all) == 0);
    invariant(s->renewed == 0 || s->renewed_by != 0);
    invariant(!s->retry || s->backs_off); /* a running timer means that the socket does not read */
    invariant(!s->closes_late || (!s->is_valid && s->users > 0)); /* somebody is left to close the descriptor */
}
#endif

bool socket_is_valid(CFSocketRef s)
{
    return locked_read_bool(item_lock(s), &s->is_valid);
}

/* ---- users of the descriptor ---- */

int socket_begin_use(CFSocketRef s)
{
    int native;

    socket_lock(s);
    socket_check_invariants(s);
    native = s->native;
    s->users += native >= 0;
    invariant(native < 0 || s->users > 0); /* the count has not run over */
    socket_unlock(s);
    return native;
}

void socket_end_use(CFSocketRef s)
{
    int native = -1;

    socket_lock(s);
    socket_check_invariants(s);
    invariant(s->users > 0);
    s->users--;
    if (s->users == 0 && s->closes_late) {
        s->closes_late = false;
        native = s->native_to_close;
        invariant(native >= 0);
    }
    socket_unlock(s);
    if (native >= 0) {
        (void)kernel.close(native);
    }
}

CFDataRef socket_copy_address(CFAllocatorRef allocator, const struct kernel_address *address)
{
    return CFDataCreate(allocator, address->bytes, (CFIndex)address->length);
}

/* ---- interest ---- */

void socket_update_interest(CFSocketRef s)
{
    uint32_t wanted = socket_wanted_events(s);
    uint32_t interest = 0;

    socket_check_invariants(s);
    if (s->is_valid) {
        interest |= (wanted & socket_event_read) && !s->backs_off ? kernel_readable : 0u;
        interest |= wanted & (socket_event_connect | socket_event_write) ? kernel_writable : 0u;
    }
    if (s->is_idle) {
        /* The hang-up of an idle socket lasts. Asked for as changes, it does not wake the loop again and again. */
        bool is_unreported = s->is_unix && (interest & kernel_writable);

        interest = interest << descriptor_changes_shift | (is_unreported ? (uint32_t)descriptor_unreported : 0u);
    }
    invariant(s->is_valid || interest == 0);
    invariant((interest & ~(uint32_t)(descriptor_wanted | descriptor_changes | descriptor_unreported)) == 0);
    invariant(!(interest & descriptor_wanted) || !(interest & descriptor_changes)); /* as they are, or as changes, never both */
    /* Release: a thread that reads this interest and tells it to the source also sees the fields it comes from. */
    atomic_store_explicit(&s->interest, interest, memory_order_release);
}

void socket_publish_interest_to(CFSocketRef s, CFRunLoopSourceRef source)
{
    invariant_not_held(item_lock(s)); /* telling wakes loops, which take locks of their own */
    descriptor_source_publish_interest(source, &s->interest);
}

void socket_publish_interest(CFSocketRef s)
{
    CFRunLoopSourceRef source;

    socket_lock(s);
    source = weak_source_retain(&s->source);
    socket_unlock(s);
    if (source) {
        socket_publish_interest_to(s, source);
        object_release(source);
    }
}

/* ---- the end ---- */

void socket_release_info(CFSocketRef s, void *info)
{
    invariant_not_held(item_lock(s)); /* the program's code */
    if (s->context.release) {
        s->context.release(info);
    }
}

/* The parts that an invalidation takes from the socket under the lock, and gives back once the lock is dropped. */
struct socket_leftovers {
    CFRunLoopSourceRef source; /* a reference, or NULL */
    CFRunLoopTimerRef retry; /* a reference, or NULL */
    void *info;
    int native;
    bool closes;
    bool becomes_blocking;
    bool releases; /* the info; else a callout under way does, when it ends */
};

/* Makes the socket invalid and takes its parts. False if it was invalid already: then there is nothing to give back. */
static bool make_invalid(CFSocketRef s, struct socket_leftovers *ret_leftovers)
{
    bool was_valid;

    socket_lock(s);
    socket_check_invariants(s);
    was_valid = s->is_valid;
    if (was_valid) {
        bool owns_descriptor = !s->lost_descriptor; /* else the number is another file's, which is not touched */

        s->is_valid = false;
        ret_leftovers->native = s->native;
        s->native = -1;
        socket_update_interest(s);
        ret_leftovers->source = weak_source_retain(&s->source);
        s->source.source = NULL;
        ret_leftovers->retry = s->retry;
        if (s->retry) {
            CFRetain(s->retry); /* its own end clears the field and drops the socket's reference */
        }
        ret_leftovers->closes = owns_descriptor && (s->flags & kCFSocketCloseOnInvalidate);
        ret_leftovers->becomes_blocking = owns_descriptor && s->made_non_blocking && !ret_leftovers->closes;
        ret_leftovers->releases = callout_info_retire(&s->info, &ret_leftovers->info);
    }
    socket_unlock(s);
    return was_valid;
}

/* Closes the descriptor, or leaves that to the last user. The source is out of the loops by now: no loop waits for the number any more. */
static void close_after_last_use(CFSocketRef s, int native)
{
    bool is_used;

    socket_lock(s);
    invariant(!s->is_valid && !s->closes_late);
    is_used = s->users > 0;
    s->closes_late = is_used;
    s->native_to_close = native;
    socket_unlock(s);
    if (!is_used) {
        (void)kernel.close(native);
    }
}

static void give_back_leftovers(CFSocketRef s, const struct socket_leftovers *leftovers)
{
    /* Before the descriptor is closed, so that a socket made for the same number by then is not taken for this one. */
    socket_registry_remove(leftovers->native, s);
    if (leftovers->source) {
        descriptor_source_invalidate(leftovers->source);
        object_release(leftovers->source);
    }
    if (leftovers->retry) {
        CFRunLoopTimerInvalidate(leftovers->retry);
        CFRelease(leftovers->retry);
    }
    if (leftovers->becomes_blocking) {
        (void)kernel.make_non_blocking(leftovers->native, false);
    }
    if (leftovers->closes) {
        close_after_last_use(s, leftovers->native);
    }
    if (leftovers->releases) {
        socket_release_info(s, leftovers->info);
    }
}

void socket_invalidate(CFSocketRef s)
{
    struct socket_leftovers leftovers = {0};

    object_retain(s); /* the source's reference may be the last one */
    if (make_invalid(s, &leftovers)) {
        invariant(leftovers.native >= 0);
        give_back_leftovers(s, &leftovers);
    }
    object_release(s);
}
