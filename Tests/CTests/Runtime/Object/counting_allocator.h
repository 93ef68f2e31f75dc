/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator for tests: counts the blocks that are out, and fails when its allowance is used up.
 */
#ifndef CRL_TESTS_COUNTING_ALLOCATOR_H
#define CRL_TESTS_COUNTING_ALLOCATOR_H

#include "CoreFoundation/CFBase.h"

struct counting {
    CFAllocatorRef allocator; /* released by counting_close */
    long allowance; /* allocations and reallocations until they fail; -1 for no end */
    long blocks; /* out now */
    long calls; /* successful ones */
    long references; /* to the info pointer */
    long preferred_calls;
};

/* An allocator that can reallocate only if `reallocates`. */
void counting_open(struct counting *counting, long allowance, int reallocates);

/* Releases the allocator, and expects all blocks to be back. */
void counting_close(struct counting *counting);

#endif
