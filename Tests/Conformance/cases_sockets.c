/* SPDX-License-Identifier: Apache-2.0 */
/* CFSocket: rules 251 to 275. A callback's token is its type and what it was given; sockets are Unix pairs, or TCP on loopback. */
#define CONFORMANCE_GROUP "sockets"
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

struct socket_case {
    void (*action)(CFSocketRef s); /* after a callback is logged */
    long bytes; /* in data callbacks */
    int calls;
    int native; /* the last one accepted */
    bool is_silent;
};

static struct socket_case the_case;

static void log_accepted(CFDataRef address, const void *data)
{
    the_case.native = *(const CFSocketNativeHandle *)data;
    probe_note("A:%s", the_case.native >= 0 && address && CFDataGetLength(address) > 0 ? "ok" : "bad");
}

static void log_call(CFSocketCallBackType type, CFDataRef address, const void *data)
{
    switch (type) {
    case kCFSocketReadCallBack:
        probe_note("R:%s%s", address && CFDataGetLength(address) > 0 ? "address" : "", data ? "data" : "");
        break;
    case kCFSocketAcceptCallBack:
        log_accepted(address, data);
        break;
    case kCFSocketDataCallBack:
        probe_note("D:%ld:%ld", (long)CFDataGetLength(data), address ? (long)CFDataGetLength(address) : -1l);
        break;
    case kCFSocketConnectCallBack:
        probe_note("C:%d", data ? *(const SInt32 *)data : 0);
        break;
    case kCFSocketWriteCallBack:
        probe_note("W:%s", data ? "data" : "");
        break;
    default:
        probe_note("?%lu", (unsigned long)type);
    }
}

static void called(CFSocketRef s, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    (void)info;
    the_case.calls++;
    if (type == kCFSocketDataCallBack) {
        the_case.bytes += CFDataGetLength(data);
    }
    if (!the_case.is_silent) {
        log_call(type, address, data);
    }
    if (the_case.action) {
        the_case.action(s);
    }
}

static void add(CFSocketRef s)
{
    CFRunLoopSourceRef source = CFSocketCreateRunLoopSource(NULL, s, 0);

    CFRunLoopAddSource(LOOP, source, MODE);
    CFRelease(source);
}

static int pair(int type, int ends[2])
{
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) {
        conformance_skip("no socket pair");
    }
    return ends[1];
}

/* A socket object on one end of a pair, in the loop; the other end is returned. */
static CFSocketRef object_on_pair(CFOptionFlags types, int *ret_peer)
{
    int ends[2];
    CFSocketRef s;

    *ret_peer = pair(SOCK_STREAM, ends);
    s = CFSocketCreateWithNative(NULL, ends[0], types, called, NULL);
    add(s);
    return s;
}

static void put(int descriptor, const char *text)
{
    if (send(descriptor, text, strlen(text), MSG_NOSIGNAL) < 0) {
        probe_note("send:%d", errno);
    }
}

/* Runs until there were as many calls, or for a second, and then for a moment more: for calls that should not come. */
static void await(int calls)
{
    for (int i = 0; i < 100 && the_case.calls < calls; i++) {
        CFRunLoopRunInMode(MODE, 0.01, true);
    }
    CFRunLoopRunInMode(MODE, 0.03, false);
    CFRunLoopRunInMode(MODE, 0, false);
}

static void reads(CFSocketRef s)
{
    char bytes[64];

    probe_note("read%ld", (long)recv(CFSocketGetNative(s), bytes, sizeof bytes, MSG_DONTWAIT));
}

