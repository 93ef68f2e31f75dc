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

static _Noreturn void stop(const char *function, const char *what, const char *is)
{
    (void)fprintf(stderr, "CoreRunLoop: %s: the %s is %s\n", function, what, is);
    abort();
}

void service_require_pointer(const void *pointer, const char *function, const char *what)
{
    if (!pointer) {
        stop(function, what, "NULL");
    }
}

void service_require(CFTypeRef object, CFTypeID type, const char *function, const char *what)
{
    service_require_pointer(object, function, what);
    if (CFGetTypeID(object) != type) {
        stop(function, what, "another object");
    }
}
