/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many connections of streams: a thousand at once, and ten thousand one after the other, on one loop with their server. The harness finds
 * what is left behind. `make soak-stress` runs them at greater length.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "Runtime/Object/object.h"
#include "Stream/stream_recorder.h"
#include "older_glibc.h"

enum { message_size = 16 };

struct crowd;

/* A client, or the server's side of one. */
struct member {
    struct crowd *crowd;
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    uint32_t number, round;
    UInt8 bytes[message_size];
    CFIndex count;
};

struct crowd {
    CFSocketRef listener;
    UInt32 port;
    struct member *clients;
    uint32_t rounds; /* messages of each client */
    _Atomic int accepted, opened, finished, ended;
};

static void free_member(struct member *member)
{
    CFRelease(member->reader);
    CFRelease(member->writer);
}

/* Makes `callback` hear of the reader, and opens both. */
static void begin(struct member *member, CFReadStreamClientCallBack callback, CFOptionFlags events)
{
    CFStreamClientContext context = {.info = member};

    REQUIRE(member->reader && member->writer);
    REQUIRE(CFReadStreamSetClient(member->reader, events, callback, &context));
    CFReadStreamScheduleWithRunLoop(member->reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    REQUIRE(CFReadStreamOpen(member->reader) && CFWriteStreamOpen(member->writer));
}

/* ---- the server ---- */

static void serve(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    struct member *member = info;
    UInt8 bytes[4 * message_size];
    CFIndex count;

    if (type == kCFStreamEventHasBytesAvailable) {
        count = CFReadStreamRead(stream, bytes, sizeof bytes);
        REQUIRE(count > 0 && CFWriteStreamWrite(member->writer, bytes, count) == count);
        return;
    }
    EXPECT_EQ(type, kCFStreamEventEndEncountered);
    member->crowd->ended++;
    free_member(member);
    free(member);
}

static void accept_one(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    struct member *member = calloc(1, sizeof *member);

    (void)socket, (void)type, (void)address;
    REQUIRE(member);
    member->crowd = info;
    member->crowd->accepted++;
    CFStreamCreatePairWithSocket(NULL, *(const CFSocketNativeHandle *)data, &member->reader, &member->writer);
    EXPECT(CFReadStreamSetProperty(member->reader, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue));
    begin(member, serve, events_all & ~(CFOptionFlags)kCFStreamEventOpenCompleted);
}

static void listen_for(struct crowd *crowd)
{
    CFSocketContext context = {.info = crowd};
    int listener = listener_open(&crowd->port);
    CFRunLoopSourceRef source;

    REQUIRE(listen(listener, 4096) == 0); /* for all of them at once */
    crowd->listener = CFSocketCreateWithNative(NULL, listener, kCFSocketAcceptCallBack, accept_one, &context);
    source = CFSocketCreateRunLoopSource(NULL, crowd->listener, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRelease(source);
}

static void stop_listening(struct crowd *crowd)
{
    CFSocketInvalidate(crowd->listener);
    CFRelease(crowd->listener);
}

/* ---- the clients ---- */

static void send_message(struct member *member)
{
    UInt8 bytes[message_size] = {0};

    memcpy(bytes, &member->number, sizeof member->number);
    memcpy(bytes + sizeof member->number, &member->round, sizeof member->round);
    member->count = 0;
    REQUIRE(CFWriteStreamWrite(member->writer, bytes, message_size) == message_size);
}

static void take_echo(struct member *member)
{
    uint32_t values[2];

    memcpy(values, member->bytes, sizeof values);
    REQUIRE(values[0] == member->number && values[1] == member->round);
    if (++member->round == member->crowd->rounds) {
        member->crowd->finished++;
    } else {
        send_message(member);
    }
}

static void hear(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    struct member *member = info;
    CFIndex count;

    if (type == kCFStreamEventOpenCompleted) {
        member->crowd->opened++;
        return;
    }
    REQUIRE(type == kCFStreamEventHasBytesAvailable);
    count = CFReadStreamRead(stream, member->bytes + member->count, message_size - member->count);
    REQUIRE(count > 0);
    member->count += count;
    if (member->count == message_size) {
        take_echo(member);
    }
}

static void connect_one(struct crowd *crowd, struct member *member, uint32_t number)
{
    *member = (struct member){.crowd = crowd, .number = number};
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), crowd->port, &member->reader, &member->writer);
    begin(member, hear, events_all);
}

static bool allow_descriptors(rlim_t wanted)
{
    struct rlimit limit;

    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (limit.rlim_cur < wanted && limit.rlim_max >= wanted) {
        limit.rlim_cur = wanted;
        REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    return limit.rlim_cur >= wanted;
}

TEST(stress_a_thousand_clients_of_streams_at_once, "312 324 329")
{
    int count = test_is_instrumented() ? 100 : 1000;
    struct crowd crowd = {.rounds = test_is_soak() ? 300 : 5};

    if (!allow_descriptors((rlim_t)count * 2 + 100)) {
        SKIP("the process may not have as many descriptors");
    }
    listen_for(&crowd);
    crowd.clients = calloc((size_t)count, sizeof *crowd.clients);
    REQUIRE(crowd.clients);
    for (int i = 0; i < count; i++) {
        connect_one(&crowd, &crowd.clients[i], (uint32_t)i);
    }
    run_until_count(&crowd.opened, count);
    run_until_count(&crowd.accepted, count);
    for (int i = 0; i < count; i++) {
        send_message(&crowd.clients[i]);
    }
    run_until_count(&crowd.finished, count);
    EXPECT_EQ(crowd.ended, 0);
    for (int i = 0; i < count; i++) {
        free_member(&crowd.clients[i]);
    }
    run_until_count(&crowd.ended, count);
    stop_listening(&crowd);
    free(crowd.clients);
}

TEST(stress_ten_thousand_connections_of_streams_leave_nothing, "319 324 329")
{
    enum { warm_up = 100, leeway = 4096 };
    int count = test_is_soak() ? 30000 : test_is_instrumented() ? 500 : 10000;
    struct crowd crowd = {.rounds = 1};
    struct member client;
    size_t before = 0;
    long objects = 0;

    listen_for(&crowd);
    for (int i = 0; i < count; i++) {
        if (i == warm_up) {
            before = allocated_bytes();
            objects = object_live_count();
        }
        connect_one(&crowd, &client, (uint32_t)i);
        send_message(&client); /* waits for the connection */
        run_until_count(&crowd.finished, i + 1);
        free_member(&client);
        run_until_count(&crowd.ended, i + 1);
    }
    EXPECT(allocated_bytes() <= before + leeway);
    EXPECT_EQ(object_live_count(), objects);
    stop_listening(&crowd);
}
