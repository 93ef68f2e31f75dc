/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting, addresses and sending, on loopback and Unix sockets: limits, refusals, what errno says (rules 261, 263, 266, 268 to 272).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "Socket/socket_recorder.h"
#include "Kernel/kernel.h"

static bool is_blocking(CFSocketRef s)
{
    return (fcntl(CFSocketGetNative(s), F_GETFL) & O_NONBLOCK) == 0;
}

/* Makes a socket without a peer and adds its source to the mode. */
static void open_client(struct recorder *recorder, CFOptionFlags types)
{
    CFSocketContext context = recorder_context(recorder);

    recorder->object = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, 0, types, recorder_called, &context);
    REQUIRE(recorder->object != NULL);
    recorder_schedule(recorder);
}

/* ---- how long it takes ---- */

TEST(a_socket_connects_and_stays_blocking, "268 269 261")
{
    static const CFTimeInterval timeouts[] = {0, 5, -1, 1e300};
    CFDataRef any = loopback_address(AF_INET);
    int listener = listen_on(any, 5);
    CFDataRef where = address_of(listener);

    for (size_t i = 0; i < sizeof timeouts / sizeof *timeouts; i++) {
        struct recorder recorder = RECORDER();
        CFDataRef peer;

        open_client(&recorder, connects);
        EXPECT(is_blocking(recorder.object));
        EXPECT_EQ(CFSocketConnectToAddress(recorder.object, where, timeouts[i]), kCFSocketSuccess);
        EXPECT(is_blocking(recorder.object));
        recorder_await(&recorder, 1);
        look();
        EXPECT_LOG("connect");
        peer = CFSocketCopyPeerAddress(recorder.object);
        EXPECT(peer && CFEqual(peer, where));
        CFRelease(peer);
        recorder_free(&recorder);
    }
    close(listener);
    CFRelease(where);
    CFRelease(any);
}

TEST(a_socket_that_does_not_block_stays_so, "268 269")
{
    static const CFTimeInterval timeouts[] = {0, 5, -1};
    CFDataRef any = loopback_address(AF_INET);
    int listener = listen_on(any, 5);
    CFDataRef where = address_of(listener);

    for (size_t i = 0; i < sizeof timeouts / sizeof *timeouts; i++) {
        int native = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CFSocketRef s = CFSocketCreateWithNative(NULL, native, 0, NULL, NULL);

        EXPECT_EQ(CFSocketConnectToAddress(s, where, timeouts[i]), kCFSocketSuccess);
        EXPECT(!is_blocking(s));
        CFRelease(s);
    }
    close(listener);
    CFRelease(where);
    CFRelease(any);
}

TEST(a_refused_socket_says_so_at_once_or_in_its_callback, "261 263 268")
{
    CFDataRef where = refusing_address();
    struct recorder recorder = RECORDER();

    open_client(&recorder, connects | writes);
    EXPECT_EQ(CFSocketConnectToAddress(recorder.object, where, 0), kCFSocketError);
    EXPECT_EQ(CFSocketConnectToAddress(recorder.object, where, 5), kCFSocketError);
    look();
    EXPECT_LOG(""); /* the caller waited, and knows the result: no callback */
    EXPECT_EQ(CFSocketConnectToAddress(recorder.object, where, -1), kCFSocketSuccess);
    recorder_await(&recorder, 1);
    look();
    EXPECT_LOG("connect(111)"); /* and no write */
    EXPECT_EQ(recorder.error, ECONNREFUSED);
    recorder_free(&recorder);
    CFRelease(where);
}

TEST(a_refused_socket_is_read_once, "263 264 258")
{
    CFDataRef where = refusing_address();
    struct recorder recorder = RECORDER(.drains = true);

    open_client(&recorder, connects | reads | writes);
    EXPECT_EQ(CFSocketConnectToAddress(recorder.object, where, -1), kCFSocketSuccess);
    recorder_await(&recorder, 2);
    look();
    EXPECT_LOG("connect(111) read");
    recorder_free(&recorder);
    CFRelease(where);
}

