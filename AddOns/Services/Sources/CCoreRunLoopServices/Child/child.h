/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of a child: its process, the program's ends of its pipes, and where its end is told.
 *
 * Threads: any. One lock, of all children, guards the fields. Invalidating the watch or the timer releases the child, perhaps for the last
 * time: so these are taken out under the lock, and ended without it.
 *
 * Always true: a child that is scheduled has a watch, which keeps it; one that was told has neither a watch nor a timer nor a mode.
 */
#ifndef CRL_SERVICES_CHILD_H
#define CRL_SERVICES_CHILD_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "CRLAddOn.h"
#include "CRLChild.h"
#include "Child/child_process.h"
#include "CoreFoundation/CFFileDescriptor.h"
#include "CoreFoundation/CFSet.h"

/* The program's end of a pipe. */
struct child_end {
    int number; /* the child's, constant */
    bool is_read; /* by the program; constant */
    int descriptor GUARDED_BY(the_service_lock); /* -1: taken, or the stream's */
    CFTypeRef stream GUARDED_BY(the_service_lock); /* a reference, or NULL */
};

/* How the end is told in modes of a loop. Each is a reference, or NULL. */
struct child_watch {
    CFRunLoopRef loop;
    CFFileDescriptorRef descriptor;
    CFRunLoopSourceRef source;
    CFMutableSetRef modes;
    CFRunLoopTimerRef timer; /* for SIGKILL */
};

struct __CRLChild {
    CRLObjectHeader header;
    struct child_process process;
    CRLChildEndCallBack callout; /* constant, as the context and the list of ends */
    CRLSourceContext context;
    struct child_end *ends;
    size_t end_count;
    struct child_watch watch GUARDED_BY(the_service_lock); /* all NULL: it is scheduled nowhere */
    CFAbsoluteTime kill_at GUARDED_BY(the_service_lock); /* 0: never */
    bool kills_group GUARDED_BY(the_service_lock); /* by that */
    bool is_told GUARDED_BY(the_service_lock);
};

/* Stops the program if `child` is NULL or another object. */
void child_require(CFTypeRef child, const char *function);

/* Sends SIGKILL at that time, from the loop, unless an earlier one was given. */
EXCLUDES(the_service_lock) void child_schedule_kill(CRLChildRef child, CFAbsoluteTime at, bool whole_group);

#endif
