/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of blocks. */
#include "Loop/block.h"

#include <stdlib.h>

#include "CoreFoundation/CFSet.h"
#include "Support/fault.h"

enum { most_spare_blocks = 1024 };

/* ---- the nodes; L ---- */

static struct block *node_take(CFRunLoopRef loop)
{
    struct block *block = loop->spare_blocks;

    if (!block) {
        return malloc(sizeof *block);
    }
    loop->spare_blocks = block->next;
    loop->spare_block_count--;
    return block;
}

static void node_give_back(CFRunLoopRef loop, struct block *block)
{
    if (loop->spare_block_count >= most_spare_blocks) {
        free(block);
        return;
    }
    block->next = loop->spare_blocks;
    loop->spare_blocks = block;
    loop->spare_block_count++;
}

static void append(struct block_queue *queue, struct block *block)
{
    block->next = NULL;
    *queue->tail = block;
    queue->tail = &block->next;
}

/* ---- which mode ---- */

static bool is_mode_list(CFTypeRef mode)
{
    return CFGetTypeID(mode) == object_type_array || CFGetTypeID(mode) == object_type_set;
}

/* The names of a list, each retained by the list; the caller frees the array. */
static const void **names_of(CFTypeRef list, CFIndex *ret_count)
{
    bool is_array = CFGetTypeID(list) == object_type_array;
    CFIndex count = is_array ? CFArrayGetCount(list) : CFSetGetCount(list);
    const void **names = calloc((size_t)count + 1, sizeof *names);

    *ret_count = names ? count : 0;
    if (names && is_array) {
        CFArrayGetValues(list, CFRangeMake(0, count), names);
    } else if (names) {
        CFSetGetValues(list, names);
    }
    return names;
}

/*
 * A list of our own, of copies of the names that are strings: the caller's may change, and its callbacks may be anything. NULL without
 * memory for all of them: a request for some of its modes might never be served.
 */
static CFArrayRef copy_names(CFTypeRef list)
{
    CFMutableArrayRef copy = CFArrayCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeArrayCallBacks);
    CFIndex count = 0;
    CFIndex wanted = 0;
    const void **names = names_of(list, &count);

    for (CFIndex i = 0; copy && i < count; i++) {
        bool is_name = names[i] && CFGetTypeID(names[i]) == object_type_string;
        CFStringRef name = is_name ? CFStringCreateCopy(NULL, names[i]) : NULL;

        wanted += is_name;
        if (name) {
            CFArrayAppendValue(copy, name);
            CFRelease(name);
        }
    }
    if (copy && (!names || CFArrayGetCount(copy) < wanted)) {
        CFRelease(copy);
        copy = NULL;
    }
    free(names);
    return copy;
}

static bool list_matches(const struct block *block, const struct mode *mode)
{
    CFIndex count = CFArrayGetCount(block->modes);

    for (CFIndex i = 0; i < count; i++) {
        CFStringRef name = CFArrayGetValueAtIndex(block->modes, i);

        if (CFEqual(name, mode->name) || (mode->is_common && mode_name_is_common(name))) {
            return true;
        }
    }
    return false;
}

/* 169: the named modes come into being. L. */
static void declare_modes(CFRunLoopRef loop, CFArrayRef names)
{
    for (CFIndex i = 0; i < CFArrayGetCount(names); i++) {
        CFStringRef name = CFArrayGetValueAtIndex(names, i);

        if (!mode_name_is_common(name)) {
            (void)mode_declare(loop, name);
        }
    }
}

/* The queue for the request; NULL if there is no memory for the mode. L. */
static struct block_queue *queue_for(CFRunLoopRef loop, CFTypeRef mode_name, CFArrayRef names)
{
    struct mode *mode;

    if (names) {
        declare_modes(loop, names);
        return &loop->listed_blocks;
    }
    if (mode_resolve(loop, mode_name, &mode)) {
        return &loop->common_blocks;
    }
    if (!mode) {
        return NULL;
    }
    mode->is_declared = true;
    return &mode->blocks;
}

static bool enqueue(CFRunLoopRef loop, CFTypeRef mode_name, CFArrayRef names, const struct block *request)
{
    struct block_queue *queue;
    struct block *block = NULL;

    loop_lock(loop);
    queue = loop_is_open(loop) ? queue_for(loop, mode_name, names) : NULL;
    block = queue ? node_take(loop) : NULL;
    if (block) {
        *block = *request;
        block->modes = names;
        block->sequence = loop->next_sequence++;
        append(queue, block);
    }
    loop_unlock(loop);
    return block != NULL;
}

