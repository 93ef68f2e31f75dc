/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that does not travel in the packet. A memory file is written once and read once. An arena is mapped by both sides, which use it by
 * turns.
 *
 * Data from a peer is never trusted: a file must be sealed, be of ordinary pages, and have all of them; it is read, not mapped. An
 * arena is copied out before anybody looks at what is in it. No locks.
 */
#ifndef CRL_PORT_WIRE_PAYLOAD_H
#define CRL_PORT_WIRE_PAYLOAD_H

#include "Port/link_names.h"

#include <stdint.h>

#include "CoreFoundation/CFData.h"

enum payload_sizes {
    payload_arena_from = 1024, /* above this, data goes by the channel's arena if there is one */
    payload_arena_second = 4096, /* a second request above this makes an arena */
    payload_arena_min = 65536, /* the smallest arena; a first request above it makes one */
    payload_arena_max = 64 << 20,
};

struct arena {
    void *address; /* NULL: none */
    uint64_t size;
};

/* Returns data with a copy of the bytes, or NULL if there is no memory. */
CFDataRef payload_copy(const void *bytes, uint64_t length);

/* Like payload_copy, for data that one message or reply takes over as it is, without another copy. The caller shows it to nobody else. */
CFDataRef payload_copy_to_give(const void *bytes, uint64_t length);

/*
 * Returns data with the same bytes for the receiver of a message: `data` itself if it was made to be given, otherwise a new object, which
 * shares the bytes if nobody can change them. NULL stands for empty data. Returns NULL if there is no memory.
 */
CFDataRef payload_share(CFDataRef data);

/* Makes a memory file that holds the data. Returns its descriptor or a negative errno. */
int payload_put(const void *bytes, uint64_t length);
/* Returns why payload_put has failed, as a text for logs. */
const char *payload_put_error_text(int error);

/* Reads a peer's memory file. Returns 0, -EINVAL if it is not a valid one, or -ENOMEM. The caller keeps the descriptor. */
int payload_read(int descriptor, uint64_t length, CFDataRef *ret_data);

/* Makes an arena for at least `length` bytes, and its descriptor. Returns 0 or a negative errno. */
int arena_create(uint64_t length, struct arena *ret_arena, int *ret_descriptor);

/*
 * Maps a peer's arena of at most `limit` bytes. Returns 0, -EINVAL if it is not a valid one, or another errno if it cannot be mapped here;
 * arena_peek may still read it then.
 */
int arena_adopt(int descriptor, uint64_t limit, struct arena *ret_arena);

/* Reads from an arena that is not mapped. */
int arena_peek(int descriptor, uint64_t length, CFDataRef *ret_data);

void arena_release(struct arena *arena);

#endif
