/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of addresses in a network of the test's own: what they say of it, and what they tell when it changes. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Reachability/own_network.h"
#include "Reachability/reach_probe.h"
#include "Reachability/route_kernel.h"

/* ---- flags ---- */

static SCNetworkReachabilityFlags flags_of(const char *address)
{
    SCNetworkReachabilityRef target = reach_probe_create(address);
    SCNetworkReachabilityFlags flags = reach_probe_flags(target);

    CFRelease(target);
    return flags;
}

static SCNetworkReachabilityFlags flags_between(const char *local, const char *remote)
{
    struct sockaddr_storage ends[2] = {own_network_address(local), own_network_address(remote ? remote : local)};
    SCNetworkReachabilityRef target =
        SCNetworkReachabilityCreateWithAddressPair(NULL, (struct sockaddr *)&ends[0], remote ? (struct sockaddr *)&ends[1] : NULL);
    SCNetworkReachabilityFlags flags;

    REQUIRE(target);
    flags = reach_probe_flags(target);
    CFRelease(target);
    return flags;
}

TEST(flags_are_those_of_the_routes, "2233")
{
    own_network_enter();
    EXPECT_EQ(flags_of("127.0.0.1"), 0);
    EXPECT_EQ(flags_of("198.51.100.7"), 0);
    own_network_up(true);
    EXPECT_EQ(flags_of("127.0.0.1"), reach_is_own);
    EXPECT_EQ(flags_of("127.0.0.9"), reach_is_own);
    EXPECT_EQ(flags_of("::ffff:127.0.0.1"), reach_is_own);
    EXPECT_EQ(flags_of("198.51.100.7"), 0);
    own_network_add_address("10.0.0.1", 32, true);
    EXPECT_EQ(flags_of("10.0.0.1"), reach_is_own);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_EQ(flags_of("198.51.100.7"), reach_is_direct);
    own_network_add_route("203.0.113.0", 24, "198.51.100.1", true);
    EXPECT_EQ(flags_of("203.0.113.7"), reach_is_there);
    EXPECT_EQ(flags_of("255.255.255.255"), 0);
}

/* Without IPv6 in the kernel there is no way by it. */
static void need_ipv6(void)
{
    if (flags_of("::1") == 0) {
        SKIP("there is no IPv6");
    }
}

TEST(flags_by_ipv6_are_those_of_the_routes, "2233")
{
    own_network_enter();
    EXPECT_EQ(flags_of("::1"), 0);
    own_network_up(true);
    need_ipv6();
    EXPECT_EQ(flags_of("::1"), reach_is_own);
    own_network_add_address("fd00::1", 128, true);
    EXPECT_EQ(flags_of("fd00::1"), reach_is_own);
    EXPECT_EQ(flags_of("fd01::7"), 0);
    own_network_add_route("fd01::", 64, NULL, true);
    EXPECT_EQ(flags_of("fd01::7"), reach_is_direct);
    if (own_network_add_links()) {
        own_network_add_route("fd02::", 64, "fd02::1", true);
        EXPECT_EQ(flags_of("fd02::7"), reach_is_there);
    }
}

TEST(the_address_0_is_the_way_to_any, "2234")
{
    own_network_enter();
    own_network_up(true);
    own_network_add_address("10.0.0.1", 32, true);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_EQ(flags_of("0.0.0.0"), 0);
    EXPECT_EQ(flags_of("::"), 0);
    own_network_add_route("0.0.0.0", 0, "198.51.100.1", true);
    EXPECT_EQ(flags_of("0.0.0.0"), reach_is_there);
    EXPECT_EQ(flags_of("::"), 0);
    own_network_add_route("0.0.0.0", 0, "198.51.100.1", false);
    EXPECT_EQ(flags_of("0.0.0.0"), 0);
    need_ipv6();
    own_network_add_address("fd00::1", 128, true);
    own_network_add_route("::", 0, NULL, true);
    EXPECT_EQ(flags_of("::"), reach_is_direct);
    EXPECT_EQ(flags_of("0.0.0.0"), reach_is_direct);
}

