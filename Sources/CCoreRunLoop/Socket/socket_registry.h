/* SPDX-License-Identifier: Apache-2.0 */
/* Which socket object stands for a descriptor: at most one for each number. Any thread; the functions take the registry's lock. */
#ifndef CRL_SOCKET_SOCKET_REGISTRY_H
#define CRL_SOCKET_SOCKET_REGISTRY_H

#include "Socket/link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CFSocket.h"

/* Returns the object of a descriptor, with a reference, or NULL. */
CFSocketRef socket_registry_find(int native);
/*
 * Registers `s` and returns NULL; or returns the object that is registered already, with a reference. `ret_failed`: there is no memory,
 * and `s` is not registered.
 */
CFSocketRef socket_registry_add(int native, CFSocketRef s, bool *ret_failed);
/* Does nothing if the number stands for another object, or for none. */
void socket_registry_remove(int native, CFSocketRef s);
/* The kernel has just given out the number: an object that still claims it has lost its descriptor, and will not close it. */
void socket_registry_evict(int native);

#endif