TEST(a_refused_socket_of_data_is_invalid, "257 263")
{
    CFDataRef where = refusing_address();
    struct recorder recorder = RECORDER();

    open_client(&recorder, connects | receives | writes);
    EXPECT_EQ(CFSocketConnectToAddress(recorder.object, where, -1), kCFSocketSuccess);
    recorder_await(&recorder, 2);
    EXPECT_LOG("connect(111) data()");
    EXPECT(!CFSocketIsValid(recorder.object));
    CFRelease(recorder.object);
    CFRelease(where);
}

TEST(a_refused_socket_without_connect_has_no_write, "263")
{
    CFDataRef where = refusing_address();
    struct recorder recorder = RECORDER();

    open_client(&recorder, writes);
    EXPECT_EQ(CFSocketConnectToAddress(recorder.object, where, -1), kCFSocketSuccess);
    for (int i = 0; i < 20; i++) {
        CFRunLoopRunInMode(MODE, 0.01, false);
    }
    EXPECT_LOG("");
    recorder_free(&recorder);
    CFRelease(where);
}

TEST(errors_left_in_the_socket_are_not_told, "266")
{
    CFDataRef where = refusing_address();
    struct recorder recorder = RECORDER();
    int error = 0;
    socklen_t size = sizeof error;

    open_client(&recorder, connects);
    CFSocketSetSocketFlags(recorder.object, kCFSocketLeaveErrors | kCFSocketCloseOnInvalidate);
    EXPECT_EQ(CFSocketConnectToAddress(recorder.object, where, -1), kCFSocketSuccess);
    recorder_await(&recorder, 1);
    EXPECT_LOG("connect");
    getsockopt(CFSocketGetNative(recorder.object), SOL_SOCKET, SO_ERROR, &error, &size);
    EXPECT_EQ(error, ECONNREFUSED);
    recorder_free(&recorder);
    CFRelease(where);
}

/* Opens a listener whose queue is full, so that the kernel makes further connections wait. */
static int open_full_listener(const char *path, CFDataRef *ret_address, int *ret_filler)
{
    int listener;

    *ret_address = path_address(path);
    listener = listen_on(*ret_address, 0);
    *ret_filler = connect_to(*ret_address);
    return listener;
}

TEST(a_connection_that_takes_too_long_times_out, "268 269")
{
    char path[64];
    CFDataRef where;
    int filler;
    int listener;
    CFSocketRef s = CFSocketCreate(NULL, PF_UNIX, SOCK_STREAM, 0, 0, NULL, NULL);
    struct timeval limit = {1, 1};
    socklen_t size = sizeof limit;
    CFAbsoluteTime start;

    (void)snprintf(path, sizeof path, "/tmp/crl-socket-%d", (int)getpid());
    listener = open_full_listener(path, &where, &filler);
    start = CFAbsoluteTimeGetCurrent();
    EXPECT_EQ(CFSocketConnectToAddress(s, where, 0.1), kCFSocketTimeout);
    EXPECT(CFAbsoluteTimeGetCurrent() - start >= 0.099);
    EXPECT(is_blocking(s));
    getsockopt(CFSocketGetNative(s), SOL_SOCKET, SO_SNDTIMEO, &limit, &size);
    EXPECT_EQ(limit.tv_sec, 0);
    EXPECT_EQ(limit.tv_usec, 0);
    close(accept(listener, NULL, NULL)); /* room for one */
    EXPECT_EQ(CFSocketConnectToAddress(s, where, 5), kCFSocketSuccess);
    CFRelease(s);
    close(filler);
    close(listener);
    unlink(path);
    CFRelease(where);
}

struct attempt {
    CFSocketRef s;
    CFDataRef where;
    atomic_bool is_over;
};

static void connects_in_vain(void *info)
{
    struct attempt *attempt = info;

    EXPECT_EQ(CFSocketConnectToAddress(attempt->s, attempt->where, 0.1), kCFSocketTimeout);
    attempt->is_over = true;
}

static time_t send_limit_of(CFSocketRef s)
{
    struct timeval limit = {1, 1};
    socklen_t size = sizeof limit;

    EXPECT_EQ(getsockopt(CFSocketGetNative(s), SOL_SOCKET, SO_SNDTIMEO, &limit, &size), 0);
    EXPECT_EQ(limit.tv_usec, 0);
    return limit.tv_sec;
}

