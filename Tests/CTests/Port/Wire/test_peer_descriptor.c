/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors whose close may wait: sockets that linger. The close is watched here. It may not happen on another thread than the one that
 * is there for it, and it may not go unseen: inside the call that receives, or with the queue of a socket that is closed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Core/message_port.h"
#include "Port/Wire/packet.h"
#include "Port/Wire/peer_descriptor.h"
#include "Port/port_probe.h"

enum { linger_s = 4, passed_most = 253 };

static _Thread_local bool is_programs_thread;
static atomic_int closed_in_time; /* lingering sockets, by the thread that is there for it */
static atomic_int closed_out_of_place; /* by a thread of the program, while the close could wait */

/* ---- sockets whose close waits ---- */

/* Its peer never reads what was sent. `ret_peer` stays open; whoever closes the result last waits, unless it is told not to linger. */
static int make_lingering(int *ret_peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    struct linger linger = {1, linger_s};
    static char bytes[1 << 16];
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    REQUIRE(bind(listening, (struct sockaddr *)&address, sizeof address) == 0 && listen(listening, 1) == 0);
    REQUIRE(getsockname(listening, (struct sockaddr *)&address, &size) == 0);
    REQUIRE(connect(result, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS);
    *ret_peer = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    REQUIRE(*ret_peer >= 0);
    REQUIRE(setsockopt(result, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    while (send(result, bytes, sizeof bytes, MSG_NOSIGNAL) > 0) {
    }
    (void)close(listening);
    return result;
}

static bool is_stream(int descriptor)
{
    int type = 0;
    socklen_t size = sizeof type;

    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

static int close_and_watch(int descriptor)
{
    bool lingers = is_stream(descriptor);

    if (lingers) {
        atomic_fetch_add(is_programs_thread ? &closed_out_of_place : &closed_in_time, 1);
    }
    return kernel_linux.close(descriptor);
}

/* Marks the thread that handles the port's messages as the program's. */
static CFDataRef mark_and_echo(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    is_programs_thread = true;
    return port_echo(port, message_id, data, info);
}

/* Also marks the calling thread as the program's. */
static void watch_closes(struct port_thread *server)
{
    kernel.close = close_and_watch;
    is_programs_thread = true;
    if (server) {
        CFMessagePortRef remote;

        port_thread_start(server, CFSTR("victim"), mark_and_echo, NULL);
        remote = port_connect(CFSTR("victim"));
        REQUIRE(port_ask(remote, 1, NULL, NULL) == kCFMessagePortSuccess);
        CFRelease(remote);
    }
}

static bool await_count(const atomic_int *count, int wanted)
{
    double limit = port_probe_now() + test_patience_s();

    while (atomic_load(count) < wanted && port_probe_now() < limit) {
        sched_yield();
    }
    return atomic_load(count) == wanted;
}

/* ---- the peer ---- */

static int connect_to(const char *leaf)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int result = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/%s.sock", port_probe_names(), leaf);
    REQUIRE(connect(result, (struct sockaddr *)&address, sizeof address) == 0);
    return result;
}

static void pass(int to, const void *bytes, size_t size, const int *descriptors, int count)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(passed_most * sizeof(int))];
    } control;
    struct iovec piece = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control};

    message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
    memset(&control, 0, sizeof control);
    control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN((size_t)count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), descriptors, (size_t)count * sizeof(int));
    REQUIRE(sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)size);
}

/* Passes lingering sockets with a frame, and closes this process's copies. Gives back the peers' ends in `ret_peers`. */
static void pass_lingering(int to, const void *bytes, size_t size, int count, int *ret_peers)
{
    int descriptors[passed_most] = {0};

    for (int i = 0; i < count; i++) {
        descriptors[i] = make_lingering(&ret_peers[i]);
    }
    pass(to, bytes, size, descriptors, count);
    for (int i = 0; i < count; i++) {
        (void)close(descriptors[i]);
    }
}

