/* SPDX-License-Identifier: Apache-2.0 */
/* The modes that a host is scheduled in. */
#ifndef CRL_HOST_HOST_SCHEDULE_H
#define CRL_HOST_HOST_SCHEDULE_H

#include "Host/link_names.h"

#include "Host/host.h"

/* Returns false if there is no memory. */
EXCLUDES(the_item_lock) bool host_schedule_add(CFHostRef host, CFRunLoopRef loop, CFStringRef mode);
EXCLUDES(the_item_lock) void host_schedule_remove(CFHostRef host, CFRunLoopRef loop, CFStringRef mode);
/* Has the host's source performed. */
EXCLUDES(the_item_lock) void host_schedule_signal(CFHostRef host);

#endif
