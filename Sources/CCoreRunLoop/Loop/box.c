/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes, and the calls of CRLRunLoop.h that are made of them. */
#include "Loop/box.h"

#include <stdlib.h>

#include "CRLRunLoop.h"
#include "Loop/observer.h"
#include "Loop/timer.h"

struct box *box_create(void (*function)(void), void *info, void (*release)(void *info))
{
    struct box *box = malloc(sizeof *box);

    if (box) {
        atomic_init(&box->count, 1);
        box->function = function;
        box->info = info;
        box->release = release;
    }
    return box;
}

const void *box_retain(const void *object)
{
    struct box *box = (struct box *)(uintptr_t)object;

    (void)atomic_fetch_add_explicit(&box->count, 1, memory_order_relaxed);
    return box;
}

void box_release(const void *object)
{
    struct box *box = (struct box *)(uintptr_t)object;

    if (atomic_fetch_sub_explicit(&box->count, 1, memory_order_acq_rel) == 1) {
        if (box->release) {
            box->release(box->info);
        }
        free(box);
    }
}

static void call_observer(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    struct box *box = info;

    (void)box_retain(box); /* an observer may invalidate itself: the info lives until it returns */
    ((void (*)(CFRunLoopObserverRef, CFRunLoopActivity, void *))box->function)(observer, activity, box->info);
    box_release(box);
}

static void call_timer(CFRunLoopTimerRef timer, void *info)
{
    struct box *box = info;

    ((void (*)(CFRunLoopTimerRef, void *))box->function)(timer, box->info);
}

/* Gives a box back whose object could not be made: the info stays the caller's. */
static void discard(struct box *box)
{
    box->release = NULL;
    box_release(box);
}

CFRunLoopObserverRef
    CRLRunLoopObserverCreateWithFunction(CFAllocatorRef allocator, CFOptionFlags activities, Boolean repeats, CFIndex order,
                                         void (*function)(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info),
                                         void *info, void (*release)(void *info))
{
    struct box *box = function ? box_create((void (*)(void))function, info, release) : NULL;
    CFRunLoopObserverContext context = {.info = box, .release = box_release};
    CFRunLoopObserverRef observer = box ? observer_create(allocator, activities, repeats, order, call_observer, &context) : NULL;

    if (box && !observer) {
        discard(box);
    }
    return observer;
}

CFRunLoopTimerRef CRLRunLoopTimerCreateWithFunction(CFAllocatorRef allocator, CFAbsoluteTime fireDate, CFTimeInterval interval,
                                                    CFOptionFlags flags, CFIndex order,
                                                    void (*function)(CFRunLoopTimerRef timer, void *info), void *info,
                                                    void (*release)(void *info))
{
    struct box *box = function ? box_create((void (*)(void))function, info, release) : NULL;
    CFRunLoopTimerContext context = {.info = box, .retain = box_retain, .release = box_release};
    CFRunLoopTimerRef timer = box ? run_loop_timer_create(allocator, fireDate, interval, order, call_timer, &context) : NULL;

    (void)flags;
    if (!box) {
        return NULL;
    }
    if (!timer) {
        discard(box);
        return NULL;
    }
    box_release(box); /* the context holds its own */
    return timer;
}
