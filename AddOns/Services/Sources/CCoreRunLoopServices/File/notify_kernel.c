/* SPDX-License-Identifier: Apache-2.0 */
/* Linux's calls for notify_kernel.h. Any thread, no state but the table. */
#define _GNU_SOURCE
#include "File/notify_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "Support/uncancelled.h"

static int result_of(int result)
{
    return result < 0 ? -errno : result;
}

static int linux_notify_create(void)
{
    return result_of(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
}

static ssize_t linux_notify_read(int notify, void *bytes, size_t size)
{
    ssize_t count = uncancelled(read(notify, bytes, size));

    return count < 0 ? -errno : count;
}

static int linux_watch_add(int notify, const char *path, uint32_t mask)
{
    return result_of(inotify_add_watch(notify, path, mask));
}

static int linux_watch_remove(int notify, int watch)
{
    return result_of(inotify_rm_watch(notify, watch));
}

static int linux_file_open(const char *path)
{
    return result_of(uncancelled(open(path, O_PATH | O_CLOEXEC)));
}

static int linux_file_status(int file, struct stat *ret_status)
{
    return result_of(fstat(file, ret_status));
}

static int linux_close(int descriptor)
{
    return result_of(uncancelled(close(descriptor)));
}

static int linux_notify_pending(int notify)
{
    int count = 0;

    return ioctl(notify, FIONREAD, &count) < 0 ? -errno : count;
}

static int linux_folder_open(int folder, const char *path, bool follows)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (follows ? 0 : O_NOFOLLOW);

    return result_of(uncancelled(openat(folder < 0 ? AT_FDCWD : folder, path, flags)));
}

/* As the kernel writes it (getdents64). */
struct folder_entry {
    uint64_t inode;
    int64_t next_place;
    uint16_t size;
    uint8_t type;
    char name[];
};

/* By the kernel's own call: a DIR would cost another descriptor, five more calls and its memory for each folder. */
static int linux_folder_list(int folder, bool (*each)(void *info, const char *name, unsigned char type), void *info)
{
    _Alignas(struct folder_entry) char bytes[8192];
    long count;

    while ((count = syscall(SYS_getdents64, folder, bytes, sizeof bytes)) > 0) {
        for (const char *place = bytes; place < bytes + count;) {
            const struct folder_entry *entry = (const struct folder_entry *)(const void *)place;
            bool is_own = strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0;

            if (!is_own && !each(info, entry->name, entry->type)) {
                return 0;
            }
            place += entry->size;
        }
    }
    return result_of((int)count);
}

static int linux_name_status(int folder, const char *name, struct stat *ret_status)
{
    return result_of(fstatat(folder < 0 ? AT_FDCWD : folder, name, ret_status, AT_SYMLINK_NOFOLLOW));
}

static int linux_set_create(void)
{
    return result_of(epoll_create1(EPOLL_CLOEXEC));
}

static int set_add_events(int set, int descriptor, uint32_t events)
{
    struct epoll_event event = {.events = events};

    return result_of(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event));
}

static int linux_set_add(int set, int descriptor)
{
    return set_add_events(set, descriptor, EPOLLIN);
}

static int linux_set_add_mounts(int set, int mounts)
{
    return set_add_events(set, mounts, EPOLLPRI);
}

static int linux_alarm_create(void)
{
    return result_of(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
}

static int linux_alarm_set(int alarm, int64_t when_ns)
{
    struct itimerspec setting = {{0, 0}, {(time_t)(when_ns / 1000000000), (long)(when_ns % 1000000000)}};

    return result_of(timerfd_settime(alarm, TFD_TIMER_ABSTIME, &setting, NULL));
}

static int64_t linux_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int linux_mounts_open(void)
{
    return result_of(uncancelled(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)));
}

static bool linux_mounts_have_changed(int mounts)
{
    struct pollfd watched = {mounts, POLLPRI, 0};

    return uncancelled(poll(&watched, 1, 0)) > 0;
}

static int linux_descriptors_most(void)
{
    struct rlimit limit = {0, 0};

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur < INT_MAX ? (int)limit.rlim_cur : INT_MAX;
}

#define CALLS_OF_LINUX                                                                                                            \
    linux_notify_create, linux_notify_read, linux_watch_add, linux_watch_remove, linux_file_open, linux_file_status, linux_close, \
        linux_notify_pending, linux_folder_open, linux_folder_list, linux_name_status, linux_set_create, linux_set_add,           \
        linux_alarm_create, linux_alarm_set, linux_now_ns, linux_mounts_open, linux_set_add_mounts, linux_mounts_have_changed,    \
        linux_descriptors_most

const struct notify_kernel notify_kernel_linux = {CALLS_OF_LINUX};
struct notify_kernel notify_kernel = {CALLS_OF_LINUX};
