/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects lent to a thread by CFAutorelease: a pool for each thread, drained by the run loop and at the thread's end.
 */
#ifndef CRL_RUNTIME_AUTORELEASE_H
#define CRL_RUNTIME_AUTORELEASE_H

#include "Runtime/link_names.h"

#include <stdbool.h>

/* Releases what the calling thread's pool holds. The loop calls it at the end of each outermost pass, with no lock held; costs one load
   when the pool is empty. */
void autorelease_drain(void);

/* Returns true if the calling thread's pool holds an object. */
bool autorelease_has_objects(void);

#endif