static void close_peers(const int *peers, int count)
{
    for (int i = 0; i < count; i++) {
        (void)close(peers[i]);
    }
}

static size_t one_way(uint8_t *ret_bytes)
{
    const struct wire_frame frame = {.type = wire_one_way, .flags = wire_no_data};

    wire_encode(&frame, ret_bytes);
    return wire_header_size;
}

/* ---- a local port ---- */

PORT_TEST(what_a_peer_has_sent_is_closed_where_it_holds_up_nobody, "241 H30")
{
    static const int counts[] = {1, 2, 3, 40};
    struct port_thread server;
    CFMessagePortRef remote;
    uint8_t bytes[wire_header_size];
    int peers[passed_most];
    int total = 0;
    int to;

    watch_closes(&server);
    to = connect_to("victim");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        pass_lingering(to, bytes, one_way(bytes), counts[i], peers + total);
        total += counts[i];
    }
    remote = port_connect(CFSTR("victim"));
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT(await_count(&closed_in_time, total));
    EXPECT_EQ(atomic_load(&closed_out_of_place), 0);
    close_peers(peers, total);
    (void)close(to);
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST(what_waits_in_the_queue_of_a_channel_is_closed_where_it_holds_up_nobody, "241 H30")
{
    struct port_thread server;
    struct wire_frame frame = {.type = wire_request, .flags = wire_no_data | wire_new_channel, .channel = 1, .token = 7, .conversation = 1};
    uint8_t bytes[wire_header_size + 6];
    int ends[2];
    int peer;
    int to;

    watch_closes(&server);
    to = connect_to("victim");
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    pass_lingering(ends[0], "x", 1, 1, &peer);
    frame.name_length = 6;
    wire_encode(&frame, bytes);
    memcpy(bytes + wire_header_size, "victim", 6);
    pass(to, bytes, sizeof bytes, &ends[1], 1);
    (void)close(ends[1]);
    REQUIRE(recv(ends[0], bytes, sizeof bytes, 0) > 0); /* the port has answered */
    (void)close(ends[0]);
    port_thread_stop(&server); /* and with the port its channels end */
    EXPECT(await_count(&closed_in_time, 1));
    EXPECT_EQ(atomic_load(&closed_out_of_place), 0);
    (void)close(peer);
    (void)close(to);
}

PORT_TEST(what_waits_in_the_queue_of_a_port_that_ends_is_closed_where_it_holds_up_nobody, "241 H30")
{
    static const bool ways[] = {true, false};

    watch_closes(NULL);
    for (int i = 0; i < 2; i++) {
        CFMessagePortRef local = port_open(CFSTR("victim"), port_echo, NULL, MODE);
        uint8_t bytes[wire_header_size];
        int peer;
        int to = connect_to("victim");

        pass_lingering(to, bytes, one_way(bytes), 1, &peer);
        if (ways[i]) {
            EXPECT(CFMessagePortSetName(local, CFSTR("another"))); /* which gives the port another socket */
            EXPECT(await_count(&closed_in_time, 1));
        }
        port_drop(local);
        EXPECT(await_count(&closed_in_time, i + 1));
        (void)close(peer);
        (void)close(to);
    }
    EXPECT_EQ(atomic_load(&closed_out_of_place), 0);
}

/* ---- a remote port ---- */

struct false_server {
    int socket;
    int peer;
    pthread_t thread;
};

/* Answers one request, with a lingering socket that is not due. */
static void *answer_falsely(void *info)
{
    struct false_server *server = info;
    uint8_t bytes[wire_frame_max];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(passed_most * sizeof(int))];
    } control;
    struct iovec piece = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct wire_frame frame;
    ssize_t size = recvmsg(server->socket, &message, 0);
    int channel;

    REQUIRE(size > 0 && wire_decode(wire_to_port, bytes, (size_t)size, &frame) == wire_ok && CMSG_FIRSTHDR(&message));
    memcpy(&channel, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof channel);
    struct wire_frame reply = {
        .type = wire_reply, .flags = wire_no_data, .message_id = -frame.message_id, .conversation = frame.conversation};
    wire_encode(&reply, bytes);
    pass_lingering(channel, bytes, wire_header_size, 1, &server->peer);
    (void)close(channel);
    return NULL;
}

