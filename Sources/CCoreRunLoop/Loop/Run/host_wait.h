/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sleep of the loop that another event loop, the host, does in its place. To other threads the loop sleeps as in a wait set of its own.
 *
 * The host polls one descriptor. It is a wait set that holds the loop's eventfd, an alarm for its timers, and the wait set of the mode.
 * hosting.c has the hosts that call this library, companion.c the one that this library calls. Each of them has a structure of its own.
 * All functions run on the loop's own thread.
 */
#ifndef CRL_LOOP_RUN_HOST_WAIT_H
#define CRL_LOOP_RUN_HOST_WAIT_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"

/* Loop's thread. */
struct host_wait {
    struct host_wait *next; /* in loop->host_waits */
    struct run *run; /* the run whose sleeps the host does; NULL: none */
    int descriptor; /* the wait set that the host polls; -1 until it is asked for */
    int alarm; /* a timerfd in that set; -1 until then */
    int nested_set; /* the mode's wait set, which is in `descriptor`; -1: none */
    uint32_t nested_serial; /* the set's serial number: the mode may have made a new set since */
    bool lacks_nested; /* the kernel had no room for the mode's set: it is polled at intervals */
    bool is_due; /* the host is to wait, or to go on at once */
    bool sleeps; /* the wake word says EPOLL, or said so until something came */
    bool is_ready; /* the host is to go on at once */
    int64_t limit_ns; /* when the alarm rings; kernel_never: not at all */
};

/* Sets up a structure without descriptors, and puts it on the loop's list. */
void host_wait_init(CFRunLoopRef loop, struct host_wait *wait);

/* Returns the descriptor, opened at the first call and again after the program has closed it; or -1 if there is none. */
REQUIRES(the_loop_lock) int host_wait_descriptor(CFRunLoopRef loop, struct host_wait *wait);

/* Goes to sleep in the place of a wait, as far as other threads can see: from here on, wake-ups are written to the eventfd. */
REQUIRES(the_loop_lock) void host_wait_begin(CFRunLoopRef loop, struct host_wait *wait);

/*
 * The descriptors were made while the host waits, for instance in the child of a fork. Events from before are not in them: this looks for
 * those events, and makes the new descriptor readable if there are any.
 */
REQUIRES(the_loop_lock) void host_wait_renew(CFRunLoopRef loop, struct host_wait *wait);

/*
 * Ends that sleep. Returns the cause, and in `ret_is_retimed` whether only a deadline may have changed: somebody has set one, or the system
 * has resumed.
 */
REQUIRES(the_loop_lock) enum wake_cause host_wait_end(CFRunLoopRef loop, struct host_wait *wait, bool *ret_is_retimed);

/* Sets up the alarm, the mode's wait set and the eventfd, which make the descriptor readable when the host has to go on. */
REQUIRES(the_loop_lock) void host_wait_show(CFRunLoopRef loop, struct host_wait *wait);

/* Empties the eventfd, because the host's set stays ready until that is done. */
REQUIRES(the_loop_lock) void host_wait_drain(CFRunLoopRef loop, const struct host_wait *wait);

/* Closes all descriptors that hosts poll: the thread ends, or this is the child of a fork, which shares them with its parent. */
void host_waits_close(CFRunLoopRef loop);

#endif
