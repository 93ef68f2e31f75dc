/* SPDX-License-Identifier: Apache-2.0 */
/* See page_probe.h. */
#define _GNU_SOURCE
#include "Port/page_probe.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "Kernel/Ports/kernel_ports.h"
#include "harness.h"

_Atomic int page_probe_mapped;

static int map_and_count(int descriptor, uint64_t size, bool touch, void **ret_address)
{
    int result = kernel_ports_linux.memory_map(descriptor, size, touch, ret_address);

    page_probe_mapped += result == 0 ? 1 : 0;
    return result;
}

static void unmap_and_count(void *address, uint64_t size)
{
    page_probe_mapped--;
    kernel_ports_linux.memory_unmap(address, size);
}

void page_probe_count(void)
{
    kernel_ports.memory_map = map_and_count;
    kernel_ports.memory_unmap = unmap_and_count;
}

int page_probe_memory(off_t size, int seals, bool is_filled)
{
    int memory = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    REQUIRE(memory >= 0 && ftruncate(memory, size) == 0);
    REQUIRE(!is_filled || size == 0 || fallocate(memory, 0, 0, size) == 0);
    REQUIRE(fcntl(memory, F_ADD_SEALS, seals) == 0);
    return memory;
}

void page_probe_meet(_Atomic int *own, const _Atomic int *other, int round)
{
    atomic_store(own, round);
    for (int looks = 0; atomic_load(other) < round; looks++) {
        if (looks > 2000) {
            (void)sched_yield(); /* it may wait for this processor */
        }
    }
}

void page_probe_dawdle(int round)
{
    for (volatile int i = 0; i < round % 64; i++) {
    }
}
