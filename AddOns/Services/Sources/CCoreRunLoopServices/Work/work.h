/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work: its object, where its end is told, and the state of all of it, which one lock guards.
 *
 * waiting -> running -> ended -> told, or waiting -> ended (cancelled), or anything -> told (its loop has ended). In each state but the
 * last the work has a reference, of the list or the thread that has it. A port is a mode of a loop in which ends are told. It is there
 * while it has open work, which is not told yet, and its source keeps the run alive so long.
 *
 * Work of the wing itself (work_make) has no port: nobody is told. It may be given again as soon as its function has begun, and each time
 * takes a reference, so that a thread that has run it does not look at its state.
 *
 * Threads: any. The lock is taken before locks of the library. It is not held over what ends a source, which calls `port_left`.
 */
#ifndef CRL_SERVICES_WORK_H
#define CRL_SERVICES_WORK_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "CRLAddOn.h"
#include "CRLWork.h"
#include "service_lock.h"

enum work_state { work_waiting, work_running, work_ended, work_told };

struct work_list {
    struct __CRLWork *first;
    struct __CRLWork *last;
};

/* Freed with its source. All but the constants is guarded. */
struct work_port {
    struct work_port *next;
    CFRunLoopRef loop; /* a reference; constant */
    CFRunLoopMode mode; /* a reference; constant */
    CFRunLoopSourceRef source; /* the list's reference while the port is in it; constant */
    struct work_list ended;
    size_t open; /* 0: the port is not in the list of ports */
    bool is_signalled; /* and has not performed since */
    bool is_gone; /* its loop has ended. Only work that runs is open */
};

struct __CRLWork {
    CRLObjectHeader header;
    CRLWorkFunction function; /* constant, as the two that follow */
    CRLWorkCallBack done;
    CRLSourceContext context;
    struct work_port *port; /* as long as it is not told; never for work_make */
    struct __CRLWork *next; /* in the list that it is in */
    struct __CRLWork *previous;
    enum work_state state;
    CRLWorkEnd end;
};

/* ---- CRLWork.c ---- */

/* Returns work that is not given yet, or NULL. `info` is retained. */
EXCLUDES(the_service_lock) CRLWorkRef work_make(CRLWorkFunction function, CRLWorkCallBack done, const CRLSourceContext *context);
/* Gives work without a port to the pool. False: no thread can be started, and there is none. */
EXCLUDES(the_service_lock) bool work_give(CRLWorkRef work);
/* Takes it back if it waits. True: the caller has the reference of the pool. */
EXCLUDES(the_service_lock) bool work_take_back(CRLWorkRef work);

/* ---- work_list.c ---- */

void work_list_append(struct work_list *list, CRLWorkRef work);
void work_list_remove(struct work_list *list, CRLWorkRef work);

/* ---- work_port.c ---- */

/* A port's source that has to be performed, or ended, once the lock is dropped. */
struct work_port_call {
    CFRunLoopSourceRef signalled; /* references, or NULL */
    CFRunLoopRef woken;
    CFRunLoopSourceRef ended;
};

/* The port of the mode, with the work counted in it. NULL: the loop has ended, or there is no memory. */
REQUIRES(the_service_lock) struct work_port *work_port_enter(CFRunLoopRef loop, CFRunLoopMode mode);
/* The work was told, or will not be. */
REQUIRES(the_service_lock) struct work_port_call work_port_leave(CRLWorkRef work);
/* Has the end of the work told. */
REQUIRES(the_service_lock) struct work_port_call work_port_tell(CRLWorkRef work, CRLWorkEnd end);
EXCLUDES(the_service_lock) void work_port_call_make(struct work_port_call call);

/* ---- work_pool.c ---- */

extern struct service_lock work_lock;

/*
 * Puts work behind what waits, and sees to a thread: an idle one is to be called without the lock (work_kernel.idle_call) if that is so.
 * False: there is none, and none can be started.
 */
REQUIRES(the_service_lock) bool work_pool_add(CRLWorkRef work, bool *ret_calls);
/* Takes waiting work out, which then belongs to the caller. */
REQUIRES(the_service_lock) void work_pool_remove(CRLWorkRef work);
/* Takes all that waits for the port out. */
REQUIRES(the_service_lock) struct work_list work_pool_remove_all(const struct work_port *port);
/* Takes the next work to run, or NULL. */
REQUIRES(the_service_lock) CRLWorkRef work_pool_take(void);
/* The work was run. Gives the thread's reference away. */
EXCLUDES(the_service_lock) void work_pool_finish(CRLWorkRef work);
/* The state of a process without work and threads. */
REQUIRES(the_service_lock) void work_pool_reset(void);
/* In the child of a fork: forgets the ports, whose modes they leave. */
EXCLUDES(the_service_lock) void work_port_reset(void);

#endif
