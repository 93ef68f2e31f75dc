/* SPDX-License-Identifier: Apache-2.0 */
/* Streams on queues of libdispatch, where the process has that: it is not linked, only found. Any thread. */
#ifndef CRL_SERVICES_EVENT_QUEUE_H
#define CRL_SERVICES_EVENT_QUEUE_H

#include "services_link_names.h"

#include "CoreServices/FSEvents.h"

/* Returns a source of libdispatch, which serves the stream and holds it until some time after it was detached; NULL: there is none. */
void *event_queue_attach(FSEventStreamRef stream, void *queue);
void event_queue_detach(void *queue_source);

#endif
