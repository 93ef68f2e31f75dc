/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a tree. Any thread; the tree stays as it is meanwhile. */
#ifndef CRL_PLIST_TREE_COPY_H
#define CRL_PLIST_TREE_COPY_H

#include "plist_link_names.h"

#include "Tree/tree_kind.h"

/* Copies a tree that tree_check has found valid. The caller releases the copy, which is NULL without memory. */
CFTypeRef tree_copy(CFAllocatorRef allocator, CFTypeRef root, CFOptionFlags mutability);

#endif