CASE(flags_come_from_the_types, "253", on_thread)
{
    static const CFOptionFlags types[] = {kCFSocketNoCallBack,
                                          kCFSocketReadCallBack,
                                          kCFSocketAcceptCallBack,
                                          kCFSocketDataCallBack,
                                          kCFSocketConnectCallBack,
                                          kCFSocketWriteCallBack,
                                          kCFSocketReadCallBack | kCFSocketWriteCallBack,
                                          kCFSocketDataCallBack | kCFSocketConnectCallBack | kCFSocketWriteCallBack};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        int ends[2];
        CFSocketRef s;

        (void)pair(SOCK_STREAM, ends);
        s = CFSocketCreateWithNative(NULL, ends[0], types[i], called, NULL);
        probe_note("%lu", (unsigned long)CFSocketGetSocketFlags(s));
        CFSocketInvalidate(s);
        CFRelease(s);
    }
}

CASE(a_native_socket_has_one_object, "251", on_thread)
{
    int ends[2];
    CFSocketRef one;
    CFSocketRef other;

    (void)pair(SOCK_STREAM, ends);
    one = CFSocketCreateWithNative(NULL, ends[0], kCFSocketReadCallBack, called, NULL);
    other = CFSocketCreateWithNative(NULL, ends[0], kCFSocketDataCallBack, NULL, NULL);
    probe_note_bool("same", one == other);
    probe_note("%lu", (unsigned long)CFSocketGetSocketFlags(other));
    CFSocketInvalidate(one);
    probe_note_bool("valid", CFSocketIsValid(other));
    probe_note("native%d", CFSocketGetNative(other));
}

CASE(a_read_callback_is_told_and_reads_itself, "255", on_thread)
{
    int peer;

    the_case.action = reads;
    (void)object_on_pair(kCFSocketReadCallBack, &peer);
    put(peer, "abc");
    await(1);
    put(peer, "de");
    await(2);
}

CASE(a_read_callback_repeats_while_bytes_remain, "255", on_thread)
{
    int peer;

    the_case.is_silent = true;
    (void)object_on_pair(kCFSocketReadCallBack, &peer);
    put(peer, "abc");
    await(3);
    probe_note_bool("repeats", the_case.calls >= 3);
}

CASE(a_read_callback_without_reenabling_comes_once, "255 265", on_thread)
{
    int peer;
    CFSocketRef s = object_on_pair(kCFSocketReadCallBack, &peer);

    CFSocketSetSocketFlags(s, CFSocketGetSocketFlags(s) & ~(CFOptionFlags)kCFSocketAutomaticallyReenableReadCallBack);
    put(peer, "abc");
    await(1);
    probe_note("again");
    CFSocketEnableCallBacks(s, kCFSocketReadCallBack);
    await(2);
}

CASE(data_is_enabled_again_by_either_bit_of_its_flag, "252 253", on_thread)
{
    static const CFOptionFlags flags[] = {kCFSocketAutomaticallyReenableReadCallBack, kCFSocketAutomaticallyReenableAcceptCallBack, 0};
    int peer;
    CFSocketRef s = object_on_pair(kCFSocketDataCallBack, &peer);

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        CFSocketSetSocketFlags(s, flags[i]);
        put(peer, "abc");
        await(the_case.calls + 1);
    }
    put(peer, "abc");
    await(the_case.calls);
}

CASE(the_end_is_readable, "258", on_thread)
{
    int peer;
    CFSocketRef s = object_on_pair(kCFSocketReadCallBack, &peer);

    CFSocketSetSocketFlags(s, CFSocketGetSocketFlags(s) & ~(CFOptionFlags)kCFSocketAutomaticallyReenableReadCallBack);
    the_case.action = reads;
    close(peer);
    await(1);
    probe_note_bool("valid", CFSocketIsValid(s));
}

