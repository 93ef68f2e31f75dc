/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that wait, in order: a list of blocks, none of which is empty. Whoever has the list guards it.
 *
 * A block is made before anything is written, so that its bytes cannot be lost for want of memory. Small writes share one: the memory is
 * at most twice the bytes that wait, and one block.
 */
#ifndef CRL_SERVICES_WRITE_BYTES_H
#define CRL_SERVICES_WRITE_BYTES_H

#include "services_link_names.h"

#include <stddef.h>
#include <stdint.h>

struct write_block {
    struct write_block *next;
    size_t capacity;
    size_t begin; /* of what waits */
    size_t end;
    uint8_t bytes[];
};

struct write_bytes {
    struct write_block *first;
    struct write_block *last; /* NULL: nothing waits */
    size_t count;
};

/* A block that holds `size` bytes behind those that wait, or NULL. It is one of its own, which is not in the list yet. */
struct write_block *write_block_make(const struct write_bytes *waiting, size_t size);
/* Puts bytes behind those that wait, with the block of write_block_make for no fewer. */
void write_bytes_append(struct write_bytes *waiting, struct write_block *block, const uint8_t *bytes, size_t size);
/* Drops bytes of the first block. */
void write_bytes_consume(struct write_bytes *waiting, size_t size);
void write_bytes_drop(struct write_bytes *waiting);

#endif
