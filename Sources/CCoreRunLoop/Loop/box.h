/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function with its info and the info's release, counted: what stands in a context where Apple's API takes a block and CRLRunLoop.h takes
 * a function.
 */
#ifndef CRL_LOOP_BOX_H
#define CRL_LOOP_BOX_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdint.h>

struct box {
    _Atomic uint32_t count;
    void (*function)(void); /* C */
    void *info; /* C */
    void (*release)(void *info); /* C; NULL: nothing */
};

/* One reference; NULL if there is no memory. */
struct box *box_create(void (*function)(void), void *info, void (*release)(void *info));

/* In the form of a context's functions. The info is released with the last reference. */
const void *box_retain(const void *box);
void box_release(const void *box);

#endif
