/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data callbacks of sockets: the pieces, the senders, the end of a connection (rules 256 and 257). Unix sockets are ready at once.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Socket/socket_recorder.h"

static void notes_sender(struct recorder *recorder)
{
    CFDataRef peer = CFSocketCopyPeerAddress(recorder->object);

    EXPECT(recorder->address != NULL);
    EXPECT(peer && CFEqual(peer, recorder->address));
    if (peer) {
        CFRelease(peer);
    }
}

TEST(data_of_a_stream_socket_comes_in_pieces, "256")
{
    enum { length = 100000 };
    int ends[2];
    int size = 4 * length;
    struct recorder recorder = RECORDER(.action = notes_sender);
    char *bytes = calloc(1, length);

    pair_open(ends);
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    recorder_add(&recorder, ends[0], receives);
    EXPECT_EQ(send(ends[1], bytes, length, MSG_DONTWAIT), length);
    look();
    EXPECT_LOG("data(32768) data(32768) data(32768) data(1696)");
    free(bytes);
    recorder_free(&recorder);
    close(ends[1]);
}

static void checks_text(struct recorder *recorder)
{
    EXPECT_EQ(memcmp(CFDataGetBytePtr(recorder->data), "hello", 5), 0);
}

TEST(data_has_the_bytes_that_were_sent, "256")
{
    struct recorder recorder = RECORDER(.action = checks_text);

    recorder_add_on_pair(&recorder, receives);
    tell(recorder.ends[1], "hello");
    look();
    EXPECT_LOG("data(5)");
    recorder_free_with_pair(&recorder);
}

TEST(data_ends_with_none_and_the_socket_is_invalid, "257")
{
    struct recorder recorder = RECORDER();

    recorder_add_on_pair(&recorder, receives);
    tell(recorder.ends[1], "abc");
    close(recorder.ends[1]);
    look();
    EXPECT_LOG("data(3) data()");
    EXPECT(!CFSocketIsValid(recorder.object));
    EXPECT_EQ(recorder.releases, recorder.retains);
    CFRelease(recorder.object);
}

TEST(datagrams_are_whole_and_name_their_senders, "256 257")
{
    enum { length = 60000 };
    CFDataRef sender = NULL;
    struct recorder recorder = RECORDER(.action = recorder_copies_sender, .context = &sender);
    CFSocketContext context = recorder_context(&recorder);
    CFDataRef any = loopback_address(AF_INET);
    CFSocketSignature signature = {PF_INET, SOCK_DGRAM, 0, any};
    CFDataRef where;
    CFDataRef from;
    int client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char *bytes = calloc(1, length);

    recorder.object = CFSocketCreateWithSocketSignature(NULL, &signature, receives, recorder_called, &context);
    REQUIRE(recorder.object != NULL);
    recorder_schedule(&recorder);
    where = CFSocketCopyAddress(recorder.object);
    connect(client, (const struct sockaddr *)(const void *)CFDataGetBytePtr(where), (socklen_t)CFDataGetLength(where));
    from = address_of(client);
    EXPECT_EQ(send(client, bytes, length, 0), length);
    recorder_await(&recorder, 1);
    EXPECT_LOG("data(60000)");
    EXPECT(sender && CFEqual(sender, from));
    CFRelease(sender);
    EXPECT_EQ(send(client, bytes, 0, 0), 0); /* an empty datagram is not an end */
    recorder_await(&recorder, 2);
    EXPECT_LOG("data()");
    EXPECT(CFSocketIsValid(recorder.object));
    CFRelease(sender);
    recorder_free(&recorder);
    free(bytes);
    close(client);
    CFRelease(from);
    CFRelease(where);
    CFRelease(any);
}

TEST(the_sender_of_an_unnamed_datagram_is_empty, "256")
{
    int ends[2];
    CFDataRef sender = NULL;
    struct recorder recorder = RECORDER(.action = recorder_copies_sender, .context = &sender);

    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0);
    recorder_add(&recorder, ends[0], receives);
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("data(3)");
    EXPECT(sender && CFDataGetLength(sender) == 0);
    CFRelease(sender);
    recorder_free(&recorder);
    close(ends[1]);
}
