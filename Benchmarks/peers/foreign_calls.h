/* SPDX-License-Identifier: Apache-2.0 */
/* What the code of a peer in another language offers; foreign.h makes of it what peer.h declares, and says the meaning there. */
#ifndef FOREIGN_CALLS_H
#define FOREIGN_CALLS_H

#if defined(__cplusplus)
extern "C" {
#endif

typedef void (*foreign_function)(void *info);

void *foreign_loop_begin(void);
void foreign_look(void *loop);
void foreign_run(void *loop);
void foreign_stop(void *loop);

void *foreign_signal_add(void *loop, foreign_function function, void *info);
void foreign_signal_send(void *signal);
void foreign_post(void *loop, foreign_function function, void *info);

void *foreign_timer_make(void *loop, double seconds, double interval, foreign_function function, void *info);
void foreign_timer_add(void *timer);
void foreign_timer_move(void *timer, double seconds);
void foreign_timer_cancel(void *timer);

void *foreign_watch_add(void *loop, int descriptor, foreign_function function, void *info);

#if defined(__cplusplus)
}
#endif

#endif
