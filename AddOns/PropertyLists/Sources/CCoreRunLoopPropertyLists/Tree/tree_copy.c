/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a tree (tree_copy.h). A container that occurs several times is copied once if the copy cannot be changed, and else as often as
 * tree_check.h allows.
 */
#include "Tree/tree_copy.h"

#include <stdlib.h>

#include "CoreFoundation/CFPropertyList.h"
#include "Tree/object_table.h"
#include "Tree/tree_builder.h"
#include "Tree/tree_check.h"
#include "Tree/tree_walk.h"

struct copying {
    struct tree_walk walk;
    struct tree_builder builder;
    struct object_table containers; /* that were met, of a copy that cannot be changed */
    CFTypeRef *copies; /* owned, by the number of a container; NULL: it is being copied */
    size_t capacity; /* of `copies` */
    size_t size; /* about how many bytes were copied, if the copy can be changed */
    size_t size_max;
};

/* Keeps the copy of a container for where it occurs again. Two keys may be equal in the copy, which drops what one of them had. */
static void keep_copy(struct copying *copying, CFTypeRef object, enum tree_kind kind, CFTypeRef copy)
{
    uint32_t number;

    (void)object_table_add(&copying->containers, object, kind, &number); /* it is there */
    copying->copies[number] = CFRetain(copy);
}

static bool make_room(struct copying *copying)
{
    if (copying->containers.capacity > copying->capacity) {
        CFTypeRef *copies = reallocarray(copying->copies, copying->containers.capacity, sizeof *copies);

        if (!copies) {
            return false;
        }
        copying->copies = copies;
        copying->capacity = copying->containers.capacity;
    }
    return true;
}

static bool copy_container(struct copying *copying, CFTypeRef object, enum tree_kind kind)
{
    uint32_t number;

    if (copying->builder.mutability != kCFPropertyListImmutable) {
        return tree_builder_open(&copying->builder, kind);
    }
    switch (object_table_add(&copying->containers, object, kind, &number)) {
    case object_is_known:
        tree_walk_pass_over(&copying->walk);
        return tree_builder_add(&copying->builder, CFRetain(copying->copies[number]));
    case object_is_new:
        if (!make_room(copying)) {
            copying->containers.count--; /* it has no place for a copy */
            return false;
        }
        copying->copies[number] = NULL;
        return tree_builder_open(&copying->builder, kind);
    default:
        return false;
    }
}

static bool copy_object(struct copying *copying, CFTypeRef object, enum tree_kind kind)
{
    struct tree_builder *builder = &copying->builder;

    switch (kind) {
    case tree_array:
    case tree_dictionary:
        return copy_container(copying, object, kind);
    case tree_string:
        return tree_builder_add_string(builder, CFStringCreateCopy(builder->allocator, object));
    case tree_data:
        return tree_builder_add_data(builder, CFDataGetBytePtr(object), (size_t)CFDataGetLength(object));
    default:
        return tree_builder_add(builder, CFRetain(object));
    }
}

/* Returns false if the copy becomes too large, or there is no memory to know that. */
static bool count_object(struct copying *copying, CFTypeRef root, CFTypeRef object, enum tree_kind kind)
{
    if (copying->builder.mutability == kCFPropertyListImmutable) {
        return true;
    }
    copying->size += tree_size_of(object, kind);
    if (copying->size > copying->size_max) {
        copying->size_max = tree_size_max(root);
    }
    return copying->size <= copying->size_max;
}

static bool copy_step(struct copying *copying, enum tree_step step, CFTypeRef root, CFTypeRef object, enum tree_kind kind)
{
    CFTypeRef container;

    switch (step) {
    case tree_meets:
        return count_object(copying, root, object, kind) && copy_object(copying, object, kind);
    case tree_meets_key:
        return count_object(copying, root, object, kind) &&
               tree_builder_add_key(&copying->builder, CFStringCreateCopy(copying->builder.allocator, object));
    case tree_leaves:
        if (!tree_builder_close(&copying->builder, &container)) {
            return false;
        }
        if (copying->builder.mutability == kCFPropertyListImmutable) {
            keep_copy(copying, object, kind, container);
        }
        return true;
    default:
        return false;
    }
}

static void end(struct copying *copying)
{
    for (size_t i = 0; i < copying->containers.count; i++) {
        if (copying->copies[i]) {
            CFRelease(copying->copies[i]);
        }
    }
    free(copying->copies);
    object_table_free(&copying->containers);
    tree_builder_end(&copying->builder);
    tree_walk_end(&copying->walk);
}

CFTypeRef tree_copy(CFAllocatorRef allocator, CFTypeRef root, CFOptionFlags mutability)
{
    enum { bytes_of_objects = 8 }; /* in memory, for one of those that are counted */
    struct copying copying = {.size_max = tree_measured_from / bytes_of_objects};
    CFTypeRef copy = NULL;
    CFTypeRef object;
    enum tree_kind kind = tree_foreign;
    enum tree_step step;

    tree_walk_begin(&copying.walk, root, tree_sorted_pairs);
    tree_builder_begin(&copying.builder, allocator, mutability);
    while ((step = tree_walk_next(&copying.walk, &object, &kind)) != tree_ends && copy_step(&copying, step, root, object, kind)) {
        object = NULL;
    }
    if (step == tree_ends) {
        copy = tree_builder_take(&copying.builder);
    }
    end(&copying);
    return copy;
}
