/* SPDX-License-Identifier: Apache-2.0 */
/* Targets when memory, or a call of the kernel, fails: they are refused, or tell what is true a little later. */
#include <errno.h>
#include <stdint.h>

#include "Failure/nth_failure.h"
#include "File/notify_kernel.h"
#include "Reachability/own_network.h"
#include "Reachability/reach_probe.h"
#include "Reachability/route_kernel.h"

/* `_arguments` are those of the call. */
#define FAILING(_type, _table, _name, _first, _second, _parameters, _arguments)          \
    static _type failing_##_name _parameters                                             \
    {                                                                                    \
        static const struct failing_call call = {#_table "." #_name, {_first, _second}}; \
        int error = nth_failure_take(&call);                                             \
        return error ? -error : _table##_kernel_linux._name _arguments;                  \
    }

FAILING(int, route, changes_open, EMFILE, EPERM, (void), ())
FAILING(int, route, changes_read, ENOBUFS, ENOMEM, (int changes), (changes))
FAILING(int, route, connect, EMFILE, ENOBUFS, (const union route_end *local, const union route_end *remote, union route_end *ret_own),
        (local, remote, ret_own))
FAILING(ssize_t, route, ask, EMFILE, ENOBUFS, (const void *request, size_t request_size, void *answer, size_t answer_size),
        (request, request_size, answer, answer_size))
FAILING(int, route, interface_type, EMFILE, ENFILE, (unsigned index), (index))
FAILING(int, notify, set_create, EMFILE, ENOMEM, (void), ())
FAILING(int, notify, set_add, ENOSPC, ENOMEM, (int set, int descriptor), (set, descriptor))
FAILING(int, notify, alarm_create, EMFILE, ENOMEM, (void), ())

/* What comes a second later comes at once. */
static int soon(int alarm, int64_t when_ns)
{
    return notify_kernel_linux.alarm_set(alarm, when_ns == 0 ? 0 : 1);
}

/* Any time is over when it is looked at the clock the next time. */
static int64_t leaping_now(void)
{
    static int64_t now_ns;

    return now_ns += 20000000000;
}

static void install(void)
{
    route_kernel = (struct route_kernel){failing_changes_open, failing_changes_read, failing_connect, failing_ask, failing_interface_type};
    notify_kernel.set_create = failing_set_create;
    notify_kernel.set_add = failing_set_add;
    notify_kernel.alarm_create = failing_alarm_create;
    notify_kernel.alarm_set = soon;
    notify_kernel.now_ns = leaping_now;
}

static void note(SCNetworkReachabilityRef target, SCNetworkReachabilityFlags flags, void *info)
{
    (void)target;
    *(SCNetworkReachabilityFlags *)info = flags;
}

/* A look that fails is made again in the next pass. */
static void run_some_passes(void)
{
    for (int i = 0; i < 8; i++) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    }
}

/* Returns whether the target was scheduled; then it tells what is. */
static bool tell(SCNetworkReachabilityRef target, const char *route)
{
    SCNetworkReachabilityFlags told = 0;
    SCNetworkReachabilityContext context = {.info = &told};
    bool is_told = SCNetworkReachabilitySetCallback(target, note, &context) &&
                   SCNetworkReachabilityScheduleWithRunLoop(target, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);

    if (is_told) {
        own_network_add_route(route, 24, NULL, true);
        run_some_passes();
        MUST(told == reach_is_direct);
        own_network_add_route(route, 24, NULL, false);
        run_some_passes();
        MUST(told == 0);
        MUST(SCNetworkReachabilityUnscheduleFromRunLoop(target, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    } else {
        MUST(SCError() == kSCStatusFailed || SCError() == kSCStatusAccessError);
    }
    return is_told;
}

static bool ask(SCNetworkReachabilityRef target)
{
    SCNetworkReachabilityFlags flags;
    bool is_known = SCNetworkReachabilityGetFlags(target, &flags);

    MUST(flags == 0 || flags == reach_is_own);
    return is_known && flags == reach_is_own;
}

static bool tell_of_address(void)
{
    struct sockaddr_storage end = own_network_address("198.51.100.7");
    SCNetworkReachabilityRef target = SCNetworkReachabilityCreateWithAddress(NULL, (struct sockaddr *)&end);
    bool is_told = target && tell(target, "198.51.100.0");

    if (target) {
        CFRelease(target);
    }
    return is_told;
}

static bool tell_in_own_network(void)
{
    own_network_enter();
    own_network_up(true);
    install();
    return tell_of_address();
}

TEST_LIMIT(nth_failure_reachability_of_an_address, "2241", 120)
{
    nth_failure_run("reachability of an address", tell_in_own_network);
}

NTH_FAILURE(reachability_of_a_name, "")
{
    SCNetworkReachabilityRef target;
    bool is_told;

    own_network_enter();
    own_network_up(true);
    install();
    target = SCNetworkReachabilityCreateWithName(NULL, "198.51.100.7");
    is_told = target && tell(target, "198.51.100.0");
    if (target) {
        CFRelease(target);
    }
    return is_told;
}

NTH_FAILURE(reachability_is_asked, "")
{
    SCNetworkReachabilityRef target;
    bool is_known;

    own_network_enter();
    own_network_up(true);
    install();
    target = SCNetworkReachabilityCreateWithName(NULL, "127.0.0.1");
    is_known = target && ask(target);
    if (target) {
        CFRelease(target);
    }
    return is_known;
}
