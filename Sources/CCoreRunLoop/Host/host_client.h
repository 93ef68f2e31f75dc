/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a host, and the perform function of its source. */
#ifndef CRL_HOST_HOST_CLIENT_H
#define CRL_HOST_HOST_CLIENT_H

#include "Host/link_names.h"

#include "Host/host.h"

/* Returns false if there is no memory. NULL removes the client. */
EXCLUDES(the_item_lock) bool host_client_set(CFHostRef host, CFHostClientCallBack callback, const CFHostClientContext *context);
void host_client_release(const void *client); /* NULL is allowed */
/* A text for the host's description, or NULL. */
EXCLUDES(the_item_lock) CFStringRef host_client_describe(CFHostRef host);

/* The perform function of the host's source; `info` is the source's link. Tells the client of an answer. */
void host_perform(void *info);

#endif
