/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that sends requests and takes their replies; see async_request.h. */
#ifndef CRL_PORT_ASYNC_ASYNC_DISPATCH_H
#define CRL_PORT_ASYNC_ASYNC_DISPATCH_H

#include "Port/link_names.h"

#include "Port/Async/async_request.h"

/* Makes the calling thread's loop serve requests in its default mode. Returns NULL if there is no memory. */
struct async_requests *async_requests_create(void);
/* Ends it on its thread: requests that are not over end as if their port had ended. Other threads may use it no more. */
void async_requests_destroy(struct async_requests *requests);

#endif
