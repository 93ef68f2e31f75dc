/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of reply channels. A channel belongs to one call at a time, so that no reply can reach another call. Free channels wait
 * in a list of the remote port, and a call takes the one used last. As many wait as were in use at once lately: each time that
 * free_channels_looked_over have become free, the oldest is closed if no call needed it. After a timeout the channel is closed, so a late
 * reply is lost and cannot reach a later call (rule 230).
 */
#ifndef CRL_PORT_MESSAGE_CLIENT_CHANNEL_H
#define CRL_PORT_MESSAGE_CLIENT_CHANNEL_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"
#include "Port/Wire/payload.h"
#include "Port/Wire/reply_page.h"

enum { free_channels_least = 4, free_channels_max = 64, free_channels_descriptor_share = 32, free_channels_looked_over = 256 };

enum pending_state { pending_open, pending_memory, pending_replied, pending_dropped, pending_hung_up, pending_broken };

/* The reply that a request waits for, and as much of it as has been read so far. Used by the calling thread only. */
struct pending_reply {
    enum pending_state state;
    _Atomic uint32_t is_over; /* the state is final: ends the wait, even if a run inside it has read the answer */
    uint64_t conversation;
    SInt32 message_id;
    CFMessagePortRef port; /* the remote one */
    uint64_t memory_length; /* the announced size of the reply's memory file */
    CFDataRef reply;
    bool says_kept; /* the answer says KEPT: the server keeps the channel */
    bool refuses_arena; /* the answer says NO_ARENA */
    bool wants_status; /* the request says WANT_STATUS */
    uint32_t status; /* of enum wire_status: why there is no answer; the reply is its text then */
    bool has_sequence; /* an answer has come, and `sequence` is set */
    uint32_t sequence; /* the frame number that the answer confirmed */
};

static inline bool pending_is_open(const struct pending_reply *pending)
{
    return pending->state == pending_open || pending->state == pending_memory;
}

struct client_channel {
    struct link link; /* of the remote's free or busy channels; guarded by the port lock */
    uint32_t number; /* constant */
    uint64_t token; /* constant */
    int descriptor; /* constant */
    bool server_keeps_it; /* an answer has said KEPT */
    bool refuses_arena;
    bool sent_above_4k; /* an earlier request was longer than payload_arena_second */
    uint64_t longest_reply; /* the longest reply so far that an arena can hold, in bytes */
    struct arena arena;
    uint32_t uses; /* requests that were answered */
    struct reply_page *page; /* written under the port lock; NULL: none, or none yet */
    atomic_bool reply_comes_too_late; /* atomic; the port ended while the page was empty: a later reply does not count (rule 243) */
    int set; /* once there is a page: a wait set with the channel's socket and the server's bell; the source watches it */
    uint8_t *buffer; /* constant: room for one packet */
    CFRunLoopRef user_loop; /* of the thread whose call uses the channel; guarded by the port lock */
    struct pending_reply *pending; /* `own_pending`; NULL while free, and with a serving loop until the request is sent */
    struct pending_reply own_pending; /* not on the stack: a callback may jump out of the wait, and the answer still comes */
    CFRunLoopRef serving_loop; /* constant: of requests that block nobody, which alone use it; NULL: for calls that wait */
    struct lock lock; /* held while a request is sent, and while a serving loop reads */
    void (*ended)(void *info); /* called without the lock, on the thread of that loop when the answer is there or the wait is over */
    void *ended_info;
    CFRunLoopSourceRef source; /* owns this structure */
    CFRunLoopRef loop; /* the loop that the source was last in, with a reference; NULL: none yet */
    CFStringRef mode; /* the mode of that loop */
};

/*
 * Begins a use of the port, and takes a free or a new channel for a call, which starts with a copy of `pending`. `serving_loop` is that of
 * a request that blocks nobody: such a channel never leaves its loop, which sees the reply whenever it comes. `ret_end` is the end of a
 * new channel, to be sent with the request, or -1 for a free one. If there is no channel, returns NULL and a negative errno in `ret_error`,
 * and the port is not in use; -ENOTCONN means that the port is invalid.
 */
struct client_channel *client_channel_take(CFMessagePortRef port, CFRunLoopRef serving_loop, struct pending_reply *pending, int *ret_end,
                                           int *ret_error);

/* Called before an answered call ends. A channel that has been used often gets a page, into which the server may write further replies. */
void client_channel_offer_page(CFMessagePortRef port, struct client_channel *channel);

/*
 * Ends the call and its use of the port, and notes the frame number that the answer confirmed. Puts a reusable channel back into the list;
 * closes any other, and the oldest one if the list is full.
 */
void client_channel_give(CFMessagePortRef port, struct client_channel *channel, bool is_reusable);

/* Moves the source into a mode of the calling thread's loop. Returns false if there is no memory for that. */
bool client_channel_enter(struct client_channel *channel, CFRunLoopRef loop, CFStringRef mode);
/* Returns true if the source is in that mode, suspended or not. */
bool client_channel_is_in(const struct client_channel *channel, CFRunLoopRef loop, CFStringRef mode);
/* Takes the source out of the mode, as far as a program can tell. The loop's wait set keeps the descriptor for the next request. */
void client_channel_rest(struct client_channel *channel, CFRunLoopRef loop, CFStringRef mode);

/* Waits without a loop until something may have come, or until `deadline_ns`. */
void client_channel_wait(struct client_channel *channel, int64_t deadline_ns);

/* Ends the wait of the call that uses the channel. */
REQUIRES(the_port_lock) void client_channel_hang_up(struct client_channel *channel);

/* Takes the reply if it stands in the channel's page. */
void client_channel_look(struct client_channel *channel);
/* Reads from the page and the socket until the call has its answer, or until both are empty. */
void client_channel_read(struct client_channel *channel);

/* Returns true if a call on the thread of that loop waits for a reply by a channel of the port. */
REQUIRES(the_port_lock) bool client_channels_are_used_in(const struct remote_port *remote, CFRunLoopRef loop);

/* Closes a channel that no call uses. */
void client_channel_close(struct client_channel *channel);

#endif
