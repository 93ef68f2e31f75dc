/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's tables with calls that fail in their turn, each with errors that Linux may give for it.
 *
 * Left as they are are those that do not fail for arguments that are right; failure-sites in this folder has the list, with the reasons.
 */
#include <errno.h>

#include "Failure/nth_failure.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"

/* `failure` is what the call gives back then, in terms of `error`. */
#define CALL(_table, _type, _name, _first, _second, _failure, _parameters, _arguments)          \
    static _type failing_##_table##_##_name _parameters                                         \
    {                                                                                           \
        static const struct failing_call call = {#_table "." #_name, {_first, _second}};        \
        int error = nth_failure_take(&call);                                                    \
        return error ? (_failure) : _table##_linux._name _arguments;                            \
    }

#define INT_CALL(_name, _first, _second, _parameters, _arguments) CALL(kernel, int, _name, _first, _second, -error, _parameters, _arguments)

INT_CALL(futex_wait, EINTR, EAGAIN, (_Atomic uint32_t * word, uint32_t expected, int64_t deadline_ns), (word, expected, deadline_ns))
INT_CALL(event_create, EMFILE, ENOMEM, (void), ())
INT_CALL(event_renew, EMFILE, 0, (int event), (event))
INT_CALL(counter_drain, EAGAIN, 0, (int descriptor), (descriptor))
INT_CALL(alarm_create, EMFILE, 0, (void), ())
INT_CALL(resume_open, EMFILE, EINVAL, (void), ())
INT_CALL(set_create, EMFILE, ENOMEM, (void), ())
INT_CALL(set_add, ENOSPC, ENOMEM, (int set, int descriptor, uint32_t interest, uint64_t token), (set, descriptor, interest, token))
INT_CALL(set_add_edge, ENOSPC, ENOMEM, (int set, int descriptor, uint64_t token), (set, descriptor, token))
INT_CALL(set_change, ENOMEM, ENOENT, (int set, int descriptor, uint32_t interest, uint64_t token), (set, descriptor, interest, token))
INT_CALL(set_remove, ENOENT, EBADF, (int set, int descriptor), (set, descriptor))
INT_CALL(set_wait, EINTR, 0, (int set, struct kernel_event *events, int capacity, int64_t deadline_ns),
         (set, events, capacity, deadline_ns))
CALL(kernel, uint32_t, descriptor_ready, ENOMEM, 0, 0, (int descriptor, uint32_t interest), (descriptor, interest))
CALL(kernel, int64_t, timer_slack_ns, EPERM, 0, 0, (void), ())
/* Linux has closed it all the same. */
CALL(kernel, int, close, EINTR, EIO, (kernel_linux.close(descriptor), -error), (int descriptor), (descriptor))
INT_CALL(socket_create, EMFILE, ENOBUFS, (int family, int type, int protocol), (family, type, protocol))
INT_CALL(socket_bind, EADDRINUSE, 0, (int socket, const void *address, size_t length), (socket, address, length))
INT_CALL(socket_listen, EADDRINUSE, 0, (int socket, int backlog), (socket, backlog))
INT_CALL(socket_connect, ECONNREFUSED, ENOBUFS, (int socket, const void *address, size_t length, int64_t deadline_ns),
         (socket, address, length, deadline_ns))
INT_CALL(socket_accept, EMFILE, ECONNABORTED, (int socket, struct kernel_address *ret_peer), (socket, ret_peer))
INT_CALL(socket_receive, ENOMEM, EAGAIN, (int socket, void *bytes, size_t size, struct kernel_address *ret_peer),
         (socket, bytes, size, ret_peer))
INT_CALL(socket_peek, EAGAIN, ENOMEM, (int socket), (socket))
INT_CALL(socket_send, ENOBUFS, EINTR,
         (int socket, const void *bytes, size_t size, const void *address, size_t length, int64_t deadline_ns),
         (socket, bytes, size, address, length, deadline_ns))
INT_CALL(socket_address, ENOBUFS, 0, (int socket, bool is_of_peer, struct kernel_address *ret_address), (socket, is_of_peer, ret_address))
INT_CALL(make_non_blocking, EPERM, 0, (int descriptor, bool is_non_blocking), (descriptor, is_non_blocking))
INT_CALL(path_open, EMFILE, EACCES, (const char *path, int flags), (path, flags))
CALL(kernel, int64_t, file_seek, ESPIPE, 0, -error, (int file, int64_t offset, int whence), (file, offset, whence))
CALL(kernel, ssize_t, file_read, EIO, 0, -error, (int file, void *bytes, size_t size), (file, bytes, size))
CALL(kernel, ssize_t, file_write, ENOSPC, EIO, -error, (int file, const void *bytes, size_t size), (file, bytes, size))
INT_CALL(signal_open, EMFILE, ENOMEM, (int signal), (signal))
INT_CALL(signal_take, EAGAIN, 0, (int descriptor, struct signalfd_siginfo *ret_info), (descriptor, ret_info))
INT_CALL(process_open, EMFILE, ENOMEM, (pid_t pid), (pid))
INT_CALL(process_await, EMFILE, ENOMEM, (pid_t pid), (pid))
CALL(kernel, _Atomic uint32_t *, fork_mark, ENOMEM, 0, NULL, (void), ())

/* The thread's work is done at once, by the caller: the test counts its memory without a lock. */
static int failing_kernel_thread_start(void *(*function)(void *info), const char *name)
{
    static const struct failing_call call = {"kernel.thread_start", {EAGAIN, 0}};
    int error = nth_failure_take(&call);

    (void)name;
    if (!error) {
        (void)function(NULL);
    }
    return -error;
}

INT_CALL(fence_threads, EPERM, ENOSYS, (void), ())
INT_CALL(process_reap, EINTR, ECHILD, (pid_t pid, int *ret_status), (pid, ret_status))

#define PORTS_CALL(_type, _name, _first, _second, _parameters, _arguments) \
    CALL(kernel_ports, _type, _name, _first, _second, -error, _parameters, _arguments)

CALL(kernel_ports, size_t, descriptor_limit, EPERM, 0, 0, (void), ())
PORTS_CALL(int, directory_open, EMFILE, EACCES, (int directory, const char *path), (directory, path))
PORTS_CALL(int, directory_make, ENOSPC, EACCES, (int directory, const char *path), (directory, path))
PORTS_CALL(int, directory_list, EMFILE, ENOMEM, (int directory, bool (*each)(void *, const char *), void *info), (directory, each, info))
PORTS_CALL(int, file_open, EMFILE, ENFILE, (int directory, const char *leaf, int flags), (directory, leaf, flags))
PORTS_CALL(int, file_status, ENOMEM, 0, (int descriptor, struct stat *ret_status), (descriptor, ret_status))
PORTS_CALL(int, path_status, ENOMEM, EACCES, (int directory, const char *leaf, struct stat *ret_status), (directory, leaf, ret_status))
PORTS_CALL(int, file_lock, EMFILE, ENOSPC, (int directory, const char *leaf), (directory, leaf))
PORTS_CALL(int, file_replace, ENOSPC, EIO, (int descriptor, const void *bytes, size_t size), (descriptor, bytes, size))
PORTS_CALL(ssize_t, file_read, EIO, 0, (int descriptor, void *bytes, size_t size, off_t offset), (descriptor, bytes, size, offset))
PORTS_CALL(int, file_rename, ENOSPC, EIO, (int directory, const char *from, const char *to), (directory, from, to))
PORTS_CALL(int, file_unlink, EIO, ENOENT, (int directory, const char *leaf), (directory, leaf))
PORTS_CALL(int, datagram_create, EMFILE, ENOBUFS, (bool takes_credentials), (takes_credentials))
PORTS_CALL(int, datagram_bind, ENOSPC, EADDRINUSE, (int socket, const char *path), (socket, path))
PORTS_CALL(int, datagram_connect, ECONNREFUSED, ENOMEM, (int socket, const char *path), (socket, path))
PORTS_CALL(int, send_room, ENOBUFS, 0, (int socket, int wanted), (socket, wanted))
PORTS_CALL(int, channel_create, EMFILE, ENOMEM, (int ret_ends[2]), (ret_ends))
PORTS_CALL(ssize_t, send, ENOBUFS, EAGAIN, (int socket, const void *bytes, size_t size), (socket, bytes, size))
PORTS_CALL(ssize_t, send_message, EAGAIN, ETOOMANYREFS, (int socket, const struct msghdr *message), (socket, message))
PORTS_CALL(ssize_t, send_in_turn, EINTR, ENOBUFS, (int socket, const struct msghdr *message, int64_t limit_ns, int64_t *socket_limit_ns),
           (socket, message, limit_ns, socket_limit_ns))
PORTS_CALL(ssize_t, receive_message, EINTR, EAGAIN, (int socket, struct msghdr *message), (socket, message))
PORTS_CALL(int, hang_up, ENOTCONN, 0, (int socket), (socket))
PORTS_CALL(int, refuse_descriptors, ENOPROTOOPT, 0, (int socket), (socket))
CALL(kernel_ports, bool, stop_receiving, EINVAL, 0, false, (int socket), (socket))
PORTS_CALL(int, duplicate, EMFILE, 0, (int descriptor), (descriptor))
PORTS_CALL(int, replace, EMFILE, 0, (int from, int number), (from, number))
PORTS_CALL(int, wait, EINTR, 0, (int socket, uint32_t interest, int64_t deadline_ns), (socket, interest, deadline_ns))
PORTS_CALL(int, memory_create, EMFILE, ENOSPC, (uint64_t size, bool reserve), (size, reserve))
PORTS_CALL(int, memory_write, ENOSPC, 0, (int descriptor, const void *bytes, uint64_t size), (descriptor, bytes, size))
CALL(kernel_ports, bool, memory_is_fixed, ENOMEM, 0, false, (int descriptor, uint64_t size, bool unchangeable),
     (descriptor, size, unchangeable))
PORTS_CALL(int, memory_size, ENOMEM, 0, (int descriptor, uint64_t *ret_size), (descriptor, ret_size))
PORTS_CALL(int, memory_map, ENOMEM, 0, (int descriptor, uint64_t size, bool touch, void **ret_address),
           (descriptor, size, touch, ret_address))

#define USE(_name) kernel._name = failing_kernel_##_name
#define USE_PORTS(_name) kernel_ports._name = failing_kernel_ports_##_name

void failing_calls_install(void)
{
    USE(futex_wait), USE(event_create), USE(event_renew), USE(counter_drain), USE(alarm_create), USE(resume_open), USE(set_create);
    USE(set_add);
    USE(set_add_edge), USE(set_change), USE(set_remove), USE(set_wait), USE(descriptor_ready), USE(timer_slack_ns), USE(close);
    USE(socket_create), USE(socket_bind), USE(socket_listen), USE(socket_connect), USE(socket_accept), USE(socket_receive);
    USE(socket_peek), USE(socket_send), USE(socket_address), USE(make_non_blocking), USE(signal_open);
    USE(path_open), USE(file_seek), USE(file_read), USE(file_write);
    USE(signal_take), USE(process_open), USE(process_await), USE(process_reap), USE(fence_threads), USE(fork_mark), USE(thread_start);
    USE_PORTS(descriptor_limit), USE_PORTS(directory_open), USE_PORTS(directory_make), USE_PORTS(directory_list);
    USE_PORTS(file_open), USE_PORTS(file_status), USE_PORTS(path_status), USE_PORTS(file_lock), USE_PORTS(file_replace);
    USE_PORTS(file_read), USE_PORTS(file_rename), USE_PORTS(file_unlink), USE_PORTS(datagram_create), USE_PORTS(datagram_bind);
    USE_PORTS(datagram_connect), USE_PORTS(channel_create), USE_PORTS(send_room), USE_PORTS(send), USE_PORTS(send_message);
    USE_PORTS(receive_message), USE_PORTS(hang_up), USE_PORTS(refuse_descriptors), USE_PORTS(stop_receiving), USE_PORTS(duplicate);
    USE_PORTS(replace), USE_PORTS(wait), USE_PORTS(send_in_turn), USE_PORTS(memory_create);
    USE_PORTS(memory_write), USE_PORTS(memory_is_fixed), USE_PORTS(memory_size), USE_PORTS(memory_map);
}
