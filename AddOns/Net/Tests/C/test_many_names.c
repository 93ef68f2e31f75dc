/* SPDX-License-Identifier: Apache-2.0 */
/* Ten thousand questions, and connections by name, leave nothing behind. --verbose shows the numbers. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CRLNetwork.h"
#include "Port/port_probe.h"
#include "Stream/stream_recorder.h"
#include "dns_server.h"
#include "query.h"

static void count_answer(void *context, CFArrayRef addresses, CFStreamError error)
{
    EXPECT(addresses && error.domain == 0);
    ++*(_Atomic int *)context;
}

/* Asks on the loop. The servers have not all names, and one is longer than a datagram. */
static void ask(int number)
{
    static const CFStringRef names[] = {CFSTR("both.test"), CFSTR("good.test"), CFSTR("alias.test"), CFSTR("long.test")};
    _Atomic int answers = 0;
    void *query = query_resolve(names[number % 4], 80, count_answer, (void *)&answers);

    REQUIRE(query);
    query_schedule(query, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    run_until_count(&answers, 1);
    query_free(query);
}

/* The listener knows IPv4 alone: the address of IPv6 is refused, and the other one is taken. */
static void connect_by_name(int listener, UInt32 port)
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    char byte;
    int peer;

    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("both.test"), port, &reader, &writer);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    EXPECT_EQ(write_text(writer, "x"), 1);
    peer = accept(listener, NULL, NULL);
    EXPECT_EQ(read(peer, &byte, 1), 1);
    close(peer);
    CFRelease(reader);
    CFRelease(writer);
}

static void do_many(const char *what, int count, int listener, UInt32 port)
{
    int warm = count / 10;
    size_t bytes = 0;
    int descriptors = 0;

    for (int i = 0; i < warm + count; i++) {
        if (i == warm) {
            bytes = port_probe_resident_bytes();
            descriptors = port_probe_count_descriptors();
        }
        if (listener < 0) {
            ask(i);
        } else {
            connect_by_name(listener, port);
        }
    }
    (void)printf("%d %s: %zu KiB before, %zu KiB behind; %d descriptors before, %d behind\n", count, what, bytes / 1024,
                 port_probe_resident_bytes() / 1024, descriptors, port_probe_count_descriptors());
    EXPECT_EQ(port_probe_count_descriptors(), descriptors);
    if (!test_is_instrumented()) {
        EXPECT(port_probe_resident_bytes() < bytes + (1 << 20)); /* a hundred bytes a question would be as much */
    }
}

TEST_LIMIT(stress_many_names_leave_no_memory_and_no_descriptors, "1000 1003", 600)
{
    int count = test_is_soak() ? 10000 : 300;
    struct dns_server server;
    UInt32 port;
    int listener = listener_open(&port);

    CRLNetworkInstall();
    dns_server_start(&server);
    do_many("questions", count, -1, 0);
    do_many("connections", count, listener, port);
    dns_server_stop(&server);
    close(listener);
}
