/* SPDX-License-Identifier: Apache-2.0 */
/* The words for an object: what CFCopyDescription says, and what %@ inserts. An object that holds itself is described once. */
#ifndef CRL_RUNTIME_TEXT_DESCRIPTION_H
#define CRL_RUNTIME_TEXT_DESCRIPTION_H

#include "Runtime/link_names.h"

#include "CoreFoundation/CFString.h"

/* Returns what %@ in a format inserts for the object, which is not NULL. */
CFStringRef description_copy_text(CFTypeRef object);

#endif