TEST(a_pair_is_the_way_from_one_to_the_other, "2233")
{
    own_network_enter();
    own_network_up(true);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_EQ(flags_between("10.0.0.1", "198.51.100.7"), 0);
    EXPECT_EQ(flags_between("10.0.0.1", NULL), 0);
    EXPECT_EQ(flags_between("198.51.100.7", NULL), 0); /* a way, but not to this machine */
    own_network_add_address("10.0.0.1", 32, true);
    EXPECT_EQ(flags_between("10.0.0.1", "198.51.100.7"), reach_is_direct);
    EXPECT_EQ(flags_between("10.0.0.1", NULL), reach_is_own);
    EXPECT_EQ(flags_between("10.0.0.1", "0.0.0.0"), 0);
}

/* ---- changes ---- */

TEST(a_change_of_the_flags_is_told_once, "2235 2236")
{
    struct reach_probe probe = {0};

    own_network_enter();
    probe.target = reach_probe_create("198.51.100.7");
    reach_probe_schedule(&probe);
    EXPECT_TOLD(&probe, 0, 0);
    own_network_up(true);
    EXPECT_TOLD(&probe, 0, 0);
    own_network_add_address("10.0.0.1", 32, true);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_TOLD(&probe, 1, reach_is_direct);
    EXPECT_EQ(reach_probe_flags(probe.target), reach_is_direct);
    own_network_add_route("203.0.113.0", 24, NULL, true);
    EXPECT_TOLD(&probe, 0, 0);
    own_network_add_address("198.51.100.7", 32, true);
    EXPECT_TOLD(&probe, 1, reach_is_own);
    own_network_add_address("198.51.100.7", 32, false);
    EXPECT_TOLD(&probe, 1, reach_is_direct);
    own_network_add_route("198.51.100.0", 24, NULL, false);
    EXPECT_TOLD(&probe, 1, 0);
    own_network_add_route("198.51.100.0", 24, "203.0.113.1", true);
    EXPECT_TOLD(&probe, 1, reach_is_there);
    own_network_up(false);
    EXPECT_TOLD(&probe, 1, 0);
    reach_probe_unschedule(&probe);
    CFRelease(probe.target);
    EXPECT(probe.retains == 1 && probe.releases == 1);
}

static int looks;

static int counting_connect(const union route_end *local, const union route_end *remote, union route_end *ret_own)
{
    looks++;
    return route_kernel_linux.connect(local, remote, ret_own);
}

/* More than the loop takes out in a pass, and more than the socket holds. */
TEST(a_flood_of_changes_makes_few_looks, "2236")
{
    enum { changes = 3000 };
    struct reach_probe probe = {0};

    own_network_enter();
    own_network_up(true);
    route_kernel.connect = counting_connect;
    probe.target = reach_probe_create("198.51.100.7");
    reach_probe_schedule(&probe);
    EXPECT_EQ(looks, 1);
    for (int i = 0; i < changes; i++) {
        own_network_add_route("203.0.113.0", 24, NULL, i % 2 == 0);
    }
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_TOLD(&probe, 1, reach_is_direct);
    EXPECT(looks > 1 && looks < 40);
    own_network_add_route("198.51.100.0", 24, NULL, false);
    EXPECT_TOLD(&probe, 1, 0);
    reach_probe_unschedule(&probe);
    CFRelease(probe.target);
}

/* ---- the callback ---- */

static void change_meanwhile(struct reach_probe *probe)
{
    if (probe->count == 1) {
        own_network_add_route("198.51.100.0", 24, NULL, false);
        reach_probe_run(); /* finds the change, which is told afterwards */
        EXPECT_EQ(probe->count, 1);
    }
}

static void let_go(struct reach_probe *probe)
{
    reach_probe_unschedule(probe);
    CFRelease(probe->target);
}

static void stop_listening(struct reach_probe *probe)
{
    EXPECT(SCNetworkReachabilitySetCallback(probe->target, NULL, NULL));
    EXPECT_EQ(probe->releases, 0);
}

