/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle sockets, and how they stop being idle (rules 255 to 264). The loop has looked at the socket. Then the program connects it, makes it
 * listen, or disconnects it, by its descriptor. The kernel reports a hang-up of a socket that is neither connected nor listening; no
 * callback comes for that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <unistd.h>

#include "Socket/socket_recorder.h"
#include "Kernel/kernel.h"
#include "fake_kernel.h"

/* A listener, and a socket without a peer, for whose source the loop has waited once. */
struct lone {
    struct recorder recorder;
    int family;
    int listener;
    CFDataRef where;
    int peer; /* -1: none */
};

static const struct sockaddr *sockaddr_in(CFDataRef address)
{
    return (const struct sockaddr *)(const void *)CFDataGetBytePtr(address);
}

/* A port or a name that the system picks. */
static void take_address(int native, int family)
{
    const struct sockaddr unnamed = {.sa_family = AF_UNIX};
    CFDataRef any = loopback_address(AF_INET);

    if (family == AF_UNIX) {
        REQUIRE(bind(native, &unnamed, sizeof unnamed.sa_family) == 0);
    } else {
        REQUIRE(bind(native, sockaddr_in(any), (socklen_t)CFDataGetLength(any)) == 0);
    }
    CFRelease(any);
}

/* `type` with SOCK_NONBLOCK or without. */
static void open_lone(struct lone *lone, int family, int type, CFOptionFlags types)
{
    *lone = (struct lone){.recorder = RECORDER(.drains = true), .family = family, .peer = -1};
    lone->listener = socket(family, (type & ~SOCK_NONBLOCK) | SOCK_CLOEXEC, 0);
    take_address(lone->listener, family);
    REQUIRE(listen(lone->listener, 5) == 0);
    lone->where = address_of(lone->listener);
    recorder_add(&lone->recorder, socket(family, type | SOCK_CLOEXEC, 0), types);
    look();
    EXPECT_LOG("");
}

static void close_lone(struct lone *lone)
{
    recorder_free(&lone->recorder);
    close(lone->listener);
    if (lone->peer >= 0) {
        close(lone->peer);
    }
    CFRelease(lone->where);
}

static void connect_natively(struct lone *lone)
{
    int result = connect(CFSocketGetNative(lone->recorder.object), sockaddr_in(lone->where), (socklen_t)CFDataGetLength(lone->where));

    EXPECT(result == 0 || errno == EINPROGRESS);
}

static void accept_peer(struct lone *lone)
{
    lone->peer = accept4(lone->listener, NULL, NULL, SOCK_CLOEXEC);
    REQUIRE(lone->peer >= 0);
}

static void disconnect_natively(struct lone *lone)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    EXPECT_EQ(connect(CFSocketGetNative(lone->recorder.object), &nobody, sizeof nobody), 0);
    if (lone->peer >= 0) {
        close(lone->peer);
        lone->peer = -1;
    }
}

static const struct {
    int family;
    int type;
} kinds[] = {
    {AF_INET, SOCK_STREAM}, {AF_INET, SOCK_STREAM | SOCK_NONBLOCK},
    {AF_UNIX, SOCK_STREAM}, {AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK},
    {AF_UNIX, SOCK_SEQPACKET},
};

enum { kind_count = sizeof kinds / sizeof *kinds };

/* ---- connected ---- */

TEST(a_socket_connected_by_the_program_is_told, "261 262 264")
{
    for (size_t i = 0; i < kind_count; i++) {
        struct lone lone;

        open_lone(&lone, kinds[i].family, kinds[i].type, connects | writes);
        connect_natively(&lone);
        recorder_await(&lone.recorder, 2);
        look();
        EXPECT_LOG("connect write"); /* and each once */
        close_lone(&lone);
    }
}

static void expect_bytes(CFOptionFlags type, const char *expected)
{
    for (size_t i = 0; i < kind_count; i++) {
        struct lone lone;

        open_lone(&lone, kinds[i].family, kinds[i].type, type);
        connect_natively(&lone);
        accept_peer(&lone);
        look();
        EXPECT_LOG("");
        tell(lone.peer, "hello");
        recorder_await(&lone.recorder, 1);
        tell(lone.peer, "again");
        recorder_await(&lone.recorder, 2);
        look();
        EXPECT_LOG(expected);
        close_lone(&lone);
    }
}

