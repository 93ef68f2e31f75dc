/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that sends back what it gets, 64 bytes at a time, over N stream sockets, one message under way on each. The client is the same
 * for all peers: a thread that blocks for one connection, one with epoll for more.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "peers/peer.h"

enum { message_size = 64 };

struct connection {
    struct peer_watch watch;
    int server;
    int client;
};

static struct peer_loop loop;
static struct peer_signal end_signal;
static struct connection *connections;
static long connection_count;
static long messages_wanted;
static bool is_on_two_processors;

static void echo(void *info)
{
    struct connection *connection = info;
    char message[message_size];
    ssize_t size = read(connection->server, message, sizeof message);

    if (size > 0) {
        (void)!write(connection->server, message, (size_t)size);
    }
}

static void end(void *info)
{
    (void)info;
    peer_stop(&loop);
}

static void talk(int descriptor)
{
    char message[message_size] = {0};

    for (long i = 0; i < messages_wanted; i++) {
        (void)!write(descriptor, message, sizeof message);
        (void)!read(descriptor, message, sizeof message);
    }
}

static void talk_on_all(void)
{
    char message[message_size] = {0};
    struct epoll_event events[256];
    int set = epoll_create1(EPOLL_CLOEXEC);

    for (long i = 0; i < connection_count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = connections[i].client};

        (void)epoll_ctl(set, EPOLL_CTL_ADD, connections[i].client, &event);
        (void)!write(connections[i].client, message, sizeof message);
    }
    for (long done = 0; done < messages_wanted;) {
        int ready = epoll_wait(set, events, 256, -1);

        for (int i = 0; i < ready; i++) {
            (void)!read(events[i].data.fd, message, sizeof message);
            (void)!write(events[i].data.fd, message, sizeof message);
        }
        done += ready;
    }
}

static void *be_client(void *info)
{
    (void)info;
    stay_on(is_on_two_processors ? 1 : 0);
    if (connection_count == 1) {
        talk(connections[0].client);
    } else {
        talk_on_all();
    }
    peer_signal_send(&end_signal);
    return NULL;
}

/* The server of one connection with nothing but blocking calls, where that is the peer. */
static void serve(void)
{
#if defined(PEER_IS_RAW)
    if (connection_count == 1) {
        for (long i = 0; i < messages_wanted; i++) {
            echo(&connections[0]);
        }
        return;
    }
#endif
    peer_run(&loop);
}

static double messages(long number)
{
    enum bench_clock clock = is_on_two_processors ? clock_on_wall : clock_of_process; /* on one, somebody always runs */
    pthread_t client;
    double start;

    stay_on(0);
    peer_loop_begin(&loop);
    peer_signal_add(&loop, &end_signal, end, NULL);
    connections = zeroed(number, sizeof *connections);
    connection_count = number;
    messages_wanted = iterations(20000);
    for (long i = 0; i < number; i++) {
        int pair[2];

        require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
        connections[i].server = pair[0];
        connections[i].client = pair[1];
        peer_socket_add(&loop, &connections[i].watch, pair[0], echo, &connections[i]);
    }
    (void)pthread_create(&client, NULL, be_client, NULL);
    start = clock_ns(clock);
    serve();
    return (clock_ns(clock) - start) / (double)messages_wanted;
}

static double on_one_processor(long number)
{
    is_on_two_processors = false;
    return messages(number);
}

static double on_two_processors(long number)
{
    is_on_two_processors = true;
    return messages(number);
}

const struct bench echo_benches[] = {
    {"echo-1", "a message to an echo server and back, N connections, client and server on one processor", "ns", {1, 1000},
     .figure = on_one_processor, .most = PEER_SOCKETS_MOST},
    {"echo-2", "the same on two processors (time on the wall)", "ns", {1, 1000}, .figure = on_two_processors, .most = PEER_SOCKETS_MOST},
    {.name = NULL},
};
