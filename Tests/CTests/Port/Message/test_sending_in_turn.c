/* SPDX-License-Identifier: Apache-2.0 */
/* Senders that wait because the kernel's queue of a port is full: in the kernel's line, one thread of a process at a time. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Core/message_port.h"
#include "Port/Wire/wire.h"
#include "Port/port_probe.h"

enum { in_line_before_a_try = 15 }; /* messages of which the first was tried in vain */

/* Fills the queue of the port "full" with one-way messages of a sender that never waits. Returns how many there are. */
static int fill_queue(void)
{
    const struct wire_frame frame = {.type = wire_one_way, .flags = wire_no_data};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint8_t bytes[wire_header_size];
    int filler = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int count = 0;

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/full.sock", port_probe_names());
    REQUIRE(connect(filler, (struct sockaddr *)&address, sizeof address) == 0);
    wire_encode(&frame, bytes);
    while (send(filler, bytes, sizeof bytes, MSG_NOSIGNAL) > 0) {
        count++;
    }
    REQUIRE(errno == EAGAIN && count > 0);
    (void)close(filler);
    return count;
}

static CFMessagePortRef open_full_port(int *ret_count, char *trace)
{
    CFMessagePortRef local = port_open(CFSTR("full"), port_note, trace, MODE);

    *ret_count = fill_queue();
    return local;
}

static void take_messages(int count)
{
    for (int i = 0; i < count; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    }
}

/* ---- threads of one process ---- */

static atomic_int in_line; /* calls that wait in the kernel's line */
static atomic_int in_line_most;

static ssize_t send_and_count(int socket_number, const struct msghdr *message, int64_t limit_ns, int64_t *socket_limit_ns)
{
    int now = atomic_fetch_add(&in_line, 1) + 1;
    ssize_t result;

    if (now > atomic_load(&in_line_most)) {
        atomic_store(&in_line_most, now);
    }
    result = kernel_ports_linux.send_in_turn(socket_number, message, limit_ns, socket_limit_ns);
    atomic_fetch_sub(&in_line, 1);
    return result;
}

struct sender {
    CFMessagePortRef remote;
    SInt32 message_id;
    double limit_s;
    pthread_t thread;
    SInt32 result;
    double took_s;
    double starved_s; /* by a busy machine */
};

static void *send_one(void *info)
{
    struct sender *sender = info;
    double begun_s = port_probe_now();
    double starved_s = port_probe_starved_s();

    sender->result = CFMessagePortSendRequest(sender->remote, sender->message_id, NULL, sender->limit_s, 0, NULL, NULL);
    sender->took_s = port_probe_now() - begun_s;
    sender->starved_s = port_probe_starved_s() - starved_s;
    return NULL;
}

static void start_sender(struct sender *sender, CFMessagePortRef remote, SInt32 message_id, double limit_s)
{
    *sender = (struct sender){.remote = remote, .message_id = message_id, .limit_s = limit_s};
    REQUIRE(pthread_create(&sender->thread, NULL, send_one, sender) == 0);
}

static void await_line(int count)
{
    double limit = port_probe_now() + test_patience_s();

    while (atomic_load(&in_line) != count && port_probe_now() < limit) {
        sched_yield();
    }
    REQUIRE(atomic_load(&in_line) == count);
}

static uint32_t count_behind(CFMessagePortRef remote)
{
    uint32_t result;

    port_lock(remote);
    result = remote->side.remote.pacing.behind_count;
    port_unlock(remote);
    return result;
}

static void await_behind(CFMessagePortRef remote, uint32_t count)
{
    double limit = port_probe_now() + test_patience_s();

    while (count_behind(remote) != count && port_probe_now() < limit) {
        sched_yield();
    }
    REQUIRE(count_behind(remote) == count);
}

