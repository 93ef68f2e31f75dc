/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of names, on loops and on queues. The add-on library for hosts is a fake one, which answers when the test says so. */
#include <netdb.h>
#include <stdint.h>
#include <string.h>

#include "CFNetwork/CFNetwork.h"
#include "CRLRunLoop.h"
#include "CRLStreamNetwork.h"
#include "File/notify_kernel.h"
#include "Reachability/own_network.h"
#include "Reachability/reach_probe.h"
#include "fake_dispatch.h"

/* ---- the fake library ---- */

static struct question {
    CRLStreamResolved completion; /* NULL: none is asked */
    void *context;
    int count; /* of questions */
    bool answers_itself; /* who waits */
} question;

static void answer(const char *address, int error)
{
    CRLStreamResolved completion = question.completion;
    struct sockaddr_storage end;
    CFTypeRef value;
    CFArrayRef values;

    REQUIRE(completion);
    question.completion = NULL;
    if (!address) {
        completion(question.context, NULL, (CFStreamError){kCFStreamErrorDomainNetDB, error});
        return;
    }
    end = own_network_address(address);
    value = CFDataCreate(NULL, (const UInt8 *)&end, sizeof end);
    values = CFArrayCreate(NULL, &value, 1, &kCFTypeArrayCallBacks);
    completion(question.context, values, (CFStreamError){0, 0});
    CFRelease(values);
    CFRelease(value);
}

static void answer_who_waits(void *info)
{
    (void)info;
    answer("127.0.0.1", 0);
}

static void *fake_resolve(CFStringRef host, UInt32 port, CRLStreamResolved completion, void *context)
{
    EXPECT(CFEqual(host, CFSTR("host.example")) && port == 0 && !question.completion);
    question.completion = completion;
    question.context = context;
    question.count++;
    return &question;
}

static void fake_schedule(void *query, CFRunLoopRef loop, CFStringRef mode)
{
    (void)query;
    if (question.answers_itself) {
        CRLRunLoopPerformFunction(loop, mode, answer_who_waits, NULL, NULL);
        CFRunLoopWakeUp(loop);
    }
}

static void fake_unschedule(void *query, CFRunLoopRef loop, CFStringRef mode)
{
    (void)query;
    (void)loop;
    (void)mode;
}

static void fake_free(void *query)
{
    (void)query;
    question.completion = NULL;
}

static const CRLStreamNetwork network = {
    .resolve = fake_resolve, .scheduleQuery = fake_schedule, .unscheduleQuery = fake_unschedule, .freeQuery = fake_free};

static SCNetworkReachabilityRef target_of_name(const char *name)
{
    SCNetworkReachabilityRef target = SCNetworkReachabilityCreateWithName(NULL, name);

    REQUIRE(target);
    return target;
}

/* ---- asking ---- */

TEST(a_name_is_asked_for, "2240")
{
    SCNetworkReachabilityRef target = target_of_name("host.example");
    SCNetworkReachabilityRef numeric = target_of_name("127.0.0.1");
    SCNetworkReachabilityFlags flags = 1;
    CFStringRef text = CFCopyDescription(target);

    own_network_enter();
    own_network_up(true);
    EXPECT_EQ(reach_probe_flags(numeric), reach_is_own);
    CFRelease(numeric);
    numeric = target_of_name("0.0.0.0");
    EXPECT_EQ(reach_probe_flags(numeric), 0);
    own_network_add_route("0.0.0.0", 0, NULL, true);
    EXPECT_EQ(reach_probe_flags(numeric), reach_is_direct);
    EXPECT(!SCNetworkReachabilityGetFlags(target, &flags) && flags == 0);
    EXPECT_EQ(SCError(), kSCStatusReachabilityUnknown);
    CRLStreamSetNetwork(&network);
    question.answers_itself = true;
    EXPECT_EQ(reach_probe_flags(target), reach_is_own);
    EXPECT(text && CFStringFind(text, CFSTR("host.example"), 0).location != kCFNotFound);
    CFRelease(text);
    CFRelease(numeric);
    CFRelease(target);
}

TEST(a_number_as_a_name_is_told_at_once, "2240")
{
    struct reach_probe probe = {.target = target_of_name("::1")};

    own_network_enter();
    reach_probe_schedule(&probe);
    EXPECT_TOLD(&probe, 1, 0);
    own_network_up(true);
    reach_probe_run();
    EXPECT_EQ(reach_probe_flags(probe.target), probe.flags);
    reach_probe_unschedule(&probe);
    CFRelease(probe.target);
}

/* ---- when ---- */

static int64_t clock_ns = 1;
static int last_alarm;
static int64_t alarm_ns; /* 0: none is set */

static int64_t fake_now(void)
{
    return clock_ns;
}

static int fake_alarm(int alarm, int64_t when_ns)
{
    last_alarm = alarm;
    alarm_ns = when_ns;
    return notify_kernel_linux.alarm_set(alarm, when_ns != 0 && when_ns <= clock_ns ? 1 : 0);
}

static void use_fake_clock(void)
{
    notify_kernel.now_ns = fake_now;
    notify_kernel.alarm_set = fake_alarm;
}

static void advance(int64_t seconds)
{
    clock_ns += seconds * 1000000000;
    (void)fake_alarm(last_alarm, alarm_ns);
}

