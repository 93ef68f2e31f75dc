/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of a way, as the kernel routes now. Any thread, no state; waits for nothing. */
#ifndef CRL_SERVICES_ROUTE_LOOK_H
#define CRL_SERVICES_ROUTE_LOOK_H

#include "services_link_names.h"

#include "CoreFoundation/CoreFoundation.h"
#include "Reachability/route_kernel.h"
#include "SystemConfiguration/SCNetworkReachability.h"

/* Copies an address without its port; one of IPv4 in IPv6 becomes that of IPv4. Returns false if it is none of IP. */
bool route_end_make(union route_end *ret_end, const struct sockaddr *address);
/* One of the two has an address. Returns 0, or a negative errno where there is no memory or descriptor to look. */
int route_look(const union route_end *local, const union route_end *remote, SCNetworkReachabilityFlags *ret_flags);
/* The flags of the first of the addresses, CFDatas, to which there is a way. */
int route_look_each(CFArrayRef addresses, SCNetworkReachabilityFlags *ret_flags);

#endif
