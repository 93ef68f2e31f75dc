/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit is a count and a timer. The timer is in the mode while the item is not. It is valid as long as the limit is, and so long keeps
 * the limit. All that threads share is in objects of the library, which guard themselves, also over a fork. So there is no lock.
 *
 * Whoever adds the item looks behind that whether the limit is still valid, and whoever invalidates the limit removes the item behind that.
 * So the item is out in the end, whichever comes first.
 */
#include "CRLRateLimit.h"

#include <math.h>
#include <stdbool.h>

#include "CRLAddOn.h"
#include "Support/invariant.h"
#include "service_object.h"

struct __CRLRateLimit {
    CRLObjectHeader header;
    CFRunLoopRef loop; /* a reference; constant, as all up to `context` */
    CFRunLoopMode mode; /* a reference */
    CFTypeRef item; /* a reference */
    CFRunLoopTimerRef timer; /* a reference; in the mode while the item is held back */
    CFTimeInterval interval;
    CFIndex burst;
    CRLRateLimitCallBack callout; /* or NULL */
    CRLSourceContext context;
    CFAbsoluteTime begin; /* of the present interval, if the count is not 0. Only the loop's thread uses this, as the next two */
    CFIndex count; /* of calls in it; below `burst`, unless the item is held back */
    bool is_held;
};

static _Atomic CFTypeID limit_type;

/* ---- the item ---- */

static void release(CFTypeRef object)
{
    if (object) {
        CFRelease(object);
    }
}

static bool is_timer(CFTypeRef item)
{
    return CFGetTypeID(item) == CFRunLoopTimerGetTypeID();
}

static CFRunLoopTimerRef timer_of(CFTypeRef item)
{
    return (CFRunLoopTimerRef)(uintptr_t)item;
}

static CFRunLoopSourceRef source_of(CFTypeRef item)
{
    return (CFRunLoopSourceRef)(uintptr_t)item;
}

static bool item_is_valid(CRLRateLimitRef limit)
{
    return is_timer(limit->item) ? CFRunLoopTimerIsValid(timer_of(limit->item)) : CFRunLoopSourceIsValid(source_of(limit->item));
}

static void add_item(CRLRateLimitRef limit)
{
    if (is_timer(limit->item)) {
        CFRunLoopAddTimer(limit->loop, timer_of(limit->item), limit->mode);
    } else {
        CFRunLoopAddSource(limit->loop, source_of(limit->item), limit->mode);
    }
}

static void remove_item(CRLRateLimitRef limit)
{
    if (is_timer(limit->item)) {
        CFRunLoopRemoveTimer(limit->loop, timer_of(limit->item), limit->mode);
    } else {
        CFRunLoopRemoveSource(limit->loop, source_of(limit->item), limit->mode);
    }
}

/* Of the item or the limit's timer. */
static bool is_in(CRLRateLimitRef limit, CFTypeRef item, CFRunLoopMode mode)
{
    return is_timer(item) ? CFRunLoopContainsTimer(limit->loop, timer_of(item), mode)
                          : CFRunLoopContainsSource(limit->loop, source_of(item), mode);
}

/* The same. There may be memory for some of the common modes: the one that runs has to have it as well. */
static bool is_served(CRLRateLimitRef limit, CFTypeRef item)
{
    CFRunLoopMode running = CFEqual(limit->mode, kCFRunLoopCommonModes) ? CFRunLoopCopyCurrentMode(limit->loop) : NULL;
    bool result = is_in(limit, item, limit->mode) && (!running || is_in(limit, item, running));

    release(running);
    return result;
}

/* ---- holding it back ---- */

static void tell(CRLRateLimitRef limit, CRLRateLimitEvent event)
{
    if (limit->callout) {
        limit->callout(limit, event, limit->context.info);
    }
}

/* The timer repeats, for an item that cannot be put back without memory: it is tried again after as long. */
static void end_hold(CFRunLoopTimerRef timer, void *info)
{
    CRLRateLimitRef limit = info;

    if (!limit->is_held) {
        return; /* there was memory for a part of the common modes; the timer leaves them when it is next removed */
    }
    add_item(limit);
    if (!is_served(limit, limit->item) && item_is_valid(limit) && CFRunLoopTimerIsValid(timer)) {
        return;
    }
    limit->is_held = false;
    limit->count = 0;
    if (!CFRunLoopTimerIsValid(timer)) {
        remove_item(limit);
        return;
    }
    CFRunLoopRemoveTimer(limit->loop, timer, limit->mode);
    tell(limit, kCRLRateLimitEnds);
}

/* Returns false if there is no memory. */
static bool begin_hold(CRLRateLimitRef limit)
{
    CFRunLoopTimerSetNextFireDate(limit->timer, limit->begin + limit->interval);
    CFRunLoopAddTimer(limit->loop, limit->timer, limit->mode);
    if (!is_served(limit, limit->timer)) {
        CFRunLoopRemoveTimer(limit->loop, limit->timer, limit->mode);
        return false;
    }
    remove_item(limit);
    limit->is_held = true;
    tell(limit, kCRLRateLimitBegins);
    return true;
}

