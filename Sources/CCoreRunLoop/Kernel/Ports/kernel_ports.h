/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of message ports, in a table beside that of kernel.h: directories, locks, Unix sockets, memory that is passed on.
 *
 * The same promises as kernel.h: 0, a value or a negative errno; errno stays the caller's. Descriptors that come out are close-on-exec.
 * Only the calls that say so wait.
 */
#ifndef CRL_KERNEL_KERNEL_PORTS_H
#define CRL_KERNEL_KERNEL_PORTS_H

#include "Kernel/link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

struct kernel_ports {
    uid_t (*effective_uid)(void);
    pid_t (*process_id)(void);
    const char *(*environment)(const char *name); /* NULL in programs that run with other rights than their user's */
    void (*random_bytes)(void *ret_bytes, size_t size);
    size_t (*descriptor_limit)(void);
    size_t (*page_size)(void);

    /* Files; `directory` may be AT_FDCWD, and links are never followed in the last part of a path. */
    int (*directory_open)(int directory, const char *path);
    int (*directory_make)(int directory, const char *path); /* for the owner only */
    /* Calls `each` for every entry but "." and "..", until it returns false; `directory` stays open. */
    int (*directory_list)(int directory, bool (*each)(void *info, const char *leaf), void *info);
    int (*file_open)(int directory, const char *leaf, int flags);
    int (*file_status)(int descriptor, struct stat *ret_status);
    int (*path_status)(int directory, const char *leaf, struct stat *ret_status);
    int (*file_lock)(int directory, const char *leaf); /* opens or makes the file, and locks it; -EWOULDBLOCK: somebody has the lock */
    int (*file_replace)(int descriptor, const void *bytes, size_t size); /* the whole contents */
    ssize_t (*file_read)(int descriptor, void *bytes, size_t size, off_t offset);
    int (*file_rename)(int directory, const char *from, const char *to);
    int (*file_unlink)(int directory, const char *leaf);

    /* Sockets. */
    int (*datagram_create)(bool takes_credentials);
    int (*datagram_bind)(int socket, const char *path); /* the file is its owner's only */
    int (*datagram_connect)(int socket, const char *path);
    int (*channel_create)(int ret_ends[2]); /* a SEQPACKET pair */
    /* Returns how many bytes may be under way from the socket, the kernel's overhead included; raises that to `wanted` if it may. */
    int (*send_room)(int socket, int wanted);
    ssize_t (*send)(int socket, const void *bytes, size_t size);
    ssize_t (*send_message)(int socket, const struct msghdr *message);
    /*
     * As send_message, but waits for room for about `limit_ns` (-EAGAIN), which the kernel may pass by an eighth. It lets one sender after
     * another have the room, in the order in which they came. -EINTR is possible. `socket_limit_ns` keeps what limit the socket has, 0
     * before the first call, so that only another one takes a call of the kernel.
     */
    ssize_t (*send_in_turn)(int socket, const struct msghdr *message, int64_t limit_ns, int64_t *socket_limit_ns);
    ssize_t (*receive_message)(int socket, struct msghdr *message);
    /*
     * Packets that come from now on bring a pidfd of their sender (SCM_PIDFD), if there is room for control data. -ENOPROTOOPT on kernels
     * that cannot do so.
     */
    int (*identify_senders)(int socket);
    uint64_t (*process_number)(int pidfd); /* no two processes have the same, ever; 0 on kernels that number none */
    bool (*is_channel)(int descriptor); /* a SEQPACKET socket of the Unix kind that does not listen */
    int (*hang_up)(int socket); /* shutdown of both directions */
    int (*refuse_descriptors)(int socket); /* packets with descriptors fail at their sender; -ENOPROTOOPT before Linux 6.16 */
    bool (*stop_receiving)(int socket); /* no packet comes any more; true if none is queued, as on what is no socket */
    int (*stop_lingering)(int descriptor); /* a close does not wait until a socket's data is sent; -ENOTSOCK */
    int (*duplicate)(int descriptor);
    int (*replace)(int from, int number); /* makes `number` stand for the file behind `from` */
    /* Waits until `socket` is ready for any of `interest`, has failed, or `deadline_ns`. Returns the readiness, 0, or -EINTR. */
    int (*wait)(int socket, uint32_t interest, int64_t deadline_ns);
    void (*pause)(int64_t duration_ns);

    /* Memory. */
    /* Makes a memory file of fixed size; `reserve` takes all its pages now. -EFBIG: beyond the limit on file sizes, where writing kills. */
    int (*memory_create)(uint64_t size, bool reserve);
    int (*memory_write)(int descriptor, const void *bytes, uint64_t size); /* writes the file and makes it unchangeable */
    bool (*memory_is_fixed)(int descriptor, uint64_t size, bool unchangeable); /* sealed, ordinary pages, all there, of that size */
    int (*memory_size)(int descriptor, uint64_t *ret_size);
    int (*memory_map)(int descriptor, uint64_t size, bool touch, void **ret_address); /* shared, both ways; a child does not get it */
    void (*memory_unmap)(void *address, uint64_t size);
};

extern struct kernel_ports kernel_ports;

/* The production table, which tests copy back after replacing entries. Only in builds with tests. */
extern const struct kernel_ports kernel_ports_linux;

#endif
