/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the allocators: the built-in ones, those made of a caller's functions, and each thread's default. CFAllocator's public functions
 * stand here too, although CFBase.h declares them: they are this file's subject.
 *
 * No locks: an allocator does not change after its creation; the default is the thread's own; the spare block is exchanged whole.
 */
#define _GNU_SOURCE
#include "Runtime/Object/allocator.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Object/object.h"
#include "Support/fault.h"

struct allocator {
    struct object object;
    CFAllocatorContext context; /* constant */
    bool lives_in_itself; /* constant */
};

/* ---- new memory for a thread's small blocks ---- */

/* Blocks up to this many bytes come sooner from malloc, whose thread cache some C libraries' calloc passes over. */
static const size_t cached_most = 1024;

/*
 * glibc's malloc extends the memory of a thread other than the first by one page at a time, with a system call for each: a sixth of what it
 * takes to make timers, one after the other. So a thread that gets new memory again and again has a larger block from time to time, and
 * gives it back at once, which leaves that room for the next small ones. A larger block still, and malloc would look whether to give
 * memory back to the kernel. Where another malloc stands in the place of glibc's it costs two of its calls for some hundred blocks.
 */
static const uintptr_t room = 48 << 10;
static const uintptr_t small_growth = 16 << 10; /* room is made only after this much growth: few blocks are not worth a page */
static const uintptr_t far = 1 << 20; /* a block this far away is in another piece of malloc's memory */

/* The addresses of the thread's small blocks, as far as they have grown. */
static __thread struct {
    uintptr_t highest; /* the highest block so far in the present piece */
    uintptr_t end_of_room;
} growth __attribute__((tls_model("initial-exec")));

static __attribute__((noinline)) void note_growth(uintptr_t block)
{
    if (block - growth.highest > far) {
        growth.end_of_room = block + small_growth;
    } else if (block > growth.end_of_room) {
        void *volatile whole = malloc(room); /* volatile, or the compiler leaves out both calls */

        free(whole);
        growth.end_of_room = block + room;
    }
    growth.highest = block;
}

static void *system_allocate(CFIndex size, CFOptionFlags hint, void *info)
{
    void *block = malloc((size_t)size);

    (void)hint;
    (void)info;
    if ((uintptr_t)block > growth.highest && (size_t)size <= cached_most) {
        note_growth((uintptr_t)block);
    }
    return block;
}

static void *system_reallocate(void *block, CFIndex size, CFOptionFlags hint, void *info)
{
    (void)hint;
    (void)info;
    return realloc(block, (size_t)size);
}

static void system_deallocate(void *block, void *info)
{
    (void)info;
    free(block);
}

/* ---- blocks that begin at cache lines ---- */

enum { line_size = 64 };

/* The block begins at a cache line. The word before it holds the address of malloc's block, which always has room for that word there. */
static void *lined_allocate(CFIndex size, CFOptionFlags hint, void *info)
{
    char *whole = size <= PTRDIFF_MAX - line_size ? malloc((size_t)size + line_size) : NULL;
    char *block = whole != NULL ? whole + line_size - (uintptr_t)whole % line_size : NULL;

    (void)hint;
    (void)info;
    if (block != NULL) {
        memcpy(block - sizeof whole, &whole, sizeof whole);
    }
    return block;
}

static void lined_deallocate(void *block, void *info)
{
    char *whole;

    (void)info;
    memcpy(&whole, (char *)block - sizeof whole, sizeof whole);
    free(whole);
}

/* ---- large blocks ---- */

static const size_t huge_page = 2 << 20;
static const size_t spare_max = 66 << 20;
enum { spare_waste = 4 }; /* a spare block may be this many times as large as what is asked for */

/* Off with AddressSanitizer: it finds uses after free only if blocks are really given back to malloc. */
#if defined(__SANITIZE_ADDRESS__)
static const bool keeps_spare = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
static const bool keeps_spare = false;
#else
static const bool keeps_spare = true;
#endif
#else
static const bool keeps_spare = true;
#endif

/*
 * The large block that was given back last. Its pages are the kernel's as soon as it wants them; until then the next one to ask has memory
 * that need not be cleared again, which takes as long as filling it twice.
 */
static _Atomic(void *) spare;

static void advise(void *block, size_t size, int advice)
{
    int saved = errno;

    (void)madvise(block, size / huge_page * huge_page, advice);
    errno = saved;
}

static void keep_spare(void *block)
{
    free(atomic_exchange_explicit(&spare, block, memory_order_acq_rel));
}

