/* SPDX-License-Identifier: Apache-2.0 */
/* Types that async_request.c, which any thread calls, and async_dispatch.c, on the thread of the loop, share. */
#ifndef CRL_PORT_ASYNC_ASYNC_REQUEST_PARTS_H
#define CRL_PORT_ASYNC_ASYNC_REQUEST_PARTS_H

#include "Port/link_names.h"

#include "Port/Async/async_request.h"
#include "Support/heap.h"

extern struct lock_role the_requests_lock; /* that of whichever `struct async_requests` */

enum async_asked { asked_to_send = 1, asked_to_cancel = 2 };

enum async_state { state_new, state_waiting, state_sent, state_judged, state_over };

struct async_request {
    _Atomic uint32_t references;
    CFMessagePortRef port; /* constant: the remote port, with a reference */
    struct request request; /* constant: `data` with a reference */
    bool is_one_way; /* constant once handed over: it is over when it was sent */
    bool ends_port; /* a port whose owner has gone is invalidated before `ended` */
    async_request_ended ended; /* constant */
    void *info; /* constant once handed over */
    _Atomic uint32_t asked; /* bits of enum async_asked */
    struct async_requests *requests; /* constant once handed over */
    /* Guarded by the lock of `requests` once handed over. */
    struct link inbox_link;
    bool is_cancelled;
    enum async_state state;
    struct link link; /* in its outlet's `waiting`, in `judged`, or in no list */
    struct heap_node deadline;
    struct outlet *outlet;
    struct client_channel *channel; /* of a request that is sent or judged */
    uint32_t sequence; /* of its frame */
    uint32_t status;
    int64_t judged_until_ns;
};

/* The requests to one port. */
struct outlet {
    struct link link;
    CFMessagePortRef port; /* the requests have references */
    struct link waiting;
    uint32_t in_flight;
    uint32_t users; /* functions that use it while `ended` may be called, which may run the loop */
};

struct async_requests {
    CFRunLoopRef loop; /* constant: the thread's, with a reference */
    CFRunLoopSourceRef source; /* constant: signalled when something is in the inbox */
    CFRunLoopTimerRef timer; /* constant */
    struct lock lock;
    struct link inbox GUARDED_BY(the_requests_lock);
    struct link outlets GUARDED_BY(the_requests_lock);
    struct outlet *spare GUARDED_BY(the_requests_lock); /* memory for the next outlet; NULL: none yet, or in use */
    uint64_t share GUARDED_BY(the_requests_lock); /* requests in flight to one port that the process's descriptors allow, when last asked */
    int64_t timer_ns GUARDED_BY(the_requests_lock); /* when the timer fires: not later than it has to */
    struct link judged GUARDED_BY(the_requests_lock);
    struct heap deadlines GUARDED_BY(the_requests_lock);
    uint64_t deadlines_set GUARDED_BY(the_requests_lock); /* counts, for the order of equal ones */
    int64_t judge_ns GUARDED_BY(the_requests_lock); /* when to look again at receivers that may be dying; 0: there are none */
    int64_t look_ns GUARDED_BY(the_requests_lock); /* when to look at ports without room; 0: none is waited for */
    int64_t look_wait_ns GUARDED_BY(the_requests_lock); /* the wait before the next look */
};

static inline void requests_lock(struct async_requests *requests) ACQUIRES(the_requests_lock);
static inline void requests_unlock(struct async_requests *requests) RELEASES(the_requests_lock);

NOT_CHECKED static inline void requests_lock(struct async_requests *requests)
{
    lock_take(&requests->lock);
}

NOT_CHECKED static inline void requests_unlock(struct async_requests *requests)
{
    lock_drop(&requests->lock);
}

/*
 * Takes a new request in, and sends it on the calling thread if nothing waits before it and nothing is in the way. Returns false if the
 * inbox has to bring it: something is there, or there is no memory.
 */
bool async_request_take_in(struct async_requests *requests, struct async_request *request);

#endif
