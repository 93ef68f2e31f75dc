/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of message ports' system calls as Linux fills it. No state but the page that tells a child from its parent.
 */
#define _GNU_SOURCE
#include "Kernel/kernel_ports.h"

#include <bsd/libutil.h>
#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Support/uncancelled.h"

/* Headers from before Linux 6.16 do not have it. PA-RISC and SPARC count their options differently. */
#if !defined(SO_PASSRIGHTS) && !defined(__hppa__) && !defined(__sparc__)
#define SO_PASSRIGHTS 83
#endif

static const int64_t second_ns = 1000000000;

static long result_of(long result, int saved_errno)
{
    if (result < 0) {
        result = -errno;
    }
    errno = saved_errno;
    return result;
}

/* ---- the process ---- */

static uid_t effective_uid(void)
{
    return geteuid();
}

static pid_t process_id(void)
{
    return getpid();
}

static const char *environment(const char *name)
{
    return secure_getenv(name);
}

static void random_bytes(void *ret_bytes, size_t size)
{
    arc4random_buf(ret_bytes, size);
}

static size_t descriptor_limit(void)
{
    struct rlimit limit;
    int saved = errno;
    long result = result_of(getrlimit(RLIMIT_NOFILE, &limit), saved);

    return result < 0 ? 0 : limit.rlim_cur > SIZE_MAX ? SIZE_MAX : (size_t)limit.rlim_cur;
}

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- files ---- */

static int directory_open(int directory, const char *path)
{
    int saved = errno;

    return kernel_above_streams(
        (int)result_of(uncancelled(openat(directory, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)), saved));
}

static int directory_make(int directory, const char *path)
{
    int saved = errno;

    return (int)result_of(mkdirat(directory, path, 0700), saved);
}

static int directory_list(int directory, bool (*each)(void *info, const char *leaf), void *info)
{
    int saved = errno;
    int own = directory_open(directory, ".");
    DIR *stream = own < 0 ? NULL : fdopendir(own);

    if (!stream) {
        int result = own < 0 ? own : (int)result_of(-1, saved);

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

static int file_open(int directory, const char *leaf, int flags)
{
    int saved = errno;

    return kernel_above_streams((int)result_of(uncancelled(openat(directory, leaf, flags | O_CLOEXEC | O_NOFOLLOW)), saved));
}

static int file_status(int descriptor, struct stat *ret_status)
{
    int saved = errno;

    return (int)result_of(fstat(descriptor, ret_status), saved);
}

static int path_status(int directory, const char *leaf, struct stat *ret_status)
{
    int saved = errno;

    return (int)result_of(fstatat(directory, leaf, ret_status, AT_SYMLINK_NOFOLLOW), saved);
}

static int file_lock(int directory, const char *leaf)
{
    int saved = errno;

    const int flags = O_CREAT | O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW;

    return kernel_above_streams((int)result_of(uncancelled(flopenat(directory, leaf, flags, 0600)), saved));
}

/* True if the size exceeds the process's limit on file sizes: a write beyond it would kill the process. */
static bool exceeds_file_limit(uint64_t size)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

/* Cuts off the rest of the old contents last: another process may be reading the file, and must not find it empty. */
static int file_replace(int descriptor, const void *bytes, size_t size)
{
    int saved = errno;
    int result;

    if (exceeds_file_limit(size)) {
        return -EFBIG;
    }
    result = (int)result_of(uncancelled(pwrite(descriptor, bytes, size, 0)), saved);
    if (result >= 0 && (size_t)result < size) {
        result = -ENOSPC;
    }
    return result < 0 ? result : (int)result_of(ftruncate(descriptor, (off_t)size), saved);
}

static ssize_t file_read(int descriptor, void *bytes, size_t size, off_t offset)
{
    int saved = errno;
    ssize_t result;

    do {
        result = result_of(uncancelled(pread(descriptor, bytes, size, offset)), saved);
    } while (result == -EINTR);
    return result;
}

static int file_rename(int directory, const char *from, const char *to)
{
    int saved = errno;

    return (int)result_of(renameat(directory, from, directory, to), saved);
}

static int file_unlink(int directory, const char *leaf)
{
    int saved = errno;

    return (int)result_of(unlinkat(directory, leaf, 0), saved);
}

/* ---- sockets ---- */

static int datagram_create(bool takes_credentials)
{
    int saved = errno;
    int one = 1;
    int descriptor = kernel_above_streams((int)result_of(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), saved)); /* send_in_turn waits */

    /* Before bind: a packet that is queued earlier would come without its sender's credentials. */
    if (descriptor >= 0 && takes_credentials && setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &one, sizeof one) < 0) {
        int result = (int)result_of(-1, saved);

        (void)uncancelled(close(descriptor));
        return result;
    }
    return descriptor;
}