static void set_send_limit(CFSocketRef s, time_t seconds)
{
    struct timeval limit = {seconds, 0};

    EXPECT_EQ(setsockopt(CFSocketGetNative(s), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
}

static int open_attempt(struct attempt *attempt, char *path, size_t size, int *ret_filler)
{
    (void)snprintf(path, size, "/tmp/crl-socket-%d", (int)getpid());
    attempt->s = CFSocketCreate(NULL, PF_UNIX, SOCK_STREAM, 0, 0, NULL, NULL);
    set_send_limit(attempt->s, 1);
    return open_full_listener(path, &attempt->where, ret_filler);
}

static void close_attempt(const struct attempt *attempt, const char *path, int listener, int filler)
{
    CFRelease(attempt->s);
    CFRelease(attempt->where);
    close(filler);
    close(listener);
    unlink(path);
}

TEST(the_limit_of_a_connection_is_no_option_of_the_socket, "268 269")
{
    struct attempt attempt = {.is_over = false};
    struct probe_thread thread;
    char path[64];
    int filler;
    int listener = open_attempt(&attempt, path, sizeof path, &filler);

    probe_thread_start(&thread, connects_in_vain, &attempt);
    while (!attempt.is_over) {
        REQUIRE(send_limit_of(attempt.s) == 1);
    }
    probe_thread_join(&thread);
    close_attempt(&attempt, path, listener, filler);
}

static CFSocketRef changed_meanwhile;
static int looks_at_the_clock;

/* The program changes the option while another thread connects. */
static int64_t change_and_tell_time(void)
{
    if (++looks_at_the_clock == 2) {
        set_send_limit(changed_meanwhile, 7);
    }
    return kernel_linux.monotonic_ns();
}

TEST(what_the_program_changes_while_a_socket_connects_stays, "268 269")
{
    struct attempt attempt = {.is_over = false};
    char path[64];
    int filler;
    int listener = open_attempt(&attempt, path, sizeof path, &filler);

    changed_meanwhile = attempt.s;
    kernel.monotonic_ns = change_and_tell_time;
    connects_in_vain(&attempt);
    kernel.monotonic_ns = kernel_linux.monotonic_ns;
    EXPECT(looks_at_the_clock > 2);
    EXPECT_EQ(send_limit_of(attempt.s), 7);
    close_attempt(&attempt, path, listener, filler);
}

TEST(a_socket_connected_later_is_not_told_before, "261 268")
{
    CFDataRef any = loopback_address(AF_INET);
    int listener = listen_on(any, 5);
    CFDataRef where = address_of(listener);
    struct recorder recorder = RECORDER(.drains = true);

    open_client(&recorder, connects | reads | writes);
    look();
    EXPECT_LOG(""); /* the kernel calls such a socket hung up, readable and writable */
    EXPECT_EQ(CFSocketConnectToAddress(recorder.object, where, -1), kCFSocketSuccess);
    recorder_await(&recorder, 2);
    look();
    EXPECT_LOG("connect write");
    recorder_free(&recorder);
    close(listener);
    CFRelease(where);
    CFRelease(any);
}

TEST(connecting_a_connected_socket_succeeds_with_a_limit, "268a")
{
    CFDataRef any = loopback_address(AF_INET);
    int listener = listen_on(any, 5);
    CFDataRef where = address_of(listener);
    CFSocketRef s = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, IPPROTO_TCP, 0, NULL, NULL);
    CFDataRef text = CFDataCreate(NULL, (const UInt8 *)"text", 4);

    REQUIRE(s != NULL);
    EXPECT_EQ(CFSocketConnectToAddress(s, where, 1), kCFSocketSuccess);
    EXPECT_EQ(CFSocketConnectToAddress(s, where, 1), kCFSocketSuccess);
    EXPECT_EQ(CFSocketConnectToAddress(s, where, 0), kCFSocketError);
    EXPECT_EQ(errno, EISCONN);
    EXPECT_EQ(CFSocketConnectToAddress(s, where, -1), kCFSocketError);
    EXPECT_EQ(CFSocketSendData(s, NULL, text, 1), kCFSocketSuccess);
    CFSocketInvalidate(s);
    CFRelease(s);
    CFRelease(text);
    close(listener);
    CFRelease(where);
    CFRelease(any);
}

/* ---- addresses ---- */

TEST(a_signature_makes_a_listening_or_a_connected_socket, "270")
{
    struct recorder server = RECORDER(.name = "s");
    struct recorder client = RECORDER(.name = "c");
    CFSocketContext server_context = recorder_context(&server);
    CFSocketContext client_context = recorder_context(&client);
    CFDataRef any = loopback_address(AF_INET6);
    CFSocketSignature signature = {PF_INET6, SOCK_STREAM, IPPROTO_TCP, any};
    int value = 0;
    socklen_t size = sizeof value;

    server.object = CFSocketCreateWithSocketSignature(NULL, &signature, accepts, recorder_called, &server_context);
    if (!server.object) {
        CFRelease(any);
        SKIP("there is no IPv6 loopback here");
    }
    recorder_schedule(&server);
    getsockopt(CFSocketGetNative(server.object), SOL_SOCKET, SO_ACCEPTCONN, &value, &size);
    EXPECT_EQ(value, 1);
    signature.address = CFSocketCopyAddress(server.object);
    client.object = CFSocketCreateConnectedToSocketSignature(NULL, &signature, connects, recorder_called, &client_context, 5);
    REQUIRE(client.object != NULL);
    recorder_schedule(&client);
    recorder_await(&server, 1);
    recorder_await(&client, 1);
    EXPECT(server.accepted >= 0);
    recorder_free(&client);
    recorder_free(&server);
    CFRelease(signature.address);
    CFRelease(any);
}

TEST(a_signature_that_cannot_be_had_makes_no_socket, "270")
{
    CFDataRef taken = loopback_address(AF_INET);
    int listener = listen_on(taken, 5);
    CFDataRef where = address_of(listener);
    CFDataRef nobody = refusing_address();
    struct recorder recorder = RECORDER();
    CFSocketContext context = recorder_context(&recorder);
    CFSocketSignature signature = {PF_INET, SOCK_STREAM, 0, where};

    EXPECT(CFSocketCreateWithSocketSignature(NULL, &signature, accepts, recorder_called, &context) == NULL);
    signature.address = nobody;
    EXPECT(CFSocketCreateConnectedToSocketSignature(NULL, &signature, reads, recorder_called, &context, 5) == NULL);
    EXPECT(CFSocketCreateConnectedToSocketSignature(NULL, &signature, reads, recorder_called, &context, 0) == NULL);
    signature.address = NULL;
    EXPECT(CFSocketCreateWithSocketSignature(NULL, &signature, accepts, recorder_called, &context) == NULL);
    EXPECT(CFSocketCreateConnectedToSocketSignature(NULL, &signature, accepts, recorder_called, &context, 1) == NULL);
    EXPECT(CFSocketCreateWithSocketSignature(NULL, NULL, accepts, recorder_called, &context) == NULL);
    EXPECT(CFSocketCreateConnectedToSocketSignature(NULL, NULL, accepts, recorder_called, &context, 1) == NULL);
    EXPECT_EQ(recorder.retains, recorder.releases);
    close(listener);
    CFRelease(nobody);
    CFRelease(where);
    CFRelease(taken);
}

TEST(an_address_cannot_be_set_where_it_is_taken, "270")
{
    CFDataRef any = loopback_address(AF_INET);
    int listener = listen_on(any, 5);
    CFDataRef where = address_of(listener);
    CFSocketRef s = CFSocketCreate(NULL, 0, 0, 0, 0, NULL, NULL);
    CFSocketRef datagrams = CFSocketCreate(NULL, 0, SOCK_DGRAM, 0, 0, NULL, NULL);
    CFDataRef empty = CFDataCreate(NULL, NULL, 0);

    EXPECT_EQ(CFSocketSetAddress(s, where), kCFSocketError);
    EXPECT_EQ(CFSocketSetAddress(s, empty), kCFSocketError);
    EXPECT_EQ(CFSocketSetAddress(s, any), kCFSocketSuccess);
    EXPECT_EQ(CFSocketSetAddress(datagrams, any), kCFSocketSuccess); /* a datagram socket cannot listen, which is no error */
    CFRelease(empty);
    CFRelease(s);
    CFRelease(datagrams);
    close(listener);
    CFRelease(where);
    CFRelease(any);
}

/* All interfaces of IPv6, with the port of another address. */
static CFDataRef all_interfaces(CFDataRef other)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};

    address.sin6_port = ((const struct sockaddr_in *)(const void *)CFDataGetBytePtr(other))->sin_port;
    return CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);
}

