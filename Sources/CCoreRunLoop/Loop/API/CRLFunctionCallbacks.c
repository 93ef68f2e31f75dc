/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observers and timers of CRLRunLoop.h that call a function where Apple's call a block. Their info is a box. Only the one observer or
 * timer refers to it, and releases it once, never during a call; so it needs no count.
 */
#include <stdint.h>
#include <stdlib.h>

#include "CRLRunLoop.h"
#include "Loop/Observer/observer.h"
#include "Loop/Timer/timer.h"

struct box {
    void (*function)(void); /* constant */
    void *info; /* constant */
    void (*release)(void *info); /* constant: NULL: nothing */
};

/* NULL if there is no memory. */
static struct box *box_create(void (*function)(void), void *info, void (*release)(void *info))
{
    struct box *box = malloc(sizeof *box);

    if (box) {
        *box = (struct box){function, info, release};
    }
    return box;
}

static void box_release(const void *object)
{
    struct box *box = (struct box *)(uintptr_t)object;

    if (box->release) {
        box->release(box->info);
    }
    free(box);
}

static void call_observer(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    const struct box *box = info;

    ((void (*)(CFRunLoopObserverRef, CFRunLoopActivity, void *))box->function)(observer, activity, box->info);
}

static void call_timer(CFRunLoopTimerRef timer, void *info)
{
    const struct box *box = info;

    ((void (*)(CFRunLoopTimerRef, void *))box->function)(timer, box->info);
}

CFRunLoopObserverRef
    CRLRunLoopObserverCreateWithFunction(CFAllocatorRef allocator, CFOptionFlags activities, Boolean repeats, CFIndex order,
                                         void (*function)(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info),
                                         void *info, void (*release)(void *info))
{
    struct box *box = function ? box_create((void (*)(void))function, info, release) : NULL;
    CFRunLoopObserverContext context = {.info = box, .release = box_release};
    CFRunLoopObserverRef observer = box ? observer_create(allocator, activities, repeats, order, call_observer, &context) : NULL;

    if (!observer) {
        free(box); /* the info stays the caller's */
        return NULL;
    }
    observer_keep_info(observer);
    return observer;
}

CFRunLoopTimerRef CRLRunLoopTimerCreateWithFunction(CFAllocatorRef allocator, CFAbsoluteTime fireDate, CFTimeInterval interval,
                                                    CFOptionFlags flags, CFIndex order,
                                                    void (*function)(CFRunLoopTimerRef timer, void *info), void *info,
                                                    void (*release)(void *info))
{
    struct box *box = function ? box_create((void (*)(void))function, info, release) : NULL;
    CFRunLoopTimerContext context = {.info = box, .release = box_release};
    CFRunLoopTimerRef timer = box ? run_loop_timer_create(allocator, fireDate, interval, order, call_timer, &context) : NULL;

    (void)flags;
    if (!timer) {
        free(box); /* the info stays the caller's */
        return NULL;
    }
    timer_keep_info(timer);
    return timer;
}