static socklen_t address_of(const char *path, struct sockaddr_un *ret_address)
{
    ret_address->sun_family = AF_UNIX;
    if (strlcpy(ret_address->sun_path, path, sizeof ret_address->sun_path) >= sizeof ret_address->sun_path) {
        return 0;
    }
    return sizeof *ret_address;
}

static int datagram_bind(int socket, const char *path)
{
    int saved = errno;
    struct sockaddr_un address;
    socklen_t size = address_of(path, &address);

    if (size == 0) {
        return -ENAMETOOLONG;
    }
    (void)fchmod(socket, 0600); /* before bind: the file gets this mode */
    return (int)result_of(bind(socket, (struct sockaddr *)&address, size), saved);
}

static int datagram_connect(int socket, const char *path)
{
    int saved = errno;
    struct sockaddr_un address;
    socklen_t size = address_of(path, &address);

    return size == 0 ? -ENAMETOOLONG : (int)result_of(uncancelled(connect(socket, (struct sockaddr *)&address, size)), saved);
}

static int channel_create(int ret_ends[2])
{
    int saved = errno;

    int result = (int)result_of(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_ends), saved);

    for (int i = 0; result == 0 && i < 2; i++) {
        ret_ends[i] = kernel_above_streams(ret_ends[i]);
    }
    return result;
}

static int read_send_room(int socket)
{
    int saved = errno;
    int room = 0;
    socklen_t size = sizeof room;
    int result = (int)result_of(getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, &size), saved);

    return result < 0 ? result : room;
}

static int send_room(int socket, int wanted)
{
    int saved = errno;
    int half = wanted / 2; /* the kernel doubles what it is told */
    int room = read_send_room(socket);

    if (room < 0 || room >= wanted) {
        return room;
    }
    (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &half, sizeof half); /* net.core.wmem_max bounds it */
    errno = saved;
    return read_send_room(socket);
}

static ssize_t send_bytes(int socket, const void *bytes, size_t size)
{
    int saved = errno;

    return result_of(uncancelled(send(socket, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL)), saved);
}

static ssize_t send_message(int socket, const struct msghdr *message)
{
    int saved = errno;

    return result_of(uncancelled(sendmsg(socket, message, MSG_DONTWAIT | MSG_NOSIGNAL)), saved);
}

static ssize_t send_in_turn(int socket, const struct msghdr *message, int64_t limit_ns, int64_t *socket_limit_ns)
{
    int saved = errno;
    struct timeval limit = {0, 1}; /* 0 would be no limit */

    if (limit_ns != *socket_limit_ns) {
        if (limit_ns > 1000) {
            limit = (struct timeval){(time_t)(limit_ns / second_ns), (suseconds_t)(limit_ns % second_ns / 1000)};
        }
        if (setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0) {
            return result_of(-1, saved);
        }
        *socket_limit_ns = limit_ns;
    }
    return result_of(uncancelled(sendmsg(socket, message, MSG_NOSIGNAL)), saved);
}

static ssize_t receive_message(int socket, struct msghdr *message)
{
    int saved = errno;

    return result_of(uncancelled(recvmsg(socket, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)), saved);
}

static bool has_option(int descriptor, int option, int value)
{
    int found = -1;
    socklen_t size = sizeof found;

    return getsockopt(descriptor, SOL_SOCKET, option, &found, &size) == 0 && found == value;
}

static bool is_channel(int descriptor)
{
    int saved = errno;
    bool result = has_option(descriptor, SO_DOMAIN, AF_UNIX) && has_option(descriptor, SO_TYPE, SOCK_SEQPACKET) &&
                  has_option(descriptor, SO_ACCEPTCONN, 0);

    errno = saved;
    return result;
}

