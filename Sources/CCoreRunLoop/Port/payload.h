/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that does not travel in the packet: files of memory, made once and read once, and arenas, mapped by both sides and used by turns.
 *
 * What comes from a peer is never trusted: a file must be sealed, be of ordinary pages, and have all of them; it is read, not mapped. An
 * arena is copied out before anybody looks at what is in it. No locks.
 */
#ifndef CRL_PORT_PAYLOAD_H
#define CRL_PORT_PAYLOAD_H

#include "Support/link_names.h"

#include <stdint.h>

#include "CoreFoundation/CFData.h"

enum payload_sizes {
    payload_arena_from = 1024, /* above this, data goes by the line's arena if there is one */
    payload_arena_second = 4096, /* a second request above this makes an arena */
    payload_arena_min = 65536, /* the smallest arena; a first request above it makes one */
    payload_arena_max = 64 << 20,
};

struct arena {
    void *address; /* NULL: none */
    uint64_t size;
};

/* Data of its own memory. NULL if there is none. */
CFDataRef payload_copy(const void *bytes, uint64_t length);

/* The same, for one message or reply, which then takes the object itself: its maker shows it to nobody else. */
CFDataRef payload_copy_to_give(const void *bytes, uint64_t length);

/*
 * Data with the same bytes for whom a message is for: new, shared where that is as good as a copy, unless it was made to be given. NULL
 * data is empty. NULL if there is no memory.
 */
CFDataRef payload_share(CFDataRef data);

/* A file of memory that holds the data; or a negative errno. */
int payload_put(const void *bytes, uint64_t length);

/* Reads what payload_put made elsewhere. -EINVAL: it is not what it should be; -ENOMEM. The descriptor stays the caller's. */
int payload_read(int descriptor, uint64_t length, CFDataRef *ret_data);

/* An arena for at least `length` bytes, and its descriptor; or a negative errno. */
int arena_create(uint64_t length, struct arena *ret_arena, int *ret_descriptor);

/*
 * Maps what arena_create made elsewhere, of at most `limit` bytes. -EINVAL as above; others: it cannot be mapped here, but arena_peek
 * may read it.
 */
int arena_adopt(int descriptor, uint64_t limit, struct arena *ret_arena);

/* Reads from an arena that is not mapped. */
int arena_peek(int descriptor, uint64_t length, CFDataRef *ret_data);

void arena_release(struct arena *arena);

#endif