/* An IPv6 socket that takes IPv4 along, its source in the mode; false where there is none. */
static bool open_ipv6(struct recorder *recorder)
{
    CFSocketContext context = recorder_context(recorder);
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_there = probe >= 0 && bind(probe, (const struct sockaddr *)&loopback, sizeof loopback) == 0;
    int is_without = 0;

    if (probe >= 0) {
        close(probe);
    }
    if (!is_there) {
        return false;
    }
    recorder->object = CFSocketCreate(NULL, PF_INET6, SOCK_STREAM, 0, accepts, recorder_called, &context);
    REQUIRE(recorder->object != NULL);
    REQUIRE(setsockopt(CFSocketGetNative(recorder->object), IPPROTO_IPV6, IPV6_V6ONLY, &is_without, sizeof is_without) == 0);
    recorder_schedule(recorder);
    return true;
}

static bool is_for_ipv6_alone(CFSocketRef s)
{
    int value = -1;
    socklen_t size = sizeof value;

    REQUIRE(getsockopt(CFSocketGetNative(s), IPPROTO_IPV6, IPV6_V6ONLY, &value, &size) == 0);
    return value != 0;
}

/* Servers with a socket for each family open the IPv4 one first. */
TEST(an_ipv6_socket_shares_the_port_of_an_ipv4_one, "270 259")
{
    CFDataRef any = loopback_address(AF_INET);
    int ipv4 = listen_on(any, 5);
    CFDataRef where = address_of(ipv4);
    CFDataRef all = all_interfaces(where);
    CFMutableDataRef loopback = CFDataCreateMutableCopy(NULL, 0, all);
    struct recorder first = RECORDER();
    struct recorder second = RECORDER();
    bool is_there = open_ipv6(&first) && open_ipv6(&second);

    if (is_there) {
        int client;

        EXPECT_EQ(CFSocketSetAddress(first.object, all), kCFSocketSuccess);
        EXPECT(is_for_ipv6_alone(first.object));
        ((struct sockaddr_in6 *)(void *)CFDataGetMutableBytePtr(loopback))->sin6_addr = in6addr_loopback;
        client = connect_to(loopback);
        recorder_await(&first, 1);
        EXPECT_LOG("accept");
        close(client);

        /* A socket that cannot have the address is as it was before. */
        EXPECT_EQ(CFSocketSetAddress(second.object, all), kCFSocketError);
        EXPECT(!is_for_ipv6_alone(second.object));
        recorder_free(&first);
        recorder_free(&second);
    }
    close(ipv4);
    CFRelease(loopback);
    CFRelease(all);
    CFRelease(where);
    CFRelease(any);
    if (!is_there) {
        SKIP("there is no IPv6 loopback here");
    }
}

