/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target, and how it tells its flags. Once it is scheduled it has a wait set with a socket of the kernel's changes and an alarm. Whoever
 * waits for the set, a loop or a queue, calls reach_serve when it is readable: what there is is taken out, and then it is looked. A name is
 * asked for besides, by a host on the loops of the target, or away from its queue; the answer is noted, and the alarm has it told.
 *
 * One thread tells at a time, without the lock. Others have it look once more.
 */
#ifndef CRL_SERVICES_REACH_TARGET_H
#define CRL_SERVICES_REACH_TARGET_H

#include "services_link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "CFNetwork/CFHost.h"
#include "CRLAddOn.h"
#include "CoreFoundation/CoreFoundation.h"
#include "Reachability/route_kernel.h"
#include "SystemConfiguration/SystemConfiguration.h"
#include "service_lock.h"

/* A callback, with its info. */
struct reach_listener {
    _Atomic uint32_t references;
    SCNetworkReachabilityCallBack callout; /* constant, as the context */
    SCNetworkReachabilityContext context;
};

struct __SCNetworkReachability {
    CRLObjectHeader header;
    CFStringRef name; /* constant, as the next three; NULL: addresses */
    union route_end local;
    union route_end remote;
    pid_t process; /* that made it */
    int set; /* -1 until the target is scheduled for the first time, and constant from then on, as the next two */
    int alarm;
    int changes;
    struct service_lock lock; /* the_service_lock */
    struct reach_listener *listener GUARDED_BY(the_service_lock); /* a reference, or NULL */
    bool is_known GUARDED_BY(the_service_lock); /* the program was told the flags, or can have asked for them */
    SCNetworkReachabilityFlags flags GUARDED_BY(the_service_lock);
    bool is_telling GUARDED_BY(the_service_lock);
    bool looks_again GUARDED_BY(the_service_lock);
    int64_t look_ns GUARDED_BY(the_service_lock); /* when it is to be looked, whatever the kernel tells; 0: never */
    int64_t ask_ns GUARDED_BY(the_service_lock); /* when the name is to be asked for; 0: never */
    CFRunLoopSourceRef source GUARDED_BY(the_service_lock); /* a reference; NULL: it is on no loop */
    _Atomic(CFRunLoopSourceRef) performed; /* the same without a reference, for the child of a fork */
    CFIndex mode_count GUARDED_BY(the_service_lock); /* how many modes of loops it is in */
    void *queue_source GUARDED_BY(the_service_lock); /* of libdispatch; NULL: it is on no queue */
    int64_t asked_ns GUARDED_BY(the_service_lock); /* when it was asked for last; 0: it was not since it is scheduled */
    uint64_t turn GUARDED_BY(the_service_lock); /* how often it was taken off its last mode or its queue */
    CFHostRef host GUARDED_BY(the_service_lock); /* a reference, while a name is on a loop */
    CFArrayRef addresses GUARDED_BY(the_service_lock); /* of the name; a reference, or NULL */
    bool has_answer GUARDED_BY(the_service_lock); /* these are what was found */
    bool is_asking GUARDED_BY(the_service_lock);
    bool asks_again GUARDED_BY(the_service_lock); /* once there is the answer */
};

typedef struct __SCNetworkReachability *reach_target_ref;

static inline reach_target_ref reach_target(SCNetworkReachabilityRef target)
{
    return (reach_target_ref)(uintptr_t)target;
}

/* ---- reach_tell.c ---- */

void reach_listener_release(struct reach_listener *listener);
/* Stores the flags as they are. Returns 0 or a negative errno; -ENODATA: a name has no answer yet. */
REQUIRES(the_service_lock) int reach_look(reach_target_ref target, SCNetworkReachabilityFlags *ret_flags);
/* Takes out what the kernel has told. Returns false if that is nothing. */
REQUIRES(the_service_lock) bool reach_drain(reach_target_ref target);
/* Has it looked, or the name asked for, after a time, in which a lack may have passed. */
REQUIRES(the_service_lock) void reach_look_later(reach_target_ref target, int64_t after_ns);
REQUIRES(the_service_lock) void reach_ask_later(reach_target_ref target, int64_t after_ns);
/* Tells flags that are others than before. On the thread of the loop or the queue. */
EXCLUDES(the_service_lock) void reach_tell(reach_target_ref target);
EXCLUDES(the_service_lock) void reach_serve(reach_target_ref target);

/* ---- reach_name.c ---- */

/* Asks for the name, or has it asked once more. */
EXCLUDES(the_service_lock) void reach_ask(reach_target_ref target);
/* Asks and waits; the array is a reference. Returns false if nothing was learned. */
bool reach_ask_and_wait(CFStringRef name, CFArrayRef *ret_addresses, CFStreamError *ret_error);
/* The host of a name for loops; NULL if there is no memory. */
CFHostRef reach_host_create(reach_target_ref target);
/* The host goes on in the mode that runs, if there was no memory for its own modes. */
void reach_host_go_on(CFHostRef host);
/* The host tells nothing any more, and is released. */
void reach_host_end(CFHostRef host);

/* ---- reach_queue.c ---- */

/* Returns a source of libdispatch, which serves the target and holds it until some time after it was detached; NULL: there is none. */
void *reach_queue_attach(reach_target_ref target, void *queue);
void reach_queue_detach(void *queue_source);
/* Calls the function on a thread of libdispatch. */
void reach_queue_perform_away(void *info, void (*function)(void *info));

/* ---- reach_schedule.c ---- */

/* False in the child of a fork: there, only what is constant is used. */
bool reach_is_ours(reach_target_ref target);

/* ---- SCError.c ---- */

/* Leaves the status for SCError. Returns whether it is kSCStatusOK, which is not left. */
bool sc_status_leave(int status);

#endif
