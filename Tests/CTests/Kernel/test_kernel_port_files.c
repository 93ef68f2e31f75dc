/* SPDX-License-Identifier: Apache-2.0 */
/* Files and memory of message ports where the process or the file does not allow them. errno stays the caller's each time. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "harness.h"

enum { untouched = 12345, size = 4096 };

/* The same with a soft limit of `most`. */
static struct rlimit lowered(struct rlimit limit, rlim_t most)
{
    limit.rlim_cur = most;
    return limit;
}

TEST(what_is_beyond_the_limit_of_file_sizes_is_refused_before_a_write_kills, "")
{
    char bytes[size] = "contents";
    int file = kernel_ports.memory_create(size, false);
    struct rlimit before;
    struct rlimit low;

    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    low = lowered(before, size - 1);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &low) == 0);
    errno = untouched;
    EXPECT(file >= 0);
    EXPECT_EQ(kernel_ports.file_replace(file, bytes, sizeof bytes), -EFBIG);
    EXPECT_EQ(kernel_ports.memory_create(size, false), -EFBIG);
    EXPECT_EQ(errno, untouched);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0); /* coverage is written to a file */
    (void)close(file);
}

TEST(memory_without_a_descriptor_or_of_no_possible_size_is_refused, "")
{
    int free_number = dup(STDIN_FILENO);
    struct rlimit before;
    struct rlimit low;

    REQUIRE(free_number >= 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    (void)close(free_number);
    low = lowered(before, (rlim_t)free_number);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
    errno = untouched;
    EXPECT_EQ(kernel_ports.memory_create(size, false), -EMFILE);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    EXPECT_EQ(kernel_ports.memory_create(UINT64_MAX, false), -EINVAL);
    EXPECT_EQ(errno, untouched);
    EXPECT(!kernel.descriptor_is_open(free_number)); /* what was made is closed */
}

TEST(memory_that_is_fixed_is_not_written_again, "")
{
    char bytes[size] = "contents";
    int file = kernel_ports.memory_create(size, false);

    errno = untouched;
    EXPECT(file >= 0);
    EXPECT_EQ(kernel_ports.memory_write(file, bytes, sizeof bytes), 0);
    EXPECT(kernel_ports.memory_is_fixed(file, size, true));
    EXPECT_EQ(kernel_ports.memory_write(file, bytes, sizeof bytes), -EPERM);
    EXPECT_EQ(errno, untouched);
    (void)close(file);
}

static bool take_any(void *info, const char *leaf)
{
    (void)info;
    (void)leaf;
    return true;
}

TEST(what_is_no_directory_is_not_listed, "")
{
    int file = kernel_ports.memory_create(size, false);

    errno = untouched;
    EXPECT(file >= 0);
    EXPECT_EQ(kernel_ports.directory_list(file, take_any, NULL), -ENOTDIR);
    EXPECT_EQ(errno, untouched);
    (void)close(file);
}
