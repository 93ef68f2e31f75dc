/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of message ports' table on directories, files and memory that is passed on. No state. */
#define _GNU_SOURCE
#include "Kernel/Ports/kernel_port_files.h"

#include <bsd/libutil.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "Kernel/kernel_descriptors.h"
#include "Kernel/kernel_result.h"
#include "Support/uncancelled.h"

int kernel_port_directory_open(int directory, const char *path)
{
    int saved = errno;

    return kernel_above_streams(result_of(uncancelled(openat(directory, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)), saved));
}

int kernel_port_directory_make(int directory, const char *path)
{
    int saved = errno;

    return result_of(mkdirat(directory, path, 0700), saved);
}

int kernel_port_directory_list(int directory, bool (*each)(void *info, const char *leaf), void *info)
{
    int saved = errno;
    int own = kernel_port_directory_open(directory, ".");
    DIR *stream = own < 0 ? NULL : fdopendir(own);

    if (!stream) {
        int result = own < 0 ? own : result_of(-1, saved);

        if (own >= 0) {
            (void)uncancelled(close(own));
        }
        return result;
    }
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && !each(info, entry->d_name)) {
            break;
        }
    }
    (void)uncancelled(closedir(stream)); /* may be a cancellation point, and musl's is one */
    errno = saved;
    return 0;
}

int kernel_port_file_open(int directory, const char *leaf, int flags)
{
    int saved = errno;

    return kernel_above_streams(result_of(uncancelled(openat(directory, leaf, flags | O_CLOEXEC | O_NOFOLLOW)), saved));
}

int kernel_port_file_status(int descriptor, struct stat *ret_status)
{
    int saved = errno;

    return result_of(fstat(descriptor, ret_status), saved);
}

int kernel_port_path_status(int directory, const char *leaf, struct stat *ret_status)
{
    int saved = errno;

    return result_of(fstatat(directory, leaf, ret_status, AT_SYMLINK_NOFOLLOW), saved);
}

int kernel_port_file_lock(int directory, const char *leaf)
{
    int saved = errno;

    const int flags = O_CREAT | O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW;

    return kernel_above_streams(result_of(uncancelled(flopenat(directory, leaf, flags, 0600)), saved));
}

/* True if the size exceeds the process's limit on file sizes: a write beyond it would kill the process. */
static bool exceeds_file_limit(uint64_t size)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

/* Cuts off the rest of the old contents last: another process may be reading the file, and must not find it empty. */
int kernel_port_file_replace(int descriptor, const void *bytes, size_t size)
{
    int saved = errno;
    int result;

    if (exceeds_file_limit(size)) {
        return -EFBIG;
    }
    result = result_of(uncancelled(pwrite(descriptor, bytes, size, 0)), saved);
    if (result >= 0 && (size_t)result < size) {
        result = -ENOSPC;
    }
    return result < 0 ? result : result_of(ftruncate(descriptor, (off_t)size), saved);
}

ssize_t kernel_port_file_read(int descriptor, void *bytes, size_t size, off_t offset)
{
    int saved = errno;
    ssize_t result;

    do {
        result = long_result_of(uncancelled(pread(descriptor, bytes, size, offset)), saved);
    } while (result == -EINTR);
    return result;
}

int kernel_port_file_rename(int directory, const char *from, const char *to)
{
    int saved = errno;

    return result_of(renameat(directory, from, directory, to), saved);
}

int kernel_port_file_unlink(int directory, const char *leaf)
{
    int saved = errno;

    return result_of(unlinkat(directory, leaf, 0), saved);
}

/* ---- memory ---- */

int kernel_port_memory_create(uint64_t size, bool reserve)
{
    int saved = errno;
    int descriptor;
    int result = 0;

    if (exceeds_file_limit(size)) {
        return -EFBIG;
    }
    descriptor = result_of(memfd_create("message", MFD_CLOEXEC | MFD_ALLOW_SEALING), saved);
    if (descriptor < 0) {
        return descriptor;
    }
    /* Takes the pages of memory that will be mapped now: running out of memory is an error here, and would be a signal later. */
    if (ftruncate(descriptor, (off_t)size) < 0 || (reserve && uncancelled(fallocate(descriptor, 0, 0, (off_t)size)) < 0) ||
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
        result = result_of(-1, saved);
        (void)uncancelled(close(descriptor));
        return result;
    }
    return descriptor;
}

int kernel_port_memory_write(int descriptor, const void *bytes, uint64_t size)
{
    int saved = errno;
    const char *next = bytes;
    uint64_t done = 0;

    while (done < size) {
        long result = long_result_of(uncancelled(pwrite(descriptor, next + done, (size_t)(size - done), (off_t)done)), saved);

        if (result == -EINTR) {
            continue;
        }
        if (result <= 0) {
            return result < 0 ? (int)result : -EIO;
        }
        done += (uint64_t)result;
    }
    return result_of(fcntl(descriptor, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL), saved);
}

bool kernel_port_memory_is_fixed(int descriptor, uint64_t size, bool unchangeable)
{
    int saved = errno;
    int wanted = F_SEAL_SHRINK | F_SEAL_GROW | (unchangeable ? F_SEAL_WRITE : 0);
    int seals = fcntl(descriptor, F_GET_SEALS);
    struct statfs filesystem;
    struct stat status;
    bool result = seals >= 0 && (seals & wanted) == wanted && fstatfs(descriptor, &filesystem) == 0 && filesystem.f_type == TMPFS_MAGIC &&
                  fstat(descriptor, &status) == 0 && status.st_size >= 0 && (uint64_t)status.st_size == size &&
                  (uint64_t)status.st_blocks * 512 >= size;

    errno = saved;
    return result;
}

/* Asks for the seals first: only a memory file has them, and fstat on a file of a dead file system may never return. */
int kernel_port_memory_size(int descriptor, uint64_t *ret_size)
{
    int saved = errno;
    struct stat status;
    int result = result_of(fcntl(descriptor, F_GET_SEALS), saved);

    if (result >= 0) {
        result = kernel_port_file_status(descriptor, &status);
    }
    *ret_size = result < 0 || status.st_size < 0 ? 0 : (uint64_t)status.st_size;
    return result;
}

int kernel_port_memory_map(int descriptor, uint64_t size, bool touch, void **ret_address)
{
    int saved = errno;
    void *address = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED | (touch ? MAP_POPULATE : 0), descriptor, 0);

    if (address == MAP_FAILED) {
        return result_of(-1, saved);
    }
    (void)madvise(address, (size_t)size, MADV_DONTFORK);
    errno = saved;
    *ret_address = address;
    return 0;
}

void kernel_port_memory_unmap(void *address, uint64_t size)
{
    int saved = errno;

    (void)munmap(address, (size_t)size);
    errno = saved;
}
