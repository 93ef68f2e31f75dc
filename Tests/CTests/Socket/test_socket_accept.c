/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accept callbacks of sockets: connections that are accepted (rule 259), and connections that cannot be, for want of descriptors or because
 * the socket does not listen (rule 260). The system's refusals are put into the kernel table.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Socket/socket_recorder.h"
#include "fake_kernel.h"

static void accept_family(int family)
{
    struct recorder recorder = RECORDER(.action = recorder_copies_sender);
    CFSocketContext context = recorder_context(&recorder);
    CFDataRef any = loopback_address(family);
    CFSocketSignature signature = {family, SOCK_STREAM, 0, any};
    CFDataRef where;
    CFDataRef from;
    CFDataRef sender = NULL;
    int client;

    recorder.context = &sender;
    recorder.object = CFSocketCreateWithSocketSignature(NULL, &signature, accepts, recorder_called, &context);
    if (!recorder.object) {
        CFRelease(any);
        SKIP("this family has no loopback here");
    }
    recorder_schedule(&recorder);
    where = CFSocketCopyAddress(recorder.object);
    client = connect_to(where);
    recorder_await(&recorder, 1);
    from = address_of(client);
    EXPECT_LOG("accept");
    EXPECT(CFEqual(sender, from));
    CFRelease(sender);
    REQUIRE(recorder.accepted >= 0);
    EXPECT(fcntl(recorder.accepted, F_GETFD) & FD_CLOEXEC);
    EXPECT_EQ(fcntl(recorder.accepted, F_GETFL) & O_NONBLOCK, 0);
    tell(client, "hello");
    EXPECT_EQ(drain(recorder.accepted), 5);
    close(client);
    client = connect_to(where); /* the listener goes on */
    recorder_await(&recorder, 2);
    EXPECT_LOG("accept");
    CFRelease(sender);
    close(client);
    recorder_free(&recorder);
    CFRelease(from);
    CFRelease(where);
    CFRelease(any);
}

TEST(socket_connections_are_accepted_on_ipv4, "259")
{
    accept_family(AF_INET);
}

TEST(socket_connections_are_accepted_on_ipv6, "259")
{
    accept_family(AF_INET6);
}

TEST(a_listener_that_is_kept_open_is_left_as_it_was, "259 267")
{
    struct recorder recorder = RECORDER();
    CFDataRef any = loopback_address(AF_INET);
    int listener = listen_on(any, 5);
    CFDataRef where = address_of(listener);
    int client = connect_to(where);

    recorder_add(&recorder, listener, accepts);
    CFSocketSetSocketFlags(recorder.object, kCFSocketAutomaticallyReenableAcceptCallBack);
    recorder_await(&recorder, 1);
    recorder_free(&recorder);
    EXPECT_EQ(fcntl(listener, F_GETFL) & O_NONBLOCK, 0);
    close(listener);
    close(client);
    CFRelease(where);
    CFRelease(any);
}

/* ---- connections that cannot be accepted ---- */

static int refusal;
static int refusals_left;
static _Atomic int attempts;

static int refusing_accept(int socket, struct kernel_address *ret_peer)
{
    attempts++;
    if (refusals_left > 0) {
        refusals_left--;
        return -refusal;
    }
    return kernel_linux.socket_accept(socket, ret_peer);
}

static void refuse_accepts(int error, int count)
{
    refusal = error;
    refusals_left = count;
    attempts = 0;
    kernel.socket_accept = refusing_accept;
}

/* A listener with one connection that waits to be accepted. */
struct listening {
    struct recorder recorder;
    CFDataRef any;
    CFDataRef where;
    int client;
};

static void open_listener(struct listening *listening)
{
    int listener;

    *listening = (struct listening){.recorder = RECORDER()};
    listening->any = loopback_address(AF_INET);
    listener = listen_on(listening->any, 5);
    listening->where = address_of(listener);
    listening->client = connect_to(listening->where);
    recorder_add(&listening->recorder, listener, accepts);
}

static void close_listener(struct listening *listening)
{
    recorder_free(&listening->recorder);
    close(listening->client);
    CFRelease(listening->where);
    CFRelease(listening->any);
}

TEST(a_listening_socket_survives_connections_that_vanish, "260")
{
    static const int errors[] = {ECONNABORTED, EPROTO, EINTR, EAGAIN, EPERM, ENETDOWN};

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct listening listening;

        open_listener(&listening);
        refuse_accepts(errors[i], 2);
        recorder_await(&listening.recorder, 1);
        EXPECT_EQ(attempts, 3);
        EXPECT_LOG("accept");
        close_listener(&listening);
    }
}