static void false_server_start(struct false_server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[256];
    FILE *card;

    (void)snprintf(path, sizeof path, "%s/victim.lock", port_probe_names());
    card = fopen(path, "w");
    REQUIRE(card != NULL);
    (void)fprintf(card, "%d 5 1000000 6\nvictim\n", (int)getppid());
    (void)fclose(card);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/victim.sock", port_probe_names());
    server->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(server->socket, (struct sockaddr *)&address, sizeof address) == 0);
    REQUIRE(pthread_create(&server->thread, NULL, answer_falsely, server) == 0);
}

PORT_TEST(what_a_false_reply_brings_is_closed_where_it_holds_up_nobody, "241 H31")
{
    struct false_server server = {.peer = -1};
    CFMessagePortRef remote;

    watch_closes(NULL);
    port_drop(port_open(CFSTR("first"), port_echo, NULL, MODE)); /* makes the directory */
    false_server_start(&server);
    remote = port_connect(CFSTR("victim"));
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, test_patience_s(), test_patience_s(), MODE, NULL), kCFMessagePortTransportError);
    REQUIRE(pthread_join(server.thread, NULL) == 0);
    EXPECT(await_count(&closed_in_time, 1));
    EXPECT_EQ(atomic_load(&closed_out_of_place), 0);
    (void)close(server.peer);
    (void)close(server.socket);
    CFRelease(remote);
}

TEST(a_packet_that_is_skipped_is_closed_where_it_holds_up_nobody, "241 H31")
{
    int ends[2];
    int peers[3];

    watch_closes(NULL);
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    EXPECT_EQ(packet_skip(ends[0]), -EAGAIN);
    pass_lingering(ends[1], "x", 1, 3, peers);
    EXPECT_EQ(packet_skip(ends[0]), 1);
    (void)close(ends[1]);
    EXPECT_EQ(packet_skip(ends[0]), 0);
    EXPECT(await_count(&closed_in_time, 3));
    EXPECT_EQ(atomic_load(&closed_out_of_place), 0);
    close_peers(peers, 3);
    (void)close(ends[0]);
}

/* ---- the thread ---- */

static sem_t may_close;
static atomic_bool is_closing;

static int close_when_told(int descriptor)
{
    if (is_stream(descriptor)) {
        atomic_store(&is_closing, true);
        while (sem_wait(&may_close) != 0) {
        }
        atomic_fetch_add(&closed_in_time, 1);
    }
    return kernel_linux.close(descriptor);
}

static int close_one_in_child(void)
{
    int peer;

    (void)sem_post(&may_close);
    (void)sem_post(&may_close);
    peer_descriptor_close(make_lingering(&peer));
    return await_count(&closed_in_time, 2) ? 0 : 1; /* its own, and what its parent had in the list */
}

PORT_TEST(the_child_of_a_fork_closes_with_a_thread_of_its_own, "H30")
{
    int peers[2];

    if (test_is_instrumented()) {
        SKIP("ThreadSanitizer lets the child of a process with threads begin none");
    }
    REQUIRE(sem_init(&may_close, 0, 0) == 0);
    kernel.close = close_when_told;
    port_drop(port_open(CFSTR("first"), port_echo, NULL, MODE)); /* installs the fork's handlers */
    peer_descriptor_close(make_lingering(&peers[0])); /* its thread waits in the close */
    while (!atomic_load(&is_closing)) {
        sched_yield();
    }
    peer_descriptor_close(make_lingering(&peers[1])); /* in the list */
    EXPECT_EQ(port_probe_in_child(close_one_in_child), 0);
    (void)sem_post(&may_close);
    (void)sem_post(&may_close);
    EXPECT(await_count(&closed_in_time, 2));
    close_peers(peers, 2);
}
