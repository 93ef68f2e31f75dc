/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers watches with the kernel, and copes with its refusals and with programs that close the loop's descriptors. See watch.h. The
 * loop's lock is held throughout.
 */
#include "Loop/Watch/watch_registration.h"

#include <errno.h>

#include "Loop/Core/main_queue.h"
#include "Support/fault.h"

/*
 * Returns true if the kernel's error is about the set, not about `descriptor`: the set's number is closed, or it stands for another file.
 * The trial removal tells the two apart: from a real set a refused descriptor cannot be removed, which is another error than EINVAL.
 */
static bool is_of_lost_set(const struct watch_set *watches, int descriptor, int error)
{
    return (error == -EBADF && !kernel.descriptor_is_open(watches->set)) ||
           (error == -EINVAL && kernel.set_remove(watches->set, descriptor) == -EINVAL);
}

REQUIRES(the_loop_lock) static void note_lost_set(struct watch_set *watches, int descriptor, int error)
{
    if (is_of_lost_set(watches, descriptor, error)) {
        watches->is_lost = true;
        watches->has_event = false;
    }
}

static void log_refusal(int error)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    static atomic_flag logged_gone = ATOMIC_FLAG_INIT;

    if (error == -EBADF) {
        fault_log_once(&logged_gone, "CFRunLoop: a descriptor was closed while a source stood on it; invalidate the source first");
    } else {
        fault_log_once(&logged, "CFRunLoop: the kernel cannot watch another descriptor now; it is polled until it can");
    }
}

static void watch_set_standing(struct watch_set *watches, struct watch *watch, enum watch_standing standing)
{
    watch->standing = standing;
    list_remove(&watch->ready_link);
    if (standing == watch_always_ready || standing == watch_gone) {
        list_append(&watches->always_ready, &watch->ready_link);
    } else if (standing == watch_refused) {
        list_append(&watches->refused, &watch->ready_link);
    }
}

void watch_take_out(const struct watch_set *watches, const struct watch *watch)
{
    invariant(watches->set >= 0);
    (void)kernel.set_remove(watches->set, watch->descriptor);
    if (watch->is_set) {
        (void)kernel.set_remove(watches->set, watch->ending);
    }
}

/*
 * Adds a wait set, edge-triggered, because things in it may stay ready. One edge can stand for two events: the former descriptor is hung up
 * just when something else becomes ready. So that descriptor is added on its own, level-triggered, for its hang-up alone.
 */
static int add_set(const struct watch_set *watches, const struct watch *watch)
{
    int result = kernel.set_add_edge(watches->set, watch->descriptor, watch_token_of(watch));

    if (result == 0) {
        result = kernel.set_add(watches->set, watch->ending, 0, watch_token_of(watch));
        if (result < 0) {
            (void)kernel.set_remove(watches->set, watch->descriptor);
        }
    }
    return result;
}

/* Returns the event mask to register: changes alone are watched edge-triggered. */
static uint32_t asked_of(const struct watch *watch)
{
    return watch_kinds_of(watch) | (watch_is_for_changes(watch) ? (uint32_t)kernel_edge : 0u);
}

static int watch_add(const struct watch_set *watches, const struct watch *watch)
{
    if (watch->is_set) {
        return add_set(watches, watch);
    }
    return kernel.set_add(watches->set, watch->descriptor, asked_of(watch), watch_token_of(watch));
}

static int watch_change(const struct watch_set *watches, const struct watch *watch)
{
    if (watch->is_set) {
        watch_take_out(watches, watch);
        return watch_add(watches, watch);
    }
    return kernel.set_change(watches->set, watch->descriptor, asked_of(watch), watch_token_of(watch));
}

static int watch_install(CFRunLoopRef loop, struct watch_set *watches, struct watch *watch)
{
    int result;

    if (watch->descriptor == watches->set || watch->descriptor == atomic_load_explicit(&loop->waker->event, memory_order_relaxed)) {
        return -EBADF; /* the program closed its descriptor, and the loop's own set or eventfd has got the number */
    }
    watch->generation = watches->next_generation++;
    result = watch_add(watches, watch);
    return result == -EEXIST ? watch_change(watches, watch) : result;
}

