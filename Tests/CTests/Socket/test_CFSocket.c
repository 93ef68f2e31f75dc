/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CFSocket object: creation, flags, the run loop source, the context, the end (rules 183 to 187, 251 to 254, 267, 271, 273, 275).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "Socket/socket_recorder.h"

static bool is_open(int descriptor)
{
    return fcntl(descriptor, F_GETFD) >= 0;
}

TEST(a_native_socket_has_one_object, "251")
{
    int ends[2];
    struct recorder recorder = RECORDER();
    struct recorder other = RECORDER();
    CFSocketContext context = recorder_context(&other);
    CFSocketRef again;

    pair_open(ends);
    recorder_create(&recorder, ends[0], reads);
    again = CFSocketCreateWithNative(NULL, ends[0], writes, NULL, &context);
    EXPECT(again == recorder.object);
    EXPECT_EQ(CFGetRetainCount(again), 2);
    EXPECT_EQ(other.retains, 0);
    EXPECT_EQ(CFSocketGetSocketFlags(again), 129);
    CFRelease(again);
    recorder_free(&recorder);
    close(ends[1]);
    pair_open(ends); /* the kernel gives out the same number again */
    recorder_create(&other, ends[0], writes);
    EXPECT_EQ(CFSocketGetSocketFlags(other.object), 128);
    recorder_free(&other);
    close(ends[1]);
}

TEST(a_freed_socket_gives_its_number_free, "251 267")
{
    int ends[2];
    struct recorder recorder = RECORDER();

    pair_open(ends);
    recorder_create(&recorder, ends[0], reads);
    CFRelease(recorder.object); /* not invalidated: freeing does it */
    EXPECT_EQ(recorder.releases, 1);
    EXPECT(!is_open(ends[0]));
    close(ends[1]);
}

TEST(socket_flags_begin_with_the_kind_of_reading, "252 253")
{
    static const struct {
        CFOptionFlags types;
        CFOptionFlags flags;
    } cases[] = {{0, 128},
                 {reads, 129},
                 {accepts, 130},
                 {receives, 131},
                 {reads | accepts, 131},
                 {writes, 128},
                 {connects, 128},
                 {reads | writes | connects, 129}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CFSocketRef s = CFSocketCreate(NULL, PF_UNIX, SOCK_STREAM, 0, cases[i].types, recorder_called, NULL);

        EXPECT_EQ(CFSocketGetSocketFlags(s), cases[i].flags);
        CFSocketSetSocketFlags(s, kCFSocketLeaveErrors);
        EXPECT_EQ(CFSocketGetSocketFlags(s), kCFSocketLeaveErrors);
        CFSocketSetSocketFlags(s, kCFSocketCloseOnInvalidate);
        CFSocketInvalidate(s);
        CFRelease(s);
    }
}

TEST(read_and_accept_together_are_data, "252")
{
    struct recorder recorder = RECORDER();

    recorder_add_on_pair(&recorder, reads | accepts);
    tell(recorder.ends[1], "abc");
    look();
    EXPECT_LOG("data(3)");
    recorder_free_with_pair(&recorder);
}

TEST(a_socket_without_its_source_in_a_loop_is_not_watched, "254")
{
    int ends[2];
    struct recorder recorder = RECORDER(.drains = true);
    CFRunLoopSourceRef source;

    pair_open(ends);
    recorder_create(&recorder, ends[0], reads);
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("");
    source = CFSocketCreateRunLoopSource(NULL, recorder.object, 3);
    look();
    EXPECT_LOG("");
    CFRunLoopAddSource(LOOP, source, MODE);
    look();
    EXPECT_LOG("read");
    CFRunLoopRemoveSource(LOOP, source, MODE);
    tell(ends[1], "def");
    look();
    EXPECT_LOG("");
    CFRelease(source);
    recorder_free(&recorder);
    close(ends[1]);
}

