/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of reply lines. A line belongs to one call at a time, so that no reply can reach another; free ones wait in a list of
 * the remote port, and a call takes the one used last. After a timeout a line is closed, and a late reply has nowhere to go.
 */
#ifndef CRL_PORT_CLIENT_LINE_H
#define CRL_PORT_CLIENT_LINE_H

#include "Support/link_names.h"

#include "Port/message_port.h"
#include "Port/payload.h"
#include "Port/reply_page.h"

enum { free_lines_max = 4 };

enum call_state { call_waiting, call_awaits_memory, call_replied, call_dropped, call_hung_up, call_broken };

/* What a line's reader finds. The calling thread's only. */
struct call {
    enum call_state state;
    _Atomic uint32_t is_over; /* the state is final: ends the wait, even if a run inside it has read the answer */
    uint64_t conversation;
    SInt32 message_id;
    CFMessagePortRef port; /* the remote one */
    uint64_t memory_length; /* what the reply's memory must have */
    CFDataRef reply;
    bool is_kept;
    bool refuses_arena;
    bool has_sequence;
    uint32_t sequence; /* that the answer confirmed */
};

static inline bool call_is_open(const struct call *call)
{
    return call->state == call_waiting || call->state == call_awaits_memory;
}

struct client_line {
    struct link link; /* of the remote's free or busy lines; P */
    uint32_t number; /* C */
    uint64_t token; /* C */
    int descriptor; /* C */
    bool is_kept; /* the server has the other end */
    bool refuses_arena;
    bool has_sent_much; /* a request above payload_arena_second went before */
    uint64_t wish; /* the longest request or reply that found no room in the arena */
    struct arena arena;
    uint32_t uses; /* requests that were answered */
    struct reply_page *page; /* written under P; NULL: none, or none yet */
    atomic_bool has_ended; /* A; the port ended before a reply stood in the page: none counts any more (243) */
    int set; /* of the page: the line's socket and the server's bell; the source stands on it then */
    uint8_t *buffer; /* C; for one packet, its memory taken by what comes */
    struct call *call; /* `own_call`; NULL while free */
    struct call own_call; /* here, because a callback in the wait may jump out of it, and the answer comes all the same */
    CFRunLoopSourceRef source; /* owns this structure */
    CFRunLoopRef loop; /* where the source was last, with a reference; NULL: nowhere yet */
    CFStringRef mode; /* and in which mode */
};

/*
 * Begins a use of the port, and takes a free line for a call that begins as `call`, or a new one, in which case `ret_end` is the end to
 * send along, and otherwise -1. NULL: a negative errno in `ret_error`, -ENOTCONN if the port is invalid, and no use.
 */
struct client_line *client_line_take(CFMessagePortRef port, struct call *call, int *ret_end, int *ret_error);

/* An answered call's, before it ends: the server may write further replies of a line that has proved busy into memory. */
void client_line_offer_page(CFMessagePortRef port, struct client_line *line);

/* The call has ended, and with it the use of the port: what it confirmed is noted; the line goes back into the list, or is closed. */
void client_line_give(CFMessagePortRef port, struct client_line *line, bool is_reusable);

/* Puts the source into a mode of the calling thread's loop, and out of where it was before. False if there is no memory for that. */
bool client_line_enter(struct client_line *line, CFRunLoopRef loop, CFStringRef mode);
/* It rests there. */
bool client_line_is_in(const struct client_line *line, CFRunLoopRef loop, CFStringRef mode);
/* And out of it, as far as anybody can tell. */
void client_line_rest(struct client_line *line, CFRunLoopRef loop, CFStringRef mode);

/* Waits until something may have come, or `deadline_ns`, where no loop does. */
void client_line_wait(struct client_line *line, int64_t deadline_ns);

/* Ends the wait of the call that has the line. P */
void client_line_hang_up(struct client_line *line);

/* Takes the reply if it stands in the line's page. */
void client_line_look(struct client_line *line);
/* Reads what has come until the call's answer, or until there is no more. */
void client_line_read(struct client_line *line);

#endif
