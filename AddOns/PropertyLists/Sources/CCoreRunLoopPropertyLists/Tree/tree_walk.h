/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over the objects of a tree, from the root down and in the order in which they are written, with a stack in the heap: a tree may
 * be as deep as memory allows. A container in a container is met again wherever it occurs.
 *
 * A walk belongs to one thread. It borrows the tree, which stays as it is meanwhile.
 */
#ifndef CRL_PLIST_TREE_WALK_H
#define CRL_PLIST_TREE_WALK_H

#include "plist_link_names.h"

#include <stddef.h>

#include "Tree/tree_kind.h"

/*
 * Of a dictionary: keys by their letters, if all are strings, each before its value; or first all keys in the dictionary's own
 * order, and then all values.
 */
enum tree_order { tree_sorted_pairs, tree_keys_first };

enum tree_step {
    tree_meets, /* a leaf, or a container, whose contents come next unless the walk is told to pass over them */
    tree_meets_key,
    tree_leaves, /* a container */
    tree_ends,
    tree_lacks_memory
};

struct tree_level {
    CFTypeRef container;
    const void **objects; /* of a dictionary: its keys, then its values; NULL for an array */
    CFIndex count; /* of values */
    CFIndex next; /* what is met next: a value of an array, a key or value of a dictionary */
};

struct tree_walk {
    CFTypeRef root; /* NULL once it has been met */
    CFTypeRef inside; /* a container that has just been met and is to be entered, or NULL */
    enum tree_kind inside_kind;
    enum tree_order order;
    struct tree_level *levels;
    size_t depth; /* of the levels in use */
    size_t capacity;
};

void tree_walk_begin(struct tree_walk *walk, CFTypeRef root, enum tree_order order);
/* Gives the object of the step, and its kind, which of a key is tree_string or not. */
enum tree_step tree_walk_next(struct tree_walk *walk, CFTypeRef *ret_object, enum tree_kind *ret_kind);
/* After tree_meets: the contents of this container do not come, nor does tree_leaves. */
void tree_walk_pass_over(struct tree_walk *walk);
void tree_walk_end(struct tree_walk *walk);

#endif