TEST(an_ipv6_socket_on_a_free_port_serves_ipv4_too, "270 259")
{
    CFDataRef any = loopback_address(AF_INET);
    CFDataRef all = all_interfaces(any); /* with any port */
    CFMutableDataRef loopback = CFDataCreateMutableCopy(NULL, 0, any);
    struct recorder recorder = RECORDER();
    bool is_there = open_ipv6(&recorder);

    if (is_there) {
        CFDataRef where;
        int client;

        EXPECT_EQ(CFSocketSetAddress(recorder.object, all), kCFSocketSuccess);
        EXPECT(!is_for_ipv6_alone(recorder.object));
        where = CFSocketCopyAddress(recorder.object);
        ((struct sockaddr_in *)(void *)CFDataGetMutableBytePtr(loopback))->sin_port =
            ((const struct sockaddr_in6 *)(const void *)CFDataGetBytePtr(where))->sin6_port;
        client = connect_to(loopback);
        recorder_await(&recorder, 1);
        EXPECT_LOG("accept");
        close(client);
        CFRelease(where);
        recorder_free(&recorder);
    }
    CFRelease(loopback);
    CFRelease(all);
    CFRelease(any);
    if (!is_there) {
        SKIP("there is no IPv6 loopback here");
    }
}

TEST(unix_sockets_listen_and_connect_by_path, "270 259")
{
    char path[64];
    struct recorder server = RECORDER();
    struct recorder client = RECORDER();
    CFSocketContext server_context = recorder_context(&server);
    CFSocketContext client_context = recorder_context(&client);
    CFSocketSignature signature = {PF_UNIX, SOCK_STREAM, 0, NULL};
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)"hello", 5);

    (void)snprintf(path, sizeof path, "/tmp/crl-socket-%d", (int)getpid());
    signature.address = path_address(path);
    server.object = CFSocketCreateWithSocketSignature(NULL, &signature, accepts, recorder_called, &server_context);
    REQUIRE(server.object != NULL);
    recorder_schedule(&server);
    client.object = CFSocketCreateConnectedToSocketSignature(NULL, &signature, receives, recorder_called, &client_context, -1);
    REQUIRE(client.object != NULL);
    recorder_schedule(&client);
    recorder_await(&server, 1);
    EXPECT_EQ(CFSocketSendData(client.object, NULL, data, 0), kCFSocketSuccess);
    EXPECT_EQ(drain(server.accepted), 5);
    tell(server.accepted, "back");
    recorder_await(&client, 1);
    EXPECT_LOG("accept data(4)");
    recorder_free(&client);
    recorder_free(&server);
    unlink(path);
    CFRelease(data);
    CFRelease(signature.address);
}

