/* SPDX-License-Identifier: Apache-2.0 */
/* Types that async_request.c, which any thread calls, and async_dispatch.c, on the thread of the loop, share. */
#ifndef CRL_PORT_ASYNC_ASYNC_REQUEST_PARTS_H
#define CRL_PORT_ASYNC_ASYNC_REQUEST_PARTS_H

#include "Port/link_names.h"

#include "Port/Async/async_request.h"
#include "Support/heap.h"

enum async_state { state_new, state_waiting, state_sent, state_judged, state_over };

struct async_request {
    _Atomic uint32_t references;
    CFMessagePortRef port; /* constant: the remote port, with a reference */
    struct request request; /* constant: `data` with a reference */
    bool is_one_way; /* constant once handed over: it is over when it was sent */
    bool ends_port; /* a port whose owner has gone is invalidated before `ended`; once handed over it is the loop's thread's */
    async_request_ended ended; /* constant */
    void *info; /* constant */
    struct async_requests *requests; /* constant once handed over */
    struct link inbox_link; /* guarded by the inbox's lock */
    bool is_cancelled; /* guarded by the inbox's lock */
    /* Used by the loop's thread. */
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
    CFMessagePortRef port; /* with a reference */
    struct link waiting;
    uint32_t in_flight;
    uint32_t users; /* functions that use it while `ended` may be called, which may run the loop */
};

struct async_requests {
    CFRunLoopRef loop; /* constant: the thread's, with a reference */
    CFRunLoopSourceRef source; /* constant: signalled when something is in the inbox */
    CFRunLoopTimerRef timer; /* constant */
    struct lock lock;
    struct link inbox GUARDED_BY(&lock);
    /* Used by the loop's thread. */
    struct link outlets;
    struct outlet *spare; /* memory for the next outlet; NULL: none yet, or in use */
    uint64_t share; /* requests in flight to one port that the process's descriptors allow, when last asked */
    int64_t timer_ns; /* when the timer fires: not later than it has to */
    struct link judged;
    struct heap deadlines;
    uint64_t deadlines_set; /* counts, for the order of equal ones */
    int64_t judge_ns; /* when to look again at receivers that may be dying; 0: there are none */
    int64_t look_ns; /* when to look at ports without room; 0: none is waited for */
    int64_t look_wait_ns; /* the wait before the next look */
};

/* Takes a request out of the inbox, with the inbox's reference. Returns NULL if it is empty. */
struct async_request *async_inbox_take(struct async_requests *requests, bool *ret_is_cancelled);

#endif
