/* SPDX-License-Identifier: Apache-2.0 */
#include "first_thread.h"

#include <sys/syscall.h>
#include <unistd.h>

bool is_first_thread(void)
{
    return syscall(SYS_gettid) == getpid();
}