/* ---- sending ---- */

TEST(part_of_what_is_sent_is_a_success, "272")
{
    int ends[2];
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);
    CFDataRef empty = CFDataCreate(NULL, NULL, 0);
    CFSocketRef s;
    CFAbsoluteTime start;

    pair_open(ends);
    CFDataSetLength(data, 10000000);
    s = CFSocketCreateWithNative(NULL, ends[0], 0, NULL, NULL);
    EXPECT_EQ(CFSocketSendData(s, NULL, empty, 1), kCFSocketError); /* nothing went */
    EXPECT_EQ(CFSocketSendData(s, NULL, NULL, 1), kCFSocketError);
    EXPECT_EQ(CFSocketSendData(s, NULL, data, 0.05), kCFSocketSuccess);
    start = CFAbsoluteTimeGetCurrent();
    EXPECT_EQ(CFSocketSendData(s, NULL, data, 0.05), kCFSocketTimeout); /* full */
    EXPECT(CFAbsoluteTimeGetCurrent() - start >= 0.049);
    EXPECT(drain(ends[1]) > 0);
    CFDataSetLength(data, 10);
    EXPECT_EQ(CFSocketSendData(s, NULL, data, 0), kCFSocketSuccess);
    EXPECT_EQ(drain(ends[1]), 10);
    CFRelease(s);
    CFRelease(data);
    CFRelease(empty);
    close(ends[1]);
}

static CFMutableDataRef zeros(CFIndex length)
{
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);

    CFDataSetLength(data, length);
    return data;
}

/* An option of the socket would also limit the sends of other threads, and those that the program makes itself. */
TEST(the_limit_of_one_send_is_no_option_of_the_socket, "272")
{
    const struct timeval of_the_program = {7, 0};
    struct timeval found = {0, 0};
    socklen_t size = sizeof found;
    CFMutableDataRef data = zeros(10);
    CFSocketRef s;
    int ends[2];

    pair_open(ends);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &of_the_program, sizeof of_the_program);
    s = CFSocketCreateWithNative(NULL, ends[0], 0, NULL, NULL);
    EXPECT_EQ(CFSocketSendData(s, NULL, data, 0.05), kCFSocketSuccess);
    EXPECT_EQ(CFSocketSendData(s, NULL, data, 0), kCFSocketSuccess);
    getsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &found, &size);
    EXPECT_EQ(found.tv_sec, of_the_program.tv_sec);
    EXPECT_EQ(found.tv_usec, of_the_program.tv_usec);
    CFRelease(s);
    CFRelease(data);
    close(ends[1]);
}

/* Reads up to the end, and adds up the bytes. */
static void reads_until_the_end(void *context)
{
    int *total = context;
    int socket = *total;
    char bytes[4096];
    ssize_t size;

    *total = 0;
    while ((size = recv(socket, bytes, sizeof bytes, 0)) > 0) {
        *total += (int)size;
    }
    close(socket);
}