TEST(a_name_on_a_loop_is_asked_for_after_changes, "2240")
{
    struct reach_probe probe = {.target = target_of_name("host.example")};
    SCNetworkReachabilityFlags flags;

    own_network_enter();
    own_network_up(true);
    CRLStreamSetNetwork(&network);
    use_fake_clock();
    reach_probe_schedule(&probe);
    EXPECT_TOLD(&probe, 0, 0);
    EXPECT(question.count == 1 && !SCNetworkReachabilityGetFlags(probe.target, &flags));
    EXPECT_EQ(SCError(), kSCStatusReachabilityUnknown);
    answer(NULL, EAI_NONAME);
    EXPECT_TOLD(&probe, 1, 0);
    EXPECT_EQ(reach_probe_flags(probe.target), 0);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_TOLD(&probe, 0, 0);
    EXPECT_EQ(question.count, 1); /* a second has not passed */
    advance(1);
    EXPECT_TOLD(&probe, 0, 0);
    EXPECT_EQ(question.count, 2);
    own_network_add_route("203.0.113.0", 24, NULL, true);
    advance(1);
    EXPECT_TOLD(&probe, 0, 0); /* while it is asked */
    EXPECT_EQ(question.count, 2);
    answer("198.51.100.7", 0);
    EXPECT_TOLD(&probe, 1, reach_is_direct);
    EXPECT_EQ(question.count, 3); /* once more */
    own_network_add_route("198.51.100.0", 24, NULL, false);
    EXPECT_TOLD(&probe, 1, 0); /* of the address that is known */
    answer("203.0.113.7", 0);
    EXPECT_TOLD(&probe, 1, reach_is_direct);
    advance(1);
    EXPECT_TOLD(&probe, 0, 0);
    EXPECT_EQ(question.count, 4);
    reach_probe_unschedule(&probe);
    EXPECT(!question.completion);
    reach_probe_schedule(&probe);
    EXPECT_TOLD(&probe, 0, 0);
    answer("203.0.113.7", 0);
    EXPECT_TOLD(&probe, 1, reach_is_direct); /* the first flags of a name */
    reach_probe_unschedule(&probe);
    CFRelease(probe.target);
    EXPECT_EQ(probe.releases, probe.retains);
}

TEST(servers_that_are_silent_are_asked_again_later, "2240")
{
    struct reach_probe probe = {.target = target_of_name("host.example")};

    own_network_enter();
    CRLStreamSetNetwork(&network);
    use_fake_clock();
    reach_probe_schedule(&probe);
    EXPECT_TOLD(&probe, 0, 0);
    advance(2); /* looks whether the question goes on */
    EXPECT_TOLD(&probe, 0, 0);
    answer(NULL, EAI_AGAIN);
    EXPECT_TOLD(&probe, 1, 0);
    advance(9);
    EXPECT_TOLD(&probe, 0, 0);
    EXPECT_EQ(question.count, 1);
    advance(1);
    EXPECT_TOLD(&probe, 0, 0);
    EXPECT_EQ(question.count, 2);
    reach_probe_unschedule(&probe);
    CFRelease(probe.target);
}

/* ---- queues ---- */

#if defined(HAS_FAKE_DISPATCH)

static int queue; /* any object will do */

TEST(a_target_on_a_queue_is_served_by_it, "2237")
{
    struct reach_probe probe = {0};

    own_network_enter();
    own_network_up(true);
    probe.target = reach_probe_create("198.51.100.7");
    reach_probe_watch(&probe);
    EXPECT(SCNetworkReachabilitySetDispatchQueue(probe.target, &queue));
    EXPECT(!SCNetworkReachabilitySetDispatchQueue(probe.target, &queue));
    EXPECT(!SCNetworkReachabilityScheduleWithRunLoop(probe.target, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    EXPECT_EQ(SCError(), kSCStatusInvalidArgument);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    fake_dispatch_run();
    EXPECT(probe.count == 1 && probe.flags == reach_is_direct);
    fake_dispatch_run();
    EXPECT_EQ(probe.count, 1);
    EXPECT(SCNetworkReachabilitySetDispatchQueue(probe.target, NULL));
    EXPECT(!SCNetworkReachabilitySetDispatchQueue(probe.target, NULL));
    EXPECT(fake_sources[0].is_cancelled && fake_sources[0].is_released);
    fake_dispatch_refuses = true;
    EXPECT(!SCNetworkReachabilitySetDispatchQueue(probe.target, &queue));
    EXPECT_EQ(SCError(), kSCStatusFailed);
    CFRelease(probe.target);
    fake_dispatch_run(); /* which had the last reference */
    EXPECT(probe.retains == 1 && probe.releases == 1);
}

TEST(a_name_on_a_queue_is_asked_for_elsewhere, "2237 2240")
{
    struct reach_probe probe = {.target = target_of_name("host.example")};

    own_network_enter();
    own_network_up(true);
    CRLStreamSetNetwork(&network);
    question.answers_itself = true;
    reach_probe_watch(&probe);
    EXPECT(SCNetworkReachabilitySetDispatchQueue(probe.target, &queue));
    fake_dispatch_run();
    EXPECT(question.count == 1 && probe.count == 0);
    fake_dispatch_run();
    EXPECT(probe.count == 1 && probe.flags == reach_is_own);
    own_network_up(false);
    EXPECT(SCNetworkReachabilitySetDispatchQueue(probe.target, NULL));
    EXPECT(SCNetworkReachabilitySetDispatchQueue(probe.target, &queue));
    own_network_up(true);
    fake_dispatch_run();
    EXPECT(SCNetworkReachabilitySetDispatchQueue(probe.target, NULL));
    fake_dispatch_run(); /* an answer that nobody waits for */
    EXPECT_EQ(probe.count, 1);
    CFRelease(probe.target);
    EXPECT_EQ(probe.releases, 1);
}

#endif