enum { so_passpidfd = 76, pidfs_magic = 0x50494446 }; /* SO_PASSPIDFD and PIDFS_MAGIC, which older headers lack */

static int identify_senders(int socket)
{
    const int one = 1;
    int saved = errno;

    return (int)result_of(setsockopt(socket, SOL_SOCKET, so_passpidfd, &one, sizeof one), saved);
}

/* Only a file system of pidfds has a number for each process. Before that, all had the same number. */
static uint64_t process_number(int pidfd)
{
    int saved = errno;
    struct statfs system;
    struct stat status;
    bool is_numbered = fstatfs(pidfd, &system) == 0 && system.f_type == pidfs_magic && fstat(pidfd, &status) == 0;

    errno = saved;
    return is_numbered ? (uint64_t)status.st_ino : 0;
}

static int hang_up(int socket)
{
    int saved = errno;

    return (int)result_of(shutdown(socket, SHUT_RDWR), saved);
}

static int refuse_descriptors(int socket)
{
#if defined(SO_PASSRIGHTS)
    int saved = errno;
    int off = 0;

    return (int)result_of(setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off), saved);
#else
    (void)socket;
    return -ENOPROTOOPT;
#endif
}

/*
 * With SO_PASSCRED each packet comes with its sender's credentials. So the look tells an empty packet from the end of a channel. A look
 * takes the error that the end of a channel left behind, so a second one may be needed. Descriptors in the queue stay there.
 */
static bool stop_receiving(int socket)
{
    int saved = errno;
    int on = 1;
    char byte;
    char room[CMSG_SPACE(sizeof(struct ucred))];
    struct iovec piece = {&byte, sizeof byte};
    struct msghdr message;
    ssize_t size;
    int looks = 0;
    bool is_empty;

    if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0) {
        is_empty = errno == ENOTSOCK;
        errno = saved;
        return is_empty;
    }
    (void)shutdown(socket, SHUT_RD);
    do {
        message = (struct msghdr){.msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
        size = uncancelled(recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    } while (size < 0 && errno == ECONNRESET && looks++ == 0);
    is_empty = size < 0 ? errno == EAGAIN : size == 0 && message.msg_controllen == 0;
    errno = saved;
    return is_empty;
}

static int stop_lingering(int descriptor)
{
    int saved = errno;
    struct linger off = {0, 0};

    return (int)result_of(setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &off, sizeof off), saved);
}

static int duplicate(int descriptor)
{
    int saved = errno;

    return kernel_above_streams((int)result_of(fcntl(descriptor, F_DUPFD_CLOEXEC, 0), saved));
}

static int replace(int from, int number)
{
    int saved = errno;

    return (int)result_of(dup3(from, number, O_CLOEXEC), saved);
}

static int wait_for(int socket, uint32_t interest, int64_t deadline_ns)
{
    int saved = errno;
    struct pollfd one = {.fd = socket};
    struct timespec limit = {0, 0};
    int count;

    one.events = (short)((interest & kernel_readable ? POLLIN : 0) | (interest & kernel_writable ? POLLOUT : 0));
    if (deadline_ns != kernel_never) {
        int64_t left_ns = deadline_ns - kernel.monotonic_ns();

        if (left_ns > 0) {
            limit.tv_sec = (time_t)(left_ns / second_ns);
            limit.tv_nsec = (long)(left_ns % second_ns);
        }
    }
    count = (int)result_of(uncancelled(ppoll(&one, 1, deadline_ns == kernel_never ? NULL : &limit, NULL)), saved);
    if (count <= 0) {
        return count;
    }
    return (one.revents & POLLIN ? kernel_readable : 0) | (one.revents & POLLOUT ? kernel_writable : 0) |
           (one.revents & (POLLERR | POLLHUP | POLLNVAL) ? kernel_failed : 0);
}

static void pause_for(int64_t duration_ns)
{
    int saved = errno;
    struct timespec duration = {(time_t)(duration_ns / second_ns), (long)(duration_ns % second_ns)};

    (void)uncancelled(nanosleep(&duration, NULL));
    errno = saved;
}

/* ---- memory ---- */