TEST(a_listening_socket_without_descriptors_rests, "260 F6")
{
    static const int errors[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM};

    fake_kernel_install(); /* ten seconds pass at once */
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct listening listening;
        uint64_t sleeps = fake_kernel_sleeps();

        open_listener(&listening);
        refuse_accepts(errors[i], 1000000);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 10, false), kCFRunLoopRunTimedOut);
        EXPECT_LOG("");
        EXPECT(attempts > 10);
        EXPECT(attempts <= 100);
        EXPECT(fake_kernel_sleeps() - sleeps < 200);
        refusals_left = 0; /* there are descriptors again */
        CFRunLoopRunInMode(MODE, 1, false);
        EXPECT_LOG("accept");
        close_listener(&listening);
    }
}

TEST(a_resting_socket_may_be_invalidated_or_disabled, "260 F6 F10")
{
    struct listening listening;

    fake_kernel_install(); /* no time passes in a look, and two tenths of a second at once */
    open_listener(&listening);
    refuse_accepts(EMFILE, 1);
    look();
    EXPECT_EQ(attempts, 1);
    CFSocketDisableCallBacks(listening.recorder.object, accepts);
    CFRunLoopRunInMode(MODE, 0.2, false);
    EXPECT_EQ(attempts, 1);
    CFSocketEnableCallBacks(listening.recorder.object, accepts);
    refuse_accepts(EMFILE, 1);
    look();
    EXPECT_EQ(attempts, 1);
    close_listener(&listening); /* its timer goes with it */
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunFinished);
}

TEST(descriptors_that_really_run_out_come_back, "260 F6")
{
    struct listening listening;
    struct rlimit rich;
    struct rlimit poor;
    int top;

    open_listener(&listening);
    look();
    EXPECT_LOG("accept"); /* the loop has all it needs */
    close(listening.client);
    listening.client = connect_to(listening.where);
    top = dup(listening.client);
    close(top);
    getrlimit(RLIMIT_NOFILE, &rich);
    poor = rich;
    poor.rlim_cur = (rlim_t)top;
    setrlimit(RLIMIT_NOFILE, &poor);
    look();
    EXPECT_LOG("");
    setrlimit(RLIMIT_NOFILE, &rich);
    recorder_await(&listening.recorder, 2);
    EXPECT_LOG("accept");
    close_listener(&listening);
}

static void ask_without_listening(void)
{
    struct recorder recorder = RECORDER();
    int native = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    recorder_add(&recorder, native, accepts);
    look();
    EXPECT_LOG("");
    recorder_free(&recorder);
}

TEST(a_socket_that_does_not_listen_does_not_spin, "260")
{
    uint64_t calls;
    struct recorder recorder = RECORDER();

    fake_kernel_install();
    ask_without_listening();
    recorder_add(&recorder, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), accepts);
    look();
    calls = fake_kernel_calls();
    CFRunLoopRunInMode(MODE, 1000, false);
    EXPECT(fake_kernel_calls() - calls < 20);
    EXPECT_LOG("");
    recorder_free(&recorder);
}

TEST(a_socket_that_cannot_accept_waits_for_better_times, "260")
{
    static const int errors[] = {EINVAL, EOPNOTSUPP, ENOTSOCK};

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct listening listening;

        open_listener(&listening);
        refuse_accepts(errors[i], 1);
        look();
        EXPECT_EQ(attempts, 1); /* it does not try again */
        CFSocketEnableCallBacks(listening.recorder.object, accepts);
        recorder_await(&listening.recorder, 1);
        EXPECT_LOG("accept");
        close_listener(&listening);
    }
}

static int robbed_accept(int socket, struct kernel_address *ret_peer)
{
    kernel.socket_accept = kernel_linux.socket_accept;
    close(kernel_linux.socket_accept(socket, ret_peer)); /* another thread was faster */
    return kernel_linux.socket_accept(socket, ret_peer);
}

TEST(a_vanished_connection_does_not_block_the_loop, "F14 260")
{
    struct listening listening;

    open_listener(&listening);
    CFSocketSetSocketFlags(listening.recorder.object, kCFSocketCloseOnInvalidate);
    kernel.socket_accept = robbed_accept;
    look();
    EXPECT_LOG("");
    close(listening.client);
    listening.client = connect_to(listening.where); /* the one shot was not used up */
    recorder_await(&listening.recorder, 1);
    EXPECT_LOG("accept");
    close_listener(&listening);
}
