/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRL_RUNTIME_SORT_H
#define CRL_RUNTIME_SORT_H

#include "Runtime/link_names.h"

#include "CoreFoundation/CFBase.h"

/* Equal values keep their order. `spare` has room for as many; the comparator, of the program, is called without locks. */
void sort_stably(const void **values, CFIndex count, const void **spare, CFComparatorFunction comparator, void *context);

#endif
