/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that tells of stalls, so that the thread that is stuck need not. It is begun once, and lives until the process ends. It sleeps
 * until a loop is handed to it.
 *
 * It looks up the names of functions, for which it takes the loader's lock. A thread that is stuck while it loads an object holds that, so
 * such a stall is only told when it is over.
 */
#ifndef CRL_LOOP_RUN_STALL_REPORT_H
#define CRL_LOOP_RUN_STALL_REPORT_H

#include "Loop/link_names.h"

#include "Loop/Run/stall.h"

/* Begins the thread, unless there is one. Returns 0 or a negative errno. */
int stall_report_prepare(void);

/* Hands a stall over whose state has changed. On the loop's thread, also in its signal handler. */
void stall_report(struct stall *stall);

/* Drops a reference, or does nothing for NULL. The last one releases the info. */
void stall_setting_release(struct stall_setting *setting);

/* In the child of a fork: there is no such thread, and nothing to tell. */
void stall_report_forget_parent(void);

/* Guards `setting` of all stalls, and the beginning of the thread. Taken last, in particular with a loop's lock held. */
extern struct lock stall_lock;

/*
 * Set by the ports, which lie above: returns the loop that has the local port of that name in this process, with a reference, or NULL.
 */
extern CFRunLoopRef (*stall_copy_server)(const char *port);

#endif
