/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the objects of a tree (tree_walk.h). */
#include "Tree/tree_walk.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"

enum { few_keys = 12 };

struct key_and_value {
    const void *key;
    const void *value;
    const char *ascii; /* of the key, or NULL */
    size_t length; /* of the key */
};

static int compare_keys(const void *one, const void *other)
{
    const struct key_and_value *pair1 = one;
    const struct key_and_value *pair2 = other;
    int order;

    if (!pair1->ascii || !pair2->ascii) {
        return (int)CFStringCompare(pair1->key, pair2->key, 0);
    }
    order = memcmp(pair1->ascii, pair2->ascii, pair1->length < pair2->length ? pair1->length : pair2->length);
    return order != 0 ? order : (pair1->length > pair2->length) - (pair1->length < pair2->length);
}

/* For the few keys that most dictionaries have. */
static void sort_few(struct key_and_value *pairs, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct key_and_value pair = pairs[i];
        size_t place = i;

        for (; place > 0 && compare_keys(&pairs[place - 1], &pair) > 0; place--) {
            pairs[place] = pairs[place - 1];
        }
        pairs[place] = pair;
    }
}

static bool are_strings(const void **keys, size_t count)
{
    size_t i = 0;

    while (i < count && keys[i] && tree_kind_of(keys[i]) == tree_string) {
        i++;
    }
    return i == count;
}

static bool sort_pairs(const void **objects, size_t count)
{
    struct key_and_value *pairs = malloc(count * sizeof *pairs);

    if (!pairs) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        pairs[i] = (struct key_and_value){objects[i], objects[count + i], CFStringGetCStringPtr(objects[i], kCFStringEncodingASCII),
                                          (size_t)CFStringGetLength(objects[i])};
    }
    if (count <= few_keys) {
        sort_few(pairs, count);
    } else {
        qsort(pairs, count, sizeof *pairs, compare_keys);
    }
    for (size_t i = 0; i < count; i++) {
        objects[i] = pairs[i].key;
        objects[count + i] = pairs[i].value;
    }
    free(pairs);
    return true;
}

static bool enter(struct tree_walk *walk, CFTypeRef container, enum tree_kind kind)
{
    struct tree_level level = {container, NULL, 0, 0};

    if (walk->depth == walk->capacity) {
        size_t capacity = walk->capacity ? walk->capacity * 2 : 16;
        struct tree_level *levels = reallocarray(walk->levels, capacity, sizeof *levels);

        if (!levels) {
            return false;
        }
        walk->levels = levels;
        walk->capacity = capacity;
    }
    if (kind == tree_array) {
        level.count = CFArrayGetCount(container);
    } else {
        level.count = CFDictionaryGetCount(container);
        level.objects = calloc((size_t)level.count * 2 + 1, sizeof *level.objects);
        if (!level.objects) {
            return false;
        }
        CFDictionaryGetKeysAndValues(container, level.objects, level.objects + level.count);
        if (walk->order == tree_sorted_pairs && level.count > 1 && are_strings(level.objects, (size_t)level.count) &&
            !sort_pairs(level.objects, (size_t)level.count)) {
            free(level.objects);
            return false;
        }
    }
    walk->levels[walk->depth++] = level;
    return true;
}

static enum tree_step meet(struct tree_walk *walk, CFTypeRef object, enum tree_kind *ret_kind)
{
    *ret_kind = object ? tree_kind_of(object) : tree_foreign;
    walk->inside = tree_kind_is_container(*ret_kind) ? object : NULL;
    walk->inside_kind = *ret_kind;
    return tree_meets;
}

static enum tree_step meet_key(CFTypeRef key, enum tree_kind *ret_kind)
{
    *ret_kind = key ? tree_kind_of(key) : tree_foreign;
    return tree_meets_key;
}

static enum tree_step next_of_dictionary(struct tree_walk *walk, struct tree_level *level, CFTypeRef *ret_object, enum tree_kind *ret_kind)
{
    CFIndex next = level->next++;
    bool is_key = walk->order == tree_keys_first ? next < level->count : next % 2 == 0;

    if (walk->order == tree_sorted_pairs) {
        next = is_key ? next / 2 : level->count + next / 2;
    }
    *ret_object = level->objects[next];
    return is_key ? meet_key(*ret_object, ret_kind) : meet(walk, *ret_object, ret_kind);
}

void tree_walk_begin(struct tree_walk *walk, CFTypeRef root, enum tree_order order)
{
    *walk = (struct tree_walk){.root = root, .order = order};
}

enum tree_step tree_walk_next(struct tree_walk *walk, CFTypeRef *ret_object, enum tree_kind *ret_kind)
{
    struct tree_level *level;

    if (walk->root) {
        *ret_object = walk->root;
        walk->root = NULL;
        return meet(walk, *ret_object, ret_kind);
    }
    if (walk->inside) {
        if (!enter(walk, walk->inside, walk->inside_kind)) {
            return tree_lacks_memory;
        }
        walk->inside = NULL;
    }
    if (walk->depth == 0) {
        return tree_ends;
    }
    level = &walk->levels[walk->depth - 1];
    if (level->next < (level->objects ? level->count * 2 : level->count)) {
        if (level->objects) {
            return next_of_dictionary(walk, level, ret_object, ret_kind);
        }
        *ret_object = CFArrayGetValueAtIndex(level->container, level->next++);
        return meet(walk, *ret_object, ret_kind);
    }
    *ret_object = level->container;
    *ret_kind = level->objects ? tree_dictionary : tree_array;
    free(level->objects);
    walk->depth--;
    return tree_leaves;
}

void tree_walk_pass_over(struct tree_walk *walk)
{
    invariant(walk->inside);
    walk->inside = NULL;
}

void tree_walk_end(struct tree_walk *walk)
{
    while (walk->depth > 0) {
        free(walk->levels[--walk->depth].objects);
    }
    free(walk->levels);
    walk->levels = NULL;
}