TEST(a_socket_connected_by_the_program_is_read, "255")
{
    expect_bytes(reads, "read read");
}

TEST(a_socket_connected_by_the_program_receives_data, "256")
{
    expect_bytes(receives, "data(5) data(5)");
}

TEST(a_connection_of_the_programs_that_is_refused_is_told, "261 263")
{
    struct lone lone;

    open_lone(&lone, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, connects | writes);
    CFRelease(lone.where);
    lone.where = refusing_address();
    connect_natively(&lone);
    recorder_await(&lone.recorder, 1);
    look();
    EXPECT_EQ(lone.recorder.error, ECONNREFUSED);
    EXPECT_LOG("connect(111)");
    close_lone(&lone);
}

TEST(a_socket_connected_by_the_program_is_told_in_whichever_mode_runs, "261 276")
{
    static const CFStringRef other_mode = CFSTR("other");
    struct lone lone;
    CFRunLoopSourceRef source;

    open_lone(&lone, AF_INET, SOCK_STREAM, connects);
    source = CFSocketCreateRunLoopSource(NULL, lone.recorder.object, 0);
    CFRunLoopAddSource(LOOP, source, other_mode);
    for (int i = 0; i < 3; i++) {
        CFRunLoopRunInMode(other_mode, 0, false);
    }
    connect_natively(&lone);
    CFRunLoopRunInMode(other_mode, test_patience_s(), true);
    EXPECT_LOG("connect");
    look();
    EXPECT_LOG("");
    CFRelease(source);
    close_lone(&lone);
}

static void connects_lone(void *lone)
{
    connect_natively(lone);
}

TEST(a_sleeping_loop_hears_of_a_connection_made_on_another_thread, "261 276")
{
    struct lone lone;
    struct probe_thread other;

    open_lone(&lone, AF_INET, SOCK_STREAM, connects);
    probe_thread_when_waiting(&other, LOOP, connects_lone, &lone);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    probe_thread_join(&other);
    EXPECT_LOG("connect");
    close_lone(&lone);
}

static void connects_and_tells(void *context)
{
    struct lone *lone = context;

    connect_natively(lone);
    accept_peer(lone);
    tell(lone->peer, "hello");
}

/* The kernel does not report that a Unix socket was connected; the loop looks for that before it sleeps. */
TEST(a_sleeping_loop_hears_of_bytes_on_a_unix_socket_connected_on_another_thread, "255 261 264 254a")
{
    struct lone lone;
    struct probe_thread other;

    open_lone(&lone, AF_UNIX, SOCK_STREAM, connects | reads);
    lone.recorder.drains = false; /* ThreadSanitizer takes connect(2) for the call that makes the descriptor */
    CFSocketSetSocketFlags(lone.recorder.object, kCFSocketCloseOnInvalidate);
    probe_thread_when_waiting(&other, LOOP, connects_and_tells, &lone);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    probe_thread_join(&other);
    look();
    EXPECT_LOG("connect read");
    close_lone(&lone);
}

TEST(a_datagram_socket_connected_by_the_program_goes_on, "255 256 262")
{
    static const CFOptionFlags types[] = {reads | writes, receives | writes};
    static const char *const expected[] = {"read", "data(5)"};

    for (size_t i = 0; i < 2; i++) {
        struct lone lone = {.recorder = RECORDER(.drains = true)};
        int sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        int native = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        CFDataRef own;

        take_address(sender, AF_INET);
        take_address(native, AF_INET);
        own = address_of(native);
        lone.where = address_of(sender);
        recorder_add(&lone.recorder, native, types[i]);
        look();
        EXPECT_LOG("write");
        connect_natively(&lone);
        look();
        EXPECT_LOG("");
        EXPECT_EQ(sendto(sender, "hello", 5, 0, sockaddr_in(own), (socklen_t)CFDataGetLength(own)), 5);
        recorder_await(&lone.recorder, 2);
        look();
        EXPECT_LOG(expected[i]);
        recorder_free(&lone.recorder);
        CFRelease(own);
        CFRelease(lone.where);
        close(sender);
    }
}