TEST(a_callback_may_do_what_it_likes, "2237")
{
    struct reach_probe probe = {.action = change_meanwhile};

    own_network_enter();
    own_network_up(true);
    probe.target = reach_probe_create("198.51.100.7");
    reach_probe_schedule(&probe);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_TOLD(&probe, 2, 0);
    probe.action = stop_listening;
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_TOLD(&probe, 1, reach_is_direct);
    EXPECT_EQ(probe.releases, 1);
    own_network_add_route("198.51.100.0", 24, NULL, false);
    EXPECT_TOLD(&probe, 0, 0);
    probe.action = let_go;
    reach_probe_watch(&probe);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_TOLD(&probe, 1, reach_is_direct);
    EXPECT(probe.retains == 2 && probe.releases == 2);
}

/* ---- loops ---- */

TEST(a_target_is_in_several_modes, "2237")
{
    struct reach_probe probe = {0};
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    own_network_enter();
    own_network_up(true);
    probe.target = reach_probe_create("198.51.100.7");
    EXPECT(!SCNetworkReachabilityUnscheduleFromRunLoop(probe.target, loop, kCFRunLoopDefaultMode));
    EXPECT_EQ(SCError(), kSCStatusInvalidArgument);
    EXPECT(!SCNetworkReachabilitySetDispatchQueue(probe.target, NULL));
    reach_probe_schedule(&probe);
    reach_probe_schedule(&probe); /* is there already */
    EXPECT(SCNetworkReachabilityScheduleWithRunLoop(probe.target, loop, CFSTR("other")));
    EXPECT(!SCNetworkReachabilityUnscheduleFromRunLoop(probe.target, loop, CFSTR("third")));
    EXPECT(!SCNetworkReachabilitySetDispatchQueue(probe.target, loop));
    EXPECT_EQ(SCError(), kSCStatusInvalidArgument);
    reach_probe_unschedule(&probe);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_TOLD(&probe, 0, 0);
    while (CFRunLoopRunInMode(CFSTR("other"), 0, true) == kCFRunLoopRunHandledSource) {
    }
    EXPECT_TOLD(&probe, 1, reach_is_direct);
    EXPECT(SCNetworkReachabilityUnscheduleFromRunLoop(probe.target, loop, CFSTR("other")));
    own_network_add_route("198.51.100.0", 24, NULL, false);
    reach_probe_schedule(&probe); /* looks now */
    EXPECT_TOLD(&probe, 0, 0);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_TOLD(&probe, 1, reach_is_direct);
    CFRelease(probe.target); /* holds itself */
    own_network_add_route("198.51.100.0", 24, NULL, false);
    EXPECT_TOLD(&probe, 1, 0);
    reach_probe_unschedule(&probe);
    EXPECT_EQ(probe.releases, probe.retains);
}

static _Atomic int inside;

static void note_alone(SCNetworkReachabilityRef target, SCNetworkReachabilityFlags flags, void *info)
{
    (void)target;
    (void)flags;
    EXPECT_EQ(inside++, 0);
    ++*(_Atomic int *)info;
    inside--;
}

static void *schedule_in_thread(void *context)
{
    SCNetworkReachabilityRef target = context;

    for (int i = 0; i < 200; i++) {
        if (SCNetworkReachabilityScheduleWithRunLoop(target, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode)) {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
            (void)reach_probe_flags(target);
            (void)SCNetworkReachabilityUnscheduleFromRunLoop(target, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
        }
    }
    return NULL;
}

TEST(threads_may_have_the_same_target, "2237")
{
    enum { thread_count = 3 };
    pthread_t threads[thread_count];
    _Atomic int told = 0;
    SCNetworkReachabilityContext context = {0, (void *)&told, NULL, NULL, NULL};
    SCNetworkReachabilityRef target;

    own_network_enter();
    own_network_up(true);
    target = reach_probe_create("198.51.100.7");
    for (int i = 0; i < thread_count; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, schedule_in_thread, (void *)(uintptr_t)target) == 0);
    }
    for (int i = 0; i < 200; i++) {
        own_network_add_route("198.51.100.0", 24, NULL, i % 2 == 0);
        REQUIRE(SCNetworkReachabilitySetCallback(target, i % 16 == 15 ? NULL : note_alone, &context));
        (void)reach_probe_flags(target);
    }
    for (int i = 0; i < thread_count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    CFRelease(target);
}

