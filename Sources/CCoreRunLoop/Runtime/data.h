/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that is made before its bytes are there, so that bytes which have been taken from a file or a socket cannot be lost for want of
 * memory. CFData.c has it; no locks.
 */
#ifndef CRL_RUNTIME_DATA_H
#define CRL_RUNTIME_DATA_H

#include "Support/link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CFData.h"

/* Shortens data made by CFDataCreateWithBytesNoCopy with kCFAllocatorMalloc, which only the caller knows yet, to `length` bytes. */
void data_shorten(CFDataRef data, CFIndex length);

/*
 * Whether the data, retained, is as good as a copy of it: it cannot change, and its bytes are its own or malloc's, not those of a caller
 * who may have other plans for them once he thinks that they were copied.
 */
bool data_is_shareable(CFDataRef data);

/*
 * Data with bytes that its maker shows to nobody but one who would take its bytes from it: that one may have the object itself. The mark is
 * made and taken while no other thread knows the data; taking it says whether it was there.
 */
void data_mark_given(CFDataRef data);
bool data_take_given(CFDataRef data);

/* Immutable data without bytes, always the same, which needs no reference. */
CFDataRef data_empty(void);

/* New data on the bytes of data that is shareable, which it holds on to. NULL if there is no memory. */
CFDataRef data_create_sharing(CFDataRef data);

#endif
