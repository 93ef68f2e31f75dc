/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on observers: checks, and one call inward. */
#include "CoreFoundation/CFRunLoop.h"
#include "Loop/Observer/observer.h"
#include "Support/fault.h"

static void require_observer(CFRunLoopObserverRef observer, const char *function)
{
    object_check(observer, &observer_class, function, "observer");
}

CFTypeID CFRunLoopObserverGetTypeID(void)
{
    return object_type_run_loop_observer;
}

CFRunLoopObserverRef CFRunLoopObserverCreate(CFAllocatorRef allocator, CFOptionFlags activities, Boolean repeats, CFIndex order,
                                             CFRunLoopObserverCallBack callout, CFRunLoopObserverContext *context)
{
    return observer_create(allocator, activities, repeats, order, callout, context);
}

CFOptionFlags CFRunLoopObserverGetActivities(CFRunLoopObserverRef observer)
{
    require_observer(observer, "CFRunLoopObserverGetActivities");
    return observer->activities;
}

Boolean CFRunLoopObserverDoesRepeat(CFRunLoopObserverRef observer)
{
    require_observer(observer, "CFRunLoopObserverDoesRepeat");
    return observer->repeats;
}

CFIndex CFRunLoopObserverGetOrder(CFRunLoopObserverRef observer)
{
    require_observer(observer, "CFRunLoopObserverGetOrder");
    return observer->order;
}

void CFRunLoopObserverInvalidate(CFRunLoopObserverRef observer)
{
    require_observer(observer, "CFRunLoopObserverInvalidate");
    observer_invalidate(observer);
}

Boolean CFRunLoopObserverIsValid(CFRunLoopObserverRef observer)
{
    require_observer(observer, "CFRunLoopObserverIsValid");
    return (atomic_load_explicit(&observer->state, memory_order_acquire) & observer_valid) != 0;
}

void CFRunLoopObserverGetContext(CFRunLoopObserverRef observer, CFRunLoopObserverContext *context)
{
    require_observer(observer, "CFRunLoopObserverGetContext");
    if (!context) {
        fault_stop("CFRunLoopObserverGetContext", "the context is NULL");
    }
    context->info = CFRunLoopObserverIsValid(observer) ? observer_info(observer) : NULL;
    context->version = 0;
    context->retain = observer->context ? observer->context->retain : NULL;
    context->release = observer->context ? observer->context->release : NULL;
    context->copyDescription = observer->context ? observer->context->copy_description : NULL;
}