PORT_TEST(threads_of_one_process_stand_in_line_one_at_a_time, "209 226 M29")
{
    enum { count = 6 };
    char trace[256] = "";
    struct sender senders[count];
    CFMessagePortRef remote;
    CFMessagePortRef local;
    int filling;

    kernel_ports.send_in_turn = send_and_count;
    local = open_full_port(&filling, trace);
    remote = port_connect(CFSTR("full"));
    for (int i = 0; i < count; i++) {
        start_sender(&senders[i], remote, i + 1, test_patience_s());
    }
    await_line(1);
    await_behind(remote, count - 1);
    take_messages(filling + count);
    for (int i = 0; i < count; i++) {
        REQUIRE(pthread_join(senders[i].thread, NULL) == 0);
        EXPECT_EQ(senders[i].result, kCFMessagePortSuccess);
    }
    EXPECT_EQ(atomic_load(&in_line_most), 1);
    EXPECT_EQ(count_behind(remote), 0);
    CFRelease(remote);
    port_drop(local);
}

PORT_TEST(a_thread_behind_another_keeps_its_own_time_limit, "226 M29")
{
    char trace[256] = "";
    struct sender first;
    struct sender second;
    struct sender third;
    CFMessagePortRef remote;
    CFMessagePortRef local;
    int filling;

    kernel_ports.send_in_turn = send_and_count;
    local = open_full_port(&filling, trace);
    remote = port_connect(CFSTR("full"));
    start_sender(&first, remote, 1, 10 * test_patience_s());
    await_line(1);
    start_sender(&second, remote, 2, 0.1);
    start_sender(&third, remote, 3, 10 * test_patience_s());
    REQUIRE(pthread_join(second.thread, NULL) == 0);
    EXPECT_EQ(second.result, kCFMessagePortSendTimeout);
    EXPECT(second.took_s >= 0.1 && second.took_s < test_patience_s());
    take_messages(filling + 2);
    REQUIRE(pthread_join(first.thread, NULL) == 0 && pthread_join(third.thread, NULL) == 0);
    EXPECT_EQ(first.result, kCFMessagePortSuccess);
    EXPECT_EQ(third.result, kCFMessagePortSuccess);
    CFRelease(remote);
    port_drop(local);
}

PORT_TEST(a_time_limit_in_line_is_kept, "226 M29")
{
    double late_s = 0;
    char trace[256] = "";
    CFMessagePortRef remote;
    CFMessagePortRef local;
    int filling;

    local = open_full_port(&filling, trace);
    remote = port_connect(CFSTR("full"));
    for (int attempt = 0; attempt < 5 && (attempt == 0 || late_s > 0.04); attempt++) { /* a busy machine may be late, not early */
        struct sender sender = {.remote = remote, .message_id = 1, .limit_s = 0.3};

        (void)send_one(&sender);
        EXPECT_EQ(sender.result, kCFMessagePortSendTimeout);
        EXPECT(sender.took_s >= 0.3);
        late_s = sender.took_s - sender.starved_s - 0.3;
    }
    EXPECT(late_s <= 0.04 || test_is_instrumented());
    CFRelease(remote);
    port_drop(local);
}

TEST(a_limit_in_line_is_set_once_for_many_sends, "226 M29")
{
    const struct timeval other = {7, 0};
    char byte = 0;
    struct iovec piece = {&byte, 1};
    const struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    struct timeval found = {0, 0};
    socklen_t size = sizeof found;
    int64_t limit_ns = 0;
    int ends[2];

    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0);
    EXPECT_EQ(kernel_ports.send_in_turn(ends[0], &message, 2500000000, &limit_ns), 1);
    REQUIRE(getsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &found, &size) == 0);
    EXPECT(found.tv_sec == 2 && found.tv_usec == 500000 && limit_ns == 2500000000);
    REQUIRE(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &other, sizeof other) == 0);
    EXPECT_EQ(kernel_ports.send_in_turn(ends[0], &message, 2500000000, &limit_ns), 1);
    REQUIRE(getsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &found, &size) == 0);
    EXPECT_EQ(found.tv_sec, 7);
    EXPECT_EQ(kernel_ports.send_in_turn(ends[0], &message, 1000000000, &limit_ns), 1);
    REQUIRE(getsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &found, &size) == 0);
    EXPECT(found.tv_sec == 1 && limit_ns == 1000000000);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Returns how long a call with that limit takes that is behind another for most of it, and then in line. */
