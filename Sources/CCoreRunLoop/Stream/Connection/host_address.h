/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of hosts that are known without asking: numeric ones, and "localhost". */
#ifndef CRL_STREAM_HOST_ADDRESS_H
#define CRL_STREAM_HOST_ADDRESS_H

#include "Stream/link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CFArray.h"
#include "CoreFoundation/CFString.h"

/*
 * `*ret_addresses` is an array of CFData with a struct sockaddr each, which the caller owns, or NULL for a name that has to be asked for.
 * Returns false if there is no memory.
 */
bool host_address_create(CFStringRef host, UInt32 port, CFArrayRef *ret_addresses);

#endif
