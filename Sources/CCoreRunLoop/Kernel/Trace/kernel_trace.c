/* SPDX-License-Identifier: Apache-2.0 */
/* The table of traces' system calls as Linux fills it. No state. */
#define _GNU_SOURCE
#include "Kernel/Trace/kernel_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_clocks.h"
#include "Kernel/kernel_descriptors.h"
#include "Kernel/kernel_result.h"
#include "Support/uncancelled.h"

static int file_create(const char *path, struct kernel_file_identity *ret_identity)
{
    int saved = errno;
    int file = result_of(uncancelled(open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)), saved);
    struct stat status;

    file = file < 0 ? file : kernel_above_streams(file);
    if (file >= 0 && fstat(file, &status) == 0) {
        ret_identity->device = (uint64_t)status.st_dev;
        ret_identity->number = (uint64_t)status.st_ino;
    }
    return file;
}

static bool file_is(int file, const struct kernel_file_identity *identity)
{
    int saved = errno;
    struct stat status;
    int result = result_of(fstat(file, &status), saved);

    return result == 0 && (uint64_t)status.st_dev == identity->device && (uint64_t)status.st_ino == identity->number;
}

/* For file systems without fallocate: writes the room. */
static int write_zeros(int file, int64_t offset, size_t size)
{
    static const char zeros[4096];

    for (size_t done = 0; done < size;) {
        size_t piece = size - done < sizeof zeros ? size - done : sizeof zeros;
        ssize_t written = uncancelled(pwrite(file, zeros, piece, (off_t)(offset + (int64_t)done)));

        if (written < 0 && errno != EINTR) {
            return -1;
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static int file_reserve(int file, int64_t offset, size_t size)
{
    int saved = errno;
    struct rlimit limit;
    long result;

    /* The kernel would send SIGXFSZ, which ends most programs. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && (uint64_t)offset + size > limit.rlim_cur) {
        return -EFBIG;
    }
    do {
        result = uncancelled(fallocate(file, 0, (off_t)offset, (off_t)size));
    } while (result < 0 && errno == EINTR);
    if (result < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        result = write_zeros(file, offset, size);
    }
    return result_of(result, saved);
}

static int file_map(int file, int64_t offset, size_t size, void **ret_memory)
{
    int saved = errno;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);

    if (memory == MAP_FAILED) {
        return result_of(-1, saved);
    }
    *ret_memory = memory;
    return 0;
}

static void file_unmap(void *memory, size_t size)
{
    int saved = errno;

    (void)result_of(munmap(memory, size), saved);
}

static void file_remove(const char *path)
{
    int saved = errno;

    (void)result_of(unlink(path), saved);
}

static int file_lock(int file)
{
    int saved = errno;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return result_of(fcntl(file, F_SETLK, &whole), saved);
}

static int private_directory(const char *path)
{
    int saved = errno;
    struct stat status;
    int result = result_of(mkdir(path, 0700), saved);

    if (result < 0 && result != -EEXIST) {
        return result;
    }
    result = result_of(lstat(path, &status), saved);
    if (result == 0 && (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)) {
        return -EACCES;
    }
    return result;
}

static int directory(char *ret_path, size_t size)
{
    int saved = errno;

    return result_of(getcwd(ret_path, size) ? 0 : -1, saved);
}

static int64_t thread_usage(uint64_t *ret_waits)
{
    int saved = errno;
    struct rusage usage;

    (void)result_of(getrusage(RUSAGE_THREAD, &usage), saved);
    *ret_waits = (uint64_t)usage.ru_nvcsw;
    return kernel_clock_read(CLOCK_THREAD_CPUTIME_ID); /* the time in `usage` is only as of the last tick */
}

static int32_t thread_id(void)
{
    return (int32_t)syscall(SYS_gettid);
}

static int32_t process_id(void)
{
    return (int32_t)getpid();
}

static void thread_name(char ret_name[kernel_thread_name_size])
{
    int saved = errno;

    memset(ret_name, 0, kernel_thread_name_size);
    (void)result_of(prctl(PR_GET_NAME, ret_name, 0, 0, 0), saved);
}

static void name_of_thread(pthread_t thread, char ret_name[kernel_thread_name_size])
{
    int saved = errno;

    if (uncancelled(pthread_getname_np(thread, ret_name, kernel_thread_name_size)) != 0) {
        ret_name[0] = '\0';
    }
    errno = saved;
}

static void program(char *ret_path, size_t size)
{
    int saved = errno;
    int length = result_of(readlink("/proc/self/exe", ret_path, size - 1), saved);

    ret_path[length > 0 ? length : 0] = '\0';
}

#define KERNEL_TRACE_LINUX                      \
    {                                           \
        .file_create = file_create,             \
        .file_is = file_is,                     \
        .file_reserve = file_reserve,           \
        .file_map = file_map,                   \
        .file_unmap = file_unmap,               \
        .file_remove = file_remove,             \
        .file_lock = file_lock,                 \
        .private_directory = private_directory, \
        .directory = directory,                 \
        .thread_usage = thread_usage,           \
        .thread_id = thread_id,                 \
        .process_id = process_id,               \
        .thread_name = thread_name,             \
        .name_of_thread = name_of_thread,       \
        .program = program,                     \
    }

struct kernel_trace kernel_trace = KERNEL_TRACE_LINUX;
#if defined(CRL_TESTING)
const struct kernel_trace kernel_trace_linux = KERNEL_TRACE_LINUX;
#endif