/* ---- listening ---- */

static void expect_incoming(CFOptionFlags type, const char *expected)
{
    for (size_t i = 0; i < kind_count; i++) {
        struct lone lone;
        CFDataRef own;
        int clients[2];

        open_lone(&lone, kinds[i].family, kinds[i].type, type);
        lone.recorder.drains = false;
        take_address(CFSocketGetNative(lone.recorder.object), kinds[i].family);
        REQUIRE(listen(CFSocketGetNative(lone.recorder.object), 5) == 0);
        own = address_of(CFSocketGetNative(lone.recorder.object));
        look();
        EXPECT_LOG("");
        CFSocketSetSocketFlags(lone.recorder.object, CFSocketGetSocketFlags(lone.recorder.object) & ~(CFOptionFlags)reads);
        for (int n = 0; n < 2; n++) {
            clients[n] = socket(kinds[i].family, (kinds[i].type & ~SOCK_NONBLOCK) | SOCK_CLOEXEC, 0);
            REQUIRE(connect(clients[n], sockaddr_in(own), (socklen_t)CFDataGetLength(own)) == 0);
            recorder_await(&lone.recorder, n + 1);
            CFSocketEnableCallBacks(lone.recorder.object, type);
        }
        CFSocketDisableCallBacks(lone.recorder.object, type);
        EXPECT_LOG(expected);
        close(clients[0]);
        close(clients[1]);
        CFRelease(own);
        close_lone(&lone);
    }
}

TEST(a_socket_that_the_program_lets_listen_accepts, "259 254a")
{
    expect_incoming(accepts, "accept accept");
}

TEST(a_socket_that_the_program_lets_listen_is_read, "255 259")
{
    expect_incoming(reads, "read read");
}

/* The kernel reports a hang-up for good, and refuses to accept. Afterwards it lets the socket listen. */
TEST(a_socket_that_was_shut_down_before_it_listened_accepts_once_it_is_given_an_address, "259 260 270")
{
    struct lone lone;
    CFDataRef any = loopback_address(AF_INET);
    CFDataRef own;
    int client;

    open_lone(&lone, AF_INET, SOCK_STREAM, accepts);
    EXPECT(shutdown(CFSocketGetNative(lone.recorder.object), SHUT_RD) < 0); /* the call fails, but has shut it down */
    look();
    EXPECT_LOG("");
    EXPECT_EQ(CFSocketSetAddress(lone.recorder.object, any), kCFSocketSuccess);
    own = CFSocketCopyAddress(lone.recorder.object);
    client = connect_to(own);
    recorder_await(&lone.recorder, 1);
    EXPECT_LOG("accept");
    close(client);
    CFRelease(own);
    CFRelease(any);
    close_lone(&lone);
}

/* ---- disconnected ---- */

TEST(a_socket_disconnected_by_the_program_can_be_connected_again, "255 261 262")
{
    struct lone lone;

    open_lone(&lone, AF_INET, SOCK_STREAM, connects | reads | writes);
    connect_natively(&lone);
    accept_peer(&lone);
    recorder_await(&lone.recorder, 2);
    EXPECT_LOG("connect write");
    for (int i = 0; i < 2; i++) {
        disconnect_natively(&lone);
        look();
        EXPECT_LOG("read read"); /* for the error that the kernel left, and for the end; no more */
        connect_natively(&lone);
        accept_peer(&lone);
        tell(lone.peer, "hello");
        lone.recorder.calls = 0;
        recorder_await(&lone.recorder, 1);
        look();
        EXPECT_LOG("read");
    }
    CFSocketEnableCallBacks(lone.recorder.object, writes);
    recorder_await(&lone.recorder, 2);
    EXPECT_LOG("write");
    close_lone(&lone);
}

TEST(a_socket_disconnected_by_the_program_can_listen, "259 260")
{
    struct lone lone;
    CFDataRef own;
    int client;

    open_lone(&lone, AF_INET, SOCK_STREAM, accepts);
    connect_natively(&lone);
    look();
    disconnect_natively(&lone);
    look();
    EXPECT_LOG("");
    REQUIRE(listen(CFSocketGetNative(lone.recorder.object), 5) == 0);
    own = address_of(CFSocketGetNative(lone.recorder.object));
    client = connect_to(own);
    recorder_await(&lone.recorder, 1);
    EXPECT_LOG("accept");
    close(client);
    CFRelease(own);
    close_lone(&lone);
}

