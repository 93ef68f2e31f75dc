/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that two processes share, by themselves: that both sides see the same, which memory is one, and that what fails leaves nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/page_probe.h"
#include "Port/port_probe.h"
#include "Port/Wire/shared_page.h"

enum { page_seals = F_SEAL_SHRINK | F_SEAL_GROW };

TEST(both_sides_of_a_page_see_what_either_writes, "240")
{
    static const uint8_t zeros[shared_page_size];
    uint8_t *maker, *adopter;
    void *pages[2];
    int memory;

    REQUIRE(shared_page_create(&pages[0], &memory) == 0);
    REQUIRE(shared_page_adopt(memory, &pages[1]) == 0);
    (void)close(memory); /* which neither needs any more */
    maker = pages[0];
    adopter = pages[1];
    EXPECT(maker != adopter);
    EXPECT(memcmp(adopter, zeros, sizeof zeros) == 0);
    maker[0] = 'a';
    adopter[shared_page_size - 1] = 'z';
    EXPECT_EQ(adopter[0], 'a');
    EXPECT_EQ(maker[shared_page_size - 1], 'z');
    shared_page_release(maker);
    EXPECT_EQ(adopter[0], 'a');
    shared_page_release(adopter);
    shared_page_release(NULL);
}

TEST(nobody_can_take_bytes_from_a_page, "H8")
{
    char path[64];
    void *page;
    int memory;

    REQUIRE(shared_page_create(&page, &memory) == 0);
    EXPECT(ftruncate(memory, 0) < 0 && ftruncate(memory, shared_page_size - 1) < 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    EXPECT(open(path, O_RDWR | O_TRUNC | O_CLOEXEC) < 0);
    EXPECT(fcntl(memory, F_ADD_SEALS, 0) == 0 || errno == EPERM);
    EXPECT_EQ(fcntl(memory, F_GET_SEALS) & page_seals, page_seals);
    (void)close(memory);
    shared_page_release(page);
}

/* ---- what is none ---- */

/* Refused with that error, and nothing of it is kept. Closes what it is given. */
static void expect_not_adopted(int memory, int error)
{
    int descriptors = port_probe_count_descriptors();
    void *page = NULL;

    REQUIRE(memory >= 0);
    EXPECT_EQ(shared_page_adopt(memory, &page), error);
    EXPECT(page == NULL);
    EXPECT_EQ(port_probe_count_descriptors(), descriptors);
    (void)close(memory);
}

TEST(memory_of_another_size_or_without_its_seals_is_no_shared_page, "241 H8")
{
    static const off_t sizes[] = {0, 1, shared_page_size - 1, shared_page_size + 1, 2 * shared_page_size, 1 << 20};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        expect_not_adopted(page_probe_memory(sizes[i], page_seals, true), -EINVAL);
    }
    expect_not_adopted(page_probe_memory(shared_page_size, 0, true), -EINVAL);
    expect_not_adopted(page_probe_memory(shared_page_size, F_SEAL_SHRINK, true), -EINVAL);
    expect_not_adopted(page_probe_memory(shared_page_size, F_SEAL_GROW, true), -EINVAL);
    expect_not_adopted(page_probe_memory(shared_page_size, page_seals, false), -EINVAL); /* its memory is not there yet */
    expect_not_adopted(page_probe_memory(shared_page_size, page_seals | F_SEAL_WRITE, true), -EPERM);
}

TEST(what_is_no_memory_is_no_shared_page, "241 H6 H8")
{
    char path[] = "/tmp/corerunloop-page-XXXXXX";
    int file = mkstemp(path);
    int pipes[2], ends[2];

    REQUIRE(file >= 0 && unlink(path) == 0 && ftruncate(file, shared_page_size) == 0);
    REQUIRE(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    expect_not_adopted(file, -EINVAL);
    expect_not_adopted(pipes[0], -EINVAL);
    expect_not_adopted(ends[0], -EINVAL);
    expect_not_adopted(eventfd(0, EFD_CLOEXEC), -EINVAL);
    expect_not_adopted(open("/dev/zero", O_RDWR | O_CLOEXEC), -EINVAL);
    expect_not_adopted(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC), -EINVAL);
    (void)close(pipes[1]);
    (void)close(ends[1]);
}

/* ---- what cannot be had ---- */

static int no_memory(uint64_t size, bool reserve)
{
    (void)size, (void)reserve;
    return -ENOSPC;
}

static int no_mapping(int descriptor, uint64_t size, bool touch, void **ret_address)
{
    (void)descriptor, (void)size, (void)touch, (void)ret_address;
    return -ENOMEM;
}

static void expect_not_created(int error)
{
    int descriptors = port_probe_count_descriptors();
    void *page;
    int memory;

    EXPECT_EQ(shared_page_create(&page, &memory), error);
    EXPECT_EQ(port_probe_count_descriptors(), descriptors);
}

TEST(a_page_that_cannot_be_made_or_mapped_leaves_nothing, "M23 M24")
{
    kernel_ports.memory_create = no_memory;
    expect_not_created(-ENOSPC);
    kernel_ports = kernel_ports_linux;
    kernel_ports.memory_map = no_mapping;
    expect_not_created(-ENOMEM);
    expect_not_adopted(page_probe_memory(shared_page_size, page_seals, true), -ENOMEM);
    kernel_ports = kernel_ports_linux;
}

/* ---- a child ---- */

static bool is_mapped(const void *page)
{
    unsigned char unused;

    return mincore((void *)(uintptr_t)page, shared_page_size, &unused) == 0;
}

TEST(a_child_does_not_get_a_page, "176 P1")
{
    void *pages[2];
    int status = 1;
    int memory;
    pid_t pid;

    REQUIRE(shared_page_create(&pages[0], &memory) == 0 && shared_page_adopt(memory, &pages[1]) == 0);
    EXPECT(is_mapped(pages[0]) && is_mapped(pages[1]));
    pid = fork();
    if (pid == 0) {
        _exit(is_mapped(pages[0]) || is_mapped(pages[1]) ? 1 : 0);
    }
    REQUIRE(waitpid(pid, &status, 0) == pid);
    EXPECT_EQ(status, 0);
    (void)close(memory);
    shared_page_release(pages[0]);
    shared_page_release(pages[1]);
}
