/* SPDX-License-Identifier: Apache-2.0 */
/* What the main thread's loop holds until the process ends, given back so that the harness can tell leaks from it. */
#include "Loop/thread_loop.h"

void testing_give_back(void);

void testing_give_back(void)
{
    CFRunLoopRef loop = thread_loop_current();

    loop_end(loop);
    object_release(loop);
}
