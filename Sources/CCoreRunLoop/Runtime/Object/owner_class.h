/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an object of another runtime counts references to itself, for objects that leave their counting to it (object_give_to_owner).
 */
#ifndef CRL_RUNTIME_OWNER_CLASS_H
#define CRL_RUNTIME_OWNER_CLASS_H

#include "Runtime/link_names.h"

/* The functions are the same for all owners of a process, and may be called on any thread. */
struct object_owner_class {
    void (*retain)(void *owner);
    void (*release)(void *owner);
};

#endif
