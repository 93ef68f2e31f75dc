/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * The part of Apple's CFNetwork that is here: hosts, and TLS of streams.
 */

#if !defined(__CFNETWORK__)
#define __CFNETWORK__ 1

#include "../CoreFoundation/CoreFoundation.h"
#include "CFHost.h"
#include "CFSocketStream.h"

#endif /* ! __CFNETWORK__ */
