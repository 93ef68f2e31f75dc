/* SPDX-License-Identifier: Apache-2.0 */
/* A weak reference to a host, for what may outlive it: its source, and its question. Any thread. */
#ifndef CRL_HOST_HOST_LINK_H
#define CRL_HOST_HOST_LINK_H

#include "Host/link_names.h"

#include "CFNetwork/CFHost.h"
#include "Support/lock.h"

struct host_link {
    CFHostRef host GUARDED_BY(the_item_lock); /* the link's own lock; NULL: cut */
};

EXCLUDES(the_item_lock) void host_link_init(struct host_link *link, CFHostRef host);
/* Returns the host with a reference, or NULL if it is gone. */
EXCLUDES(the_item_lock) CFHostRef host_link_retain(struct host_link *link);
/* The host calls this when it ends, and when it does not want to be told any more. */
EXCLUDES(the_item_lock) void host_link_cut(struct host_link *link);

#endif