struct shared_mode {
    SCNetworkReachabilityRef target;
    CFRunLoopRef loop;
    CFStringRef mode; /* of both threads */
};

static void *move_in_and_out(void *context)
{
    const struct shared_mode *shared = context;

    for (int i = 0; i < 30000; i++) {
        EXPECT(SCNetworkReachabilityScheduleWithRunLoop(shared->target, shared->loop, shared->mode));
        (void)SCNetworkReachabilityUnscheduleFromRunLoop(shared->target, shared->loop, shared->mode);
    }
    return NULL;
}

/* What one thread adds and another one takes out is counted once. */
TEST(threads_may_schedule_a_target_in_the_same_mode, "2237")
{
    struct reach_probe probe = {0};
    struct shared_mode shared = {NULL, CFRunLoopGetCurrent(), CFSTR("shared")};
    pthread_t threads[2];

    own_network_enter();
    own_network_up(true);
    shared.target = probe.target = reach_probe_create("198.51.100.7");
    reach_probe_schedule(&probe);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, move_in_and_out, &shared) == 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)SCNetworkReachabilityUnscheduleFromRunLoop(probe.target, shared.loop, shared.mode);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    EXPECT_TOLD(&probe, 1, reach_is_direct); /* is still in the other mode */
    reach_probe_unschedule(&probe);
    EXPECT(!SCNetworkReachabilityUnscheduleFromRunLoop(probe.target, shared.loop, kCFRunLoopDefaultMode));
    CFRelease(probe.target);
    EXPECT(probe.retains == 1 && probe.releases == 1);
}

/* ---- the child of a fork ---- */

