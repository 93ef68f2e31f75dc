/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every system call of the library, behind one table.
 *
 * The layers above call `kernel.name(...)`; tests replace entries, or all of them, to inject failures and to advance the clock by hand.
 * The table is written before threads start and only read afterwards. Functions return 0 or a value, or a negative errno; none of them
 * changes `errno` for the caller. Instants are nanoseconds of CLOCK_MONOTONIC; `kernel_never` means without limit. Only `elapsed_ns` counts
 * on CLOCK_BOOTTIME, on which timers go: it goes on while the system is suspended, and CLOCK_MONOTONIC stands still.
 */
#ifndef CRL_KERNEL_KERNEL_H
#define CRL_KERNEL_KERNEL_H

#include "Kernel/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/types.h>

static const int64_t kernel_never = INT64_MAX;

enum kernel_readiness {
    kernel_readable = 1,
    kernel_writable = 2,
    kernel_priority = 4, /* something exceptional, such as a byte out of band: poll's POLLPRI */
    kernel_failed = 8, /* an error or a hang-up: reading and writing will not block */
    kernel_ended = 16, /* with readable or failed: the other side sends no more; what it sent may still be unread */
    kernel_error = 32, /* with failed: an error is pending, not only a hang-up */
    kernel_details = kernel_ended | kernel_error, /* never asked for */
    kernel_edge = 64, /* only asked for, in a wait set: readiness is reported once, and again only after a change */
};

/* A socket's address, of any family. */
struct kernel_address {
    uint32_t length; /* 0: none */
    _Alignas(8) unsigned char bytes[128]; /* struct sockaddr */
};

/* One descriptor's report from a wait set. */
struct kernel_event {
    uint64_t token; /* as given to set_add */
    uint32_t ready; /* of enum kernel_readiness */
};

/* The kind of file behind a descriptor. The loop itself reads counters, and leaves all others to `perform` (rule 99). */
enum kernel_descriptor_kind { kernel_descriptor_other, kernel_descriptor_counter /* eventfd, timerfd: 8 bytes, read by the loop */ };

struct kernel {
    int64_t (*monotonic_ns)(void);
    int64_t (*elapsed_ns)(void); /* never goes back; the distance from the monotonic clock grows with each suspension, and means nothing */
    int64_t (*wall_ns)(void); /* since 1970 */
    /*
     * The monotonic clock, and in `ret_wall_ns` the wall clock, as of the kernel's last tick: a fifth of the price of now, and exactly as
     * far from each other as the clocks are, steps of the wall clock included, unless a tick came between the two.
     */
    int64_t (*tick_ns)(int64_t *ret_wall_ns);
    int64_t (*timer_slack_ns)(void); /* of the calling thread; 0 if it has a real-time policy */
    bool (*is_niced)(void); /* the calling thread is nicer than most: the kernel stretches its waits five times as much */

    /* Sleeps while *word == expected, until woken or `deadline_ns`. -EAGAIN, -EINTR, -ETIMEDOUT or 0. */
    int (*futex_wait)(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns);
    int (*futex_wake)(_Atomic uint32_t *word); /* one sleeper; safe in a signal handler */

    int (*event_create)(void); /* an eventfd, non-blocking, close-on-exec */
    int (*event_post)(int event); /* adds 1; a saturated counter counts as success; safe in a signal handler */
    int (*event_renew)(int event); /* the number stands for a new eventfd, at 0, from now on: for the child of a fork */
    /* takes the 8 bytes of an eventfd or timerfd, without blocking; -EAGAIN, -EBADF: there were none */
    int (*counter_drain)(int descriptor);

    int (*alarm_create)(void); /* a timerfd on CLOCK_MONOTONIC */
    int (*alarm_set)(int alarm, int64_t deadline_ns); /* kernel_never disarms; an instant in the past is due at once */
    bool (*alarm_is_own)(int alarm); /* true if it was made here: the number is not another file's now, nor the program's timerfd */
    /*
     * A timerfd on CLOCK_REALTIME that becomes readable, again each time, when the system resumes or somebody sets the wall clock. Nobody
     * reads it. -EINVAL where the kernel has none.
     */
    int (*resume_open)(void);

    int (*set_create)(void); /* a wait set: epoll */
    int (*set_add)(int set, int descriptor, uint32_t interest, uint64_t token);
    int (*set_add_edge)(int set, int descriptor, uint64_t token); /* edge-triggered: what nobody reads, and nested sets */
    int (*set_change)(int set, int descriptor, uint32_t interest, uint64_t token);
    int (*set_remove)(int set, int descriptor);
    /* `set` is a wait set with the file of that number in it: neither number has become another file's. Asking changes nothing. */
    bool (*set_holds)(int set, int descriptor);
    /* Up to `capacity` reports; 0 when `deadline_ns` has come; 0 for a deadline in the past polls. -EINTR is possible. */
    int (*set_wait)(int set, struct kernel_event *events, int capacity, int64_t deadline_ns);

