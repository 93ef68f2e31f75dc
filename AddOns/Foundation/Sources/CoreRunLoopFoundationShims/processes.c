/* SPDX-License-Identifier: Apache-2.0 */

#include "CoreRunLoopFoundationShims.h"

#include <sys/syscall.h>
#include <unistd.h>

int process_descriptor(int32_t process)
{
#ifdef SYS_pidfd_open
    return process > 0 ? (int)syscall(SYS_pidfd_open, process, 0) : -1;
#else
    (void)process;
    return -1;
#endif
}
