/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues of blocks: queueing, detaching what may run in a mode, and running it.
 *
 * The loop's lock guards the queues and the spare nodes. It is dropped while blocks run. A chain that is being run stands as a clean-up in
 * the loop, so that it is given back even if a block does not return.
 */
#include "Loop/Block/block.h"

#include <stdlib.h>

#include "CoreFoundation/CFSet.h"
#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/run.h"
#include "Loop/Trace/trace.h"
#include "Support/fault.h"

/* A loop keeps the nodes of blocks that have run, up to about this number, to spare the allocation for the blocks to come. */
enum { most_spare_blocks = 1024 };

/* ---- the nodes ---- */

/*
 * A look without the lock. It may be outdated at once. It only decides whether the thread allocates a node before it takes the lock, so
 * that others do not wait for the allocation.
 */
static bool has_spare_nodes(CFRunLoopRef loop)
{
    return atomic_load_explicit(&loop->spare_blocks, memory_order_relaxed) != NULL;
}

static __attribute__((noinline)) struct block *node_make(void)
{
    return malloc(sizeof(struct block));
}

REQUIRES(the_loop_lock) static struct block *node_take(CFRunLoopRef loop)
{
    struct block *block = atomic_load_explicit(&loop->spare_blocks, memory_order_relaxed);

    invariant_held(&loop->lock);
    if (!block) {
        return node_make(); /* others have taken the last spare one since the look */
    }
    invariant(loop->spare_block_count > 0);
    atomic_store_explicit(&loop->spare_blocks, block->next, memory_order_relaxed);
    loop->spare_block_count--;
    return block;
}

/*
 * Keeps the chain of `count` nodes from `first` to `last`. Returns false if there are enough spare nodes. The chain is added whole, without
 * counting down to the limit, because others wait for the lock.
 */
REQUIRES(the_loop_lock) static bool spares_add(CFRunLoopRef loop, struct block *first, struct block *last, uint32_t count)
{
    invariant(count > 0 && count <= most_spare_blocks);
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

static void queue_append(struct block_queue *queue, struct block *block)
{
    invariant(!*queue->tail); /* the tail is the place behind the last block */
    block->next = NULL;
    *queue->tail = block;
    queue->tail = &block->next;
}

/* ---- which mode ---- */

static bool is_mode_list(CFTypeID type)
{
    return type == object_type_array || type == object_type_set;
}

/* Returns the names of a list. The list retains them; the caller frees the array. NULL if there is no memory. */
static const void **list_names(CFTypeRef list, CFIndex *ret_count)
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
 * Copies a list of mode names into an array of our own, and leaves out what is no string. The caller's list may change later, and may have
 * callbacks of any kind. Returns NULL if there is no memory for all names: a request for only some of its modes might never be served.
 */
static CFArrayRef copy_mode_names(CFTypeRef list)
{
    CFMutableArrayRef copy = CFArrayCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeArrayCallBacks);
    CFIndex count = 0;
    CFIndex wanted = 0;
    const void **names = list_names(list, &count);

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

REQUIRES(the_loop_lock) static bool list_matches(const struct block *block, const struct mode *mode)
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

/* A queued block makes the modes that it names, also those in a list (rule 169). */
REQUIRES(the_loop_lock) static void declare_modes(CFRunLoopRef loop, CFArrayRef names)
{
    for (CFIndex i = 0; i < CFArrayGetCount(names); i++) {
        CFStringRef name = CFArrayGetValueAtIndex(names, i);

        if (!mode_name_is_common(name)) {
            (void)mode_declare(loop, name);
        }
    }
}

/* Returns the queue for the request, or NULL if there is no memory for the mode. `names` is NULL unless `mode_name` is a list. */
REQUIRES(the_loop_lock) static struct block_queue *queue_for(CFRunLoopRef loop, CFTypeRef mode_name, CFArrayRef names)
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

/* Returns false, and keeps nothing, if the loop takes nothing any more or there is no memory. */
EXCLUDES(the_loop_lock)
static bool enqueue_request(CFRunLoopRef loop, CFTypeRef mode_name, CFArrayRef names, const struct block *request)
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
        invariant((queue == &loop->listed_blocks) == (names != NULL));
        /* One by one: a copy of the whole would read pairs of fields that were just written singly, for which the processor waits. */
        block->function = request->function;
        block->release = request->release;
        block->info = request->info;
        block->modes = names;
        block->sequence = loop->next_sequence++;
        trace_event(trace_post, 0, loop, block->sequence);
        queue_append(queue, block);
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
    CFArrayRef names = is_list ? copy_mode_names(mode) : NULL;
    bool is_queued = false;

    if (is_list ? names != NULL : type == object_type_string) {
        is_queued = enqueue_request(loop, mode, names, &request);
    }
    if (!is_queued) {
        object_release_if_any(names);
        release_info(&request);
    }
}

