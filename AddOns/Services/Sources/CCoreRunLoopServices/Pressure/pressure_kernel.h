/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pressure sources ask the kernel for, besides File/notify_kernel.h, in a table that tests replace. Functions return a negative errno
 * where they fail. None is a cancellation point.
 */
#ifndef CRL_SERVICES_PRESSURE_KERNEL_H
#define CRL_SERVICES_PRESSURE_KERNEL_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * A poll of a pressure file that the kernel does by itself. Whoever polls such a file takes away its event: a wait set that another loop
 * waits for would have nothing left for the source. This poll leaves the event in a counter, which stays readable until it is read.
 */
struct pressure_poll {
    unsigned long context; /* of the kernel's asynchronous calls */
    int counter;
};

struct pressure_kernel {
    /* A path of the file system: a pressure file, a FIFO or a stream socket; others are -ENOTTY. Reads do not wait. */
    int (*watch_open)(const char *path, bool *ret_is_file);
    /* A FIFO is left alone, as what is written there would come back. */
    ssize_t (*watch_write)(int watch, const void *bytes, size_t size);
    /* The beginning of a small file, with a 0 behind it. */
    ssize_t (*text_read)(const char *path, char *text, size_t size);
    /* Begins a poll; asks for the next event, after one has come, or says with -ENODEV that the file is gone; ends the poll. The counter is
     * the caller's to close. */
    int (*poll_begin)(struct pressure_poll *poll, int file);
    int (*poll_again)(const struct pressure_poll *poll, int file);
    void (*poll_end)(const struct pressure_poll *poll);
};

/* The one in use: Linux's, except in tests, which replace it before anything else runs. */
extern struct pressure_kernel pressure_kernel;
extern const struct pressure_kernel pressure_kernel_linux;

#endif