    uint32_t (*descriptor_ready)(int descriptor, uint32_t interest); /* poll of one descriptor without waiting; invalid: kernel_failed */
    bool (*descriptor_is_open)(int descriptor);
    enum kernel_descriptor_kind (*descriptor_kind)(int descriptor);
    /* What /proc calls it, cut to `size`: a path, "socket:[8123]" or "anon_inode:[eventfd]". Returns its length; -ENOENT without /proc. */
    int (*descriptor_name)(int descriptor, char *ret_name, size_t size);
    int (*close)(int descriptor);

    /* Sockets. Whatever mode a socket is in, it is left in that. */
    int (*socket_create)(int family, int type, int protocol); /* close-on-exec */
    int (*socket_type)(int socket); /* SOCK_STREAM and so on; -ENOTSOCK */
    /* all interfaces of IPv6 without those of IPv4, where somebody else has the port there */
    int (*socket_bind)(int socket, const void *address, size_t length);
    int (*socket_listen)(int socket, int backlog);
    /*
     * Waits until `deadline_ns` (-ETIMEDOUT), by no option of the socket, or as long as the protocol does (kernel_never), or not at all (0:
     * -EINPROGRESS while it goes on by itself).
     */
    int (*socket_connect)(int socket, const void *address, size_t length, int64_t deadline_ns);
    int (*socket_accept)(int socket, struct kernel_address *ret_peer); /* a descriptor, blocking, close-on-exec */
    int (*socket_receive)(int socket, void *bytes, size_t size, struct kernel_address *ret_peer); /* never waits; 0 at the end */
    int (*socket_peek)(int socket); /* 1: there is data, 0: the end, -EAGAIN: neither */
    /*
     * Sends once. A blocking stream sends everything, or as much as it takes until `deadline_ns` (-EAGAIN: nothing); kernel_never sets no
     * limit. A non-blocking socket never waits. NULL address: the peer. Returns how much was sent; -EINTR is possible.
     */
    int (*socket_send)(int socket, const void *bytes, size_t size, const void *address, size_t length, int64_t deadline_ns);
    int (*socket_take_error)(int socket); /* the pending error, a positive errno, which is then gone; 0: none */
    int (*socket_address)(int socket, bool is_of_peer, struct kernel_address *ret_address);
    /* of a connection-oriented one: neither listening nor connecting, and it has never been connected */
    bool (*socket_is_idle)(int socket);
    int (*make_non_blocking)(int descriptor, bool is_non_blocking); /* returns whether it was non-blocking before */

    /* Files. Reading and writing wait where the file does, and go on after a signal. Writing to a pipe without a reader raises none. */
    int (*path_open)(const char *path, int flags); /* close-on-exec; a new file is for everybody whom the umask lets */
    int (*file_access)(int file); /* O_RDONLY, O_WRONLY or O_RDWR; -EBADF */
    bool (*file_is_regular)(int file);
    int64_t (*file_seek)(int file, int64_t offset, int whence);
    ssize_t (*file_read)(int file, void *bytes, size_t size);
    ssize_t (*file_write)(int file, const void *bytes, size_t size);

    int (*signal_open)(int signal); /* a signalfd for one signal */
    int (*signal_take)(int descriptor, struct signalfd_siginfo *ret_info); /* -EAGAIN when none is pending */
    int (*signal_block)(int signal); /* in the calling thread */
    void (*signal_expect)(int signal); /* in other threads: kernel_signals.h */
    void (*signal_unexpect)(int signal);
    bool (*process_is_child)(pid_t pid); /* a child that is still to be reaped */
    int (*process_open)(pid_t pid); /* a pidfd */
    int (*process_await)(pid_t pid); /* the same without pidfds: readable once the child has ended, by a thread that waits for it */
    int (*process_reap)(pid_t pid, int *ret_status); /* waitpid without waiting: 0 still running, 1 ended, negative errno */

    /* Returns a word that reads as zero in a child, however the child was made, or NULL if there is none. The parent writes into it. */
    _Atomic uint32_t *(*fork_mark)(void);

    int (*fence_threads)(void); /* barrier_everywhere, for a loop's needs; -EPERM where it is not allowed */

    int (*thread_start)(void *(*function)(void *info), const char *name); /* blocks all signals, and nobody joins it */
    bool (*is_main_thread)(void); /* the calling thread is the process's first */
    bool (*is_on_stack)(uintptr_t address); /* on the stack that the calling thread began with; false also if that cannot be told */
    void (*yield)(void);
};

extern struct kernel kernel;

/* The table as it is for production, for tests, which copy it back; only where they are built. */
extern const struct kernel kernel_linux;

#endif
