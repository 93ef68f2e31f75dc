/* SPDX-License-Identifier: Apache-2.0 */
/* Linux's calls for notify_kernel.h. Any thread, no state but the table. */
#define _GNU_SOURCE
#include "File/notify_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
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

const struct notify_kernel notify_kernel_linux = {linux_notify_create, linux_notify_read, linux_watch_add, linux_watch_remove,
                                                  linux_file_open,     linux_file_status, linux_close};
struct notify_kernel notify_kernel = {linux_notify_create, linux_notify_read, linux_watch_add, linux_watch_remove,
                                      linux_file_open,     linux_file_status, linux_close};
