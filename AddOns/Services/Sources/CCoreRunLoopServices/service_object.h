/* SPDX-License-Identifier: Apache-2.0 */
/* What the objects of this wing have in common: registering their types, and refusing others. Any thread, no lock. */
#ifndef CRL_SERVICES_SERVICE_OBJECT_H
#define CRL_SERVICES_SERVICE_OBJECT_H

#include "services_link_names.h"

#include <stdatomic.h>

#include "CRLAddOn.h"

/* The id in `type`, which is registered first if it is 0. */
CFTypeID service_type(_Atomic CFTypeID *type, const CRLTypeFunctions *functions);
/* Stops the program if it is NULL. */
void service_require_pointer(const void *pointer, const char *function, const char *what);
/* Stops the program if `object` is NULL or of another type. */
void service_require(CFTypeRef object, CFTypeID type, const char *function, const char *what);

#endif
