/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the kernel for random bytes; see random_bytes.h. */
#include "Support/random_bytes.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <sys/random.h>

#include "Support/uncancelled.h"

void random_bytes_fill(void *ret_bytes, size_t size)
{
    int saved = errno;

    if (uncancelled(getrandom(ret_bytes, size, 0)) != (ssize_t)size) { /* a kernel before 3.17, or a filter of system calls */
        arc4random_buf(ret_bytes, size);
    }
    errno = saved;
}
