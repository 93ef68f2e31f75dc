/* SPDX-License-Identifier: Apache-2.0 */
/* Limits without memory: they are refused, or their item is served more often, and never lost. */
#include "CRLRateLimit.h"
#include "Failure/nth_failure.h"

#define RARE CFSTR("rare")

static CRLRateLimitRef limit;
static _Atomic int calls;
static int begins;
static int ends;

static void count_event(CRLRateLimitRef told, CRLRateLimitEvent event, void *info)
{
    (void)info;
    MUST(told == limit);
    begins += event == kCRLRateLimitBegins;
    ends += event == kCRLRateLimitEnds;
}

static void fire(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
    if (++calls == 4) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
    (void)CRLRateLimitCount(limit);
}

static void perform(void *info)
{
    fire(NULL, NULL);
    CFRunLoopSourceSignal(*(CFRunLoopSourceRef *)info);
}

static void forget(CFTypeRef item)
{
    if (limit) {
        CRLRateLimitInvalidate(limit);
        CFRelease(limit);
    }
    if (CFGetTypeID(item) == CFRunLoopTimerGetTypeID()) {
        CFRunLoopTimerInvalidate((CFRunLoopTimerRef)(uintptr_t)item); /* of a refused limit it may be in some of the common modes */
    }
    CFRelease(item);
}

/* Each call begins a limit, if there is memory. `is_common`: there may have been memory for another common mode alone. */
static bool limit_item(CFTypeRef item, bool is_common)
{
    bool is_whole = false;

    calls = begins = ends = 0;
    limit = CRLRateLimitCreate(NULL, CFRunLoopGetCurrent(), is_common ? kCFRunLoopCommonModes : kCFRunLoopDefaultMode, item, 0.0001, 1,
                               count_event, NULL);
    if (limit && (!is_common || CFRunLoopContainsTimer(CFRunLoopGetCurrent(), (CFRunLoopTimerRef)(uintptr_t)item, kCFRunLoopDefaultMode))) {
        MUST(run_until(&calls, 4, kCFRunLoopDefaultMode));
        MUST(begins - ends <= 1);
        is_whole = begins >= 3;
    }
    forget(item);
    return is_whole;
}

NTH_FAILURE(limited_sources, "2243")
{
    CFRunLoopSourceRef source = NULL;
    CFRunLoopSourceContext context = {.info = &source, .perform = perform};

    NEED(source = CFRunLoopSourceCreate(NULL, 0, &context));
    CFRunLoopSourceSignal(source);
    return limit_item(source, false);
}

NTH_FAILURE(limited_timers, "2243")
{
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0.0001, 0, 0, fire, NULL);

    NEED(timer);
    return limit_item(timer, false);
}

NTH_FAILURE(limited_common_items, "2243")
{
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0.0001, 0, 0, fire, NULL);

    NEED(timer);
    CFRunLoopAddCommonMode(CFRunLoopGetCurrent(), RARE);
    return limit_item(timer, true);
}