/* ---- detaching ---- */

REQUIRES(the_loop_lock) static bool listed_block_matches(CFRunLoopRef loop, const struct mode *mode)
{
    for (const struct block *block = loop->listed_blocks.head; block; block = block->next) {
        if (list_matches(block, mode)) {
            return true;
        }
    }
    return false;
}

static uint32_t count_queue(const struct block_queue *queue)
{
    uint32_t count = 0;

    for (const struct block *block = queue->head; block; block = block->next) {
        count++;
    }
    return count;
}

uint32_t blocks_count(CFRunLoopRef loop)
{
    uint32_t count = count_queue(&loop->common_blocks) + count_queue(&loop->listed_blocks);

    for (const struct mode *mode = loop->modes; mode; mode = mode->next) {
        count += count_queue(&mode->blocks);
    }
    return count;
}

bool blocks_are_queued(CFRunLoopRef loop, const struct mode *mode)
{
    invariant_held(&loop->lock);
    return mode->blocks.head || (mode->is_common && loop->common_blocks.head) ||
           (loop->listed_blocks.head && listed_block_matches(loop, mode));
}

REQUIRES(the_loop_lock) static struct block *detach_all(struct block_queue *queue)
{
    struct block *blocks = queue->head;

    block_queue_init(queue);
    return blocks;
}

/*
 * Detaches the blocks that may run in `mode` and whose sequence number is at least `from` and less than `to`. Without a list a block
 * matches: it is in the queue for the common modes, and the caller has seen that the mode is common. The other blocks keep their order in
 * the queue.
 */
REQUIRES(the_loop_lock) static struct block *detach_between(struct block_queue *queue, const struct mode *mode, uint64_t from, uint64_t to)
{
    struct block_queue matching;
    struct block *rest = detach_all(queue);

    block_queue_init(&matching);
    while (rest) {
        struct block *block = rest;
        bool matches = block->sequence >= from && block->sequence < to && (!block->modes || list_matches(block, mode));

        rest = block->next;
        queue_append(matches ? &matching : queue, block);
    }
    return matching.head;
}

/* Merges two chains, each in order of its sequence numbers, into one. */
static struct block *chains_merge(struct block *one, struct block *other)
{
    struct block_queue merged;

    if (!one || !other) {
        return one ? one : other;
    }
    block_queue_init(&merged);
    while (one && other) {
        struct block **first = one->sequence < other->sequence ? &one : &other;
        struct block *block = *first;

        invariant(!block->next || block->next->sequence > block->sequence);
        *first = block->next;
        queue_append(&merged, block);
    }
    *merged.tail = one ? one : other;
    return merged.head;
}

/* Detaches all blocks that may run in the mode now, in the order in which they were queued. */
REQUIRES(the_loop_lock) static struct block *detach_runnable(CFRunLoopRef loop, struct mode *mode)
{
    struct block *blocks = detach_all(&mode->blocks);

    if (mode->is_common && loop->common_blocks.head) {
        blocks = chains_merge(blocks, detach_all(&loop->common_blocks));
    }
    if (loop->listed_blocks.head) {
        blocks = chains_merge(blocks, detach_between(&loop->listed_blocks, mode, 0, UINT64_MAX));
    }
    return blocks;
}

/*
 * Detaches the blocks that may run in `mode` because a block has just made it common, within the given sequence numbers. Says in
 * `*ret_is_common` whether the mode is common.
 */
EXCLUDES(the_loop_lock)
static struct block *detach_newly_common(CFRunLoopRef loop, const struct mode *mode, uint64_t from, uint64_t to, bool *ret_is_common)
{
    struct block *blocks = NULL;

    loop_lock(loop);
    *ret_is_common = mode->is_common;
    if (mode->is_common) {
        blocks = chains_merge(detach_between(&loop->common_blocks, mode, from, to), detach_between(&loop->listed_blocks, mode, from, to));
    }
    loop_unlock(loop);
    return blocks;
}

/* ---- running ---- */