TEST(a_sockets_source_is_made_once_and_keeps_it, "254")
{
    int ends[2];
    struct recorder recorder = RECORDER();
    CFRunLoopSourceContext context = {.version = 0};
    CFRunLoopSourceRef source;
    CFRunLoopSourceRef again;
    CFSocketRef s;

    pair_open(ends);
    s = recorder_create(&recorder, ends[0], reads);
    source = CFSocketCreateRunLoopSource(NULL, s, 3);
    again = CFSocketCreateRunLoopSource(NULL, s, 9);
    EXPECT(source == again);
    EXPECT_EQ(CFRunLoopSourceGetOrder(source), 3);
    CFRelease(again);
    CFRunLoopSourceGetContext(source, &context);
    EXPECT_EQ(context.version, 0);
    EXPECT(context.info == s);
    CFRelease(s); /* the source is the last to hold it */
    EXPECT_EQ(recorder.releases, 0);
    CFSocketInvalidate(s);
    EXPECT(!CFRunLoopSourceIsValid(source));
    EXPECT(CFSocketCreateRunLoopSource(NULL, s, 0) == NULL);
    CFRelease(source);
    EXPECT_EQ(recorder.releases, 1);
    close(ends[1]);
}

TEST(a_new_source_follows_an_invalid_one_of_the_socket, "254")
{
    int ends[2];
    struct recorder recorder = RECORDER(.drains = true);
    CFRunLoopSourceRef source;

    pair_open(ends);
    recorder_create(&recorder, ends[0], reads);
    source = CFSocketCreateRunLoopSource(NULL, recorder.object, 0);
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
    EXPECT(CFSocketIsValid(recorder.object));
    recorder_schedule(&recorder);
    tell(ends[1], "x");
    look();
    EXPECT_LOG("read");
    recorder_free(&recorder);
    close(ends[1]);
}

