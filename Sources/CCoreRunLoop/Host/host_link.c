/* SPDX-License-Identifier: Apache-2.0 */
/* See host_link.h. */
#include "Host/host_link.h"

#include "Runtime/Object/object.h"

void host_link_init(struct host_link *link, CFHostRef host)
{
    lock_take(item_lock(link));
    link->host = host;
    lock_drop(item_lock(link));
}

CFHostRef host_link_retain(struct host_link *link)
{
    CFHostRef host;

    lock_take(item_lock(link));
    host = link->host && object_try_retain(link->host) ? link->host : NULL;
    lock_drop(item_lock(link));
    return host;
}

void host_link_cut(struct host_link *link)
{
    lock_take(item_lock(link));
    link->host = NULL;
    lock_drop(item_lock(link));
}
