/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The argument of a local port's callouts: the context's info, or the object of a receiver that is called in its place. Any thread; the
 * port's lock guards both, and the program is called without it.
 */
#ifndef CRL_PORT_CORE_LOCAL_INFO_H
#define CRL_PORT_CORE_LOCAL_INFO_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"

/* Asks the program to describe the info, and keeps the info until it has. Returns NULL if the program does not, or the port is invalid. */
CFStringRef local_port_describe_info(CFMessagePortRef port);
/* Gives the info back, unless a callout on another thread uses it. */
void local_port_release_info(CFMessagePortRef port);
/*
 * Makes callouts that begin from now on get `object` instead of the info, until the port is invalid. Takes over a reference to `object`,
 * and releases it at once if the port is invalid already. Callouts that have begun keep their old argument, which is released after the
 * last of them, even if that callout invalidates the port. Returns false, with nothing changed, if there is no memory.
 */
bool local_port_set_receiver(CFMessagePortRef port, void *object);
/* Ends a callout that got the receiver's object. If it returns true, `*ret_object` is to be released once the lock is dropped. */
REQUIRES(the_port_lock) bool receiver_call_ended(const struct local_port *local, struct receiver *receiver, void **ret_object);

/*
 * Retains the info of a new port whose context has a `retain`. The program is called without a lock, while others can find the port by its
 * name and invalidate it. The making of the port counts as a user of the info, so that it is not released before it was retained.
 */
void local_port_retain_info(CFMessagePortRef port, const CFMessagePortContext *context);

#endif