TEST(the_child_of_a_fork_only_asks, "2238")
{
    struct reach_probe probe = {0};
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    int status = 1;
    pid_t child;

    own_network_enter();
    own_network_up(true);
    probe.target = reach_probe_create("198.51.100.7");
    reach_probe_schedule(&probe);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    child = fork();
    if (child == 0) {
        bool is_good = reach_probe_flags(probe.target) == reach_is_direct &&
                       !SCNetworkReachabilityScheduleWithRunLoop(probe.target, loop, CFSTR("other")) &&
                       !SCNetworkReachabilitySetCallback(probe.target, NULL, NULL) &&
                       !SCNetworkReachabilityUnscheduleFromRunLoop(probe.target, loop, kCFRunLoopDefaultMode) &&
                       !SCNetworkReachabilitySetDispatchQueue(probe.target, NULL);

        CFRelease(probe.target);
        reach_probe_run(); /* its source ends, and with it the target */
        _exit(is_good && probe.count == 0 ? 0 : 1);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT_TOLD(&probe, 1, reach_is_direct);
    reach_probe_unschedule(&probe);
    CFRelease(probe.target);
}

/* ---- what is wrong ---- */

static void expect_refused(SCNetworkReachabilityRef target)
{
    EXPECT(!target);
    EXPECT_EQ(SCError(), kSCStatusInvalidArgument);
}

TEST(what_is_no_address_and_no_name_is_refused, "2239")
{
    struct sockaddr_storage ipv4 = own_network_address("127.0.0.1");
    struct sockaddr_storage ipv6 = own_network_address("::1");
    struct sockaddr other = {.sa_family = AF_UNIX};

    EXPECT_EQ(SCError(), kSCStatusOK);
    expect_refused(SCNetworkReachabilityCreateWithAddress(NULL, NULL));
    expect_refused(SCNetworkReachabilityCreateWithAddress(NULL, &other));
    expect_refused(SCNetworkReachabilityCreateWithAddressPair(NULL, NULL, NULL));
    expect_refused(SCNetworkReachabilityCreateWithAddressPair(NULL, (struct sockaddr *)&ipv4, &other));
    expect_refused(SCNetworkReachabilityCreateWithAddressPair(NULL, &other, (struct sockaddr *)&ipv4));
    expect_refused(SCNetworkReachabilityCreateWithAddressPair(NULL, (struct sockaddr *)&ipv4, (struct sockaddr *)&ipv6));
    expect_refused(SCNetworkReachabilityCreateWithName(NULL, NULL));
    expect_refused(SCNetworkReachabilityCreateWithName(NULL, ""));
    expect_refused(SCNetworkReachabilityCreateWithName(NULL, "\xff.example"));
}

TEST(what_is_wrong_of_a_target_is_refused, "2239")
{
    SCNetworkReachabilityRef target = reach_probe_create("127.0.0.1");
    struct reach_probe probe = {.target = target};
    SCNetworkReachabilityContext wrong = {.version = 1};
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFStringRef text;

    EXPECT(!SCNetworkReachabilityGetFlags(target, NULL));
    EXPECT(!SCNetworkReachabilitySetCallback(target, NULL, &wrong));
    EXPECT(!SCNetworkReachabilityScheduleWithRunLoop(target, NULL, kCFRunLoopDefaultMode));
    EXPECT(!SCNetworkReachabilityScheduleWithRunLoop(target, loop, NULL));
    EXPECT(!SCNetworkReachabilityUnscheduleFromRunLoop(target, NULL, kCFRunLoopDefaultMode));
    EXPECT(!SCNetworkReachabilityUnscheduleFromRunLoop(target, loop, NULL));
    EXPECT_STOPS("SCNetworkReachabilitySetCallback: the target is NULL", { SCNetworkReachabilitySetCallback(NULL, NULL, NULL); });
    EXPECT_STOPS("the target is another object", { SCNetworkReachabilityGetFlags((const void *)loop, NULL); });
    EXPECT(strcmp(SCErrorString(kSCStatusOK), SCErrorString(kSCStatusFailed)) != 0);
    EXPECT(strcmp(SCErrorString(kSCStatusInvalidArgument), SCErrorString(kSCStatusAccessError)) != 0);
    EXPECT(strcmp(SCErrorString(kSCStatusReachabilityUnknown), SCErrorString(-1)) != 0);
    EXPECT_EQ(CFGetTypeID(target), SCNetworkReachabilityGetTypeID());
    reach_probe_watch(&probe);
    text = CFCopyDescription(target);
    EXPECT(text && CFStringFind(text, CFSTR("context = a probe"), 0).location != kCFNotFound);
    CFRelease(text);
    CFRelease(target);
}

/* ---- a sandbox ---- */

static int refuse_changes(void)
{
    return -EPERM;
}

static ssize_t refuse_to_answer(const void *request, size_t request_size, void *answer, size_t answer_size)
{
    (void)request;
    (void)request_size;
    (void)answer;
    (void)answer_size;
    return -EPERM;
}

TEST(a_sandbox_without_netlink_can_only_ask, "2238")
{
    struct reach_probe probe = {0};

    own_network_enter();
    own_network_up(true);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    route_kernel.changes_open = refuse_changes;
    route_kernel.ask = refuse_to_answer;
    probe.target = reach_probe_create("198.51.100.7");
    EXPECT_EQ(reach_probe_flags(probe.target), reach_is_there);
    EXPECT(!SCNetworkReachabilityScheduleWithRunLoop(probe.target, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    EXPECT_EQ(SCError(), kSCStatusAccessError);
    CFRelease(probe.target);
}

static int interface_of_ppp(unsigned index)
{
    EXPECT(index != 0);
    return 512;
}

TEST(a_link_of_ppp_is_transient, "2233")
{
    own_network_enter();
    own_network_up(true);
    own_network_add_route("198.51.100.0", 24, NULL, true);
    route_kernel.interface_type = interface_of_ppp;
    EXPECT_EQ(flags_of("198.51.100.7"), reach_is_direct | kSCNetworkReachabilityFlagsTransientConnection);
}
