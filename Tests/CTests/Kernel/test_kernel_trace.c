/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of traces, where the file system or the process does not allow them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "Kernel/Trace/kernel_trace.h"
#include "harness.h"

/* A file of the kernel's own, which cannot reserve room, so that zeros would be written in its place. */
static int reserve_in(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    int result;

    REQUIRE(file >= 0);
    errno = EXDEV;
    result = kernel_trace.file_reserve(file, 0, 5000);
    EXPECT_EQ(errno, EXDEV);
    (void)close(file);
    return result;
}

TEST(room_that_can_be_neither_reserved_nor_written_is_refused, "512")
{
    EXPECT_EQ(reserve_in("/proc/self/comm"), -ESPIPE); /* cannot be written at a place */
    EXPECT_EQ(reserve_in("/proc/self/oom_score_adj"), -EINVAL); /* takes numbers only */
}

TEST(room_beyond_the_limit_on_files_is_not_reserved, "512")
{
    struct rlimit limit;
    int file = memfd_create("room", MFD_CLOEXEC);

    REQUIRE(file >= 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = 4096;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    EXPECT_EQ(kernel_trace.file_reserve(file, 0, 4096), 0);
    EXPECT_EQ(kernel_trace.file_reserve(file, 4096, 1), -EFBIG);
    (void)close(file);
}

TEST(what_is_no_file_is_not_mapped, "512")
{
    void *memory = NULL;

    EXPECT_EQ(kernel_trace.file_map(-1, 0, 4096, &memory), -EBADF);
    EXPECT(memory == NULL);
}

TEST(the_working_directory_fits_or_is_refused, "500")
{
    char path[4096];

    EXPECT_EQ(kernel_trace.directory(path, sizeof path), 0);
    EXPECT(path[0] == '/');
    EXPECT_EQ(kernel_trace.directory(path, 1), -ERANGE);
}
