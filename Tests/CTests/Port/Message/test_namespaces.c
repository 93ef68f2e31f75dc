/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers whose processes the receiver cannot see, because they are in another PID namespace: all have the process id 0 there. And channels
 * that a living receiver closes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Core/message_port.h"
#include "Port/Message/client_channel.h"
#include "Port/port_probe.h"
#include "Port/Wire/peer.h"

/* More than the offences after which a peer's channels are closed. */
enum { offences = 2 * offences_max };

/* ---- who is one ---- */

TEST(peers_without_a_process_id_are_one_only_if_the_kernel_says_so, "241 910 H29")
{
    const struct peer seen = {.pid = 7};
    const struct peer other = {.pid = 8};
    const struct peer unknown = {.pid = 0};
    const struct peer first = {.pid = 0, .process = 70};
    const struct peer second = {.pid = 0, .process = 71};

    EXPECT(peers_are_one(&seen, &seen) && peers_may_be_one(&seen, &seen));
    EXPECT(!peers_are_one(&seen, &other) && !peers_may_be_one(&seen, &other));
    EXPECT(!peers_are_one(&seen, &unknown) && !peers_may_be_one(&seen, &unknown));
    EXPECT(peers_are_one(&first, &first) && peers_may_be_one(&first, &first));
    EXPECT(!peers_are_one(&first, &second) && !peers_may_be_one(&first, &second));
    EXPECT(!peers_are_one(&unknown, &unknown) && peers_may_be_one(&unknown, &unknown));
    EXPECT(!peers_are_one(&unknown, &first) && peers_may_be_one(&unknown, &first));
}

/* ---- an attacker ---- */

static void send_malformed(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/victim.sock", port_probe_names());
    if (connect(to, (struct sockaddr *)&address, sizeof address) != 0) {
        _exit(9);
    }
    for (int i = 0; i < offences; i++) {
        if (send(to, "malformed", 9, 0) < 0) {
            _exit(8);
        }
    }
    (void)close(to);
}

/* A process of its own, which is about to attack. It first asks the port, so that it has a channel; afterwards once more. */
struct attacker {
    pid_t pid;
    int go;
};

static void attack(int go)
{
    CFMessagePortRef remote;
    char byte;

    if (read(go, &byte, 1) != 1) {
        _exit(7);
    }
    remote = CFMessagePortCreateRemote(NULL, CFSTR("victim"));
    if (!remote || port_ask(remote, 1, NULL, NULL) != kCFMessagePortSuccess) {
        _exit(6);
    }
    send_malformed();
    _exit(0);
}

static void attacker_start(struct attacker *attacker)
{
    int ends[2];

    REQUIRE(pipe(ends) == 0);
    attacker->pid = fork();
    if (attacker->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[1]);
        attack(ends[0]);
    }
    (void)close(ends[0]);
    attacker->go = ends[1];
}

static void attacker_let_go(struct attacker *attacker)
{
    int status = 1;

    REQUIRE(write(attacker->go, "g", 1) == 1);
    (void)close(attacker->go);
    waitpid(attacker->pid, &status, 0);
    EXPECT_EQ(status, 0);
}

/* The number of the remote port's free channel, which is the last one used. */
static uint32_t channel_of(CFMessagePortRef remote)
{
    uint32_t number = 0;

    port_lock(remote);
    if (remote->side.remote.free_count > 0) {
        number = container_of(remote->side.remote.free_channels.next, struct client_channel, link)->number;
    }
    port_unlock(remote);
    return number;
}

/* Requests before and after an attack use one channel, which the receiver keeps. */
static void expect_to_keep_the_channel(struct attacker *attacker)
{
    CFMessagePortRef remote = port_connect(CFSTR("victim"));
    uint32_t channel;

    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    channel = channel_of(remote);
    EXPECT(channel != 0);
    attacker_let_go(attacker);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(channel_of(remote), channel);
    CFRelease(remote);
}

/* ---- a kernel that cannot identify senders ---- */