/* Takes the spare block, if it is fit for `size` bytes. */
static void *take_spare(size_t size)
{
    void *block = atomic_exchange_explicit(&spare, NULL, memory_order_acq_rel);
    size_t usable = block != NULL ? malloc_usable_size(block) : 0;

    if (usable >= size && usable / spare_waste <= size) {
        return block;
    }
    if (block != NULL) {
        keep_spare(block);
    }
    return NULL;
}

static void *large_allocate(CFIndex size, CFOptionFlags hint, void *info)
{
    size_t whole = ((size_t)size + huge_page - 1) / huge_page * huge_page;
    void *block = take_spare((size_t)size);

    (void)hint;
    (void)info;
    if (block == NULL) {
        block = aligned_alloc(huge_page, whole);
        if (block != NULL) {
            advise(block, whole, MADV_HUGEPAGE);
        }
    }
    return block;
}

static void large_deallocate(void *block, void *info)
{
    size_t usable = malloc_usable_size(block);

    (void)info;
    if (!keeps_spare || usable > spare_max) {
        free(block);
        return;
    }
    advise(block, usable, MADV_FREE);
    keep_spare(block);
}

static void finalize(CFTypeRef object)
{
    const struct allocator *allocator = object;

    if (!allocator->lives_in_itself && allocator->context.release != NULL) {
        allocator->context.release(allocator->context.info);
    }
}

static const struct object_class allocator_class = {
    .type_id = object_type_allocator,
    .name = "CFAllocator",
    .finalize = finalize,
};

static const struct allocator system_allocator = {
    .object = {.isa = &allocator_class},
    .context = {.allocate = system_allocate, .reallocate = system_reallocate, .deallocate = system_deallocate},
};

static const struct allocator malloc_allocator = {
    .object = {.isa = &allocator_class},
    .context = {.allocate = system_allocate, .reallocate = system_reallocate, .deallocate = system_deallocate},
};

static const struct allocator lined_allocator = {
    .object = {.isa = &allocator_class},
    .context = {.allocate = lined_allocate, .deallocate = lined_deallocate},
};

static const struct allocator large_allocator = {
    .object = {.isa = &allocator_class},
    .context = {.allocate = large_allocate, .deallocate = large_deallocate},
};

static const struct allocator null_allocator = {.object = {.isa = &allocator_class}};
static const struct allocator context_allocator = {.object = {.isa = &allocator_class}};

const CFAllocatorRef kCFAllocatorDefault = NULL;
const CFAllocatorRef kCFAllocatorSystemDefault = (CFAllocatorRef)(const void *)&system_allocator;
const CFAllocatorRef kCFAllocatorMalloc = (CFAllocatorRef)(const void *)&malloc_allocator;
const CFAllocatorRef kCFAllocatorMallocZone = (CFAllocatorRef)(const void *)&malloc_allocator;
const CFAllocatorRef kCFAllocatorNull = (CFAllocatorRef)(const void *)&null_allocator;
const CFAllocatorRef kCFAllocatorUseContext = (CFAllocatorRef)(const void *)&context_allocator;
const CFAllocatorRef allocator_lined = (CFAllocatorRef)(const void *)&lined_allocator;
const CFAllocatorRef allocator_large = (CFAllocatorRef)(const void *)&large_allocator;

static __thread CFAllocatorRef thread_default __attribute__((tls_model("initial-exec")));

static const struct allocator *allocator_of(CFAllocatorRef allocator)
{
    return (const struct allocator *)(const void *)allocator;
}

CFAllocatorRef allocator_resolve(CFAllocatorRef allocator)
{
    if (allocator != NULL) {
        return allocator;
    }
    return thread_default != NULL ? thread_default : kCFAllocatorSystemDefault;
}

void *allocator_allocate(CFAllocatorRef allocator, size_t size)
{
    const CFAllocatorContext *context = &allocator_of(allocator)->context;

    if (size == 0 || size > (size_t)PTRDIFF_MAX || context->allocate == NULL) {
        return NULL;
    }
    return context->allocate((CFIndex)size, 0, context->info);
}

void *allocator_allocate_zeroed(CFAllocatorRef allocator, size_t size)
{
    if (size > cached_most && allocator_of(allocator)->context.allocate == system_allocate) {
        return calloc(1, size);
    }
    void *block = allocator_allocate(allocator, size);
    if (block != NULL) {
        memset(block, 0, size);
    }
    return block;
}

void *allocator_resize(CFAllocatorRef allocator, void *block, size_t old_size, size_t new_size)
{
    const CFAllocatorContext *context = &allocator_of(allocator)->context;

    if (block != NULL && context->reallocate != NULL && new_size <= (size_t)PTRDIFF_MAX) {
        return context->reallocate(block, (CFIndex)new_size, 0, context->info);
    }
    void *resized = allocator_allocate(allocator, new_size);
    if (resized != NULL && block != NULL) {
        memcpy(resized, block, old_size < new_size ? old_size : new_size);
        allocator_deallocate(allocator, block);
    }
    return resized;
}

