/* SPDX-License-Identifier: Apache-2.0 */
/* See write_bytes.h. */
#include "Write/write_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"

enum { block_size = 4096 };

static size_t room_behind(const struct write_bytes *waiting)
{
    return waiting->last ? waiting->last->capacity - waiting->last->end : 0;
}

struct write_block *write_block_make(const struct write_bytes *waiting, size_t size)
{
    size_t room = room_behind(waiting);
    size_t needed = size > room ? size - room : 0;
    size_t capacity = needed > block_size - sizeof(struct write_block) ? needed : block_size - sizeof(struct write_block);
    struct write_block *block = malloc(sizeof *block + (needed > 0 ? capacity : 0));

    if (block) {
        *block = (struct write_block){.capacity = needed > 0 ? capacity : 0};
    }
    return block;
}

static void fill(struct write_bytes *waiting, struct write_block *block, const uint8_t *bytes, size_t size)
{
    memcpy(&block->bytes[block->end], bytes, size);
    block->end += size;
    waiting->count += size;
}

void write_bytes_append(struct write_bytes *waiting, struct write_block *block, const uint8_t *bytes, size_t size)
{
    size_t room = room_behind(waiting);
    size_t here = size < room ? size : room;

    if (here > 0) {
        fill(waiting, waiting->last, bytes, here);
    }
    if (size == here) {
        free(block);
        return;
    }
    invariant(size - here <= block->capacity);
    fill(waiting, block, bytes + here, size - here);
    *(waiting->last ? &waiting->last->next : &waiting->first) = block;
    waiting->last = block;
}

void write_bytes_consume(struct write_bytes *waiting, size_t size)
{
    struct write_block *block = waiting->first;

    invariant(block && size <= block->end - block->begin);
    block->begin += size;
    waiting->count -= size;
    if (block->begin == block->end) {
        waiting->first = block->next;
        waiting->last = waiting->first ? waiting->last : NULL;
        free(block);
    }
    invariant((waiting->count == 0) == !waiting->first);
}

void write_bytes_drop(struct write_bytes *waiting)
{
    while (waiting->first) {
        write_bytes_consume(waiting, waiting->first->end - waiting->first->begin);
    }
}
