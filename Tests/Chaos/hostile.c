/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that want to hold up the servers' loops. They pass sockets that linger: what was sent on them is never read, and who closes the
 * last copy waits for that. Some of these stand in the queue of a Unix socket that is passed, where nobody can tell them not to linger, so
 * the close of that one blocks. Such a peer closes its own copies at once, and the ends that never read after a while.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Port/Wire/wire.h"
#include "chaos.h"

enum { held_max = 64, linger_s = 3, blocking_one_in = 8 };

/* How long a close waits: until its socket's other end is closed. That is longer than a loop may be held up. */
static const double hold_s = 0.8;

static struct held {
    int end; /* that never reads; -1: none */
    double until;
} held[held_max];

/* ---- sockets whose close waits ---- */

/* Returns a socket that takes connections at the address, or -1 where no descriptor is left. */
static int listen_somewhere(struct sockaddr_in *ret_address)
{
    socklen_t size = sizeof *ret_address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    *ret_address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (listener >= 0 && (bind(listener, (struct sockaddr *)ret_address, size) != 0 || listen(listener, 1) != 0 ||
                          getsockname(listener, (struct sockaddr *)ret_address, &size) != 0)) {
        (void)close(listener);
        return -1;
    }
    return listener;
}

/* Returns -1 where no descriptor is left. */
static int make_lingering(const struct sockaddr_in *address)
{
    static const char bytes[1 << 16];
    const struct linger linger = {1, linger_s};
    int result = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (result < 0) {
        return -1;
    }
    (void)connect(result, (const struct sockaddr *)address, sizeof *address);
    (void)setsockopt(result, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    while (send(result, bytes, sizeof bytes, MSG_NOSIGNAL) > 0) {
    }
    return result;
}

/* False: nobody takes it, or there was no room for a while. */
static bool pass(int to, const void *bytes, size_t size, int descriptor)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec piece = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};

    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)size;
}

/* The end of a Unix socket with the lingering one in its queue; -1 where no descriptor is left. */
static int hide(int lingering)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return -1;
    }
    return pass(ends[1], "x", 1, lingering) ? ends[0] : -1;
}

/* ---- the victims ---- */

/* Chooses one of the sockets in the directory of names. Returns -1 if there is none. */
static int connect_to_any(void)
{
    const struct timeval room_limit = {.tv_usec = 50000};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    DIR *stream = opendir(chaos->directory);
    unsigned seen = 0;
    int result;

    for (struct dirent *entry; stream && (entry = readdir(stream)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');

        if (dot && strcmp(dot, ".sock") == 0 && chaos_random(++seen) == 0) {
            (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/%.40s", chaos->directory, entry->d_name);
        }
    }
    if (stream) {
        (void)closedir(stream);
    }
    result = seen > 0 ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    if (result >= 0) {
        (void)setsockopt(result, SOL_SOCKET, SO_SNDTIMEO, &room_limit, sizeof room_limit);
    }
    if (result >= 0 && connect(result, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(result);
        return -1;
    }
    return result;
}

/* The end stays open, in the place of another whose time is over, or of the oldest. */
static void hold(int end)
{
    struct held *place = &held[0];

    for (int i = 1; i < held_max; i++) {
        place = held[i].until < place->until ? &held[i] : place;
    }
    if (place->end >= 0) {
        (void)close(place->end);
    }
    *place = (struct held){end, chaos_now() + hold_s};
}

static void close_held(double until)
{
    for (int i = 0; i < held_max; i++) {
        if (held[i].end >= 0 && held[i].until <= until) {
            (void)close(held[i].end);
            held[i] = (struct held){-1, 0};
        }
    }
}

/* Passes one descriptor with a message that brings none. The process ends, and so closes its copies without a wait. */
static _Noreturn void pass_and_end(int to, const struct sockaddr_in *address)
{
    const struct wire_frame frame = {.type = wire_one_way, .flags = wire_no_data};
    bool blocks = chaos_random(blocking_one_in) == 0;
    uint8_t bytes[wire_header_size];
    int descriptor = make_lingering(address);

    if (descriptor >= 0 && blocks) {
        descriptor = hide(descriptor);
    }
    wire_encode(&frame, bytes);
    if (descriptor >= 0 && pass(to, bytes, sizeof bytes, descriptor)) {
        atomic_fetch_add(blocks ? &chaos->blocking : &chaos->lingering, 1);
    }
    _exit(0);
}

/* By a child, so that the last copy is most often the victim's. */
static void attack(int to)
{
    struct sockaddr_in address;
    int listener = listen_somewhere(&address);
    pid_t child = listener >= 0 ? fork() : -1;
    int end = -1;

    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        pass_and_end(to, &address);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    (void)chaos_random(blocking_one_in); /* the next child draws another number */
    end = child > 0 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    if (end >= 0) {
        hold(end);
    }
    if (listener >= 0) {
        (void)close(listener);
    }
}

void harm(int slot, uint32_t life)
{
    chaos_begin_life(slot, life);
    for (int i = 0; i < held_max; i++) {
        held[i] = (struct held){-1, 0};
    }
    while (!atomic_load(&chaos->is_over)) {
        int to = connect_to_any();

        close_held(chaos_now());
        if (to >= 0) {
            attack(to);
            (void)close(to);
        }
        usleep(chaos_random(20000)); /* the next attack comes at any moment */
    }
    _exit(0);
}
