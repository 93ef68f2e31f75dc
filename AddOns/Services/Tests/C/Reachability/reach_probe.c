/* SPDX-License-Identifier: Apache-2.0 */
#include "Reachability/reach_probe.h"

#include "Reachability/own_network.h"

SCNetworkReachabilityRef reach_probe_create(const char *address)
{
    struct sockaddr_storage end = own_network_address(address);
    SCNetworkReachabilityRef target = SCNetworkReachabilityCreateWithAddress(NULL, (struct sockaddr *)&end);

    REQUIRE(target);
    return target;
}

static void note(SCNetworkReachabilityRef target, SCNetworkReachabilityFlags flags, void *info)
{
    struct reach_probe *probe = info;

    EXPECT(target == probe->target);
    probe->flags = flags;
    probe->count++;
    if (probe->action) {
        probe->action(probe);
    }
}

static const void *retain(const void *info)
{
    ((struct reach_probe *)(uintptr_t)info)->retains++;
    return info;
}

static void release(const void *info)
{
    ((struct reach_probe *)(uintptr_t)info)->releases++;
}

static CFStringRef describe(const void *info)
{
    (void)info;
    return CFRetain(CFSTR("a probe"));
}

void reach_probe_watch(struct reach_probe *probe)
{
    SCNetworkReachabilityContext context = {0, probe, retain, release, describe};

    REQUIRE(SCNetworkReachabilitySetCallback(probe->target, note, &context));
}

void reach_probe_schedule(struct reach_probe *probe)
{
    reach_probe_watch(probe);
    REQUIRE(SCNetworkReachabilityScheduleWithRunLoop(probe->target, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
}

void reach_probe_unschedule(struct reach_probe *probe)
{
    REQUIRE(SCNetworkReachabilityUnscheduleFromRunLoop(probe->target, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
}

void reach_probe_run(void)
{
    while (CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true) == kCFRunLoopRunHandledSource) {
    }
}

SCNetworkReachabilityFlags reach_probe_flags(SCNetworkReachabilityRef target)
{
    SCNetworkReachabilityFlags flags = 1u << 31;

    REQUIRE(SCNetworkReachabilityGetFlags(target, &flags));
    return flags;
}
