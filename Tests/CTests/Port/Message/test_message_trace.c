/* SPDX-License-Identifier: Apache-2.0 */
/* What a message writes into the traces of its sender and of its receiver: the same number on both sides. */
#include <stdio.h>
#include <unistd.h>

#include "CRLTrace.h"
#include "Loop/Trace/trace_reader.h"
#include "Port/port_probe.h"

/* The one event of the kind in a file, in whichever ring. */
static const struct trace_event *only(const struct trace_reading *reading, enum trace_kind kind)
{
    const struct trace_event *found = NULL;
    const struct trace_ring *ring;

    EXPECT_EQ(trace_count(reading, kind), 1);
    for (uint32_t i = 0; !found && (ring = trace_ring_at(reading, i)) != NULL; i++) {
        uint64_t at = 0;

        found = trace_find(reading, ring, kind, &at);
    }
    REQUIRE(found != NULL);
    return found;
}

static void expect_one_message(const struct trace_reading *sender, const struct trace_reading *receiver, enum trace_way way)
{
    const struct trace_event *sent = only(sender, trace_message_is_sent);
    const struct trace_event *came = only(receiver, trace_message_comes);
    const struct trace_event *replied = only(receiver, trace_reply_is_sent);
    const struct trace_event *answered = only(sender, trace_reply_comes);

    EXPECT(sent->object != 0);
    EXPECT_EQ(came->object, sent->object);
    EXPECT_EQ(replied->object, sent->object);
    EXPECT_EQ(answered->object, sent->object);
    EXPECT_EQ(sent->detail, way);
    EXPECT_EQ(came->detail, way);
    EXPECT(sent->time_ns <= came->time_ns && came->time_ns <= replied->time_ns && replied->time_ns <= answered->time_ns);
}

static void ask_a_thread(enum trace_way way)
{
    struct port_thread server = {0};
    const char *path = trace_directory_begin();
    struct trace_reading reading;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CRLTraceStop();
    CFRelease(remote);
    port_thread_stop(&server);
    REQUIRE(trace_open(path, &reading));
    expect_one_message(&reading, &reading, way);
    trace_close(&reading);
    trace_directory_end();
}

PORT_TEST(a_message_to_a_thread_by_a_socket_has_one_number, "504")
{
    ask_a_thread(trace_by_socket);
}

static void within_a_process(void);

PORT_TEST_WAY(a_message_within_a_process_has_one_number, "504", test_default_limit_s, within_a_process, false)

static void within_a_process(void)
{
    ask_a_thread(trace_within_process);
}


PORT_TEST(a_message_to_another_process_has_the_same_number_in_both_traces, "504 509")
{
    const char *path = trace_directory_begin();
    struct trace_reading own;
    struct trace_reading servers;
    CFMessagePortRef remote;
    char other[160];
    pid_t server;

    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    server = port_process_start(NAME, port_echo, NULL, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CRLTraceStop();
    CFRelease(remote);
    port_process_kill(server);
    (void)snprintf(other, sizeof other, "%s.%d", path, (int)server);
    REQUIRE(trace_open(path, &own) && trace_open(other, &servers));
    expect_one_message(&own, &servers, trace_by_socket);
    EXPECT_EQ(trace_count(&own, trace_message_comes), 0);
    trace_close(&own);
    trace_close(&servers);
    trace_directory_end();
}