/* As in a PID namespace of its own, on a kernel before Linux 6.5: nobody has a process id. */
static ssize_t receive_from_nobody(int socket, struct msghdr *message)
{
    ssize_t size = kernel_ports_linux.receive_message(socket, message);

    for (struct cmsghdr *part = size < 0 ? NULL : CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS) {
            memset(CMSG_DATA(part), 0, sizeof(pid_t));
        }
    }
    return size;
}

static atomic_int times_asked;

static int cannot_identify(int socket)
{
    (void)socket;
    times_asked++;
    return -ENOPROTOOPT;
}

PORT_TEST(one_peer_without_a_process_id_does_not_cost_others_their_channels, "241 910 H29")
{
    struct port_thread server;
    struct attacker attacker;

    attacker_start(&attacker);
    kernel_ports.receive_message = receive_from_nobody;
    kernel_ports.identify_senders = cannot_identify;
    port_thread_start(&server, CFSTR("victim"), port_echo, NULL);
    expect_to_keep_the_channel(&attacker);
    EXPECT_EQ(times_asked, 1);
    port_thread_stop(&server);
}

/* ---- a real namespace ---- */

/*
 * Starts the port as the first process of a new PID namespace. A process between the two enters it, and not the test's: that could have no
 * more children once the first one has ended. With that process the port ends.
 */
static pid_t start_in_namespace(void)
{
    int ready[2];
    char byte = 0;
    pid_t between;

    REQUIRE(pipe(ready) == 0);
    between = fork();
    if (between == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (geteuid() == 0 && unshare(CLONE_NEWPID) == 0) {
            (void)port_process_start(CFSTR("victim"), port_echo, NULL, NULL);
            byte = 'r';
        }
        (void)!write(ready[1], &byte, 1);
        (void)pause();
        _exit(0);
    }
    REQUIRE(read(ready[0], &byte, 1) == 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    if (byte != 'r') {
        port_process_kill(between);
        SKIP("only root may make a PID namespace");
    }
    return between;
}

PORT_TEST(a_server_in_a_pid_namespace_tells_its_peers_apart, "241 910 H29")
{
    struct attacker attacker;
    pid_t server;

    attacker_start(&attacker);
    server = start_in_namespace();
    expect_to_keep_the_channel(&attacker);
    port_process_kill(server);
}

static bool senders_are_numbered(void)
{
    int pidfd = kernel.process_open(getpid());
    uint64_t number = pidfd >= 0 ? kernel_ports.process_number(pidfd) : 0;

    (void)close(pidfd);
    return number != 0;
}

/* Sends malformed packets through the same process that has the channel. */
PORT_TEST(who_misbehaves_from_outside_a_pid_namespace_loses_his_own_channel, "241 910 H29")
{
    CFMessagePortRef remote;
    pid_t server;

    if (!senders_are_numbered()) {
        SKIP("the kernel does not number processes");
    }
    server = start_in_namespace();
    remote = port_connect(CFSTR("victim"));
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess); /* the port learns that it has to ask who sends */
    send_malformed();
    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    remote = port_connect(CFSTR("victim"));
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    send_malformed();
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortTransportError); /* the channel was closed */
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT(CFMessagePortIsValid(remote));
    CFRelease(remote);
    port_process_kill(server);
}

/* ---- channels that a living receiver closes ---- */

static CFDataRef close_channels_if_two(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)info;
    if (message_id == 2) {
        port_lock(local);
        channel_table_drop_all(&local->side.local.channels);
        port_unlock(local);
    }
    return CFRetain(data);
}

PORT_TEST(a_channel_that_a_living_receiver_closes_costs_one_request_and_not_the_port, "232 909 M27")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, close_channels_if_two, NULL);
    remote = port_connect(NAME);
    for (int round = 0; round < 3; round++) {
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
        EXPECT_EQ(port_ask(remote, 2, NULL, NULL), kCFMessagePortTransportError);
        EXPECT(CFMessagePortIsValid(remote));
    }
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    port_thread_stop(&server);
}
