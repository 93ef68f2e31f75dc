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

/*
 * Gives the object that is at fault, or NULL; and how many containers of a valid tree are in each other at most, unless `ret_height` is
 * NULL. `root` may be NULL.
 */
enum tree_fault tree_check(CFTypeRef root, CFPropertyListFormat format, CFTypeRef *ret_object, size_t *ret_height);

/*
 * What writes a container as often as it occurs could write for ever, as a short file can repeat one a million million times. So a tree of
 * more than `tree_measured_from` bytes may have 64 times those that it has with each container once.
 */
enum { tree_measured_from = 1 << 26 };
/* The most bytes that it may have; 0: there is no memory. */
size_t tree_size_max(CFTypeRef root);
/* About how many an object has, without what is in it. */
size_t tree_size_of(CFTypeRef object, enum tree_kind kind);

#endif
