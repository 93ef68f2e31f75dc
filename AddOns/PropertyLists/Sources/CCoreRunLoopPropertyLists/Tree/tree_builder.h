/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a tree from its leaves and the beginnings and ends of its containers, in the order of reading. What has come and is not in a
 * finished container waits in one stack.
 *
 * A builder belongs to one thread, and owns all that it was given until tree_builder_take. A call that returns false found no memory; the
 * builder is then only ended.
 */
#ifndef CRL_PLIST_TREE_BUILDER_H
#define CRL_PLIST_TREE_BUILDER_H

#include "plist_link_names.h"

#include <stddef.h>

#include "Tree/tree_kind.h"

struct tree_builder {
    CFAllocatorRef allocator;
    CFOptionFlags mutability; /* one of CFPropertyListMutabilityOptions */
    bool keeps_first; /* of values with equal keys; otherwise the last one is kept */
    const void **keys; /* of the values, as many; NULL in an array */
    const void **values;
    size_t count;
    size_t capacity;
    CFStringRef key; /* of the value that comes next, or NULL */
    struct open_container {
        size_t first; /* of its values */
        CFStringRef key; /* its own in the dictionary around it, or NULL */
        enum tree_kind kind;
        size_t separated; /* of its values: those behind which a reader has found what separates them */
    } *open;
    size_t depth;
    size_t open_capacity;
};

void tree_builder_begin(struct tree_builder *builder, CFAllocatorRef allocator, CFOptionFlags mutability);

/* Takes the key for the next value. `key` is NULL when its maker had no memory. */
bool tree_builder_add_key(struct tree_builder *builder, CFStringRef key);
/* Takes a leaf, or a container made before. `value` is NULL when its maker had no memory. */
bool tree_builder_add(struct tree_builder *builder, CFTypeRef value);
bool tree_builder_add_string(struct tree_builder *builder, CFStringRef text);
bool tree_builder_add_data(struct tree_builder *builder, const UInt8 *bytes, size_t count);
bool tree_builder_open(struct tree_builder *builder, enum tree_kind kind);
/* Ends the container that was opened last. Gives the container, borrowed. */
bool tree_builder_close(struct tree_builder *builder, CFTypeRef *ret_container);

/* The only value, with all containers closed. The caller releases it. */
CFTypeRef tree_builder_take(struct tree_builder *builder);
void tree_builder_end(struct tree_builder *builder);

#endif
