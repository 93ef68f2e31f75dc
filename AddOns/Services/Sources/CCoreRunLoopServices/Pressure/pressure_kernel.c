/* SPDX-License-Identifier: Apache-2.0 */
/* Linux's calls for pressure_kernel.h. Any thread, no state but the table. */
#define _GNU_SOURCE
#include "Pressure/pressure_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "Support/uncancelled.h"

static int result_of(long result)
{
    return result < 0 ? -errno : (int)result;
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int watch = result_of(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int result;

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    result = watch < 0 ? watch : result_of(uncancelled(connect(watch, (const struct sockaddr *)&address, sizeof address)));
    if (result < 0 && watch >= 0) {
        (void)uncancelled(close(watch));
    }
    return result < 0 ? result : watch;
}

static bool is_of_the_kernel(int file)
{
    struct statfs status;

    return fstatfs(file, &status) == 0 && ((unsigned long)status.f_type == CGROUP2_SUPER_MAGIC || status.f_type == PROC_SUPER_MAGIC);
}

/* A FIFO is opened for writing, too: the end of its last writer is no end then. */
static int open_kind(const char *path, int file, mode_t mode)
{
    if (S_ISSOCK(mode)) {
        return connect_to(path);
    }
    if (S_ISFIFO(mode) || (S_ISREG(mode) && is_of_the_kernel(file))) {
        return result_of(uncancelled(open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)));
    }
    return -ENOTTY;
}

/* Looks at what it is (O_PATH) and then opens just that, whatever has the path by then. */
static int linux_watch_open(const char *path, bool *ret_is_file)
{
    int file = result_of(uncancelled(open(path, O_PATH | O_CLOEXEC)));
    struct stat status = {0};
    char own_path[sizeof "/proc/self/fd/-2147483648"];
    int result = file < 0 ? file : result_of(fstat(file, &status));

    (void)snprintf(own_path, sizeof own_path, "/proc/self/fd/%d", file);
    *ret_is_file = S_ISREG(status.st_mode);
    result = result < 0 ? result : open_kind(own_path, file, status.st_mode);
    if (file >= 0) {
        (void)uncancelled(close(file));
    }
    return result;
}

static ssize_t linux_watch_write(int watch, const void *bytes, size_t size)
{
    struct stat status;
    ssize_t count = fstat(watch, &status);

    if (count == 0 && !S_ISFIFO(status.st_mode)) {
        count = S_ISSOCK(status.st_mode) ? uncancelled(send(watch, bytes, size, MSG_NOSIGNAL)) : uncancelled(write(watch, bytes, size));
    }
    return count < 0 ? -errno : count;
}

static ssize_t linux_text_read(const char *path, char *text, size_t size)
{
    int file = result_of(uncancelled(open(path, O_RDONLY | O_CLOEXEC)));
    ssize_t count = file;

    text[0] = '\0';
    if (file >= 0) {
        count = uncancelled(read(file, text, size - 1));
        count = count < 0 ? -errno : count;
        text[count < 0 ? 0 : count] = '\0';
        (void)uncancelled(close(file));
    }
    return count;
}

static int submit(const struct pressure_poll *poll, int file)
{
    struct iocb call = {.aio_lio_opcode = IOCB_CMD_POLL,
                        .aio_fildes = (uint32_t)file,
                        .aio_buf = POLLPRI,
                        .aio_flags = IOCB_FLAG_RESFD,
                        .aio_resfd = (uint32_t)poll->counter};
    struct iocb *calls[] = {&call};

    return result_of(syscall(SYS_io_submit, poll->context, 1L, calls));
}

static void linux_poll_end(const struct pressure_poll *poll)
{
    (void)syscall(SYS_io_destroy, poll->context);
}

static int linux_poll_begin(struct pressure_poll *poll, int file)
{
    int result;

    poll->context = 0;
    poll->counter = result_of(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (poll->counter < 0) {
        return poll->counter;
    }
    result = result_of(syscall(SYS_io_setup, 1UL, &poll->context));
    if (result == 0) {
        result = submit(poll, file);
        if (result < 0) {
            linux_poll_end(poll);
        }
    }
    if (result < 0) {
        (void)uncancelled(close(poll->counter));
    }
    return result;
}

/* Of a file whose control group is gone, each poll ends at once, with an error. */
static int linux_poll_again(const struct pressure_poll *poll, int file)
{
    struct io_event event = {.res = POLLERR};
    int count = result_of(syscall(SYS_io_getevents, poll->context, 0L, 1L, &event, NULL));

    if (count <= 0 || event.res < 0 || event.res & POLLERR) {
        return count < 0 ? count : -ENODEV;
    }
    return submit(poll, file);
}

#define CALLS_OF_LINUX linux_watch_open, linux_watch_write, linux_text_read, linux_poll_begin, linux_poll_again, linux_poll_end

const struct pressure_kernel pressure_kernel_linux = {CALLS_OF_LINUX};
struct pressure_kernel pressure_kernel = {CALLS_OF_LINUX};
