/* SPDX-License-Identifier: Apache-2.0 */
/* Linux's calls say why they are refused, and leave no descriptor open. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include "File/notify_kernel.h"
#include "harness.h"
#include "scratch_folder.h"

static bool count_name(void *info, const char *name, unsigned char type)
{
    (void)name;
    (void)type;
    return ++*(int *)info < 2;
}

TEST(calls_of_the_kernel_that_are_refused_say_why, "")
{
    struct stat status;
    char bytes[16];
    int count = 0;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    EXPECT_EQ(notify_kernel_linux.notify_read(-1, bytes, sizeof bytes), -EBADF);
    EXPECT_EQ(notify_kernel_linux.notify_pending(-1), -EBADF);
    EXPECT_EQ(notify_kernel_linux.watch_add(-1, "/", IN_CREATE), -EBADF);
    EXPECT_EQ(notify_kernel_linux.watch_add(null, "/", IN_CREATE), -EINVAL);
    EXPECT_EQ(notify_kernel_linux.watch_remove(null, 1), -EINVAL);
    EXPECT_EQ(notify_kernel_linux.file_open("/dev/null/file"), -ENOTDIR);
    EXPECT_EQ(notify_kernel_linux.file_status(-1, &status), -EBADF);
    EXPECT_EQ(notify_kernel_linux.close(-1), -EBADF);
    EXPECT_EQ(notify_kernel_linux.folder_open(-1, "/dev/null", true), -ENOTDIR);
    EXPECT_EQ(notify_kernel_linux.folder_list(-1, count_name, &count), -EBADF);
    EXPECT_EQ(notify_kernel_linux.folder_list(null, count_name, &count), -ENOTDIR);
    EXPECT_EQ(notify_kernel_linux.name_status(null, "file", &status), -ENOTDIR);
    EXPECT_EQ(notify_kernel_linux.set_add(-1, null), -EBADF);
    EXPECT_EQ(notify_kernel_linux.set_add(null, null), -EPERM);
    EXPECT_EQ(notify_kernel_linux.set_add_mounts(null, null), -EPERM);
    EXPECT_EQ(notify_kernel_linux.alarm_set(null, 1), -EINVAL);
    EXPECT(!notify_kernel_linux.mounts_have_changed(null));
    EXPECT_EQ(count, 0);
    (void)close(null);
}

TEST(a_folder_is_listed_until_it_is_enough, "")
{
    char folder[scratch_size];
    int count = 0;
    int file;

    scratch_enter(folder);
    scratch_make_file("one");
    scratch_make_file("two");
    scratch_make_file("three");
    REQUIRE(symlink(".", "link") == 0);
    EXPECT_EQ(notify_kernel_linux.folder_open(-1, "link", false), -ENOTDIR);
    file = notify_kernel_linux.folder_open(-1, "link", true);
    REQUIRE(file >= 0);
    for (int i = 0; i < 2; i++) { /* the descriptor has one place in the folder for all who list it */
        count = 0;
        EXPECT_EQ(notify_kernel_linux.folder_list(file, count_name, &count), 0);
        EXPECT_EQ(count, 2);
        EXPECT_EQ(lseek(file, 0, SEEK_SET), 0);
    }
    EXPECT_EQ(notify_kernel_linux.close(file), 0);
    scratch_leave(folder);
}

TEST(an_alarm_is_heard_by_the_set_it_is_in, "")
{
    char bytes[sizeof(int64_t)];
    int set = notify_kernel_linux.set_create();
    int alarm = notify_kernel_linux.alarm_create();

    REQUIRE(set >= 0 && alarm >= 0);
    EXPECT_EQ(notify_kernel_linux.set_add(set, alarm), 0);
    EXPECT_EQ(notify_kernel_linux.set_add(set, alarm), -EEXIST);
    EXPECT_EQ(notify_kernel_linux.alarm_set(alarm, notify_kernel_linux.now_ns() + 60000000000), 0);
    EXPECT_EQ(notify_kernel_linux.notify_read(alarm, bytes, sizeof bytes), -EAGAIN);
    EXPECT_EQ(notify_kernel_linux.alarm_set(alarm, 1), 0);
    EXPECT_EQ(poll(&(struct pollfd){set, POLLIN, 0}, 1, (int)(test_patience_s() * 1000)), 1); /* it comes by an interrupt */
    EXPECT_EQ(notify_kernel_linux.notify_read(alarm, bytes, sizeof bytes), (ssize_t)sizeof bytes);
    EXPECT_EQ(notify_kernel_linux.close(alarm), 0);
    EXPECT_EQ(notify_kernel_linux.close(set), 0);
}

TEST(the_limit_of_descriptors_is_that_of_now, "")
{
    struct rlimit limit;

    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 100;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    EXPECT_EQ(notify_kernel_linux.descriptors_most(), 100);
}