TEST(socket_defaults_are_those_of_internet_streams, "271")
{
    static const struct {
        SInt32 family, type, protocol;
        int made_family, made_type, made_protocol;
    } cases[] = {
        {0, 0, 0, PF_INET, SOCK_STREAM, IPPROTO_TCP},
        {-1, -1, -1, PF_INET, SOCK_STREAM, IPPROTO_TCP},
        {PF_INET, SOCK_DGRAM, 0, PF_INET, SOCK_DGRAM, IPPROTO_UDP},
        {PF_INET, SOCK_STREAM, IPPROTO_TCP, PF_INET, SOCK_STREAM, IPPROTO_TCP},
        {PF_LOCAL, 0, 0, PF_LOCAL, SOCK_STREAM, 0},
        {PF_LOCAL, -1, 0, PF_LOCAL, SOCK_STREAM, 0},
        {PF_LOCAL, SOCK_DGRAM, 0, PF_LOCAL, SOCK_DGRAM, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CFSocketRef s = CFSocketCreate(NULL, cases[i].family, cases[i].type, cases[i].protocol, 0, NULL, NULL);
        int value;
        socklen_t size = sizeof value;

        REQUIRE(s != NULL);
        getsockopt(CFSocketGetNative(s), SOL_SOCKET, SO_DOMAIN, &value, &size);
        EXPECT_EQ(value, cases[i].made_family);
        getsockopt(CFSocketGetNative(s), SOL_SOCKET, SO_TYPE, &value, &size);
        EXPECT_EQ(value, cases[i].made_type);
        getsockopt(CFSocketGetNative(s), SOL_SOCKET, SO_PROTOCOL, &value, &size);
        EXPECT_EQ(value, cases[i].made_protocol);
        EXPECT(fcntl(CFSocketGetNative(s), F_GETFD) & FD_CLOEXEC);
        CFRelease(s);
    }
    EXPECT(CFSocketCreate(NULL, PF_PACKET, 0, 0, 0, NULL, NULL) == NULL); /* other families have no default */
    EXPECT(CFSocketCreate(NULL, 12345, SOCK_STREAM, 0, 0, NULL, NULL) == NULL);
}

TEST(a_closed_descriptor_gives_no_socket, "251 251a")
{
    struct recorder recorder = RECORDER();
    CFSocketContext context = recorder_context(&recorder);

    EXPECT(CFSocketCreateWithNative(NULL, -1, reads, recorder_called, &context) == NULL);
    EXPECT(CFSocketCreateWithNative(NULL, 9999, reads, recorder_called, &context) == NULL);
    EXPECT_EQ(recorder.retains, 0);
}

TEST(socket_addresses_are_copies, "273")
{
    int ends[2];
    CFDataRef any = loopback_address(AF_INET);
    int listener = listen_on(any, 5);
    CFDataRef there = address_of(listener);
    int client = connect_to(there);
    CFDataRef here = address_of(client);
    CFSocketRef s = CFSocketCreateWithNative(NULL, client, 0, NULL, NULL);
    CFSocketRef unconnected = CFSocketCreate(NULL, 0, 0, 0, 0, NULL, NULL);
    CFDataRef own = CFSocketCopyAddress(s);
    CFDataRef peer = CFSocketCopyPeerAddress(s);
    CFSocketRef pair;
    CFDataRef unnamed;

    EXPECT(CFEqual(own, here));
    EXPECT(CFEqual(peer, there));
    EXPECT_EQ(CFGetRetainCount(own), 1);
    EXPECT(CFSocketCopyPeerAddress(unconnected) == NULL);
    pair_open(ends);
    pair = CFSocketCreateWithNative(NULL, ends[0], 0, NULL, NULL);
    unnamed = CFSocketCopyPeerAddress(pair);
    EXPECT_EQ(CFDataGetLength(unnamed), 2); /* a family and no name */
    CFSocketInvalidate(s);
    EXPECT(CFSocketCopyAddress(s) == NULL);
    EXPECT(CFSocketCopyPeerAddress(s) == NULL);
    CFRelease(unnamed);
    CFRelease(pair);
    CFRelease(own);
    CFRelease(peer);
    CFRelease(s);
    CFRelease(unconnected);
    CFRelease(here);
    CFRelease(there);
    CFRelease(any);
    close(listener);
    close(ends[1]);
}

TEST(an_invalidated_socket_is_over_once, "267 186")
{
    struct recorder recorder = RECORDER();
    CFSocketContext context = {.version = 0};

    recorder_add_on_pair(&recorder, reads);
    CFSocketGetContext(recorder.object, &context);
    EXPECT(context.info == &recorder);
    EXPECT(context.retain != NULL && context.release != NULL);
    CFSocketInvalidate(recorder.object);
    CFSocketInvalidate(recorder.object);
    EXPECT(!CFSocketIsValid(recorder.object));
    EXPECT_EQ(CFSocketGetNative(recorder.object), -1);
    EXPECT_EQ(recorder.releases, 1);
    EXPECT(!is_open(recorder.ends[0]));
    CFSocketGetContext(recorder.object, &context);
    EXPECT(context.info == NULL);
    EXPECT_EQ(CFSocketSetAddress(recorder.object, NULL), kCFSocketError);
    EXPECT_EQ(CFSocketConnectToAddress(recorder.object, NULL, 0), kCFSocketError);
    EXPECT_EQ(CFSocketSendData(recorder.object, NULL, NULL, 0), kCFSocketError);
    CFSocketEnableCallBacks(recorder.object, reads);
    CFSocketDisableCallBacks(recorder.object, reads);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunFinished);
    CFRelease(recorder.object);
    EXPECT_EQ(recorder.releases, 1);
    close(recorder.ends[1]);
}

TEST(a_socket_that_is_not_to_be_closed_stays_open, "267")
{
    struct recorder recorder = RECORDER();

    recorder_add_on_pair(&recorder, reads);
    CFSocketSetSocketFlags(recorder.object, kCFSocketAutomaticallyReenableReadCallBack);
    recorder_free(&recorder);
    EXPECT(is_open(recorder.ends[0]));
    pair_close(recorder.ends);
}

static void invalidates(void *socket)
{
    CFSocketInvalidate(socket);
}