TEST(a_blocking_socket_sends_all_that_is_read_in_time, "272")
{
    enum { length = 3000000 };
    CFMutableDataRef data = zeros(length);
    struct probe_thread thread;
    CFSocketRef s;
    int ends[2];
    int total;

    pair_open(ends);
    s = CFSocketCreateWithNative(NULL, ends[0], 0, NULL, NULL);
    total = ends[1];
    probe_thread_start(&thread, reads_until_the_end, &total);
    EXPECT_EQ(CFSocketSendData(s, NULL, data, test_patience_s()), kCFSocketSuccess);
    CFSocketInvalidate(s);
    probe_thread_join(&thread);
    EXPECT_EQ(total, length);
    CFRelease(s);
    CFRelease(data);
}

TEST(the_shortest_limit_still_tries_once, "268 272")
{
    static const CFTimeInterval shortest_s = 1e-9;
    enum { tries = 50 };
    CFMutableDataRef data = zeros(10);
    char path[64];
    CFDataRef where;
    int listener;

    (void)snprintf(path, sizeof path, "/tmp/crl-listener-%d", (int)getpid());
    where = path_address(path);
    listener = listen_on(where, tries); /* all are taken without a wait */
    for (int i = 0; i < tries; i++) {
        CFSocketRef s = CFSocketCreate(NULL, PF_LOCAL, SOCK_STREAM, 0, 0, NULL, NULL);

        EXPECT_EQ(CFSocketConnectToAddress(s, where, shortest_s), kCFSocketSuccess);
        EXPECT_EQ(CFSocketSendData(s, NULL, data, shortest_s), kCFSocketSuccess);
        CFRelease(s);
    }
    close(listener);
    unlink(path);
    CFRelease(data);
    CFRelease(where);
}

TEST(a_socket_that_does_not_block_does_not_wait_for_room, "272")
{
    CFMutableDataRef data = zeros(100000);
    CFAbsoluteTime start = CFAbsoluteTimeGetCurrent();
    CFSocketRef s;
    int ends[2];

    pair_open(ends);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    s = CFSocketCreateWithNative(NULL, ends[0], 0, NULL, NULL);
    while (CFSocketSendData(s, NULL, data, 3600) == kCFSocketSuccess) {
    }
    EXPECT_EQ(CFSocketSendData(s, NULL, data, 3600), kCFSocketTimeout);
    EXPECT(CFAbsoluteTimeGetCurrent() - start < test_patience_s());
    CFRelease(s);
    CFRelease(data);
    close(ends[1]);
}

static double processor_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The receiver is full, but the kernel calls the sender writable: it does not know yet to whom the sender will send. */
TEST(a_datagram_to_a_full_receiver_waits_without_spinning, "272")
{
    static const CFTimeInterval limit_s = 0.3;
    char path[64];
    CFDataRef where;
    CFSocketRef sender = CFSocketCreate(NULL, PF_LOCAL, SOCK_DGRAM, 0, 0, NULL, NULL);
    CFSocketRef receiver = CFSocketCreate(NULL, PF_LOCAL, SOCK_DGRAM, 0, 0, NULL, NULL);
    CFMutableDataRef data = zeros(10);
    double begun_s;

    (void)snprintf(path, sizeof path, "/tmp/crl-datagrams-%d", (int)getpid());
    where = path_address(path);
    EXPECT_EQ(CFSocketSetAddress(receiver, where), kCFSocketSuccess);
    while (CFSocketSendData(sender, where, data, 1e-6) == kCFSocketSuccess) {
    }
    begun_s = processor_s();
    EXPECT_EQ(CFSocketSendData(sender, where, data, limit_s), kCFSocketTimeout);
    EXPECT(processor_s() - begun_s < limit_s / 2 || test_is_instrumented());
    EXPECT_EQ(recv(CFSocketGetNative(receiver), CFDataGetMutableBytePtr(data), 10, 0), 10);
    EXPECT_EQ(CFSocketSendData(sender, where, data, limit_s), kCFSocketSuccess);
    CFRelease(sender);
    CFRelease(receiver);
    unlink(path);
    CFRelease(where);
    CFRelease(data);
}