static double time_out_in_line_after(CFMessagePortRef remote, double limit_s)
{
    struct sender first;
    struct sender second;
    double begun_s;

    start_sender(&first, remote, 1, 10 * test_patience_s());
    await_line(1);
    begun_s = port_probe_now();
    start_sender(&second, remote, 2, limit_s);
    await_behind(remote, 1);
    while (port_probe_now() < begun_s + 0.7 * limit_s) {
        sched_yield();
    }
    take_messages(1); /* the first's place: the second is in line for another */
    REQUIRE(pthread_join(first.thread, NULL) == 0 && pthread_join(second.thread, NULL) == 0);
    EXPECT_EQ(first.result, kCFMessagePortSuccess);
    EXPECT_EQ(second.result, kCFMessagePortSendTimeout);
    return second.took_s;
}

PORT_TEST(a_wait_behind_and_then_in_line_has_one_time_limit, "226 M29")
{
    char trace[256] = "";
    double took_s = 1;
    CFMessagePortRef remote;
    CFMessagePortRef local;
    int filling;

    kernel_ports.send_in_turn = send_and_count;
    local = open_full_port(&filling, trace);
    remote = port_connect(CFSTR("full"));
    for (int attempt = 0; attempt < 5 && took_s > 0.55; attempt++) { /* a busy machine may be late, not early */
        took_s = time_out_in_line_after(remote, 0.5);
        EXPECT(took_s >= 0.5);
    }
    EXPECT(took_s <= 0.55 || test_is_instrumented());
    CFRelease(remote);
    port_drop(local);
}

static atomic_int tries; /* sends that do not wait */

static ssize_t send_and_count_try(int socket_number, const void *bytes, size_t size)
{
    atomic_fetch_add(&tries, 1);
    return kernel_ports_linux.send(socket_number, bytes, size);
}

/* Sends while the queue is full, and takes one message, so that it is full again. */
static void send_through_line(CFMessagePortRef remote, SInt32 message_id)
{
    struct sender sender;

    start_sender(&sender, remote, message_id, test_patience_s());
    await_line(1);
    take_messages(1);
    REQUIRE(pthread_join(sender.thread, NULL) == 0);
    EXPECT_EQ(sender.result, kCFMessagePortSuccess);
}

PORT_TEST(who_has_tried_in_vain_goes_straight_to_the_line_for_some_messages, "226 M29")
{
    char trace[512] = "";
    CFMessagePortRef remote;
    CFMessagePortRef local;
    int filling;

    kernel_ports.send_in_turn = send_and_count;
    kernel_ports.send = send_and_count_try;
    local = open_full_port(&filling, trace);
    remote = port_connect(CFSTR("full"));
    for (int i = 0; i < in_line_before_a_try; i++) {
        send_through_line(remote, i + 1);
        EXPECT_EQ(atomic_load(&tries), 1);
    }
    send_through_line(remote, in_line_before_a_try + 1);
    EXPECT_EQ(atomic_load(&tries), 2);
    EXPECT_EQ(CFMessagePortSendRequest(remote, 0, NULL, 0, 0, NULL, NULL), kCFMessagePortSendTimeout); /* who may not wait tries */
    EXPECT_EQ(atomic_load(&tries), 3);
    take_messages(filling);
    CFRelease(remote);
    port_drop(local);
}

/* The control channel takes the last place in the queue, behind more messages from the line than the port's own queue holds. */
PORT_TEST(who_stood_in_line_and_then_makes_a_channel_goes_on, "226 M29")
{
    enum { in_line_count = in_line_before_a_try };
    char trace[512] = "";
    struct sender sender;
    CFMessagePortRef remote;
    CFMessagePortRef local;
    int filling;

    kernel_ports.send_in_turn = send_and_count;
    local = open_full_port(&filling, trace);
    remote = port_connect(CFSTR("full"));
    for (int i = 0; i < in_line_count; i++) {
        send_through_line(remote, i + 1);
    }
    take_messages(2);
    EXPECT_EQ(port_tell(remote, in_line_count + 1, NULL), kCFMessagePortSuccess); /* without a wait */
    start_sender(&sender, remote, in_line_count + 2, test_patience_s());
    await_line(1);
    take_messages(filling);
    REQUIRE(pthread_join(sender.thread, NULL) == 0);
    EXPECT_EQ(sender.result, kCFMessagePortSuccess);
    EXPECT(remote->side.remote.pacing.control >= 0);
    CFRelease(remote);
    port_drop(local);
}

