/* SPDX-License-Identifier: Apache-2.0 */
/* Types that add-on libraries register (CRLAddOn.h). Their ids follow those of the library's own types. */
#ifndef CRL_RUNTIME_ADDED_TYPES_H
#define CRL_RUNTIME_ADDED_TYPES_H

#include "Runtime/link_names.h"

#include "CoreFoundation/CFBase.h"

/* NULL: no such type. */
const char *added_type_name(CFTypeID type);

#endif
