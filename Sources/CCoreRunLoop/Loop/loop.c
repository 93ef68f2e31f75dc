/* SPDX-License-Identifier: Apache-2.0 */
/* A loop's beginning and its end. What it does in between is in pass.c. */
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/activation.h"
#include "Loop/block.h"
#include "Loop/held.h"
#include "Loop/hosting.h"
#include "Loop/observer.h"
#include "Loop/source_membership.h"
#include "Loop/source_queue.h"
#include "Loop/source_set.h"
#include "Loop/thread_loop.h"
#include "Loop/timer_firing.h"
#include "Loop/timer_membership.h"
#include "Loop/watch.h"
#include "Support/fault.h"

/* No thread runs it, no item is in it, and no slot is bound to it. */
static void finalize(CFTypeRef object)
{
    CFRunLoopRef loop = (CFRunLoopRef)(uintptr_t)object;

    if (!loop->is_dead) {
        fault_stop("CFRelease", "the run loop of a living thread was released more often than it was retained"); /* 2 */
    }
    thread_loop_unregister(loop);
    modes_free(loop);
    source_set_free(&loop->common_sources);
    if (loop->mailbox) {
        mailbox_recycle(loop->mailbox);
    }
}

static CFStringRef describe(CFTypeRef object)
{
    CFRunLoopRef loop = (CFRunLoopRef)(uintptr_t)object;
    CFStringRef current = CFRunLoopCopyCurrentMode(loop);
    CFArrayRef modes = CFRunLoopCopyAllModes(loop);
    CFStringRef text = CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFRunLoop %p>{waiting = %s, current mode = %@, modes = %@}"), object,
                                                mailbox_is_waiting(loop->mailbox) ? "Yes" : "No", current, modes);

    if (current) {
        CFRelease(current);
    }
    if (modes) {
        CFRelease(modes);
    }
    return text;
}

const struct object_class run_loop_class = {
    .type_id = object_type_run_loop,
    .name = "CFRunLoop",
    .finalize = finalize,
    .copy_description = describe,
};

void loop_note_slack(CFRunLoopRef loop)
{
    const int64_t usual_ns = 50000; /* Linux gives it to the first process, and each passes it on */
    int64_t slack_ns = kernel.timer_slack_ns();

    loop->slack_ns = slack_ns < usual_ns ? slack_ns : usual_ns;
    loop->is_niced = kernel.is_niced();
}

CFRunLoopRef loop_create(bool is_main)
{
    CFRunLoopRef loop = object_create(kCFAllocatorSystemDefault, &run_loop_class, sizeof *loop);

    if (!loop) {
        return NULL;
    }
    link_init(&loop->common_sources_in_order);
    link_init(&loop->common_timers);
    link_init(&loop->common_observers);
    link_init(&loop->registry_link);
    block_queue_init(&loop->common_blocks);
    block_queue_init(&loop->listed_blocks);
    loop->modes_end = &loop->modes;
    loop->common_modes_end = &loop->common_modes;
    loop->is_main = is_main;
    loop_note_slack(loop);
    loop->mailbox = mailbox_create();
    if (loop->mailbox) {
        loop->default_mode = mode_declare(loop, kCFRunLoopDefaultMode);
    }
    if (!loop->default_mode) {
        loop->is_dead = true;
        object_release(loop);
        return NULL;
    }
    mode_make_common(loop, loop->default_mode); /* 18 */
    return loop;
}

bool loop_refuse(CFRunLoopRef loop)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    if (loop->is_main) {
        fault_log_once(&logged, "the main thread has ended: what is added to its run loop is ignored");
    }
    return false;
}

int loop_event(CFRunLoopRef loop)
{
    int event = atomic_load_explicit(&loop->mailbox->event, memory_order_relaxed);

    if (event >= 0) {
        return event;
    }
    event = kernel.event_create();
    if (event >= 0) {
        atomic_store_explicit(&loop->mailbox->event, event, memory_order_relaxed);
    }
    return event;
}

/* From here nothing can be added, and the wake word is IDLE for ever. */
static void mark_dead(CFRunLoopRef loop)
{
    loop_lock(loop);
    loop->is_dead = true;
    activations_forget(loop); /* a thread that ends in a callback leaves its runs unfinished */
    loop->waiting = NULL;
    loop->borrowed = NULL; /* nobody comes back to it */
    atomic_store_explicit(&loop->waits_awake, false, memory_order_relaxed); /* as it may in the parent of a fork */
    (void)atomic_fetch_and_explicit(&loop->mailbox->word,
                                    ~(uint32_t)(wake_phase | wake_token | wake_stop | wake_run | wake_retime | wake_outer | wake_owed),
                                    memory_order_acq_rel);
    loop_unlock(loop);
}

static void end_callouts(CFRunLoopRef loop, bool releases)
{
    timers_end_callouts(loop, releases);
    if (releases) {
        held_give_back(loop, 0);
    }
    held_free(loop);
}

void loop_retire(CFRunLoopRef loop, bool releases)
{
    if (!releases) {
        observers_forget_callouts(loop);
    }
    mark_dead(loop);
    end_callouts(loop, releases);
}

static void close_descriptors(CFRunLoopRef loop)
{
    struct slot_reap reap = {NULL};

    loop_lock(loop);
    source_queue_drain(loop, &reap);
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        watch_set_free(mode);
    }
    mailbox_close_event(loop->mailbox);
    loop_unlock(loop);
    slots_release(&reap);
}

void loop_end(CFRunLoopRef loop)
{
    mark_dead(loop);
    loop_lock(loop);
    watch_look_for_losses(loop); /* what is not the loop's any more is not to be closed */
    loop_unlock(loop);
    sources_remove_all(loop);
    timers_remove_all(loop);
    observers_remove_all(loop);
    blocks_discard_all(loop);
    end_callouts(loop, true);
    hosting_free(loop);
    close_descriptors(loop);
}
