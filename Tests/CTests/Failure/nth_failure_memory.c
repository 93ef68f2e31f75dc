/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that fail in their turn, and the table of blocks that are alive.
 *
 * The linker sends the runner's own calls of malloc and its siblings here (--wrap), so that the C library's and the sanitizers' own are
 * left out. The table is guarded by a spin lock; it lies in static memory, as it may not allocate.
 */
#include <errno.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Failure/nth_failure.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *block);

enum { blocks_max = 1 << 14, own_frames = 3 };

struct block {
    void *address; /* NULL: free place */
    uint64_t stack;
    int depth;
    void *frames[stack_depth];
};

static atomic_bool is_watching;
static atomic_flag table_lock = ATOMIC_FLAG_INIT;
static struct block blocks[blocks_max]; /* table lock */
static int blocks_end; /* table lock: no block behind it */
static size_t block_count; /* table lock */

int stack_take(void *frames[stack_depth], uint64_t *ret_hash)
{
    void *all[stack_depth + own_frames];
    int count = backtrace(all, stack_depth + own_frames) - own_frames;
    uint64_t hash = 14695981039346656037u;

    count = count < 0 ? 0 : count;
    for (int i = 0; i < count; i++) {
        frames[i] = all[i + own_frames];
        hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 1099511628211u;
    }
    *ret_hash = hash;
    return count;
}

void stack_print(void *const frames[stack_depth], int count)
{
    backtrace_symbols_fd(frames, count, STDERR_FILENO);
}

static void table_take(void)
{
    while (atomic_flag_test_and_set_explicit(&table_lock, memory_order_acquire)) {
    }
}

static void table_drop(void)
{
    atomic_flag_clear_explicit(&table_lock, memory_order_release);
}

static void *noted(void *address)
{
    struct block made = {.address = address};
    int place = 0;

    if (!address || !atomic_load(&is_watching)) {
        return address;
    }
    made.depth = stack_take(made.frames, &made.stack);
    table_take();
    while (place < blocks_end && blocks[place].address) {
        place++;
    }
    if (place < blocks_max) {
        blocks[place] = made;
        blocks_end = place == blocks_end ? place + 1 : blocks_end;
        block_count++;
    }
    table_drop();
    return address;
}

static void forget(void *address)
{
    if (!address || !atomic_load(&is_watching)) {
        return;
    }
    table_take();
    for (int i = 0; i < blocks_end; i++) {
        if (blocks[i].address == address) {
            blocks[i].address = NULL;
            block_count--;
            break;
        }
    }
    table_drop();
}

/* errno is ENOMEM, as malloc leaves it. */
static bool fails(const struct failing_call *call)
{
    if (!atomic_load(&is_watching) || !nth_failure_take(call)) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    static const struct failing_call call = {"malloc", {ENOMEM, 0}};

    return fails(&call) ? NULL : noted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    static const struct failing_call call = {"calloc", {ENOMEM, 0}};

    return fails(&call) ? NULL : noted(__real_calloc(count, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    static const struct failing_call call = {"aligned_alloc", {ENOMEM, 0}};

    return fails(&call) ? NULL : noted(__real_aligned_alloc(alignment, size));
}

void *__wrap_realloc(void *block, size_t size)
{
    static const struct failing_call call = {"realloc", {ENOMEM, 0}};

    if (fails(&call)) {
        return NULL;
    }
    forget(block); /* before: another thread may get the address afterwards */
    return noted(__real_realloc(block, size));
}

void __wrap_free(void *block)
{
    forget(block);
    __real_free(block);
}

void failing_memory_begin(void)
{
    void *frames[stack_depth];
    uint64_t hash;

    (void)stack_take(frames, &hash); /* the first call loads what it needs */
    atomic_store(&is_watching, true);
}

void failing_memory_end(void)
{
    atomic_store(&is_watching, false);
}

/* Threads of the scenario's libraries may still free something. */
size_t failing_memory_count(void)
{
    size_t count;

    table_take();
    count = block_count;
    table_drop();
    return count;
}

static struct memory_origin *origin_of(struct memory_origins *origins, uint64_t stack)
{
    for (size_t i = 0; i < origins->count; i++) {
        if (origins->origins[i].stack == stack) {
            return &origins->origins[i];
        }
    }
    if (origins->count == sizeof origins->origins / sizeof origins->origins[0]) {
        return NULL;
    }
    origins->origins[origins->count] = (struct memory_origin){stack, 0};
    return &origins->origins[origins->count++];
}

void failing_memory_origins(struct memory_origins *ret_origins)
{
    ret_origins->count = 0;
    table_take();
    for (int i = 0; i < blocks_end; i++) {
        struct memory_origin *origin = blocks[i].address ? origin_of(ret_origins, blocks[i].stack) : NULL;

        if (origin) {
            origin->blocks++;
        }
    }
    table_drop();
}

void failing_memory_print_beyond(const struct memory_origins *origins)
{
    static struct memory_origins left;

    left = *origins;
    for (int i = 0; i < blocks_end; i++) {
        struct memory_origin *origin = blocks[i].address ? origin_of(&left, blocks[i].stack) : NULL;

        if (origin && --origin->blocks < 0) {
            static const char text[] = "a block that a run without failures has not:\n";

            (void)!write(STDERR_FILENO, text, sizeof text - 1);
            stack_print(blocks[i].frames, blocks[i].depth);
        }
    }
}
