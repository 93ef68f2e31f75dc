/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Step 7 of a pass: sleeping until there is a cause, or only looking whether there is one. On the loop's own thread, which enters and
 * leaves with the lock; it is dropped during the sleep and while the kernel is asked.
 */
#ifndef CRL_LOOP_WAIT_H
#define CRL_LOOP_WAIT_H

#include "Support/link_names.h"

#include "Loop/activation.h"
#include "Loop/loop.h"

/* Sleeps until a cause is there, the run's limit has come, or somebody wakes the loop. */
enum wake_cause wait_for_cause(CFRunLoopRef loop, struct activation *run);

/* Does not sleep: what is ready now. */
enum wake_cause wait_look(CFRunLoopRef loop, struct activation *run);

/* Asks the kernel for reports without waiting. */
void wait_poll(CFRunLoopRef loop, const struct mode *mode);

/* What a wait has left to handle: sockets; kept reports and due timers, by turns. */
enum wake_cause wait_ready_cause(CFRunLoopRef loop, struct activation *run, int64_t now_ns);

/* What a pass that has performed sockets has left to handle: the same, but further sockets are left for the next pass. */
enum wake_cause wait_cause_beside_sockets(CFRunLoopRef loop, struct activation *run);

/*
 * One sleep, until something happens or about `limit_ns`, in the wait set or, with wake_futex, on the wake word; `now_ns` says how far off
 * the limit is, and nothing else. False if a wake-up is there already. The phase is left as it was during the sleep.
 */
bool wait_sleep_once(CFRunLoopRef loop, struct mode *mode, enum wake_word phase, int64_t now_ns, int64_t limit_ns);

/* About to sleep: what runs took in the BeforeWaiting observers, also those that were jumped out of, is given back first. */
static inline void wait_begin(CFRunLoopRef loop, struct activation *run)
{
    run_resume(loop, run);
    run->is_before_waiting = false;
    if (__builtin_expect(run->is_owed_token, 0)) {
        run->is_owed_token = false;
        mailbox_wake(loop->mailbox);
    }
}

#endif
