/* SPDX-License-Identifier: Apache-2.0 */
/*
 * None of the library's functions is a cancellation point (pthread_cancel). libc's calls of the system are, and a thread that ended in one
 * would leave locks taken and what is half done: so each of them that is one stands in `uncancelled`. The thread ends at the program's own
 * next such point.
 *
 * Any thread, and signal handlers, which wake loops by way of it: in glibc and musl it changes a word of the thread's own and nothing else.
 */
#ifndef CRL_SUPPORT_UNCANCELLED_H
#define CRL_SUPPORT_UNCANCELLED_H

#include "Support/link_names.h"

#include <pthread.h>

/* The call's result; errno is as the call has left it. */
#define uncancelled(call)                                                    \
    __extension__({                                                          \
        int cancel_state;                                                    \
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); \
        __typeof__(call) call_result = (call);                               \
        (void)pthread_setcancelstate(cancel_state, NULL);                    \
        call_result;                                                         \
    })

#endif