CASE(data_comes_in_pieces_of_32768, "256", on_thread)
{
    static char bytes[100000];
    int size = 200000;
    int ends[2];
    CFSocketRef s;

    (void)pair(SOCK_STREAM, ends);
    (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    s = CFSocketCreateWithNative(NULL, ends[0], kCFSocketDataCallBack, called, NULL);
    if (send(ends[1], bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof bytes) {
        conformance_skip("the kernel's buffers are small");
    }
    add(s);
    await(4);
    probe_note("%ld", the_case.bytes);
}

CASE(data_ends_with_nothing_and_an_invalid_socket, "257", on_thread)
{
    int peer;
    CFSocketRef s = object_on_pair(kCFSocketDataCallBack, &peer);

    put(peer, "hello");
    await(1);
    close(peer);
    await(2);
    probe_note_bool("valid", CFSocketIsValid(s));
    probe_note("native%d", CFSocketGetNative(s));
}

CASE(datagrams_come_one_by_one, "256", on_thread)
{
    int ends[2];

    (void)pair(SOCK_DGRAM, ends);
    add(CFSocketCreateWithNative(NULL, ends[0], kCFSocketDataCallBack, called, NULL));
    put(ends[1], "one");
    put(ends[1], "three");
    await(2);
}

CASE(what_came_while_disabled_comes_after, "265", on_thread)
{
    int peer;
    CFSocketRef s = object_on_pair(kCFSocketDataCallBack, &peer);

    CFSocketDisableCallBacks(s, kCFSocketDataCallBack);
    put(peer, "abc");
    await(1);
    probe_note("enable");
    CFSocketEnableCallBacks(s, kCFSocketDataCallBack);
    await(1);
}

/* Disabled before it was in any mode, told once, and disabled again: each time that it joins its first mode all are enabled. */
CASE(the_first_mode_enables_all, "254 265", on_thread)
{
    int ends[2];
    CFSocketRef s;
    CFRunLoopSourceRef source;

    the_case.action = reads;
    (void)pair(SOCK_STREAM, ends);
    s = CFSocketCreateWithNative(NULL, ends[0], kCFSocketReadCallBack, called, NULL);
    CFSocketSetSocketFlags(s, kCFSocketCloseOnInvalidate);
    CFSocketDisableCallBacks(s, kCFSocketReadCallBack);
    add(s);
    source = CFSocketCreateRunLoopSource(NULL, s, 0);
    put(ends[1], "abc");
    await(1);
    put(ends[1], "de");
    probe_note("again");
    CFRunLoopRemoveSource(LOOP, source, MODE);
    CFRunLoopAddSource(LOOP, source, MODE);
    await(2);
    CFSocketDisableCallBacks(s, kCFSocketReadCallBack);
    CFRunLoopRemoveSource(LOOP, source, MODE);
    CFSocketDisableCallBacks(s, kCFSocketReadCallBack);
    put(ends[1], "f");
    probe_note("again");
    CFRunLoopAddSource(LOOP, source, MODE);
    await(3);
}

static void disables(CFSocketRef s)
{
    CFSocketDisableCallBacks(s, kCFSocketReadCallBack);
}

CASE(a_callback_may_disable_itself, "265", on_thread)
{
    int peer;
    CFSocketRef s = object_on_pair(kCFSocketReadCallBack, &peer);

    the_case.action = disables;
    put(peer, "abc");
    await(1);
    probe_note("enable");
    CFSocketEnableCallBacks(s, kCFSocketReadCallBack);
    await(2);
}

static void invalidates(CFSocketRef s)
{
    CFSocketInvalidate(s);
}

CASE(a_callback_may_invalidate, "264 267", on_thread)
{
    int peer;
    CFSocketRef s = object_on_pair(kCFSocketReadCallBack | kCFSocketWriteCallBack, &peer);

    the_case.action = invalidates;
    put(peer, "abc");
    await(1);
    probe_note_bool("valid", CFSocketIsValid(s));
    probe_note("%d", (int)CFRunLoopRunInMode(MODE, 0, false));
}

CASE(a_write_callback_comes_once_for_each_enabling, "262", on_thread)
{
    int peer;
    CFSocketRef s = object_on_pair(kCFSocketWriteCallBack, &peer);

    await(1);
    probe_note("enable");
    CFSocketEnableCallBacks(s, kCFSocketWriteCallBack);
    await(2);
}

CASE(a_write_callback_can_reenable_itself, "262", on_thread)
{
    int peer;
    CFSocketRef s = object_on_pair(kCFSocketWriteCallBack, &peer);

    the_case.is_silent = true;
    CFSocketSetSocketFlags(s, CFSocketGetSocketFlags(s) | kCFSocketAutomaticallyReenableWriteCallBack);
    await(3);
    probe_note_bool("repeats", the_case.calls >= 3);
}

static struct sockaddr_in loopback(void)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static CFDataRef data_of(const struct sockaddr_in *address)
{
    return CFDataCreate(NULL, (const UInt8 *)address, sizeof *address);
}

/* A listening socket object on loopback; its address goes to `ret_address`. */
static CFSocketRef listener(struct sockaddr_in *ret_address)
{
    CFSocketRef s = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, IPPROTO_TCP, kCFSocketAcceptCallBack, called, NULL);
    socklen_t size = sizeof *ret_address;

    *ret_address = loopback();
    probe_note("address%ld", (long)CFSocketSetAddress(s, data_of(ret_address)));
    (void)getsockname(CFSocketGetNative(s), (struct sockaddr *)ret_address, &size);
    add(s);
    return s;
}

CASE(connections_are_accepted, "259 270", on_thread)
{
    struct sockaddr_in address;
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int second = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)listener(&address);
    probe_note("connect%d", connect(client, (const struct sockaddr *)&address, sizeof address));
    await(1);
    put(the_case.native, "x");
    probe_note("connect%d", connect(second, (const struct sockaddr *)&address, sizeof address));
    await(2);
}

