/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that two processes share; see shared_page.h. */
#include "Port/Wire/shared_page.h"

#include <errno.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"

int shared_page_create(void **ret_page, int *ret_memory)
{
    int memory = kernel_ports.memory_create(shared_page_size, true);
    int result = memory < 0 ? memory : kernel_ports.memory_map(memory, shared_page_size, true, ret_page);

    if (memory >= 0 && result < 0) {
        (void)kernel.close(memory);
    }
    *ret_memory = memory;
    return result;
}

int shared_page_adopt(int memory, void **ret_page)
{
    return kernel_ports.memory_is_fixed(memory, shared_page_size, false)
               ? kernel_ports.memory_map(memory, shared_page_size, false, ret_page)
               : -EINVAL;
}

void shared_page_release(void *page)
{
    if (page) {
        kernel_ports.memory_unmap(page, shared_page_size);
    }
}
