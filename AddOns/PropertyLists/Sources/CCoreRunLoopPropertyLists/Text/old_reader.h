/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a tree from the old format of OpenStep, and from files of strings in it. Any thread. */
#ifndef CRL_PLIST_OLD_READER_H
#define CRL_PLIST_OLD_READER_H

#include "plist_link_names.h"

#include "CoreFoundation/CoreFoundation.h"
#include "Format/read_fault.h"

/* Reads UTF-8. The caller releases the tree; NULL if there is none. */
CFTypeRef old_read(CFAllocatorRef allocator, const uint8_t *bytes, size_t length, CFOptionFlags mutability, struct read_fault *fault);

#endif
