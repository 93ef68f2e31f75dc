/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of CFRunLoop.h that take blocks, written against the block ABI so that a compiler without blocks can build them: a block is a
 * structure whose fourth field is the function to call, with the block itself as first argument. The blocks runtime is bound by weak
 * symbols; a program that has blocks has it.
 */
#include "CoreFoundation/CFRunLoop.h"
#include "Loop/Block/block.h"
#include "Loop/Observer/observer.h"
#include "Loop/Timer/timer.h"
#include "Support/fault.h"

/* Source: the blocks ABI specification of Clang, "High Level". */
struct block_literal {
    void *isa;
    int flags;
    int reserved;
    void (*invoke)(void);
};

extern void *_Block_copy(const void *block) __attribute__((weak));
extern void _Block_release(const void *block) __attribute__((weak));

static const void *block_copy(const void *block)
{
    return _Block_copy ? _Block_copy(block) : block;
}

static void block_release(const void *block)
{
    if (_Block_release) {
        _Block_release(block);
    }
}

static void call_block(void *block)
{
    ((void (*)(void *))((struct block_literal *)block)->invoke)(block);
}

static void call_observer_block(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *block)
{
    const void *held = block_copy(block); /* an observer may invalidate itself */

    ((void (*)(void *, CFRunLoopObserverRef, CFRunLoopActivity))((struct block_literal *)block)->invoke)(block, observer, activity);
    block_release(held);
}

static void call_timer_block(CFRunLoopTimerRef timer, void *block)
{
    ((void (*)(void *, CFRunLoopTimerRef))((struct block_literal *)block)->invoke)(block, timer);
}

static void release_queued_block(void *block)
{
    block_release(block);
}

/* The public names, by their link names: the headers declare them with block types, which not every compiler has. */
CF_EXPORT void perform_block(CFRunLoopRef loop, CFTypeRef mode, void *block) CRL_LINK(CFRunLoopPerformBlock);
CF_EXPORT CFRunLoopObserverRef create_observer(CFAllocatorRef allocator, CFOptionFlags activities, Boolean repeats, CFIndex order,
                                               void *block) CRL_LINK(CFRunLoopObserverCreateWithHandler);
CF_EXPORT CFRunLoopTimerRef create_timer(CFAllocatorRef allocator, CFAbsoluteTime date, CFTimeInterval interval, CFOptionFlags flags,
                                         CFIndex order, void *block) CRL_LINK(CFRunLoopTimerCreateWithHandler);

void perform_block(CFRunLoopRef loop, CFTypeRef mode, void *block)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    object_check(loop, &run_loop_class, "CFRunLoopPerformBlock", "loop");
    if (!mode || !block) {
        fault_log_once(&logged, "CFRunLoopPerformBlock: the mode or the block is NULL; nothing is queued");
        return;
    }
    block_enqueue(loop, mode, call_block, (void *)(uintptr_t)block_copy(block), release_queued_block);
}

CFRunLoopObserverRef create_observer(CFAllocatorRef allocator, CFOptionFlags activities, Boolean repeats, CFIndex order, void *block)
{
    CFRunLoopObserverContext context = {.info = block, .retain = block_copy, .release = block_release};

    return block ? observer_create(allocator, activities, repeats, order, call_observer_block, &context) : NULL;
}

CFRunLoopTimerRef create_timer(CFAllocatorRef allocator, CFAbsoluteTime date, CFTimeInterval interval, CFOptionFlags flags, CFIndex order,
                               void *block)
{
    CFRunLoopTimerContext context = {.info = block, .retain = block_copy, .release = block_release};

    (void)flags;
    return block ? run_loop_timer_create(allocator, date, interval, order, call_timer_block, &context) : NULL;
}
