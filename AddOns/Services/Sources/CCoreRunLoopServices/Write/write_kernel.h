/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of write queues, behind one table that tests replace before threads start. Functions return a negative errno where they
 * fail, and leave errno as it is. None waits, and none is a cancellation point.
 */
#ifndef CRL_SERVICES_WRITE_KERNEL_H
#define CRL_SERVICES_WRITE_KERNEL_H

#include "services_link_names.h"

#include <stddef.h>
#include <sys/types.h>

struct write_kernel {
    int (*socket_type)(int socket); /* SOCK_STREAM or another one */
    int (*descriptor_copy)(int descriptor); /* close-on-exec, above the standard streams */
    ssize_t (*socket_send)(int socket, const void *bytes, size_t size); /* -EAGAIN: no room, or no memory for it */
    void (*close)(int descriptor);
};

extern struct write_kernel write_kernel;

#endif