TEST(invalidating_a_socket_wakes_its_loop, "267")
{
    struct recorder recorder = RECORDER();
    struct probe_thread thread;

    recorder_add_on_pair(&recorder, reads);
    probe_thread_when_waiting(&thread, LOOP, invalidates, recorder.object);
    /* Without the wake-up the loop would sleep on, although nothing is left in the mode. */
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 3600, false), kCFRunLoopRunFinished);
    probe_thread_join(&thread);
    CFRelease(recorder.object);
    close(recorder.ends[1]);
}

TEST(a_sockets_context_brackets_every_delivery, "275")
{
    struct recorder recorder = RECORDER(.logs_context = true);

    recorder_add_on_pair(&recorder, receives);
    EXPECT_LOG("retain");
    tell(recorder.ends[1], "abc");
    look();
    EXPECT_LOG("retain data(3) release");
    close(recorder.ends[1]);
    look();
    EXPECT_LOG("retain data() release release");
    CFRelease(recorder.object);
    EXPECT_LOG("");
}

static const void *gives_another(const void *info)
{
    return (const char *)info + 1;
}

static void notes_info(CFSocketRef s, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    (void)s, (void)type, (void)address, (void)data;
    probe_note("%s", (char *)info);
}

TEST(what_retain_returns_is_the_sockets_info, "275 186")
{
    int ends[2];
    static char text[] = "abc";
    CFSocketContext context = {.info = text, .retain = gives_another};
    CFSocketRef s;
    CFRunLoopSourceRef source;

    pair_open(ends);
    s = CFSocketCreateWithNative(NULL, ends[0], writes, notes_info, &context);
    CFSocketGetContext(s, &context);
    EXPECT(context.info == text + 1);
    source = CFSocketCreateRunLoopSource(NULL, s, 0);
    CFRunLoopAddSource(LOOP, source, MODE);
    look();
    EXPECT_LOG("c");
    CFSocketInvalidate(s);
    CFRelease(source);
    CFRelease(s);
    close(ends[1]);
}

static CFStringRef describes(const void *info)
{
    (void)info;
    return CFSTR("mine");
}

TEST(sockets_are_a_type_of_their_own, "183 184 185 187")
{
    int ends[2];
    CFSocketContext context = {.copyDescription = describes};
    CFSocketRef s;
    CFSocketRef other;
    CFStringRef text;

    pair_open(ends);
    s = CFSocketCreateWithNative(kCFAllocatorDefault, ends[0], reads | writes, recorder_called, &context);
    other = CFSocketCreateWithNative(NULL, ends[1], 0, NULL, NULL);
    EXPECT(CFSocketGetTypeID() != 0);
    EXPECT_EQ(CFGetTypeID(s), CFSocketGetTypeID());
    EXPECT(CFSocketGetTypeID() != CFRunLoopSourceGetTypeID());
    EXPECT(CFEqual(s, s));
    EXPECT(!CFEqual(s, other));
    text = CFCopyDescription(s);
    EXPECT(CFStringFind(text, CFSTR("valid = Yes"), 0).length > 0);
    EXPECT(CFStringFind(text, CFSTR("mine"), 0).length > 0);
    CFRelease(text);
    text = CFCopyDescription(other);
    EXPECT(CFStringHasPrefix(text, CFSTR("<CFSocket")));
    CFRelease(text);
    CFRelease(s);
    CFRelease(other);
}

TEST(socket_misuse_stops_with_a_sentence, "187")
{
    EXPECT_STOPS("CFSocketInvalidate: the socket is NULL", { CFSocketInvalidate(NULL); });
    EXPECT_STOPS("CFSocketIsValid", { CFSocketIsValid((CFSocketRef)(uintptr_t)CFSTR("x")); });
    EXPECT_STOPS("CFSocketGetContext: the context is NULL", {
        CFSocketRef s = CFSocketCreate(NULL, 0, 0, 0, 0, NULL, NULL);
        CFSocketGetContext(s, NULL);
    });
}
