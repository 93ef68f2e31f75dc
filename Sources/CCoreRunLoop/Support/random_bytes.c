/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the kernel for random bytes; see random_bytes.h. */
#include "Support/random_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include "Support/fault.h"
#include "Support/uncancelled.h"

static void fill_from_device(void *ret_bytes, size_t size)
{
    int file = uncancelled(open("/dev/urandom", O_RDONLY | O_CLOEXEC));
    ssize_t got = file < 0 ? -1 : uncancelled(read(file, ret_bytes, size));

    if (got != (ssize_t)size) {
        fault_stop("random bytes", "the kernel has none: getrandom and /dev/urandom are refused");
    }
    (void)uncancelled(close(file));
}

void random_bytes_fill(void *ret_bytes, size_t size)
{
    int saved = errno;

    if (uncancelled(getrandom(ret_bytes, size, 0)) != (ssize_t)size) { /* a kernel before 3.17, or a filter of system calls */
        fill_from_device(ret_bytes, size);
    }
    errno = saved;
}
