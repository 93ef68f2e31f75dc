/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * The part of Apple's SystemConfiguration that is here: whether there is a way to an address or a name, and when that changes. It is in the
 * add-on library libcorerunloop-services.
 */

#if !defined(_SYSTEMCONFIGURATION_H)
#define _SYSTEMCONFIGURATION_H 1

#include "../CoreFoundation/CFBase.h"
#include "SCNetworkReachability.h"

CF_EXTERN_C_BEGIN

/** Why a function of SystemConfiguration failed: the values of SCError. */
enum {
    kSCStatusOK = 0, /**< It did not. */
    kSCStatusFailed = 1001, /**< There is no memory, no descriptor, or no libdispatch. */
    kSCStatusInvalidArgument = 1002, /**< An argument is none of those that the function takes. */
    kSCStatusAccessError = 1003, /**< The process may not listen to the kernel's messages of routes. */
    kSCStatusReachabilityUnknown = 4001 /**< It is not known whether there is a way. */
};

/**
 * Returns why the latest call of this thread that failed did: one of kSCStatus. A call that succeeds leaves it as it is.
 *
 * Threads: any; each has its own.
 */
CF_EXPORT int SCError(void) CRL_LINK(SCError);

/**
 * Returns an English sentence for a value of SCError.
 *
 * Ownership: the text is constant.
 * Threads: any.
 */
CF_EXPORT const char *SCErrorString(int status) CRL_LINK(SCErrorString);

CF_EXTERN_C_END

#endif /* ! _SYSTEMCONFIGURATION_H */
