/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where memory comes from: the allocators as the rest of the library uses them.
 *
 * The functions take a resolved allocator, never NULL, except allocator_resolve itself.
 */
#ifndef CRL_RUNTIME_ALLOCATOR_H
#define CRL_RUNTIME_ALLOCATOR_H

#include "Runtime/link_names.h"

#include <stddef.h>

#include "CoreFoundation/CFBase.h"

/* Returns `allocator` itself, or the calling thread's default for NULL. */
CFAllocatorRef allocator_resolve(CFAllocatorRef allocator);

/* Uses malloc. Its blocks begin at cache lines: copying whole pages there takes up to a quarter less time. */
extern const CFAllocatorRef allocator_lined;

/*
 * For single blocks of megabytes that are filled at once and do not stay: in huge pages, if the system has any to give. The block that was
 * given back last, of up to 64 MiB, is kept for the next, and stays the kernel's to take.
 */
extern const CFAllocatorRef allocator_large;

/* Returns NULL if there is no memory, or if `size` is 0 or more than a CFIndex can hold. */
void *allocator_allocate(CFAllocatorRef allocator, size_t size);
void *allocator_allocate_zeroed(CFAllocatorRef allocator, size_t size);

/* Returns a block of another size with the same first bytes, even if the allocator cannot reallocate. On NULL the old block stays. */
void *allocator_resize(CFAllocatorRef allocator, void *block, size_t old_size, size_t new_size);

/* `block` may be NULL. */
void allocator_deallocate(CFAllocatorRef allocator, void *block);

/* Gives back the block of an allocator that lives in its own memory, and then its info. */
void allocator_free_itself(CFAllocatorRef allocator, void *block);

#endif
