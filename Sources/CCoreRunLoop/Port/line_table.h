/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines that peers have handed to a local port: reply lines, and control lines. Guarded by the port's lock.
 *
 * A line whose request is running is not freed under it: whoever wants it gone hangs it up, and the request's end frees it. Lines whose
 * other end is closed are found by a wait set that nobody waits in: it is asked when a new line comes, so that dead peers cost the loop no
 * wake-up and the table still cannot fill with them. What a line that went that way was called is remembered for a while: a request that
 * its peer had queued before is still to be run.
 */
#ifndef CRL_PORT_LINE_TABLE_H
#define CRL_PORT_LINE_TABLE_H

#include "Support/link_names.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "Port/ack_page.h"
#include "Port/payload.h"
#include "Port/reply_page.h"
#include "Support/list.h"

enum line_limits {
    line_reply_max = 256, /* and a quarter of the process's descriptors */
    line_reply_max_of_peer = 64,
    line_control_max = 64,
    line_page_max = 64, /* and a sixteenth of the process's descriptors, for each has a bell */
    line_gone_max = 1024,
    line_buckets = 64,
    line_queue_most = 1024, /* more packets than wait in any queue */
};

struct server_line {
    struct link link; /* of the bucket, by token */
    uint64_t token; /* C */
    uint32_t number; /* C */
    pid_t pid; /* C */
    int descriptor; /* C until the line has ended, then -1 */
    bool is_control; /* C */
    bool is_kept; /* in the table */
    bool is_running; /* a request on it has no reply yet */
    bool has_ended; /* its peer is gone, but a request that was queued before may be in its arena */
    uint64_t ended_at; /* how many reads there had been then */
    uint32_t holders; /* requests whose end still needs it: the next one may begin before the reply to the last is quite sent */
    bool refuses_arena; /* whoever runs it */
    struct arena arena; /* whoever runs it */
    struct reply_page *page; /* NULL: none, or the line has ended */
    int bell; /* of the page */
    struct ack_page *acks; /* C; of a control line, which has one always */
    uint32_t taken; /* of a control line: the last number in that page, where the peer may change it */
    bool has_taken; /* there is one */
};

struct gone_line {
    uint64_t token;
    uint32_t number;
    pid_t pid;
};

struct line_table {
    struct link buckets[line_buckets];
    uint32_t reply_count;
    uint32_t control_count;
    uint32_t ended_count;
    uint32_t page_count;
    uint64_t taken; /* reads from the port so far */
    uint64_t mapped; /* bytes of arenas */
    int set; /* -1 until needed */
    struct gone_line *gone; /* NULL until needed */
    uint32_t gone_next;
    bool is_closed; /* the port has ended: nothing would be dropped any more */
};

void line_table_init(struct line_table *table);

struct server_line *line_table_find(struct line_table *table, uint32_t number, uint64_t token, pid_t pid, bool is_control);
bool line_table_was(const struct line_table *table, uint32_t number, uint64_t token, pid_t pid);

/* A line that takes over `descriptor`; NULL if there is no memory, and then it is still the caller's. In no table yet. */
struct server_line *server_line_create(uint32_t number, uint64_t token, pid_t pid, int descriptor, bool is_control);
/* Of a line that was in no table. */
void server_line_free(struct server_line *line);

/* Puts a line into the table, unless that has enough of them or is closed. */
bool line_table_keep(struct line_table *table, struct server_line *line);

/* Takes it out and closes it; a running one is hung up and left to its request. */
void line_table_drop(struct line_table *table, struct server_line *line);

/* Whether the line may have a page now; gives it one, which it takes over with its bell. */
bool line_table_has_room_for_page(const struct line_table *table, const struct server_line *line);
void line_table_give_page(struct line_table *table, struct server_line *line, struct reply_page *page, int bell);

/* A request begins on it, is about to be replied to, and has ended, which frees a line that was dropped meanwhile. */
void server_line_begin(struct server_line *line);
void server_line_before_reply(struct server_line *line);
void line_table_end(struct line_table *table, struct server_line *line);

/* Drops the lines whose peers are gone; those with an arena when no packet can name them any more. */
void line_table_sweep(struct line_table *table);
/* Drops those too, for others need the room. */
void line_table_drop_ended(struct line_table *table);
void line_table_drop_peer(struct line_table *table, pid_t pid);
void line_table_drop_all(struct line_table *table);
/* Drops all and takes no more: who still reads from the port that ends may bring another. */
void line_table_close(struct line_table *table);
/* The oldest control line, or NULL. */
struct server_line *line_table_some_control(struct line_table *table);

/* In the child of a fork: closes what is the parent's too, and hangs nothing up. */
void line_table_abandon(struct line_table *table);

#endif