TEST(a_socket_of_data_that_the_program_disconnects_is_at_its_end, "257")
{
    struct lone lone;

    open_lone(&lone, AF_INET, SOCK_STREAM, receives);
    connect_natively(&lone);
    accept_peer(&lone);
    tell(lone.peer, "hello");
    recorder_await(&lone.recorder, 1);
    disconnect_natively(&lone);
    look();
    EXPECT_LOG("data(5) data()");
    EXPECT(!CFSocketIsValid(lone.recorder.object));
    close_lone(&lone);
}

TEST(a_socket_that_only_writes_is_not_told_that_it_was_disconnected, "262")
{
    struct lone lone;

    open_lone(&lone, AF_INET, SOCK_STREAM, writes);
    connect_natively(&lone);
    accept_peer(&lone);
    recorder_await(&lone.recorder, 1);
    EXPECT_LOG("write");
    disconnect_natively(&lone);
    EXPECT(kernel.socket_take_error(CFSocketGetNative(lone.recorder.object)) >= 0);
    CFSocketSetSocketFlags(lone.recorder.object, kCFSocketCloseOnInvalidate | kCFSocketAutomaticallyReenableWriteCallBack);
    CFSocketEnableCallBacks(lone.recorder.object, writes);
    look();
    EXPECT_LOG("");
    connect_natively(&lone);
    CFRunLoopRunInMode(MODE, test_patience_s(), true);
    EXPECT_LOG("write");
    close_lone(&lone);
}

/* The end of one connection does not count for the next. */
TEST(a_socket_that_was_read_to_its_end_is_read_after_it_was_connected_again, "255 258")
{
    for (int by_library = 0; by_library < 2; by_library++) {
        struct lone lone;

        open_lone(&lone, AF_INET, SOCK_STREAM, reads);
        connect_natively(&lone);
        accept_peer(&lone);
        close(lone.peer);
        recorder_await(&lone.recorder, 1);
        look();
        EXPECT_LOG("read");
        disconnect_natively(&lone);
        if (by_library) {
            EXPECT_EQ(CFSocketConnectToAddress(lone.recorder.object, lone.where, 0), kCFSocketSuccess);
        } else {
            connect_natively(&lone);
            CFSocketEnableCallBacks(lone.recorder.object, reads);
        }
        accept_peer(&lone);
        for (int i = 0; i < 2; i++) {
            tell(lone.peer, "hello");
            lone.recorder.calls = 0;
            recorder_await(&lone.recorder, 1);
            look();
            EXPECT_LOG("read");
        }
        close_lone(&lone);
    }
}

/* ---- what it costs ---- */

TEST(a_socket_that_stays_without_a_peer_does_not_spin, "261")
{
    for (size_t i = 0; i < kind_count; i++) {
        struct lone lone;
        uint64_t calls;

        fake_kernel_install();
        open_lone(&lone, kinds[i].family, kinds[i].type, connects | reads | writes);
        calls = fake_kernel_calls();
        CFRunLoopRunInMode(MODE, 1000, false);
        EXPECT(fake_kernel_calls() - calls < 10);
        EXPECT_LOG("");
        close_lone(&lone);
    }
}

static int looks;

static uint32_t counted_look(int descriptor, uint32_t interest)
{
    looks++;
    return kernel_linux.descriptor_ready(descriptor, interest);
}

/* The loop looks only for those changes that the kernel does not report. */
TEST(a_loop_looks_before_a_wait_at_unix_sockets_without_a_peer_alone, "261 262 297")
{
    static const struct {
        int family;
        CFOptionFlags types;
        bool has_peer;
        int looks;
    } cases[] = {{AF_UNIX, connects, false, 5}, {AF_UNIX, reads, false, 0}, {AF_INET, connects, false, 0}, {AF_UNIX, connects, true, 0}};

    kernel.descriptor_ready = counted_look;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lone lone;

        open_lone(&lone, cases[i].family, SOCK_STREAM, cases[i].types);
        if (cases[i].has_peer) {
            connect_natively(&lone);
            look();
            EXPECT_LOG("connect");
        }
        looks = 0;
        look();
        EXPECT_EQ(looks, cases[i].looks);
        close_lone(&lone);
    }
    kernel.descriptor_ready = kernel_linux.descriptor_ready;
}