/* Releases what the block holds. That happens before the next block starts (rule 168). */
EXCLUDES(the_loop_lock) static void block_release_contents(const struct block *block)
{
    release_info(block);
    object_release_if_any(block->modes);
}

EXCLUDES(the_loop_lock) static void block_run_one(struct block *block)
{
    invariant(block->function);
    block->function(block->info);
    block_release_contents(block);
    block->function = NULL; /* blocks_give_back must not release it again */
}

EXCLUDES(the_loop_lock) static void block_run_one_traced(struct block *block)
{
    uint64_t sequence = block->sequence;

    trace_write(trace_callout_begins, trace_block, sequence, (uintptr_t)block->function);
    block_run_one(block);
    trace_write(trace_callout_ends, trace_block, sequence, 0);
}

/*
 * Runs the chain in a mode that was not common when the chain was detached. A block may make the mode common. The blocks for the common
 * modes that were queued after that block then join the chain in order. Blocks from the sequence number `end` on were queued during this
 * run and wait (rule 166).
 */
EXCLUDES(the_loop_lock)
static __attribute__((noinline)) void chain_run_uncommon(CFRunLoopRef loop, const struct mode *mode, struct block *blocks, uint64_t end)
{
    bool is_common = false;

    for (struct block *block = blocks; block; block = block->next) {
        if (trace_is_on()) {
            block_run_one_traced(block);
        } else {
            block_run_one(block);
        }
        if (!is_common) {
            block->next = chains_merge(block->next, detach_newly_common(loop, mode, block->sequence + 1, end, &is_common));
        }
    }
}

EXCLUDES(the_loop_lock) static __attribute__((noinline, cold)) void chain_run_traced(struct block *blocks)
{
    for (struct block *block = blocks; block; block = block->next) {
        block_run_one_traced(block);
    }
}

/* The blocks of a chain cost no look at the trace each while none is on. */
EXCLUDES(the_loop_lock) static void chain_run(struct block *blocks)
{
    if (trace_is_on()) {
        chain_run_traced(blocks);
        return;
    }
    for (struct block *block = blocks; block; block = block->next) {
        block_run_one(block);
    }
}

/* Frees nodes beyond those that are kept. Drops the lock meanwhile. */
REQUIRES(the_loop_lock)
static __attribute__((noinline)) void nodes_free_excess(CFRunLoopRef loop, struct block *excess, struct block *others)
{
    loop_unlock(loop);
    nodes_free(excess);
    nodes_free(others);
    loop_lock(loop);
}

/*
 * Keeps the nodes of a chain that has run as spare ones, and frees what is too much. Takes the lock and leaves it taken, because the caller
 * needs it next.
 */
ACQUIRES(the_loop_lock) static void nodes_give_back(CFRunLoopRef loop, struct block *first)
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
        nodes_free_excess(loop, excess, are_kept ? NULL : first);
    }
}

void blocks_give_back(const void *chain)
{
    struct block *first = (struct block *)(uintptr_t)chain;

    for (struct block *block = first; block; block = block->next) {
        if (block->function) {
            block_release_contents(block);
        }
    }
    nodes_free(first);
}

void blocks_run_queued(CFRunLoopRef loop, struct run *run)
{
    struct block *blocks = detach_runnable(loop, run->mode);

    if (!blocks) {
        return;
    }
    run->callout = (struct cleanup){blocks_give_back, blocks};
    if (__builtin_expect(!run->mode->is_common && (loop->common_blocks.head || loop->listed_blocks.head), false)) {
        uint64_t end = loop->next_sequence;

        invariant(blocks->sequence < end);
        loop_unlock(loop);
        chain_run_uncommon(loop, run->mode, blocks, end);
    } else {
        loop_unlock(loop);
        chain_run(blocks);
    }
    run->callout.object = NULL;
    nodes_give_back(loop, blocks);
    run_resume(loop, run);
}

void blocks_discard_all(CFRunLoopRef loop)
{
    struct block *blocks;
    struct block *spare;

    loop_lock(loop);
    blocks = chains_merge(detach_all(&loop->common_blocks), detach_all(&loop->listed_blocks));
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        blocks = chains_merge(blocks, detach_all(&mode->blocks));
    }
    spare = atomic_load_explicit(&loop->spare_blocks, memory_order_relaxed);
    atomic_store_explicit(&loop->spare_blocks, NULL, memory_order_relaxed);
    loop->spare_block_count = 0;
    loop_unlock(loop);
    blocks_give_back(blocks);
    nodes_free(spare);
}