CASE(a_connection_in_the_background_is_told, "261 268", on_thread)
{
    struct sockaddr_in address = loopback();
    socklen_t size = sizeof address;
    int waiting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CFSocketRef s = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, IPPROTO_TCP, kCFSocketConnectCallBack, called, NULL);

    (void)bind(waiting, (const struct sockaddr *)&address, sizeof address);
    (void)listen(waiting, 5); /* nobody accepts: the kernel does */
    (void)getsockname(waiting, (struct sockaddr *)&address, &size);
    add(s);
    probe_note("%ld", (long)CFSocketConnectToAddress(s, data_of(&address), -1));
    await(1);
    probe_note_bool("peer", CFSocketCopyPeerAddress(s) != NULL);
}

static struct sockaddr_in nobodys_address(void)
{
    struct sockaddr_in address = loopback();
    socklen_t size = sizeof address;
    int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)bind(taken, (const struct sockaddr *)&address, sizeof address); /* bound and not listening: refused */
    (void)getsockname(taken, (struct sockaddr *)&address, &size);
    return address;
}

CASE(a_refusal_in_the_background_is_told, "261 263", on_thread)
{
    struct sockaddr_in address = nobodys_address();
    CFSocketRef s =
        CFSocketCreate(NULL, PF_INET, SOCK_STREAM, IPPROTO_TCP, kCFSocketConnectCallBack | kCFSocketWriteCallBack, called, NULL);

    add(s);
    probe_note("%ld", (long)CFSocketConnectToAddress(s, data_of(&address), -1));
    await(1);
    probe_note_bool("valid", CFSocketIsValid(s));
}

CASE(a_refusal_that_is_waited_for_is_an_error, "268", on_thread)
{
    struct sockaddr_in address = nobodys_address();
    CFSocketRef s = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, IPPROTO_TCP, kCFSocketNoCallBack, NULL, NULL);

    probe_note("%ld", (long)CFSocketConnectToAddress(s, data_of(&address), 2));
    probe_note("%ld", (long)CFSocketConnectToAddress(s, data_of(&address), 0));
}

CASE(a_connected_socket_is_told_so_once, "261 264", on_thread)
{
    int peer;
    CFSocketRef s = object_on_pair(kCFSocketConnectCallBack | kCFSocketDataCallBack | kCFSocketWriteCallBack, &peer);

    put(peer, "abc");
    await(3);
    probe_note_bool("valid", CFSocketIsValid(s));
}