/* Returns true if the watch has to be registered again to get a report of a change that the kernel does not report by itself. */
static bool may_have_changed_unreported(const struct watch *watch)
{
    return (watch->wanted & descriptor_unreported) && watch_is_for_changes(watch) &&
           !(kernel.descriptor_ready(watch->descriptor, watch_kinds_of(watch)) & kernel_failed);
}

REQUIRES(the_loop_lock) static void tell_kernel_of_interest(CFRunLoopRef loop, struct watch_set *watches, struct watch *watch)
{
    int result = -ENOENT;

    invariant(watch->wanted != 0 && !list_is_empty(&watch->members));
    if (watch->standing == watch_always_ready && !watch->must_recheck) {
        watch_set_standing(watches, watch, watch_always_ready);
        return;
    }
    if (watch->standing == watch_installed) {
        if (watch->wanted == watch->installed && !watch->must_recheck && !may_have_changed_unreported(watch)) {
            return;
        }
        result = watch_change(watches, watch);
    }
    if (result == -ENOENT) {
        result = watch_install(loop, watches, watch);
    }
    watch->must_recheck = false;
    watch->installed = watch->wanted;
    if (result == 0) {
        watch_set_standing(watches, watch, watch_installed);
    } else if (result == -EPERM) {
        watch_set_standing(watches, watch, watch_always_ready);
    } else {
        note_lost_set(watches, watch->descriptor, result);
        if (!watches->is_lost) {
            log_refusal(result);
        }
        watch_set_standing(watches, watch, result == -EBADF ? watch_gone : watch_refused);
    }
}

REQUIRES(the_loop_lock) static void tell_kernel(CFRunLoopRef loop, struct watch_set *watches, struct watch *watch)
{
    if (watch->wanted) {
        tell_kernel_of_interest(loop, watches, watch);
        return;
    }
    /* The kernel reports hang-ups even for an empty mask, so a watch that nobody wants leaves the set. */
    if (watch->standing == watch_installed) {
        watch_take_out(watches, watch);
    }
    watch->installed = 0;
    list_remove(&watch->ready_link);
    if (watch->standing != watch_always_ready) {
        watch->standing = watch_absent;
    }
}

void watch_flush(CFRunLoopRef loop, struct watch_set *watches)
{
    struct link looked_at; /* watches that stay dirty, because changes have to be looked for before each wait */

    invariant_held(&loop->lock);
    invariant(watches->set >= 0);
    link_init(&looked_at);
    list_for_each_removable(link, &watches->refused) {
        struct watch *watch = container_of(link, struct watch, ready_link);

        if (!link_is_linked(&watch->dirty_link)) {
            list_append(&watches->dirty, &watch->dirty_link);
        }
    }
    list_for_each_removable(link, &watches->dirty) {
        struct watch *watch = container_of(link, struct watch, dirty_link);

        list_remove(link);
        tell_kernel(loop, watches, watch);
        if (watch->kept_id) {
            invariant(watch->standing != watch_installed); /* nobody wants it, so it has left the set */
            watch_destroy(watches, watch);
        } else if (watch->wanted & descriptor_unreported) {
            list_append(&looked_at, link);
        }
    }
    list_append_all(&watches->dirty, &looked_at);
}

/* ---- before a wait ---- */

/* Has every wanted descriptor polled, because there is no set to wait in. */
REQUIRES(the_loop_lock) static void refuse_all(struct watch_set *watches)
{
    if (!list_is_empty(&watches->dirty)) {
        watches->retry_ns = watch_retry_first_ns;
    }
    list_for_each_removable(link, &watches->dirty) {
        struct watch *watch = container_of(link, struct watch, dirty_link);

        list_remove(link);
        if (watch->wanted) {
            watch_set_standing(watches, watch, watch_refused);
        }
    }
}

REQUIRES(the_loop_lock) static bool has_watch(CFRunLoopRef loop, uint32_t descriptor)
{
    for (const struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->watches && watch_find(mode->watches, descriptor)) {
            return true;
        }
    }
    return false;
}

