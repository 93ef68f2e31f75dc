/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that is made before its bytes are there, so that bytes which have been taken from a file or a socket cannot be lost for want of
 * memory. CFData.c has it; no locks.
 */
#ifndef CRL_RUNTIME_DATA_H
#define CRL_RUNTIME_DATA_H

#include "Support/link_names.h"

#include "CoreFoundation/CFData.h"

/* Shortens data made by CFDataCreateWithBytesNoCopy with kCFAllocatorMalloc, which only the caller knows yet, to `length` bytes. */
void data_shorten(CFDataRef data, CFIndex length);

#endif
