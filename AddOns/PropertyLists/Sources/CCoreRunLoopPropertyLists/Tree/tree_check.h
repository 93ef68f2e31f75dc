/* SPDX-License-Identifier: Apache-2.0 */
/* Says whether a tree can be written in a format. Any thread; the tree stays as it is meanwhile. */
#ifndef CRL_PLIST_TREE_CHECK_H
#define CRL_PLIST_TREE_CHECK_H

#include "plist_link_names.h"

#include "Tree/tree_kind.h"

enum tree_fault {
    tree_is_valid,
    tree_has_null, /* the root or a value is NULL */
    tree_has_foreign, /* an object that the format cannot hold */
    tree_has_foreign_key,
    tree_has_cycle,
    tree_is_unchecked /* there is no memory */
};

/* Gives the object that is at fault, or NULL. `root` may be NULL. */
enum tree_fault tree_check(CFTypeRef root, CFPropertyListFormat format, CFTypeRef *ret_object);

/* About how many bytes the tree has when each container is written once; 0: there is no memory. */
size_t tree_measure(CFTypeRef root);

#endif