static int memory_create(uint64_t size, bool reserve)
{
    int saved = errno;
    int descriptor;
    int result = 0;

    if (exceeds_file_limit(size)) {
        return -EFBIG;
    }
    descriptor = (int)result_of(memfd_create("message", MFD_CLOEXEC | MFD_ALLOW_SEALING), saved);
    if (descriptor < 0) {
        return descriptor;
    }
    /* Takes the pages of memory that will be mapped now: running out of memory is an error here, and would be a signal later. */
    if (ftruncate(descriptor, (off_t)size) < 0 || (reserve && uncancelled(fallocate(descriptor, 0, 0, (off_t)size)) < 0) ||
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
        result = (int)result_of(-1, saved);
        (void)uncancelled(close(descriptor));
        return result;
    }
    return descriptor;
}

static int memory_write(int descriptor, const void *bytes, uint64_t size)
{
    int saved = errno;
    const char *next = bytes;
    uint64_t done = 0;

    while (done < size) {
        long result = result_of(uncancelled(pwrite(descriptor, next + done, (size_t)(size - done), (off_t)done)), saved);

        if (result == -EINTR) {
            continue;
        }
        if (result <= 0) {
            return result < 0 ? (int)result : -EIO;
        }
        done += (uint64_t)result;
    }
    return (int)result_of(fcntl(descriptor, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL), saved);
}

static bool memory_is_fixed(int descriptor, uint64_t size, bool unchangeable)
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
static int memory_size(int descriptor, uint64_t *ret_size)
{
    int saved = errno;
    struct stat status;
    int result = (int)result_of(fcntl(descriptor, F_GET_SEALS), saved);

    if (result >= 0) {
        result = file_status(descriptor, &status);
    }
    *ret_size = result < 0 || status.st_size < 0 ? 0 : (uint64_t)status.st_size;
    return result;
}

static int memory_map(int descriptor, uint64_t size, bool touch, void **ret_address)
{
    int saved = errno;
    void *address = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED | (touch ? MAP_POPULATE : 0), descriptor, 0);

    if (address == MAP_FAILED) {
        return (int)result_of(-1, saved);
    }
    (void)madvise(address, (size_t)size, MADV_DONTFORK);
    errno = saved;
    *ret_address = address;
    return 0;
}

static void memory_unmap(void *address, uint64_t size)
{
    int saved = errno;

    (void)munmap(address, (size_t)size);
    errno = saved;
}

#define KERNEL_PORTS_LINUX                        \
    {                                             \
        .effective_uid = effective_uid,           \
        .process_id = process_id,                 \
        .environment = environment,               \
        .random_bytes = random_bytes,             \
        .descriptor_limit = descriptor_limit,     \
        .page_size = page_size,                   \
        .directory_open = directory_open,         \
        .directory_make = directory_make,         \
        .directory_list = directory_list,         \
        .file_open = file_open,                   \
        .file_status = file_status,               \
        .path_status = path_status,               \
        .file_lock = file_lock,                   \
        .file_replace = file_replace,             \
        .file_read = file_read,                   \
        .file_rename = file_rename,               \
        .file_unlink = file_unlink,               \
        .datagram_create = datagram_create,       \
        .datagram_bind = datagram_bind,           \
        .datagram_connect = datagram_connect,     \
        .channel_create = channel_create,         \
        .send_room = send_room,                   \
        .send = send_bytes,                       \
        .send_message = send_message,             \
        .send_in_turn = send_in_turn,             \
        .receive_message = receive_message,       \
        .identify_senders = identify_senders,     \
        .process_number = process_number,         \
        .is_channel = is_channel,                 \
        .hang_up = hang_up,                       \
        .refuse_descriptors = refuse_descriptors, \
        .stop_receiving = stop_receiving,         \
        .stop_lingering = stop_lingering,         \
        .duplicate = duplicate,                   \
        .replace = replace,                       \
        .wait = wait_for,                         \
        .pause = pause_for,                       \
        .memory_create = memory_create,           \
        .memory_write = memory_write,             \
        .memory_is_fixed = memory_is_fixed,       \
        .memory_size = memory_size,               \
        .memory_map = memory_map,                 \
        .memory_unmap = memory_unmap,             \
    }

struct kernel_ports kernel_ports = KERNEL_PORTS_LINUX;
#if defined(CRL_TESTING)
const struct kernel_ports kernel_ports_linux = KERNEL_PORTS_LINUX;
#endif
