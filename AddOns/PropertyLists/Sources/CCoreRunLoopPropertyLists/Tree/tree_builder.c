/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a tree from its leaves and the beginnings and ends of its containers (tree_builder.h). */
#include "Tree/tree_builder.h"

#include <stdlib.h>

#include "Support/invariant.h"

static void release_if_any(CFTypeRef object)
{
    if (object) {
        CFRelease(object);
    }
}

static void drop_values(struct tree_builder *builder, size_t first)
{
    while (builder->count > first) {
        builder->count--;
        release_if_any(builder->keys[builder->count]);
        CFRelease(builder->values[builder->count]);
    }
}

static bool make_room(struct tree_builder *builder)
{
    size_t capacity = builder->capacity ? builder->capacity * 2 : 32;
    const void **keys;
    const void **values;

    if (builder->count < builder->capacity) {
        return true;
    }
    keys = reallocarray(builder->keys, capacity, sizeof *keys);
    if (!keys) {
        return false;
    }
    builder->keys = keys;
    values = reallocarray(builder->values, capacity, sizeof *values);
    if (!values) {
        return false;
    }
    builder->values = values;
    builder->capacity = capacity;
    return true;
}

void tree_builder_begin(struct tree_builder *builder, CFAllocatorRef allocator, CFOptionFlags mutability)
{
    *builder = (struct tree_builder){.allocator = allocator, .mutability = mutability};
}

bool tree_builder_add_key(struct tree_builder *builder, CFStringRef key)
{
    invariant(!builder->key && builder->depth > 0 && builder->open[builder->depth - 1].kind == tree_dictionary);
    builder->key = key;
    return key;
}

bool tree_builder_add(struct tree_builder *builder, CFTypeRef value)
{
    invariant(builder->depth == 0 || (builder->open[builder->depth - 1].kind == tree_dictionary) == (builder->key != NULL));
    if (!value || !make_room(builder)) {
        release_if_any(value);
        return false;
    }
    builder->keys[builder->count] = builder->key;
    builder->values[builder->count++] = value;
    builder->key = NULL;
    return true;
}

static bool has_mutable_leaves(const struct tree_builder *builder)
{
    return (builder->mutability & kCFPropertyListMutableContainersAndLeaves) != 0;
}

bool tree_builder_add_string(struct tree_builder *builder, CFStringRef text)
{
    if (text && has_mutable_leaves(builder)) {
        CFStringRef copy = CFStringCreateMutableCopy(builder->allocator, 0, text);

        CFRelease(text);
        text = copy;
    }
    return tree_builder_add(builder, text);
}

bool tree_builder_add_data(struct tree_builder *builder, const UInt8 *bytes, size_t count)
{
    CFDataRef data = CFDataCreate(builder->allocator, bytes, (CFIndex)count);

    if (data && has_mutable_leaves(builder)) {
        CFDataRef copy = CFDataCreateMutableCopy(builder->allocator, 0, data);

        CFRelease(data);
        data = copy;
    }
    return tree_builder_add(builder, data);
}

bool tree_builder_open(struct tree_builder *builder, enum tree_kind kind)
{
    invariant(tree_kind_is_container(kind));
    if (builder->depth == builder->open_capacity) {
        size_t capacity = builder->open_capacity ? builder->open_capacity * 2 : 16;
        struct open_container *open = reallocarray(builder->open, capacity, sizeof *open);

        if (!open) {
            return false;
        }
        builder->open = open;
        builder->open_capacity = capacity;
    }
    builder->open[builder->depth++] = (struct open_container){builder->count, builder->key, kind, 0};
    builder->key = NULL;
    return true;
}

/* A dictionary is made with the first of equal keys. */
static void reverse(const void **objects, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        const void *object = objects[i];

        objects[i] = objects[count - 1 - i];
        objects[count - 1 - i] = object;
    }
}

static CFTypeRef create_container(const struct tree_builder *builder, enum tree_kind kind, size_t first)
{
    CFIndex count = (CFIndex)(builder->count - first);
    const void **values = count > 0 ? builder->values + first : NULL;
    bool is_mutable = builder->mutability != kCFPropertyListImmutable;
    CFTypeRef container;
    CFTypeRef copy;

    if (kind == tree_array) {
        container = CFArrayCreate(builder->allocator, values, count, &kCFTypeArrayCallBacks);
    } else {
        if (!builder->keeps_first && count > 1) {
            reverse(builder->keys + first, (size_t)count);
            reverse(builder->values + first, (size_t)count);
        }
        container = CFDictionaryCreate(builder->allocator, count > 0 ? builder->keys + first : NULL, values, count,
                                       &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    }
    if (!container || !is_mutable) {
        return container;
    }
    /* A mutable container does not say that it lacked memory for a value; a mutable copy does. */
    copy = kind == tree_array ? (CFTypeRef)CFArrayCreateMutableCopy(builder->allocator, 0, container)
                              : (CFTypeRef)CFDictionaryCreateMutableCopy(builder->allocator, 0, container);
    CFRelease(container);
    return copy;
}

bool tree_builder_close(struct tree_builder *builder, CFTypeRef *ret_container)
{
    const struct open_container *open = &builder->open[builder->depth - 1];
    CFTypeRef container = create_container(builder, open->kind, open->first);

    invariant(builder->depth > 0 && !builder->key);
    if (!container) {
        return false;
    }
    drop_values(builder, open->first);
    builder->key = open->key;
    builder->depth--;
    *ret_container = container;
    return tree_builder_add(builder, container);
}

CFTypeRef tree_builder_take(struct tree_builder *builder)
{
    invariant(builder->count == 1 && builder->depth == 0);
    builder->count = 0;
    return builder->values[0];
}

void tree_builder_end(struct tree_builder *builder)
{
    drop_values(builder, 0);
    release_if_any(builder->key);
    while (builder->depth > 0) {
        release_if_any(builder->open[--builder->depth].key);
    }
    free(builder->keys);
    free(builder->values);
    free(builder->open);
}
