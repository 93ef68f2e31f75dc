/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the system has a way to an address. No state, no locks; nothing is sent. */
#ifndef CRL_HOST_REACHABILITY_H
#define CRL_HOST_REACHABILITY_H

#include "Host/link_names.h"

#include "CoreFoundation/CFArray.h"
#include "CoreFoundation/CFData.h"

/* Data with the flags of kSCNetworkFlags that hold for one of the addresses; NULL if there is no memory. */
CFDataRef reachability_create(CFArrayRef addresses);

#endif
