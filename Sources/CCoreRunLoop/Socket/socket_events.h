/* SPDX-License-Identifier: Apache-2.0 */
/* The delivery of a socket's events when its descriptor is ready. */
#ifndef CRL_SOCKET_SOCKET_EVENTS_H
#define CRL_SOCKET_SOCKET_EVENTS_H

#include "Socket/link_names.h"

#include <stdint.h>

#include "CoreFoundation/CFRunLoop.h"

/* The callback of the run loop source: `perform` in descriptor_source.h. `object` is the socket. */
void socket_perform(void *object, CFRunLoopSourceRef source, uint32_t ready);

#endif