TEST(a_datagram_is_sent_to_an_address, "272")
{
    CFDataRef any = loopback_address(AF_INET);
    CFSocketRef sender = CFSocketCreate(NULL, PF_INET, SOCK_DGRAM, 0, 0, NULL, NULL);
    struct recorder receiver = RECORDER();
    CFSocketContext context = recorder_context(&receiver);
    CFSocketSignature signature = {PF_INET, SOCK_DGRAM, 0, any};
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)"hello", 5);
    CFDataRef where;

    receiver.object = CFSocketCreateWithSocketSignature(NULL, &signature, receives, recorder_called, &context);
    recorder_schedule(&receiver);
    where = CFSocketCopyAddress(receiver.object);
    EXPECT_EQ(CFSocketSendData(sender, where, data, 1), kCFSocketSuccess);
    recorder_await(&receiver, 1);
    EXPECT_LOG("data(5)");
    EXPECT_EQ(CFSocketSendData(sender, NULL, data, 0), kCFSocketError); /* to nobody */
    CFRelease(sender);
    recorder_free(&receiver);
    CFRelease(where);
    CFRelease(data);
    CFRelease(any);
}

TEST(sending_to_a_closed_socket_raises_no_signal, "272 F15")
{
    int ends[2];
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)"hello", 5);
    CFSocketRef s;
    struct sigaction action;

    pair_open(ends);
    s = CFSocketCreateWithNative(NULL, ends[0], 0, NULL, NULL);
    close(ends[1]);
    sigaction(SIGPIPE, NULL, &action);
    EXPECT(action.sa_handler == SIG_DFL); /* the signal would end the process */
    EXPECT_EQ(CFSocketSendData(s, NULL, data, 0), kCFSocketError);
    sigaction(SIGPIPE, NULL, &action);
    EXPECT(action.sa_handler == SIG_DFL);
    CFRelease(s);
    CFRelease(data);
}

/* ---- why it failed ---- */

#define EXPECT_REASON(call, answer, reason)                                                                                                \
    do {                                                                                                                                   \
        errno = 0;                                                                                                                         \
        EXPECT_EQ(call, answer);                                                                                                           \
        EXPECT_EQ(errno, reason);                                                                                                          \
    } while (0)

TEST(what_fails_leaves_its_reason_in_errno, "268 270 272")
{
    CFDataRef refusing = refusing_address();
    CFDataRef any = loopback_address(AF_INET);
    int listener = listen_on(any, 5);
    CFDataRef taken = address_of(listener);
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)"hello", 5);
    CFSocketSignature signature = {PF_INET, SOCK_STREAM, 0, taken};
    CFSocketRef s = CFSocketCreate(NULL, 0, 0, 0, 0, NULL, NULL);

    EXPECT_REASON(CFSocketConnectToAddress(s, refusing, 0), kCFSocketError, ECONNREFUSED);
    EXPECT_REASON(CFSocketConnectToAddress(s, refusing, 5), kCFSocketError, ECONNREFUSED);
    EXPECT_REASON(CFSocketConnectToAddress(s, NULL, 5), kCFSocketError, EINVAL);
    EXPECT_REASON(CFSocketSetAddress(s, taken), kCFSocketError, EADDRINUSE);
    EXPECT_REASON(CFSocketSetAddress(s, NULL), kCFSocketError, EINVAL);
    EXPECT_REASON(CFSocketSendData(s, NULL, data, 0), kCFSocketError, EPIPE);
    EXPECT_REASON(CFSocketSendData(s, NULL, NULL, 0), kCFSocketError, EINVAL);
    EXPECT_REASON(CFSocketSetAddress(s, any), kCFSocketSuccess, 0);
    CFSocketInvalidate(s);
    EXPECT_REASON(CFSocketConnectToAddress(s, refusing, 5), kCFSocketError, EBADF);
    EXPECT_REASON(CFSocketSetAddress(s, any), kCFSocketError, EBADF);
    EXPECT_REASON(CFSocketSendData(s, NULL, data, 0), kCFSocketError, EBADF);
    CFRelease(s);

    EXPECT_REASON(CFSocketCreate(NULL, PF_INET, SOCK_STREAM, IPPROTO_UDP, 0, NULL, NULL), NULL, EPROTONOSUPPORT);
    EXPECT_REASON(CFSocketCreateWithSocketSignature(NULL, &signature, 0, NULL, NULL), NULL, EADDRINUSE);
    signature.address = refusing;
    EXPECT_REASON(CFSocketCreateConnectedToSocketSignature(NULL, &signature, 0, NULL, NULL, 5), NULL, ECONNREFUSED);
    CFRelease(data);
    CFRelease(taken);
    CFRelease(any);
    CFRelease(refusing);
    close(listener);
}