static void release_info(const struct block *block)
{
    if (block->release) {
        block->release(block->info);
    }
}

void block_enqueue(CFRunLoopRef loop, CFTypeRef mode, void (*function)(void *info), void *info, void (*release)(void *info))
{
    const struct block request = {.function = function, .info = info, .release = release};
    bool is_list = is_mode_list(mode);
    CFArrayRef names = is_list ? copy_names(mode) : NULL;
    bool is_queued = false;

    if (is_list ? names != NULL : CFGetTypeID(mode) == object_type_string) {
        is_queued = enqueue(loop, mode, names, &request);
    }
    if (!is_queued) {
        if (names) {
            CFRelease(names);
        }
        release_info(&request);
    }
}

/* ---- running; L ---- */

static bool listed_block_matches(CFRunLoopRef loop, const struct mode *mode)
{
    for (const struct block *block = loop->listed_blocks.head; block; block = block->next) {
        if (list_matches(block, mode)) {
            return true;
        }
    }
    return false;
}

bool blocks_are_queued(CFRunLoopRef loop, const struct mode *mode)
{
    return mode->blocks.head || (mode->is_common && loop->common_blocks.head) ||
           (loop->listed_blocks.head && listed_block_matches(loop, mode));
}

static struct block *detach_all(struct block_queue *queue)
{
    struct block *blocks = queue->head;

    block_queue_init(queue);
    return blocks;
}

static struct block *detach_matching(CFRunLoopRef loop, const struct mode *mode)
{
    struct block_queue matching;
    struct block *rest = detach_all(&loop->listed_blocks);

    block_queue_init(&matching);
    while (rest) {
        struct block *block = rest;

        rest = block->next;
        append(list_matches(block, mode) ? &matching : &loop->listed_blocks, block);
    }
    return matching.head;
}

static struct block *merge(struct block *one, struct block *other)
{
    struct block_queue merged;

    if (!one || !other) {
        return one ? one : other;
    }
    block_queue_init(&merged);
    while (one && other) {
        struct block **first = one->sequence < other->sequence ? &one : &other;
        struct block *block = *first;

        *first = block->next;
        append(&merged, block);
    }
    *merged.tail = one ? one : other;
    return merged.head;
}

static struct block *detach_runnable(CFRunLoopRef loop, struct mode *mode)
{
    struct block *blocks = detach_all(&mode->blocks);

    if (mode->is_common && loop->common_blocks.head) {
        blocks = merge(blocks, detach_all(&loop->common_blocks));
    }
    if (loop->listed_blocks.head) {
        blocks = merge(blocks, detach_matching(loop, mode));
    }
    return blocks;
}

/* Releases what the block holds, before the next one starts (168). No lock is held. */
static void dispose(const struct block *block)
{
    release_info(block);
    if (block->modes) {
        CFRelease(block->modes);
    }
}

void blocks_run_queued(CFRunLoopRef loop, struct mode *mode)
{
    struct block *blocks = detach_runnable(loop, mode);
    struct block *done = NULL;

    if (!blocks) {
        return;
    }
    loop_unlock(loop);
    while (blocks) {
        struct block *block = blocks;

        blocks = block->next;
        block->function(block->info);
        dispose(block);
        block->next = done;
        done = block;
    }
    loop_lock(loop);
    while (done) {
        struct block *next = done->next;

        node_give_back(loop, done);
        done = next;
    }
}

void blocks_discard_all(CFRunLoopRef loop)
{
    struct block *blocks;
    struct block *spare;

    loop_lock(loop);
    blocks = merge(detach_all(&loop->common_blocks), detach_all(&loop->listed_blocks));
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        blocks = merge(blocks, detach_all(&mode->blocks));
    }
    spare = loop->spare_blocks;
    loop->spare_blocks = NULL;
    loop->spare_block_count = 0;
    loop_unlock(loop);
    while (blocks) {
        struct block *next = blocks->next;

        dispose(blocks);
        free(blocks);
        blocks = next;
    }
    while (spare) {
        struct block *next = spare->next;

        free(spare);
        spare = next;
    }
}