CASE(invalidation_closes_or_leaves, "267", on_thread)
{
    for (int leave = 0; leave < 2; leave++) {
        int ends[2];
        CFSocketRef s;
        CFRunLoopSourceRef source;

        (void)pair(SOCK_STREAM, ends);
        s = CFSocketCreateWithNative(NULL, ends[0], kCFSocketReadCallBack, called, NULL);
        source = CFSocketCreateRunLoopSource(NULL, s, 3);
        probe_note("order%ld", (long)CFRunLoopSourceGetOrder(source));
        if (leave) {
            CFSocketSetSocketFlags(s, CFSocketGetSocketFlags(s) & ~(CFOptionFlags)kCFSocketCloseOnInvalidate);
        }
        CFSocketInvalidate(s);
        CFSocketInvalidate(s);
        probe_note_bool("open", fcntl(ends[0], F_GETFD) >= 0);
        probe_note_bool("source", CFRunLoopSourceIsValid(source));
        probe_note_bool("another", CFSocketCreateRunLoopSource(NULL, s, 0) != NULL);
        CFRelease(source);
        CFRelease(s);
    }
}

CASE(a_socket_has_one_source, "254", on_thread)
{
    int ends[2];
    CFSocketRef s;

    (void)pair(SOCK_STREAM, ends);
    s = CFSocketCreateWithNative(NULL, ends[0], kCFSocketReadCallBack, called, NULL);
    probe_note_bool("same", CFSocketCreateRunLoopSource(NULL, s, 0) == CFSocketCreateRunLoopSource(NULL, s, 0));
}

static int retains, releases;

static const void *retain_info(const void *info)
{
    retains++;
    return info;
}

static void release_info(const void *info)
{
    (void)info;
    releases++;
}

CASE(a_context_is_kept_and_given_back, "267 186", on_thread)
{
    int ends[2];
    CFSocketContext context = {.info = &the_case, .retain = retain_info, .release = release_info};
    CFSocketRef s;

    (void)pair(SOCK_STREAM, ends);
    s = CFSocketCreateWithNative(NULL, ends[0], kCFSocketReadCallBack, called, &context);
    memset(&context, 0, sizeof context);
    CFSocketGetContext(s, &context);
    probe_note_bool("info", context.info == &the_case);
    probe_note("+%d-%d", retains, releases);
    CFSocketInvalidate(s);
    probe_note("+%d-%d", retains, releases);
    CFRelease(s);
    probe_note("+%d-%d", retains, releases);
}

CASE(types_and_protocols_have_defaults, "271", on_thread)
{
    static const struct {
        SInt32 family, type, protocol;
    } asked[] = {
        {0, 0, 0}, {-1, -1, -1}, {PF_INET, SOCK_DGRAM, 0}, {PF_INET6, SOCK_STREAM, 0}, {PF_UNIX, SOCK_STREAM, 0}, {PF_INET, 99, 0}};

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        CFSocketRef s = CFSocketCreate(NULL, asked[i].family, asked[i].type, asked[i].protocol, kCFSocketNoCallBack, NULL, NULL);
        int family = -1, type = -1;
        socklen_t size = sizeof family;

        if (!s) {
            probe_note("none");
            continue;
        }
        (void)getsockopt(CFSocketGetNative(s), SOL_SOCKET, SO_DOMAIN, &family, &size);
        (void)getsockopt(CFSocketGetNative(s), SOL_SOCKET, SO_TYPE, &type, &size);
        probe_note("%d/%d", family, type);
    }
}

CASE(addresses_are_copied, "273", on_thread)
{
    struct sockaddr_in address;
    CFSocketRef s = listener(&address);
    CFDataRef own = CFSocketCopyAddress(s);
    CFDataRef peer = CFSocketCopyPeerAddress(s);
    const struct sockaddr_in *found = own ? (const struct sockaddr_in *)(const void *)CFDataGetBytePtr(own) : NULL;

    probe_note("%ld", own ? (long)CFDataGetLength(own) : -1l);
    probe_note_bool("port", found && found->sin_port == address.sin_port);
    probe_note_bool("peer", peer != NULL);
}