void allocator_deallocate(CFAllocatorRef allocator, void *block)
{
    const CFAllocatorContext *context = &allocator_of(allocator)->context;

    if (block != NULL && context->deallocate != NULL) {
        context->deallocate(block, context->info);
    }
}

void allocator_free_itself(CFAllocatorRef allocator, void *block)
{
    CFAllocatorContext context = allocator_of(allocator)->context;

    if (context.deallocate != NULL) {
        context.deallocate(block, context.info);
    }
    if (context.release != NULL) {
        context.release(context.info);
    }
}

static struct allocator *create_in_itself(const CFAllocatorContext *context, void *info)
{
    size_t size = object_block_size(sizeof(struct allocator));
    void *block = context->allocate != NULL ? context->allocate((CFIndex)size, 0, info) : NULL;

    if (block == NULL) {
        return NULL;
    }
    memset(block, 0, size);
    struct allocator *allocator = object_create_in_block(block, &allocator_class);
    allocator->lives_in_itself = true;
    return allocator;
}

CFAllocatorRef CFAllocatorCreate(CFAllocatorRef allocator, CFAllocatorContext *context)
{
    if (context == NULL) {
        fault_stop("CFAllocatorCreate", "the context is NULL");
    }
    CFAllocatorContext own = *context;
    if (own.retain != NULL) {
        own.info = (void *)(uintptr_t)own.retain(own.info);
    }
    struct allocator *created = allocator == kCFAllocatorUseContext ? create_in_itself(&own, own.info)
                                                                    : object_create(allocator, &allocator_class, sizeof *created);
    if (created == NULL) {
        if (own.release != NULL) {
            own.release(own.info);
        }
        return NULL;
    }
    created->context = own;
    return (CFAllocatorRef)(const void *)created;
}

CFTypeID CFAllocatorGetTypeID(void)
{
    return object_type_allocator;
}

CFAllocatorRef CFAllocatorGetDefault(void)
{
    return allocator_resolve(NULL);
}

void CFAllocatorSetDefault(CFAllocatorRef allocator)
{
    if (allocator == NULL || allocator == kCFAllocatorUseContext) {
        return;
    }
    object_require(allocator, object_type_allocator, "CFAllocatorSetDefault", "allocator");
    object_retain(allocator);
    thread_default = allocator;
}

static CFAllocatorRef resolve_checked(CFAllocatorRef allocator, const char *function)
{
    CFAllocatorRef resolved = allocator_resolve(allocator);

    object_require(resolved, object_type_allocator, function, "allocator");
    return resolved;
}

void *CFAllocatorAllocate(CFAllocatorRef allocator, CFIndex size, CFOptionFlags hint)
{
    const CFAllocatorContext *context = &allocator_of(resolve_checked(allocator, "CFAllocatorAllocate"))->context;

    if (size <= 0 || context->allocate == NULL) {
        return NULL;
    }
    return context->allocate(size, hint, context->info);
}

void *CFAllocatorReallocate(CFAllocatorRef allocator, void *block, CFIndex newSize, CFOptionFlags hint)
{
    CFAllocatorRef resolved = resolve_checked(allocator, "CFAllocatorReallocate");
    const CFAllocatorContext *context = &allocator_of(resolved)->context;

    if (block == NULL) {
        return CFAllocatorAllocate(resolved, newSize, hint);
    }
    if (newSize == 0) {
        allocator_deallocate(resolved, block);
        return NULL;
    }
    if (newSize < 0 || context->reallocate == NULL) {
        return NULL;
    }
    return context->reallocate(block, newSize, hint, context->info);
}

void CFAllocatorDeallocate(CFAllocatorRef allocator, void *block)
{
    allocator_deallocate(resolve_checked(allocator, "CFAllocatorDeallocate"), block);
}

CFIndex CFAllocatorGetPreferredSizeForSize(CFAllocatorRef allocator, CFIndex size, CFOptionFlags hint)
{
    const CFAllocatorContext *context = &allocator_of(resolve_checked(allocator, "CFAllocatorGetPreferredSizeForSize"))->context;
    CFIndex preferred = size > 0 && context->preferredSize != NULL ? context->preferredSize(size, hint, context->info) : size;

    return preferred > size ? preferred : size;
}

void CFAllocatorGetContext(CFAllocatorRef allocator, CFAllocatorContext *context)
{
    CFAllocatorRef resolved = resolve_checked(allocator, "CFAllocatorGetContext");

    if (context == NULL) {
        fault_stop("CFAllocatorGetContext", "the context is NULL");
    }
    *context = allocator_of(resolved)->context;
}