/* ---- the object ---- */

static void finalize(CFTypeRef object)
{
    CRLRateLimitRef limit = (CRLRateLimitRef)(uintptr_t)object;

    invariant(!limit->timer || !CFRunLoopTimerIsValid(limit->timer)); /* it would have a reference */
    if (limit->context.release) {
        limit->context.release(limit->context.info);
    }
    release(limit->timer);
    release(limit->item);
    release(limit->mode);
    release(limit->loop);
}

static CFStringRef copy_description(CFTypeRef object)
{
    CRLRateLimitRef limit = (CRLRateLimitRef)(uintptr_t)object;

    return CFStringCreateWithFormat(NULL, NULL, CFSTR("<CRLRateLimit %p>{valid = %s, %ld in %g s, mode = %@, item = %@}"), object,
                                    CFRunLoopTimerIsValid(limit->timer) ? "Yes" : "No", (long)limit->burst, limit->interval, limit->mode,
                                    limit->item);
}

CFTypeID CRLRateLimitGetTypeID(void)
{
    static const CRLTypeFunctions functions = {.name = "CRLRateLimit", .finalize = finalize, .copyDescription = copy_description};

    return service_type(&limit_type, &functions);
}

/* Returns a limit that has what it needs, and is in no mode yet, or NULL. */
static CRLRateLimitRef make(CFAllocatorRef allocator, CFRunLoopRef loop, CFRunLoopMode mode, CFTypeRef item, CFTimeInterval interval)
{
    CRLRateLimitRef made = CRLTypeCreateObject(allocator, CRLRateLimitGetTypeID(), sizeof *made);
    CFRunLoopTimerContext context = {0, made, CFRetain, CFRelease, NULL};

    if (!made) {
        return NULL;
    }
    made->timer = CFRunLoopTimerCreate(allocator, CFAbsoluteTimeGetCurrent() + interval, interval, 0, 0, end_hold, &context);
    if (!made->timer) {
        CFRelease(made);
        return NULL;
    }
    made->loop = (CFRunLoopRef)(uintptr_t)CFRetain(loop);
    made->mode = CFStringCreateCopy(allocator, mode);
    made->item = CFRetain(item);
    made->interval = interval;
    return made;
}

/* Ends a limit that was not given out. What was not retained stays the caller's. */
static void unmake(CRLRateLimitRef made)
{
    if (!made->context.retain) {
        made->context.release = NULL;
    }
    CFRunLoopTimerInvalidate(made->timer);
    CFRelease(made);
}

CRLRateLimitRef CRLRateLimitCreate(CFAllocatorRef allocator, CFRunLoopRef loop, CFRunLoopMode mode, CFTypeRef item, CFTimeInterval interval,
                                   CFIndex burst, CRLRateLimitCallBack callout, const CRLSourceContext *context)
{
    CRLRateLimitRef made = NULL;

    service_require(loop, CFRunLoopGetTypeID(), "CRLRateLimitCreate", "run loop");
    service_require(mode, CFStringGetTypeID(), "CRLRateLimitCreate", "mode");
    service_require_pointer(item, "CRLRateLimitCreate", "item");
    if (!is_timer(item)) {
        service_require(item, CFRunLoopSourceGetTypeID(), "CRLRateLimitCreate", "item");
    }
    if (interval > 0 && isfinite(interval) && burst >= 1 && !(context && context->version != 0)) {
        made = make(allocator, loop, mode, item, interval);
    }
    if (!made) {
        return NULL;
    }
    made->burst = burst;
    made->callout = callout;
    if (context) {
        made->context = *context;
        made->context.info = context->retain ? (void *)(uintptr_t)context->retain(context->info) : context->info;
    }
    if (made->mode) {
        add_item(made);
    }
    if (!made->mode || !is_in(made, item, made->mode)) {
        unmake(made);
        return NULL;
    }
    return made;
}

Boolean CRLRateLimitCount(CRLRateLimitRef limit)
{
    CFAbsoluteTime now;

    service_require(limit, CRLRateLimitGetTypeID(), "CRLRateLimitCount", "limit");
    if (limit->is_held || !CFRunLoopTimerIsValid(limit->timer)) {
        return false;
    }
    now = CFAbsoluteTimeGetCurrent();
    if (limit->count == 0 || now < limit->begin || now - limit->begin >= limit->interval) {
        limit->begin = now;
        limit->count = 0;
    }
    limit->count++;
    invariant(limit->count <= limit->burst);
    if (limit->count < limit->burst) {
        return true;
    }
    if (begin_hold(limit)) {
        return false;
    }
    limit->count--;
    return CFRunLoopTimerIsValid(limit->timer);
}

void CRLRateLimitInvalidate(CRLRateLimitRef limit)
{
    service_require(limit, CRLRateLimitGetTypeID(), "CRLRateLimitInvalidate", "limit");
    CFRunLoopTimerInvalidate(limit->timer);
    remove_item(limit);
}
