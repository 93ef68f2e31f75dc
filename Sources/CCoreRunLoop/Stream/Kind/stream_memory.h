/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that read bytes in memory, write into a buffer of the program's, or into memory of their own. */
#ifndef CRL_STREAM_STREAM_MEMORY_H
#define CRL_STREAM_STREAM_MEMORY_H

#include "Stream/link_names.h"

#include "Stream/Core/stream.h"

/* Each returns NULL if there is no memory. `deallocator` NULL is the default allocator. */
struct stream *stream_memory_create_reader(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length, CFAllocatorRef deallocator);
/* Into the program's buffer, or, without one, into one that grows, which `buffer_allocator` allocates. */
struct stream *stream_memory_create_writer(CFAllocatorRef allocator, UInt8 *buffer, CFIndex capacity, CFAllocatorRef buffer_allocator);

#endif
