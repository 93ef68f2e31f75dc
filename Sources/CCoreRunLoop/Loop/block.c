/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of blocks. */
#include "Loop/block.h"

#include <stdlib.h>

#include "CoreFoundation/CFSet.h"
#include "Loop/activation.h"
#include "Support/fault.h"

/* So many of one chain are kept for the blocks to come, where there are not as many already. */
enum { most_spare_blocks = 1024 };

/* ---- the nodes ---- */

/* A look without the lock: that a thread should make its node before it takes the lock, for which others wait. */
static bool has_spare_nodes(CFRunLoopRef loop)
{
    return atomic_load_explicit(&loop->spare_blocks, memory_order_relaxed) != NULL;
}

static __attribute__((noinline)) struct block *node_make(void)
{
    return malloc(sizeof(struct block));
}

/* L. */
static struct block *node_take(CFRunLoopRef loop)
{
    struct block *block = atomic_load_explicit(&loop->spare_blocks, memory_order_relaxed);

    if (!block) {
        return node_make(); /* others have taken the last spare one since the look */
    }
    atomic_store_explicit(&loop->spare_blocks, block->next, memory_order_relaxed);
    loop->spare_block_count--;
    return block;
}

/* Those from `first` to `last`. True if they are kept: only so many, and in one go, since others wait for the lock. L. */
static bool spares_add(CFRunLoopRef loop, struct block *first, struct block *last, uint32_t count)
{
    if (loop->spare_block_count >= most_spare_blocks) {
        return false;
    }
    last->next = atomic_load_explicit(&loop->spare_blocks, memory_order_relaxed);
    atomic_store_explicit(&loop->spare_blocks, first, memory_order_relaxed);
    loop->spare_block_count += count;
    return true;
}

static void nodes_free(struct block *block)
{
    while (block) {
        struct block *next = block->next;

        free(block);
        block = next;
    }
}

static void append(struct block_queue *queue, struct block *block)
{
    block->next = NULL;
    *queue->tail = block;
    queue->tail = &block->next;
}

/* ---- which mode ---- */

static bool is_mode_list(CFTypeID type)
{
    return type == object_type_array || type == object_type_set;
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
    struct block *made = has_spare_nodes(loop) ? NULL : node_make();
    struct block *block = NULL;
    struct block_queue *queue;

    loop_lock(loop);
    queue = loop_is_open(loop) ? queue_for(loop, mode_name, names) : NULL;
    if (queue) {
        block = made ? made : node_take(loop);
    }
    if (block) {
        *block = *request;
        block->modes = names;
        block->sequence = loop->next_sequence++;
        append(queue, block);
    }
    loop_unlock(loop);
    if (!block) {
        free(made);
    }
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
    CFTypeID type = CFGetTypeID(mode);
    bool is_list = is_mode_list(type);
    CFArrayRef names = is_list ? copy_names(mode) : NULL;
    bool is_queued = false;

    if (is_list ? names != NULL : type == object_type_string) {
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

/* Those with numbers from `from` up to `to`, which is not one of them, that may run in the mode; of the queue for common modes all do. */
static struct block *detach_between(struct block_queue *queue, const struct mode *mode, uint64_t from, uint64_t to)
{
    struct block_queue matching;
    struct block *rest = detach_all(queue);

    block_queue_init(&matching);
    while (rest) {
        struct block *block = rest;
        bool matches = block->sequence >= from && block->sequence < to && (!block->modes || list_matches(block, mode));

        rest = block->next;
        append(matches ? &matching : queue, block);
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
        blocks = merge(blocks, detach_between(&loop->listed_blocks, mode, 0, UINT64_MAX));
    }
    return blocks;
}

/* What has come to be for the mode since it is common. No lock is held. */
static struct block *detach_newly_common(CFRunLoopRef loop, const struct mode *mode, uint64_t from, uint64_t to, bool *ret_is_common)
{
    struct block *blocks = NULL;

    loop_lock(loop);
    *ret_is_common = mode->is_common;
    if (mode->is_common) {
        blocks = merge(detach_between(&loop->common_blocks, mode, from, to), detach_between(&loop->listed_blocks, mode, from, to));
    }
    loop_unlock(loop);
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

/* Runs one. No lock is held. */
static void run_one(struct block *block)
{
    block->function(block->info);
    dispose(block);
    block->function = NULL; /* it is done */
}

/* As below, in a mode that is not common. A block may make it so: then what was queued behind it for common modes comes behind it. */
static __attribute__((noinline)) void run_in_uncommon_mode(CFRunLoopRef loop, const struct mode *mode, struct block *blocks, uint64_t end)
{
    bool is_common = false;

    for (struct block *block = blocks; block; block = block->next) {
        run_one(block);
        if (!is_common) {
            block->next = merge(block->next, detach_newly_common(loop, mode, block->sequence + 1, end, &is_common));
        }
    }
}

/* No lock is held. */
static void run_all(struct block *blocks)
{
    for (struct block *block = blocks; block; block = block->next) {
        run_one(block);
    }
}

/* More than are kept. L, which is dropped meanwhile. */
static __attribute__((noinline)) void free_excess(CFRunLoopRef loop, struct block *excess, struct block *others)
{
    loop_unlock(loop);
    nodes_free(excess);
    nodes_free(others);
    loop_lock(loop);
}

/* Of a chain that has run; it is cut. Leaves with the lock. */
static void nodes_give_back(CFRunLoopRef loop, struct block *first)
{
    struct block *last = first;
    struct block *excess;
    uint32_t count = 1;
    bool are_kept;

    for (; last->next && count < most_spare_blocks; count++) {
        last = last->next;
    }
    excess = last->next;
    last->next = NULL;
    loop_lock(loop);
    are_kept = spares_add(loop, first, last, count);
    if (__builtin_expect(excess || !are_kept, 0)) {
        free_excess(loop, excess, are_kept ? NULL : first);
    }
}

void blocks_give_back(const void *chain)
{
    struct block *first = (struct block *)(uintptr_t)chain;

    for (struct block *block = first; block; block = block->next) {
        if (block->function) {
            dispose(block);
        }
    }
    nodes_free(first);
}

void blocks_run_queued(CFRunLoopRef loop, struct activation *run)
{
    struct block *blocks = detach_runnable(loop, run->mode);

    if (!blocks) {
        return;
    }
    run->blocks = blocks;
    if (__builtin_expect(!run->mode->is_common && (loop->common_blocks.head || loop->listed_blocks.head), false)) {
        uint64_t end = loop->next_sequence;

        loop_unlock(loop);
        run_in_uncommon_mode(loop, run->mode, blocks, end);
    } else {
        loop_unlock(loop);
        run_all(blocks);
    }
    run->blocks = NULL;
    nodes_give_back(loop, blocks);
    run_resume(loop, run);
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
    spare = atomic_load_explicit(&loop->spare_blocks, memory_order_relaxed);
    atomic_store_explicit(&loop->spare_blocks, NULL, memory_order_relaxed);
    loop->spare_block_count = 0;
    loop_unlock(loop);
    blocks_give_back(blocks);
    nodes_free(spare);
}