CASE(data_is_sent, "272", on_thread)
{
    int peer;
    char bytes[16] = "";
    CFSocketRef s = object_on_pair(kCFSocketNoCallBack, &peer);
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)"hello", 5);

    probe_note("%ld", (long)CFSocketSendData(s, NULL, data, 1));
    probe_note("got%ld", (long)recv(peer, bytes, sizeof bytes, MSG_DONTWAIT));
    CFSocketInvalidate(s);
    probe_note("%ld", (long)CFSocketSendData(s, NULL, data, 1));
}

CASE(a_taken_address_is_an_error, "270", on_thread)
{
    struct sockaddr_in address;
    CFSocketSignature signature = {PF_INET, SOCK_STREAM, IPPROTO_TCP, NULL};
    CFSocketRef other = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, IPPROTO_TCP, kCFSocketNoCallBack, NULL, NULL);

    (void)listener(&address);
    probe_note("%ld", (long)CFSocketSetAddress(other, data_of(&address)));
    signature.address = data_of(&address);
    probe_note_bool("made", CFSocketCreateWithSocketSignature(NULL, &signature, kCFSocketNoCallBack, NULL, NULL) != NULL);
    address = nobodys_address();
    signature.address = data_of(&address);
    probe_note_bool("connected", CFSocketCreateConnectedToSocketSignature(NULL, &signature, kCFSocketNoCallBack, NULL, NULL, 1) != NULL);
}

CASE(a_socket_without_callbacks_is_never_called, "254", on_thread)
{
    int peer;

    (void)object_on_pair(kCFSocketNoCallBack, &peer);
    put(peer, "abc");
    await(1);
    probe_note("%d", the_case.calls);
}

static void calls(CFSocketRef s, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    char byte;

    (void)type;
    (void)address;
    (void)data;
    (void)recv(CFSocketGetNative(s), &byte, 1, MSG_DONTWAIT);
    probe_note("R%s", (const char *)info);
}

/* Four sockets with a byte for each, and a timer that is due; what finds out about sockets had time to. */
static void four_sockets_and_a_due_timer(struct probe *timer)
{
    static char names[4][2] = {"1", "2", "3", "4"};
    int peers[4];

    for (int i = 0; i < 4; i++) {
        CFSocketContext context = {.info = names[i]};
        int ends[2];

        peers[i] = pair(SOCK_STREAM, ends);
        add(CFSocketCreateWithNative(NULL, ends[0], kCFSocketReadCallBack, calls, &context));
    }
    CFRunLoopRunInMode(MODE, 0.05, false);
    probe_stage(MODE);
    for (int i = 0; i < 4; i++) {
        put(peers[i], "x");
    }
    if (timer) {
        probe_timer_add(timer, -1, 0, LOOP, MODE);
    }
    (void)usleep(50000);
}

CASE(ready_sockets_come_before_a_due_timer_in_a_pass, "50 254", on_thread)
{
    static struct probe timer = PROBE("T", NULL);

    four_sockets_and_a_due_timer(&timer);
    probe_run(MODE, 0, false);
}

CASE(a_timer_that_stops_the_run_comes_after_ready_sockets, "50 254", on_thread)
{
    static struct probe timer = PROBE("T", probe_stops_loop);

    four_sockets_and_a_due_timer(&timer);
    probe_run(MODE, 5, false);
}

CASE(a_signalled_source_and_sockets_in_a_run_that_returns, "49 254", on_thread)
{
    static struct probe source = PROBE("S", NULL);

    four_sockets_and_a_due_timer(NULL);
    probe_source_add(&source, -1, LOOP, MODE);
    CFRunLoopSourceSignal(probe_source_of(&source));
    probe_run(MODE, 5, true);
}

CASE(a_run_that_returns_after_a_source_reads_one_socket, "49 254", on_thread)
{
    four_sockets_and_a_due_timer(NULL);
    probe_run(MODE, 5, true);
}
