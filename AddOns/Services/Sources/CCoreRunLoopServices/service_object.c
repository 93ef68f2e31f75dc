/* SPDX-License-Identifier: Apache-2.0 */
/* See service_object.h. */
#include "service_object.h"

#include <stdio.h>
#include <stdlib.h>

CFTypeID service_type(_Atomic CFTypeID *type, const CRLTypeFunctions *functions)
{
    CFTypeID known = atomic_load_explicit(type, memory_order_acquire);

    if (known == 0) {
        CFTypeID registered = CRLTypeRegister(functions);

        /* Of two threads one registers in vain, which costs a place among the types. */
        if (atomic_compare_exchange_strong_explicit(type, &known, registered, memory_order_acq_rel, memory_order_acquire)) {
            known = registered;
        }
    }
    return known;
}

void service_require(CFTypeRef object, CFTypeID type, const char *function, const char *what)
{
    if (!object || CFGetTypeID(object) != type) {
        (void)fprintf(stderr, "CoreRunLoop: %s: the %s is %s\n", function, what, object ? "another object" : "NULL");
        abort();
    }
}
