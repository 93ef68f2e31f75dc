/* SPDX-License-Identifier: Apache-2.0 */
/* What a target of reachability has told. */
#ifndef CRL_TESTS_REACH_PROBE_H
#define CRL_TESTS_REACH_PROBE_H

#include "SystemConfiguration/SystemConfiguration.h"
#include "harness.h"

enum {
    reach_is_there = kSCNetworkReachabilityFlagsReachable,
    reach_is_direct = reach_is_there | kSCNetworkReachabilityFlagsIsDirect,
    reach_is_own = reach_is_direct | kSCNetworkReachabilityFlagsIsLocalAddress
};

struct reach_probe {
    SCNetworkReachabilityRef target;
    _Atomic int count; /* of calls */
    SCNetworkReachabilityFlags flags; /* of the latest one */
    void (*action)(struct reach_probe *probe); /* in a call; NULL: none */
    int retains;
    int releases;
};

SCNetworkReachabilityRef reach_probe_create(const char *address);
/* Sets the probe's callback. */
void reach_probe_watch(struct reach_probe *probe);
/* The same, and schedules the target in the default mode of this thread's loop. */
void reach_probe_schedule(struct reach_probe *probe);
void reach_probe_unschedule(struct reach_probe *probe);
/* Runs the default mode until it has nothing to do. */
void reach_probe_run(void);
/* Runs it so, and expects so many calls since the last time, of which the latest had these flags. */
#define EXPECT_TOLD(_probe, _count, _flags)                             \
    do {                                                                \
        reach_probe_run();                                              \
        EXPECT_EQ((_probe)->count, _count);                             \
        EXPECT((_count) == 0 || (_probe)->flags == (unsigned)(_flags)); \
        (_probe)->count = 0;                                            \
    } while (0)
/* The flags as they are. Fails the test if they are not known. */
SCNetworkReachabilityFlags reach_probe_flags(SCNetworkReachabilityRef target);

#endif
