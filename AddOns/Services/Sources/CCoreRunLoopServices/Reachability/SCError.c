/* SPDX-License-Identifier: Apache-2.0 */
/* Why the latest call of a thread failed. */
#include "Reachability/reach_target.h"

static __thread int latest;

int SCError(void)
{
    return latest;
}

bool sc_status_leave(int status)
{
    if (status != kSCStatusOK) {
        latest = status;
    }
    return status == kSCStatusOK;
}

const char *SCErrorString(int status)
{
    switch (status) {
    case kSCStatusOK:
        return "There was no error";
    case kSCStatusFailed:
        return "There is no memory, no descriptor, or no dispatch queue";
    case kSCStatusInvalidArgument:
        return "An argument is invalid";
    case kSCStatusAccessError:
        return "The kernel's messages about routes may not be listened to";
    case kSCStatusReachabilityUnknown:
        return "It is not known whether there is a way";
    default:
        return "Unknown error";
    }
}