/*
 * Forgets the loop's eventfd if the program has closed it, too, as it has closed a set. The number is still the loop's if it stands for an
 * eventfd and the program has no source on it.
 */
REQUIRES(the_loop_lock) static void forget_lost_event(CFRunLoopRef loop)
{
    int event = atomic_load_explicit(&loop->waker->event, memory_order_relaxed);

    if (event < 0 || (kernel.descriptor_kind(event) == kernel_descriptor_counter && !has_watch(loop, (uint32_t)event))) {
        return;
    }
    atomic_store_explicit(&loop->waker->event, -1,
                          memory_order_relaxed); /* a thread that writes to it just now wakes nobody, but the loop is awake */
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->watches) {
            mode->watches->has_event = false;
        }
    }
}

/* Forgets the descriptor by which the loop notices that the system resumes, if the program has closed that one, too. */
REQUIRES(the_loop_lock) static void forget_lost_resume(CFRunLoopRef loop)
{
    if (loop->resume < 0 || kernel.alarm_is_own(loop->resume)) {
        return;
    }
    loop->resume = -1;
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->watches) {
            mode->watches->has_resume = false;
        }
    }
}

REQUIRES(the_loop_lock) static bool set_is_lost(CFRunLoopRef loop, const struct watch_set *watches)
{
    int event = atomic_load_explicit(&loop->waker->event, memory_order_relaxed);

    return watches->is_lost || (watches->has_event && !kernel.set_holds(watches->set, event));
}

void watch_forget_lost(CFRunLoopRef loop)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    fault_log_once(&logged, "CFRunLoop: the program has closed a descriptor of the run loop's; the loop goes on with new ones");
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->watches && set_is_lost(loop, mode->watches)) {
            mode->watches->is_lost = false;
            watch_rebuild(loop, mode, false);
        }
    }
    if (loop->host_waits) {
        loop->host_wait_hooks->descriptors_lost(loop);
    }
    forget_lost_event(loop);
    forget_lost_resume(loop);
}

/* Makes the set if there is none, and adds the loop's eventfd. Returns a negative errno if either fails. */
REQUIRES(the_loop_lock) static int open_set(CFRunLoopRef loop, struct watch_set *watches)
{
    int event = loop_event(loop);
    int result;

    if (event < 0) {
        return event;
    }
    if (watches->set < 0) {
        watches->set = kernel.set_create();
        watches->has_event = watches->has_resume = false;
        watches->set_serial++;
        if (watches->set < 0) {
            return watches->set;
        }
    }
    result = watches->has_event ? 0 : kernel.set_add_edge(watches->set, event, watch_token_event);
    watches->has_event = result == 0;
    if (!watches->has_event) {
        note_lost_set(watches, event, result);
        return result;
    }
    return 0;
}

void watch_look_for_losses(CFRunLoopRef loop)
{
    for (const struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->watches && set_is_lost(loop, mode->watches)) {
            watch_forget_lost(loop);
            return;
        }
    }
}

REQUIRES(the_loop_lock) static int set_prepare(CFRunLoopRef loop, struct watch_set *watches)
{
    int result = open_set(loop, watches);

    if (result == 0) {
        watch_flush(loop, watches);
    }
    return result;
}

bool watch_put_main_queue(const struct watch_set *watches, int descriptor)
{
    return kernel.set_add(watches->set, descriptor, kernel_readable, watch_token_main_queue) == 0;
}

int watch_prepare_anew(CFRunLoopRef loop, struct mode *mode)
{
    struct watch_set *watches = mode->watches;
    int result = watches->is_lost ? -EBADF : set_prepare(loop, watches);

    if (watches->is_lost) {
        watch_forget_lost(loop);
        result = set_prepare(loop, watches);
    }
    if (watches->lost_main_queue) {
        watches->lost_main_queue = false;
        watches->has_main_queue = result == 0 && watch_put_main_queue(watches, main_queue_descriptor());
        mode->lacks_main_queue = !watches->has_main_queue;
    }
    if (result < 0) {
        log_refusal(result);
        refuse_all(watches);
    }
    return result;
}
