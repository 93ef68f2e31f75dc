/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a tree from the binary format. Any thread. */
#ifndef CRL_PLIST_BINARY_READER_H
#define CRL_PLIST_BINARY_READER_H

#include "plist_link_names.h"

#include "CoreFoundation/CoreFoundation.h"
#include "Format/read_fault.h"

/* Says whether the bytes are meant to be in the binary format. */
bool binary_is_meant(const uint8_t *bytes, size_t length);
/* Reads bytes for which binary_is_meant. The caller releases the tree; NULL if there is none. */
CFTypeRef binary_read(CFAllocatorRef allocator, const uint8_t *bytes, size_t length, CFOptionFlags mutability, struct read_fault *fault);

#endif
