/* SPDX-License-Identifier: Apache-2.0 */
/* Limits without memory: they are refused, or their item is served more often, and never lost. */
#include "CRLRateLimit.h"
#include "Failure/nth_failure.h"

#define RARE CFSTR("rare")
#define OTHER CFSTR("other")

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
    /* It is in another mode, and of a refused limit perhaps in some of the common modes. */
    if (CFGetTypeID(item) == CFRunLoopTimerGetTypeID()) {
        CFRunLoopTimerInvalidate((CFRunLoopTimerRef)(uintptr_t)item);
    } else {
        CFRunLoopSourceInvalidate((CFRunLoopSourceRef)(uintptr_t)item);
    }
    CFRelease(item);
}

/* Each call begins a limit, if there is memory. It runs in `run_mode`; there may have been memory for other common modes alone. */
static bool limit_item(CFTypeRef item, CFRunLoopMode mode, CFRunLoopMode run_mode)
{
    bool is_timer = CFGetTypeID(item) == CFRunLoopTimerGetTypeID();
    bool is_whole = false;

    calls = begins = ends = 0;
    limit = CRLRateLimitCreate(NULL, CFRunLoopGetCurrent(), mode, item, 0.0001, 1, count_event, NULL);
    if (limit && (!is_timer || CFRunLoopContainsTimer(CFRunLoopGetCurrent(), (CFRunLoopTimerRef)(uintptr_t)item, run_mode))) {
        MUST(run_until(&calls, 4, run_mode));
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
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, RARE); /* its first mode, which needs less memory than more do */
    return limit_item(source, kCFRunLoopDefaultMode, kCFRunLoopDefaultMode);
}

NTH_FAILURE(limited_timers, "2243")
{
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0.0001, 0, 0, fire, NULL);

    NEED(timer);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, RARE);
    return limit_item(timer, kCFRunLoopDefaultMode, kCFRunLoopDefaultMode);
}

static bool limit_common_timer(CFRunLoopMode run_mode)
{
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0.0001, 0, 0, fire, NULL);

    NEED(timer);
    CFRunLoopAddCommonMode(CFRunLoopGetCurrent(), RARE);
    CFRunLoopAddCommonMode(CFRunLoopGetCurrent(), OTHER);
    return limit_item(timer, kCFRunLoopCommonModes, run_mode);
}

NTH_FAILURE(limited_common_items, "2243")
{
    return limit_common_timer(kCFRunLoopDefaultMode);
}

NTH_FAILURE(limited_items_in_another_common_mode, "2243")
{
    return limit_common_timer(RARE);
}

NTH_FAILURE(limited_items_in_the_last_common_mode, "2243")
{
    return limit_common_timer(OTHER);
}
