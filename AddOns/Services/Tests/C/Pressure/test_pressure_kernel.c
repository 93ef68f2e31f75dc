/* SPDX-License-Identifier: Apache-2.0 */
/* Linux's calls open what may be watched and nothing else, say why they are refused, and leave no descriptor open. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "Pressure/pressure_kernel.h"
#include "harness.h"
#include "scratch_folder.h"

static int refusal(const char *path)
{
    bool is_file;

    return pressure_kernel_linux.watch_open(path, &is_file);
}

TEST(what_cannot_tell_of_pressure_is_not_opened, "2222")
{
    char folder[scratch_size];
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int socket_of_path = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    scratch_enter(folder);
    scratch_make_file("file");
    REQUIRE(bind(socket_of_path, (const struct sockaddr *)&address, sizeof address) == 0);
    EXPECT_EQ(refusal("file"), -ENOTTY);
    EXPECT_EQ(refusal("/"), -ENOTTY);
    EXPECT_EQ(refusal("/dev/zero"), -ENOTTY);
    EXPECT_EQ(refusal("nothing"), -ENOENT);
    EXPECT_EQ(refusal("socket"), -ECONNREFUSED); /* nobody listens */
    (void)close(socket_of_path);
    scratch_leave(folder);
}

TEST(a_fifo_is_read_and_not_written, "2222")
{
    char folder[scratch_size];
    char byte = 'x';
    bool is_file = true;
    int watch;

    scratch_enter(folder);
    REQUIRE(mkfifo("fifo", 0600) == 0);
    watch = pressure_kernel_linux.watch_open("fifo", &is_file);
    REQUIRE(watch >= 0 && !is_file);
    EXPECT_EQ(pressure_kernel_linux.watch_write(watch, "hello", 5), 0);
    EXPECT_EQ(read(watch, &byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
    (void)close(watch);
    scratch_leave(folder);
}

TEST(calls_for_pressure_that_are_refused_say_why, "")
{
    struct pressure_poll poll;
    char text[8];
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int folder = open("/", O_RDONLY | O_CLOEXEC);

    EXPECT_EQ(pressure_kernel_linux.watch_write(-1, "x", 1), -EBADF);
    EXPECT_EQ(pressure_kernel_linux.watch_write(null, "x", 1), -EBADF);
    EXPECT_EQ(pressure_kernel_linux.text_read("/nowhere/at/all", text, sizeof text), -ENOENT);
    EXPECT_EQ(pressure_kernel_linux.text_read("/", text, sizeof text), -EISDIR);
    EXPECT_STR(text, "");
    EXPECT_EQ(pressure_kernel_linux.text_read("/proc/sys/kernel/ostype", text, 4), 3);
    EXPECT_STR(text, "Lin");
    EXPECT(pressure_kernel_linux.poll_begin(&poll, -1) < 0);
    EXPECT(pressure_kernel_linux.poll_begin(&poll, folder) < 0);
    EXPECT(pressure_kernel_linux.poll_again(&(struct pressure_poll){0, -1}, folder) < 0);
    (void)close(null);
    (void)close(folder);
}

TEST(a_poll_leaves_its_event_in_the_counter_and_comes_again, "2225")
{
    struct pressure_poll poll;
    uint64_t count = 0;
    int ends[2];

    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    if (pressure_kernel_linux.poll_begin(&poll, ends[0]) < 0) {
        SKIP("the kernel has no asynchronous polls here");
    }
    EXPECT_EQ(pressure_kernel_linux.poll_again(&poll, ends[0]), -ENODEV); /* no event has come */
    EXPECT_EQ(read(poll.counter, &count, sizeof count), -1);
    (void)close(ends[1]); /* a hang-up, which ends a poll, too */
    REQUIRE(fcntl(poll.counter, F_SETFL, 0) == 0);
    EXPECT_EQ(read(poll.counter, &count, sizeof count), (ssize_t)sizeof count);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(pressure_kernel_linux.poll_again(&poll, ends[0]), 1);
    EXPECT_EQ(read(poll.counter, &count, sizeof count), (ssize_t)sizeof count);
    pressure_kernel_linux.poll_end(&poll);
    (void)close(poll.counter);
    (void)close(ends[0]);
}
