/* SPDX-License-Identifier: Apache-2.0 */
/* Bare calls of the kernel, without this library. See echo_sockets.h. No state. */
#define _GNU_SOURCE
#include "echo_sockets.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Allocations.h"

enum { most_events = 256, most_bytes = 65536 };

bool echo_prepare(int descriptors)
{
    struct rlimit limit;
    cpu_set_t one;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)descriptors) {
        limit.rlim_cur = (rlim_t)descriptors;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    return sched_setaffinity(getpid(), sizeof one, &one) == 0;
}

bool echo_connect(int *ret_clients, int *ret_servers, int count)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_made = bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, SOMAXCONN) == 0 &&
                   getsockname(listener, (struct sockaddr *)&address, &length) == 0;

    for (int i = 0; is_made && i < count; i++) {
        ret_clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        is_made = connect(ret_clients[i], (struct sockaddr *)&address, length) == 0;
        ret_servers[i] = is_made ? accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
        is_made = ret_servers[i] >= 0;
    }
    (void)close(listener);
    return is_made;
}

void echo_close(const int *sockets, int count)
{
    for (int i = 0; i < count; i++) {
        (void)close(sockets[i]);
    }
}

static int watch_all(const int *sockets, int count)
{
    int set = epoll_create1(EPOLL_CLOEXEC);

    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)i};

        (void)epoll_ctl(set, EPOLL_CTL_ADD, sockets[i], &event);
    }
    return set;
}

static bool send_all(int client, const char *bytes, int size)
{
    for (int sent = 0; sent < size;) {
        ssize_t more = send(client, bytes + sent, (size_t)(size - sent), MSG_NOSIGNAL);

        if (more <= 0) {
            return false;
        }
        sent += (int)more;
    }
    return true;
}

struct client {
    int awaited; /* bytes of this echo */
    int echoes;
};

/* Takes what has come back to a client. Returns false if its connection has failed. */
static bool go_on(int socket, struct client *client, char *bytes, int size, int *ret_left)
{
    ssize_t got = recv(socket, bytes, most_bytes, MSG_DONTWAIT);

    client->awaited -= got > 0 ? (int)got : 0;
    if (got <= 0 || client->awaited > 0) {
        return got > 0;
    }
    client->awaited = size;
    if (--client->echoes == 0) {
        (*ret_left)--;
        return true;
    }
    return send_all(socket, bytes, size);
}

unsigned long echo_run_clients(const int *clients, int count, int size, int echoes)
{
    static char bytes[most_bytes];
    unsigned long begin = thread_time_ns();
    struct client *all = calloc((size_t)count, sizeof *all);
    struct epoll_event events[most_events];
    int set = watch_all(clients, count);
    int left = count;
    bool is_fine = true;

    for (int i = 0; i < count; i++) {
        all[i] = (struct client){size, echoes};
        is_fine = is_fine && send_all(clients[i], bytes, size);
    }
    while (is_fine && left > 0) {
        int ready = epoll_wait(set, events, most_events, -1);

        for (int i = 0; is_fine && i < ready; i++) {
            is_fine = go_on(clients[events[i].data.u64], &all[events[i].data.u64], bytes, size, &left);
        }
    }
    (void)close(set);
    free(all);
    return is_fine ? thread_time_ns() - begin : 0;
}

bool echo_once(int server)
{
    char bytes[most_bytes];
    ssize_t got = read(server, bytes, sizeof bytes);

    return got > 0 && write(server, bytes, (size_t)got) == got;
}

void echo_serve(const int *servers, int count)
{
    struct epoll_event events[most_events];
    int set = watch_all(servers, count);
    int left = count;

    while (left > 0) {
        int ready = epoll_wait(set, events, most_events, -1);

        for (int i = 0; i < ready; i++) {
            int server = servers[events[i].data.u64];

            if (!echo_once(server)) {
                (void)epoll_ctl(set, EPOLL_CTL_DEL, server, NULL);
                left--;
            }
        }
    }
    (void)close(set);
}
