/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a tree (tree_copy.h). A container that occurs several times is copied as often. */
#include "Tree/tree_copy.h"

#include "Tree/tree_builder.h"
#include "Tree/tree_walk.h"

static bool copy_object(struct tree_builder *builder, CFTypeRef object, enum tree_kind kind)
{
    switch (kind) {
    case tree_array:
    case tree_dictionary:
        return tree_builder_open(builder, kind);
    case tree_string:
        return tree_builder_add_string(builder, CFStringCreateCopy(builder->allocator, object));
    case tree_data:
        return tree_builder_add_data(builder, CFDataGetBytePtr(object), (size_t)CFDataGetLength(object));
    default:
        return tree_builder_add(builder, CFRetain(object));
    }
}

static bool copy_step(struct tree_builder *builder, enum tree_step step, CFTypeRef object, enum tree_kind kind)
{
    CFTypeRef container;

    switch (step) {
    case tree_meets:
        return copy_object(builder, object, kind);
    case tree_meets_key:
        return tree_builder_add_key(builder, CFStringCreateCopy(builder->allocator, object));
    case tree_leaves:
        return tree_builder_close(builder, &container);
    default:
        return false;
    }
}

CFTypeRef tree_copy(CFAllocatorRef allocator, CFTypeRef root, CFOptionFlags mutability)
{
    struct tree_walk walk;
    struct tree_builder builder;
    CFTypeRef copy = NULL;
    CFTypeRef object;
    enum tree_kind kind = tree_foreign;
    enum tree_step step;

    tree_walk_begin(&walk, root, tree_sorted_pairs);
    tree_builder_begin(&builder, allocator, mutability);
    while ((step = tree_walk_next(&walk, &object, &kind)) != tree_ends && copy_step(&builder, step, object, kind)) {
        object = NULL;
    }
    if (step == tree_ends) {
        copy = tree_builder_take(&builder);
    }
    tree_builder_end(&builder);
    tree_walk_end(&walk);
    return copy;
}
