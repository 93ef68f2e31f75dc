/* SPDX-License-Identifier: Apache-2.0 */
/* How a host asks the add-on library, waits for the answer, and gives up. */
#ifndef CRL_HOST_HOST_ASK_H
#define CRL_HOST_HOST_ASK_H

#include "Host/link_names.h"

#include "Host/host.h"

/* Begins to ask. Returns false, with the error, if it cannot. */
EXCLUDES(the_item_lock) bool host_ask(CFHostRef host, CFHostInfoType info, CFStreamError *ret_error);
/* As host_ask, and waits for the answer. */
EXCLUDES(the_item_lock) bool host_ask_and_wait(CFHostRef host, CFHostInfoType info, CFStreamError *ret_error);
EXCLUDES(the_item_lock) void host_cancel(CFHostRef host, CFHostInfoType info);

#endif
