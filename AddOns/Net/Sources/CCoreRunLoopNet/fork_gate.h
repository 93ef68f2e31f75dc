/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way into c-ares and OpenSSL. A fork waits until no thread of this library is in them: they have locks, which would stay taken in the
 * child. So the child finds what they keep, and what locks of this library guard, whole.
 *
 * A thread inside cannot be cancelled: the two contain cancellation points, and a thread that ended there would keep their locks. It runs
 * no code of the program's, and does not wait for another thread that may be about to enter.
 */
#ifndef CRL_NET_FORK_GATE_H
#define CRL_NET_FORK_GATE_H

#include "net_link_names.h"

/* Not recursive. Returns the thread's cancel state from before, which the other sets again. */
int fork_gate_enter(void);
void fork_gate_leave(int cancel_state);

#endif
