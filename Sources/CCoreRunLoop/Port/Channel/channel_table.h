/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channels that peers have handed to a local port, of each enum channel_kind. Guarded by the port's lock.
 *
 * A channel with a running request is not freed: channel_table_drop hangs it up, and the end of the request frees it. A wait set finds the
 * channels whose other end is closed. Nobody waits in that set; it is asked when a new channel comes. So dead peers cost the loop no
 * wake-up, and the table cannot fill with their channels. The table remembers the names of such channels for a while, because a request
 * that the peer had queued before is still run.
 */
#ifndef CRL_PORT_CHANNEL_CHANNEL_TABLE_H
#define CRL_PORT_CHANNEL_CHANNEL_TABLE_H

#include "Port/link_names.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "Port/Wire/ack_page.h"
#include "Port/Wire/payload.h"
#include "Port/Wire/peer.h"
#include "Port/Wire/reply_page.h"
#include "Support/list.h"

enum channel_limits {
    channel_reply_max = 256, /* and a quarter of the process's descriptors */
    channel_reply_max_of_peer = 64,
    channel_control_max = 64,
    channel_watch_max = 256, /* and a quarter of the process's descriptors */
    channel_page_max = 64, /* and a sixteenth of the process's descriptors, for each has a bell */
    channel_gone_max = 1024,
    channel_buckets = 64,
    channel_queue_most = 1024, /* more packets than wait in any queue */
};

enum channel_kind {
    channel_reply,
    channel_control, /* wakes a client that waits for room */
    channel_watch, /* nothing is ever sent on it: its end tells a client the port's */
    channel_kind_count
};

struct server_channel {
    struct link link; /* in the bucket of its token */
    uint64_t token; /* constant */
    uint32_t number; /* constant */
    struct peer peer; /* constant */
    int descriptor; /* constant until the channel has ended, then -1 */
    enum channel_kind kind; /* constant */
    bool is_kept; /* the channel is in the table */
    bool is_running; /* a request on it has no reply yet */
    bool is_watched; /* it is not in the table, but in the wait set: its request is answered later */
    bool is_hung_up; /* its peer is gone, or this side has hung it up */
    bool has_ended; /* its peer is gone, but a request that was queued before may be in its arena */
    uint64_t ended_at; /* the table's `reads` when the channel ended */
    uint32_t holders; /* requests that have not ended: the next one may begin while the reply to the last is being sent */
    bool refuses_arena; /* belongs to the thread that runs the request */
    struct arena arena; /* belongs to the thread that runs the request */
    struct reply_page *page; /* NULL: none, or the channel has ended */
    int bell; /* of the page */
    struct ack_page *acks; /* constant: of a control channel, which has one always */
    uint32_t last_acknowledged; /* of a control channel: the last number written into `acks`; a copy, because the peer may change it */
    bool has_acknowledged; /* `last_acknowledged` is set */
};

struct gone_channel {
    uint64_t token;
    uint32_t number;
    struct peer peer;
};

struct channel_table {
    struct link buckets[channel_buckets];
    uint32_t counts[channel_kind_count];
    uint32_t ended_count;
    uint32_t page_count;
    uint64_t reads; /* how many reads from the port there were */
    uint64_t mapped; /* bytes of arenas */
    int set; /* -1 until needed */
    struct gone_channel *gone; /* NULL until needed */
    uint32_t gone_next;
    bool is_closed; /* the port has ended: takes no more channels, because nobody would drop them */
};

void channel_table_init(struct channel_table *table);

struct server_channel *channel_table_find(struct channel_table *table, uint32_t number, uint64_t token, const struct peer *peer,
                                          enum channel_kind kind);
bool channel_table_remembers(const struct channel_table *table, uint32_t number, uint64_t token, const struct peer *peer);

/* Makes a channel in no table, which takes over `descriptor`. Returns NULL if there is no memory; the caller keeps the descriptor then. */
struct server_channel *server_channel_create(uint32_t number, uint64_t token, const struct peer *peer, int descriptor,
                                             enum channel_kind kind);
/* Frees a channel that was in no table. */
void server_channel_free(struct server_channel *channel);

/* Puts a channel into the table. Returns false if the table is full or closed, or if the channel cannot be watched for its end. */
bool channel_table_keep(struct channel_table *table, struct server_channel *channel);

/* Takes the channel out and closes it. A channel with a running request is hung up, and its request frees it. */
void channel_table_drop(struct channel_table *table, struct server_channel *channel);

/* The first returns true if the channel may have a page now. The second gives it one: the channel takes over the page and its bell. */
bool channel_table_has_room_for_page(const struct channel_table *table, const struct server_channel *channel);
void channel_table_give_page(struct channel_table *table, struct server_channel *channel, struct reply_page *page, int bell);

/*
 * The stages of a request on a channel: it begins, its reply is about to be sent, it has ended. The end frees a channel that was dropped
 * meanwhile.
 */
void server_channel_begin(struct server_channel *channel);
void server_channel_before_reply(struct server_channel *channel);
void channel_table_end(struct channel_table *table, struct server_channel *channel);

/*
 * Watches the channel of a request that is answered later for its peer's end, also if it is not in the table. Returns the wait set, or -1
 * if the channel cannot be watched.
 */
int channel_table_watch(struct channel_table *table, struct server_channel *channel);
/* Returns the wait set, which becomes ready when a sweep has something to do; or -1 if there is none and none can be made. */
int channel_table_set(struct channel_table *table);

/*
 * Drops the channels whose peers are gone. One with an arena stays until no queued packet can name it any more. With `spares_held` channels
 * of requests that are not answered are left to a sweep by a caller who tells of it.
 */
void channel_table_sweep(struct channel_table *table, bool spares_held);
/* Drops the ended channels with an arena, too, to make room for others. */
void channel_table_drop_ended(struct channel_table *table);
void channel_table_drop_peer(struct channel_table *table, const struct peer *peer);
void channel_table_drop_all(struct channel_table *table);
/* Drops all channels and takes no more: a thread that still reads from the ending port may bring another. */
void channel_table_close(struct channel_table *table);
/* Returns some control channel, the oldest of the first bucket that has one; or NULL. */
struct server_channel *channel_table_some_control(struct channel_table *table);

/* For the child of a fork: closes the inherited descriptors, and hangs nothing up, because that would end the parent's channels. */
void channel_table_abandon(struct channel_table *table);

#endif