/* ---- beside others, and where something goes wrong ---- */

static void notes_kinds(CFFileDescriptorRef f, CFOptionFlags types, void *info)
{
    (void)f, (void)info;
    probe_note("descriptor(%lu)", types);
}

TEST(a_socket_without_a_peer_shares_its_number, "261 290")
{
    struct lone lone;
    CFFileDescriptorRef f;
    CFRunLoopSourceRef source;

    open_lone(&lone, AF_INET, SOCK_STREAM, connects | reads);
    f = CFFileDescriptorCreate(NULL, CFSocketGetNative(lone.recorder.object), false, notes_kinds, NULL);
    source = CFFileDescriptorCreateRunLoopSource(NULL, f, 0);
    CFRunLoopAddSource(LOOP, source, MODE);
    CFFileDescriptorEnableCallBacks(f, kCFFileDescriptorReadCallBack);
    look();
    EXPECT_LOG("descriptor(1)"); /* a CFFileDescriptor is told of hang-ups (rule 284) */
    connect_natively(&lone);
    CFFileDescriptorEnableCallBacks(f, kCFFileDescriptorReadCallBack);
    recorder_await(&lone.recorder, 1);
    EXPECT_LOG("connect");
    accept_peer(&lone);
    tell(lone.peer, "hello");
    recorder_await(&lone.recorder, 2);
    look();
    CFFileDescriptorInvalidate(f);
    CFRelease(source);
    CFRelease(f);
    close_lone(&lone);
}

TEST(a_failed_attempt_does_not_silence_a_connected_socket, "255 268")
{
    struct lone lone;
    CFDataRef nowhere = path_address("/nonexistent/socket");

    open_lone(&lone, AF_UNIX, SOCK_STREAM, reads);
    connect_natively(&lone);
    accept_peer(&lone);
    EXPECT_EQ(CFSocketConnectToAddress(lone.recorder.object, nowhere, 0), kCFSocketError);
    tell(lone.peer, "hello");
    recorder_await(&lone.recorder, 1);
    EXPECT_LOG("read");
    CFRelease(nowhere);
    close_lone(&lone);
}

static int add_refusals;

static int full_add(int set, int descriptor, uint32_t interest, uint64_t token)
{
    return add_refusals-- > 0 ? -ENOSPC : kernel_linux.set_add(set, descriptor, interest, token);
}

/* The loop polls such a socket. The same hang-up again is no change. */
TEST(a_socket_without_a_peer_that_cannot_be_watched_does_not_spin, "261 F13")
{
    struct lone lone;
    uint64_t calls;

    fake_kernel_install();
    kernel.set_add = full_add;
    add_refusals = 1 << 20;
    open_lone(&lone, AF_INET, SOCK_STREAM, connects);
    calls = fake_kernel_calls();
    CFRunLoopRunInMode(MODE, 1, false);
    EXPECT(fake_kernel_calls() - calls < 1000); /* fifty looks */
    connect_natively(&lone);
    look();
    EXPECT_LOG("connect");
    close_lone(&lone);
}

static void jumps_out(struct probe *probe)
{
    (void)probe;
    longjmp(probe_way_out, 1);
}

/* A change is reported once. The run that had the report was left before it called back: the next run must make up for that. */
TEST(a_connection_is_told_after_a_run_that_was_left_with_its_report, "261 P11")
{
    struct lone lone;
    struct probe observer = PROBE("O", jumps_out);

    open_lone(&lone, AF_INET, SOCK_STREAM, connects);
    observer.logging = probe_is_silent;
    probe_observer_add(&observer, kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    connect_natively(&lone);
    EXPECT(probe_run_is_left(MODE));
    probe_invalidate(&observer);
    look();
    EXPECT_LOG("connect");
    close_lone(&lone);
}