PORT_TEST(invalidation_ends_the_wait_in_line_and_behind_it, "243 M29")
{
    char trace[256] = "";
    struct sender first;
    struct sender second;
    CFMessagePortRef remote;
    CFMessagePortRef local;
    int filling;

    kernel_ports.send_in_turn = send_and_count;
    local = open_full_port(&filling, trace);
    remote = port_connect(CFSTR("full"));
    start_sender(&first, remote, 1, 10 * test_patience_s());
    await_line(1);
    start_sender(&second, remote, 2, 10 * test_patience_s());
    await_behind(remote, 1);
    CFMessagePortInvalidate(remote);
    REQUIRE(pthread_join(first.thread, NULL) == 0 && pthread_join(second.thread, NULL) == 0);
    EXPECT_EQ(first.result, kCFMessagePortBecameInvalidError);
    EXPECT_EQ(second.result, kCFMessagePortBecameInvalidError);
    EXPECT(first.took_s < test_patience_s() && second.took_s < test_patience_s());
    CFRelease(remote);
    port_drop(local);
}

PORT_TEST(the_end_of_the_receiver_ends_the_wait_in_line, "243 M29")
{
    char trace[256] = "";
    struct sender sender;
    CFMessagePortRef remote;
    CFMessagePortRef local;
    int filling;

    kernel_ports.send_in_turn = send_and_count;
    local = open_full_port(&filling, trace);
    remote = port_connect(CFSTR("full"));
    start_sender(&sender, remote, 1, 10 * test_patience_s());
    await_line(1);
    port_drop(local);
    REQUIRE(pthread_join(sender.thread, NULL) == 0);
    EXPECT_EQ(sender.result, kCFMessagePortBecameInvalidError);
    EXPECT(sender.took_s < test_patience_s());
    CFRelease(remote);
}

/* ---- processes ---- */

static atomic_int *waiting; /* of all processes: calls in the kernel's line */
static atomic_int *in_vain; /* calls that came back without having sent, long before the end of their stay */

static ssize_t send_and_tell(int socket_number, const struct msghdr *message, int64_t limit_ns, int64_t *socket_limit_ns)
{
    double begun = port_probe_now();
    ssize_t result;

    atomic_fetch_add(waiting, 1);
    result = kernel_ports_linux.send_in_turn(socket_number, message, limit_ns, socket_limit_ns);
    atomic_fetch_sub(waiting, 1);
    atomic_fetch_add(in_vain, result < 0 && port_probe_now() - begun < 0.5e-9 * (double)limit_ns ? 1 : 0);
    return result;
}

static pid_t send_from_process(SInt32 message_id)
{
    pid_t pid = fork();

    if (pid == 0) {
        CFMessagePortRef remote = port_connect(CFSTR("full"));

        kernel_ports.send_in_turn = send_and_tell;
        _exit(CFMessagePortSendRequest(remote, message_id, NULL, 10 * test_patience_s(), 0, NULL, NULL) == kCFMessagePortSuccess ? 0 : 1);
    }
    return pid;
}

PORT_TEST(room_wakes_one_process_and_not_the_crowd, "226 M29")
{
    enum { count = 12 };
    double limit = port_probe_now() + test_patience_s();
    char trace[512] = "";
    pid_t pids[count];
    CFMessagePortRef local;
    int filling;

    waiting = mmap(NULL, 2 * sizeof *waiting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(waiting != MAP_FAILED);
    in_vain = waiting + 1;
    local = open_full_port(&filling, trace);
    for (int i = 0; i < count; i++) {
        pids[i] = send_from_process(i + 1);
        while (atomic_load(waiting) <= i && port_probe_now() < limit) {
            sched_yield();
        }
    }
    EXPECT_EQ(atomic_load(waiting), count);
    take_messages(filling + count);
    for (int i = 0; i < count; i++) {
        int status = 1;

        (void)waitpid(pids[i], &status, 0);
        EXPECT_EQ(status, 0);
    }
    EXPECT(atomic_load(in_vain) <= count); /* a crowd would come back each time */
    (void)munmap(waiting, 2 * sizeof *waiting);
    port_drop(local);
}
