/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a program's run loop by a signal. */
#ifndef COMMAND_STOP_SIGNAL_H
#define COMMAND_STOP_SIGNAL_H

/* The signal stops the run of the calling thread's loop. To be called before there is another thread: threads inherit what is blocked. */
void stop_on(int signal);

#endif
