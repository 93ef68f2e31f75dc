/* SPDX-License-Identifier: Apache-2.0 */
/* Data outside packets; see payload.h. */
#include "Port/Wire/payload.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "CoreFoundation/CFData.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Wire/port_log.h"
#include "Runtime/Object/allocator.h"
#include "Runtime/Value/data.h"
#include "Support/invariant.h"

/*
 * From this length on, the bytes have a block of their own. Bytes inside the object would be zeroed first, and a larger object is in none
 * of malloc's quick lists.
 */
static const uint64_t beside_from = 960;
static const uint64_t lined_from = 4 << 10; /* from this length on, the block begins at a cache line, where copying is fastest */
static const uint64_t large_from = 4 << 20; /* from this length on, the block is kept for the next large message */

/* True if no object can hold so many bytes: a CFIndex may have 32 bits, a peer's length has 64. */
static bool is_too_long(uint64_t length)
{
    return length > (uint64_t)LONG_MAX;
}

/* The allocator for that many bytes. */
static CFAllocatorRef allocator_for(uint64_t length)
{
    return length < lined_from ? kCFAllocatorMalloc : length < large_from ? allocator_lined : allocator_large;
}

/* Makes data that takes over `memory`, which is from allocator_for. Returns NULL if there is no memory for the object. */
static CFDataRef data_of(void *memory, uint64_t length)
{
    CFDataRef data = CFDataCreateWithBytesNoCopy(NULL, memory, (CFIndex)length, allocator_for(length));

    if (!data) {
        allocator_deallocate(allocator_for(length), memory);
    }
    return data;
}

CFDataRef payload_copy(const void *bytes, uint64_t length)
{
    void *memory;

    if (is_too_long(length)) {
        return NULL;
    }
    if (length < beside_from) {
        return CFDataCreate(NULL, bytes, (CFIndex)length);
    }
    memory = allocator_allocate(allocator_for(length), (size_t)length);
    if (!memory) {
        return NULL;
    }
    memcpy(memory, bytes, (size_t)length);
    return data_of(memory, length);
}

CFDataRef payload_copy_to_give(const void *bytes, uint64_t length)
{
    CFDataRef data = payload_copy(bytes, length);

    if (data) {
        data_mark_given(data);
    }
    return data;
}

CFDataRef payload_share(CFDataRef data)
{
    uint64_t length = data ? (uint64_t)CFDataGetLength(data) : 0;

    if (length > 0 && data_take_given(data)) {
        return CFRetain(data);
    }
    if (length > 0 && data_is_shareable(data)) {
        return data_create_sharing(data);
    }
    return payload_copy(length > 0 ? CFDataGetBytePtr(data) : NULL, length);
}

int payload_put(const void *bytes, uint64_t length)
{
    int descriptor = kernel_ports.memory_create(length, false);
    int result = descriptor < 0 ? descriptor : kernel_ports.memory_write(descriptor, bytes, length);

    if (descriptor >= 0 && result < 0) {
        (void)kernel.close(descriptor);
    }
    return result < 0 ? result : descriptor;
}

const char *payload_put_error_text(int error)
{
    switch (-error) {
    case EPERM:
    case EACCES:
    case ENOSYS:
        return "memfd_create is refused, by a filter of system calls or an old kernel";
    case EFBIG:
        return "the limit on file sizes (RLIMIT_FSIZE) also bounds memory files";
    default:
        return port_error_text(error);
    }
}

/* Reads the first `length` bytes of a file that is known to have them. */
static int read_all(int descriptor, uint64_t length, CFDataRef *ret_data)
{
    char *memory = is_too_long(length) ? NULL : allocator_allocate(allocator_for(length), length ? (size_t)length : 1);
    uint64_t done = 0;

    if (!memory) {
        return -ENOMEM;
    }
    while (done < length) {
        ssize_t size = kernel_ports.file_read(descriptor, memory + done, (size_t)(length - done), (off_t)done);

        if (size <= 0) {
            allocator_deallocate(allocator_for(length), memory);
            return -EINVAL;
        }
        done += (uint64_t)size;
    }
    *ret_data = data_of(memory, length);
    return *ret_data ? 0 : -ENOMEM;
}

int payload_read(int descriptor, uint64_t length, CFDataRef *ret_data)
{
    return kernel_ports.memory_is_fixed(descriptor, length, true) ? read_all(descriptor, length, ret_data) : -EINVAL;
}

/* ---- arenas ---- */

static uint64_t arena_size_for(uint64_t length)
{
    uint64_t size = payload_arena_min;

    while (size < length) {
        size *= 2;
    }
    return size;
}

int arena_create(uint64_t length, struct arena *ret_arena, int *ret_descriptor)
{
    uint64_t size = arena_size_for(length);
    int descriptor = kernel_ports.memory_create(size, true);
    int result = descriptor < 0 ? descriptor : kernel_ports.memory_map(descriptor, size, true, &ret_arena->address);

    if (result < 0) {
        if (descriptor >= 0) {
            (void)kernel.close(descriptor);
        }
        return result;
    }
    invariant(size >= length && size % payload_arena_min == 0);
    ret_arena->size = size;
    *ret_descriptor = descriptor;
    return 0;
}

/* Reads the arena's size. Fails if the descriptor is no arena. */
static int check_arena(int descriptor, uint64_t *ret_size)
{
    int result = kernel_ports.memory_size(descriptor, ret_size);

    if (result < 0 || is_too_long(*ret_size) || *ret_size < payload_arena_min || *ret_size % payload_arena_min != 0 ||
        !kernel_ports.memory_is_fixed(descriptor, *ret_size, false)) {
        return -EINVAL;
    }
    return 0;
}

int arena_adopt(int descriptor, uint64_t limit, struct arena *ret_arena)
{
    uint64_t size = 0;
    int result = check_arena(descriptor, &size);

    if (result == 0 && size > limit) {
        result = -E2BIG;
    }
    if (result == 0) {
        result = kernel_ports.memory_map(descriptor, size, false, &ret_arena->address);
    }
    if (result == 0) {
        invariant(size <= limit && size >= payload_arena_min);
        ret_arena->size = size;
    }
    return result;
}

int arena_peek(int descriptor, uint64_t length, CFDataRef *ret_data)
{
    uint64_t size = 0;
    int result = check_arena(descriptor, &size);

    return result < 0 || length > size ? -EINVAL : read_all(descriptor, length, ret_data);
}

void arena_release(struct arena *arena)
{
    if (arena->address) {
        kernel_ports.memory_unmap(arena->address, arena->size);
        *arena = (struct arena){NULL, 0};
    }
}
