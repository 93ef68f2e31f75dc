/* SPDX-License-Identifier: Apache-2.0 */
/* Says whether a tree can be written in a format, and how much it is (tree_check.h). A container that occurs again is checked once. */
#include "Tree/tree_check.h"

#include <stdlib.h>

#include "Support/invariant.h"
#include "Tree/object_table.h"
#include "Tree/tree_walk.h"

struct check {
    struct tree_walk walk;
    struct object_table containers;
    struct checked_container {
        bool is_open; /* the walk is inside it */
        uint32_t around; /* the number of that in which it was met; of the root its own */
        size_t height; /* 1 if no container is in it, as far as it was checked */
    } *checked; /* by the number of a container */
    size_t capacity; /* of `checked` */
    uint32_t innermost; /* of those that are open */
    size_t height; /* of the container that was left last */
    CFPropertyListFormat format;
};

static bool can_hold(CFPropertyListFormat format, enum tree_kind kind)
{
    return kind != tree_foreign &&
           (format != kCFPropertyListOpenStepFormat || (kind != tree_number && kind != tree_boolean && kind != tree_date));
}

static bool make_room(struct check *check)
{
    if (check->containers.capacity > check->capacity) {
        struct checked_container *checked = reallocarray(check->checked, check->containers.capacity, sizeof *checked);

        if (!checked) {
            return false;
        }
        check->checked = checked;
        check->capacity = check->containers.capacity;
    }
    return true;
}

/* The innermost container has one of this height in it. */
static void note_height(struct check *check, size_t height)
{
    struct checked_container *innermost = &check->checked[check->innermost];

    innermost->height = innermost->height > height ? innermost->height : height + 1;
}

static void leave_container(struct check *check)
{
    struct checked_container *left = &check->checked[check->innermost];

    invariant(left->is_open);
    left->is_open = false;
    check->height = left->height;
    check->innermost = left->around;
    note_height(check, check->height);
}

static enum tree_fault check_container(struct check *check, CFTypeRef container, enum tree_kind kind)
{
    uint32_t number;

    switch (object_table_add(&check->containers, container, kind, &number)) {
    case object_is_known:
        if (check->checked[number].is_open) {
            return tree_has_cycle;
        }
        note_height(check, check->checked[number].height);
        tree_walk_pass_over(&check->walk);
        return tree_is_valid;
    case object_is_new:
        if (!make_room(check)) {
            return tree_is_unchecked;
        }
        check->checked[number] = (struct checked_container){true, check->innermost, 1};
        check->innermost = number;
        return tree_is_valid;
    default:
        return tree_is_unchecked;
    }
}

static enum tree_fault check_step(struct check *check, enum tree_step step, CFTypeRef object, enum tree_kind kind)
{
    switch (step) {
    case tree_meets:
        if (!object) {
            return tree_has_null;
        }
        if (!can_hold(check->format, kind)) {
            return tree_has_foreign;
        }
        return tree_kind_is_container(kind) ? check_container(check, object, kind) : tree_is_valid;
    case tree_meets_key:
        return kind == tree_string ? tree_is_valid : tree_has_foreign_key;
    case tree_leaves:
        leave_container(check);
        return tree_is_valid;
    default:
        return tree_is_unchecked;
    }
}

enum tree_fault tree_check(CFTypeRef root, CFPropertyListFormat format, CFTypeRef *ret_object, size_t *ret_height)
{
    struct check check = {.format = format};
    enum tree_fault fault = root ? tree_is_valid : tree_has_null;
    enum tree_kind kind = tree_foreign;
    enum tree_step step;

    *ret_object = NULL;
    tree_walk_begin(&check.walk, root, tree_keys_first);
    while (fault == tree_is_valid && (step = tree_walk_next(&check.walk, ret_object, &kind)) != tree_ends) {
        fault = check_step(&check, step, *ret_object, kind);
    }
    tree_walk_end(&check.walk);
    object_table_free(&check.containers);
    free(check.checked);
    if (ret_height) {
        *ret_height = check.height;
    }
    return fault;
}

size_t tree_size_of(CFTypeRef object, enum tree_kind kind)
{
    enum { least = 16 };

    return kind == tree_string ? least + (size_t)CFStringGetLength(object)
           : kind == tree_data ? least + (size_t)CFDataGetLength(object)
                               : least;
}

/* About how many bytes the tree has when each container is written once; 0: there is no memory. */
static size_t measure(CFTypeRef root)
{
    struct object_table containers = {0};
    struct tree_walk walk;
    size_t size = 0;
    enum object_table_result result = object_is_new;
    enum tree_kind kind = tree_foreign;
    enum tree_step step;
    CFTypeRef object;
    uint32_t number;

    tree_walk_begin(&walk, root, tree_keys_first);
    while (result != object_lacks_memory && (step = tree_walk_next(&walk, &object, &kind)) != tree_ends) {
        if (step == tree_meets && tree_kind_is_container(kind)) {
            result = object_table_add(&containers, object, kind, &number);
            if (result == object_is_known) {
                tree_walk_pass_over(&walk);
            }
        } else if (step == tree_lacks_memory) {
            result = object_lacks_memory;
        }
        size += step == tree_leaves ? 0 : tree_size_of(object, kind);
    }
    tree_walk_end(&walk);
    object_table_free(&containers);
    return result == object_lacks_memory ? 0 : size;
}

size_t tree_size_max(CFTypeRef root)
{
    enum { times_repeated = 64 };
    size_t size = measure(root);

    return size > SIZE_MAX / times_repeated ? SIZE_MAX : size * times_repeated;
}
