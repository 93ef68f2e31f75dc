/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that block nobody, and replies that come after the callout. One thread is the client and the server here: its loop serves both,
 * as neither waits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Failure/nth_failure.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Async/async_dispatch.h"
#include "Port/Async/deferred_reply.h"
#include "Port/port_probe.h"

enum { many = 300, held_most = 512 };

static const int64_t patience_ns = INT64_C(60000000000);

/* ---- the client ---- */

/* What came of a request. */
struct outcome {
    int count; /* of calls: more than one is wrong */
    SInt32 result;
    uint32_t status;
    CFDataRef reply;
};

static void note_end(void *info, SInt32 result, uint32_t status, CFDataRef reply)
{
    struct outcome *outcome = info;

    outcome->count++;
    outcome->result = result;
    outcome->status = status;
    outcome->reply = reply ? CFRetain(reply) : NULL;
}

static void forget_outcome(struct outcome *outcome)
{
    if (outcome->reply) {
        CFRelease(outcome->reply);
    }
    *outcome = (struct outcome){.count = 0};
}

static struct async_request *begin(struct async_requests *requests, CFMessagePortRef remote, CFDataRef data, int64_t limit_ns,
                                   struct outcome *outcome)
{
    struct async_request *request = async_request_create(remote, 7, data, kernel.monotonic_ns() + limit_ns, note_end, outcome);

    *outcome = (struct outcome){.count = 0};
    if (request) {
        async_request_send(requests, request);
    }
    return request;
}

static void run_until_count(const int *count, int value)
{
    while (__atomic_load_n(count, __ATOMIC_RELAXED) < value) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, true); /* a timer's callout ends no run */
    }
}

/* Sends a request, and runs the loop until it is over. */
static void ask_here(struct async_requests *requests, CFMessagePortRef remote, CFDataRef data, int64_t limit_ns, struct outcome *outcome)
{
    struct async_request *request = begin(requests, remote, data, limit_ns, outcome);

    run_until_count(&outcome->count, 1);
    async_request_release(request);
}

/* ---- the server ---- */

/* The replies that the server owes, in the order of the requests. */
static struct deferred_reply *held[held_most];
static int held_count;
static int left_count; /* askers that have left */
static int released_count;

static void note_left(void *info)
{
    (void)info;
    (void)__atomic_fetch_add(&left_count, 1, __ATOMIC_RELAXED); /* a sender of this process tells it on its own thread */
}

static void note_release(void *info)
{
    (void)info;
    released_count++;
}

static CFDataRef hold(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info, struct received_message *message)
{
    struct deferred_reply *deferred = received_message_defer(message);

    (void)port;
    (void)message_id;
    (void)data;
    if (deferred) {
        held[held_count++] = deferred;
        deferred_reply_watch(deferred, note_left, info, note_release);
    }
    return NULL;
}

static CFDataRef refuse(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info, struct received_message *message)
{
    (void)port;
    (void)message_id;
    (void)info;
    message->status = (uint32_t)CFDataGetBytePtr(data)[0] - '0';
    return port_data("why");
}

static void answer_all(uint32_t status, const char *text)
{
    CFDataRef data = text ? port_data(text) : NULL;

    for (int i = 0; i < held_count; i++) {
        deferred_reply_answer(held[i], status, data);
    }
    held_count = 0;
    if (data) {
        CFRelease(data);
    }
}

static CFMessagePortRef open_holding(void)
{
    CFMessagePortRef port = port_open(NAME, NULL, NULL, kCFRunLoopDefaultMode);

    held_count = left_count = released_count = 0;
    port->side.local.answering = hold;
    EXPECT(deferred_replies_listen(port, CFRunLoopGetCurrent()));
    return port;
}

/* ---- replies ---- */

PORT_TEST(an_asynchronous_request_gets_its_reply, "")
{
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, kCFRunLoopDefaultMode);
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct outcome outcome;

    for (CFIndex size = 0; size <= 1 << 20; size = size == 0 ? 1 : 4 * size) {
        CFDataRef data = port_pattern(size, (unsigned)size);

        for (int i = 0; i < 10; i++) { /* often enough for a page and an arena */
            ask_here(requests, remote, data, patience_ns, &outcome);
            EXPECT_EQ(outcome.result, kCFMessagePortSuccess);
            EXPECT_EQ(outcome.status, wire_answered);
            EXPECT(outcome.reply && port_is_pattern(outcome.reply, size, (unsigned)size));
            forget_outcome(&outcome);
        }
        CFRelease(data);
    }
    EXPECT_EQ(remote->side.remote.free_count, 1); /* one channel was enough */
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST(a_status_says_why_there_is_no_answer, "")
{
    static const char *const texts[] = {"1", "2", "3"};
    CFMessagePortRef port = port_open(NAME, NULL, NULL, kCFRunLoopDefaultMode);
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct outcome outcome;
    CFDataRef reply;

    port->side.local.answering = refuse;
    for (uint32_t status = wire_unhandled; status <= wire_failed; status++) {
        CFDataRef data = port_data(texts[status - 1]);

        ask_here(requests, remote, data, patience_ns, &outcome);
        EXPECT_EQ(outcome.result, kCFMessagePortSuccess);
        EXPECT_EQ(outcome.status, status);
        EXPECT(port_data_is(outcome.reply, "why"));
        forget_outcome(&outcome);
        /* A program that uses CFMessagePortSendRequest sees what it saw before: an empty reply, or an error of the transport. */
        reply = NULL;
        EXPECT_EQ(CFMessagePortSendRequest(remote, 1, data, 10, 10, kCFRunLoopDefaultMode, &reply),
                  status == wire_failed ? kCFMessagePortTransportError : kCFMessagePortSuccess);
        EXPECT((reply == NULL) == (status == wire_failed));
        if (reply) {
            EXPECT_EQ(CFDataGetLength(reply), 0);
            CFRelease(reply);
        }
        CFRelease(data);
    }
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST(a_receiver_that_takes_no_statuses_is_asked_for_none, "")
{
    CFMessagePortRef port = port_open(NAME, NULL, NULL, kCFRunLoopDefaultMode);
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct outcome outcome;
    CFDataRef data = port_data("1");

    EXPECT_EQ(remote->side.remote.features, wire_takes_status);
    remote->side.remote.features = 0; /* as if its card had no such number */
    port->side.local.answering = refuse;
    ask_here(requests, remote, data, patience_ns, &outcome);
    EXPECT_EQ(outcome.result, kCFMessagePortSuccess);
    EXPECT_EQ(outcome.status, wire_answered);
    EXPECT(outcome.reply && CFDataGetLength(outcome.reply) == 0);
    forget_outcome(&outcome);
    CFRelease(data);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST(a_deferred_reply_comes_after_the_callout, "")
{
    CFMessagePortRef port = open_holding();
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct async_request *sent[3];
    struct outcome outcomes[3];
    CFDataRef data = port_data("a");

    for (int i = 0; i < 3; i++) {
        sent[i] = begin(requests, remote, data, patience_ns, &outcomes[i]);
    }
    run_until_count(&held_count, 3);
    EXPECT(deferred_reply_deadline(held[0]) > kernel.monotonic_ns());
    EXPECT_EQ(outcomes[0].count, 0);
    EXPECT_EQ(port->side.local.in_use, 3); /* bytes, until the answer */
    deferred_reply_answer(held[1], wire_answered, data);
    run_until_count(&outcomes[1].count, 1);
    EXPECT_EQ(outcomes[0].count + outcomes[2].count, 0);
    held[1] = held[2];
    held_count = 2;
    answer_all(wire_failed, "no");
    run_until_count(&outcomes[0].count, 1);
    run_until_count(&outcomes[2].count, 1);
    EXPECT(port_data_is(outcomes[1].reply, "a") && outcomes[1].status == wire_answered);
    EXPECT(port_data_is(outcomes[0].reply, "no") && outcomes[0].status == wire_failed);
    EXPECT(port_data_is(outcomes[2].reply, "no") && outcomes[2].status == wire_failed);
    EXPECT_EQ(port->side.local.in_use, 0);
    EXPECT_EQ(left_count, 0);
    EXPECT_EQ(released_count, 3);
    for (int i = 0; i < 3; i++) {
        forget_outcome(&outcomes[i]);
        async_request_release(sent[i]);
    }
    CFRelease(data);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

/* Sends `count` requests at once, and answers them all when all have come. */
static void ask_at_once(struct async_requests *requests, CFMessagePortRef remote, int count)
{
    static struct async_request *sent[many];
    static struct outcome outcomes[many];

    for (int i = 0; i < count; i++) {
        sent[i] = begin(requests, remote, NULL, patience_ns, &outcomes[i]);
    }
    run_until_count(&held_count, count);
    answer_all(wire_answered, NULL);
    for (int i = 0; i < count; i++) {
        run_until_count(&outcomes[i].count, 1);
        EXPECT_EQ(outcomes[i].result, kCFMessagePortSuccess);
        forget_outcome(&outcomes[i]);
        async_request_release(sent[i]);
    }
}

static uint32_t free_channels(CFMessagePortRef remote)
{
    uint32_t count;

    port_lock(remote);
    count = remote->side.remote.free_count;
    port_unlock(remote);
    return count;
}

PORT_TEST(as_many_channels_are_kept_as_requests_are_under_way_at_once, "230")
{
    CFMessagePortRef port = open_holding();
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();

    ask_at_once(requests, remote, 16);
    ask_at_once(requests, remote, 16);
    EXPECT_EQ(free_channels(remote), 16);
    EXPECT_EQ(remote->side.remote.last_channel, 16);
    for (int i = 0; i < 18 * free_channels_looked_over; i++) {
        ask_at_once(requests, remote, 1);
    }
    EXPECT_EQ(free_channels(remote), 1);
    ask_at_once(requests, remote, 80);
    EXPECT(free_channels(remote) <= free_channels_max);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST(a_call_that_waits_and_a_request_that_blocks_nobody_share_no_channel, "230")
{
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, kCFRunLoopDefaultMode);
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct outcome outcome;
    CFDataRef data = port_data("a");
    struct request waiting = {.data = data, .send_timeout = 60, .receive_timeout = 60, .reply_mode = kCFRunLoopDefaultMode};

    for (int i = 0; i < 2 * reply_page_after; i++) {
        CFDataRef reply = NULL;

        ask_here(requests, remote, data, patience_ns, &outcome);
        EXPECT(port_data_is(outcome.reply, "a"));
        forget_outcome(&outcome);
        EXPECT_EQ(socket_request_send(remote, &waiting, &reply), kCFMessagePortSuccess);
        EXPECT(port_data_is(reply, "a"));
        CFRelease(reply);
    }
    CFRelease(data);
    EXPECT_EQ(free_channels(remote), 2);
    EXPECT_EQ(remote->side.remote.last_channel, 2);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST(a_channel_that_its_server_closes_while_nobody_uses_it_wakes_the_loop_once, "231")
{
    CFMessagePortRef port = open_holding();
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct server_channel *channel;

    ask_at_once(requests, remote, 1);
    port_lock(port);
    channel = NULL;
    for (int i = 0; i < channel_buckets && !channel; i++) {
        list_for_each(link, &port->side.local.channels.buckets[i]) {
            struct server_channel *one = container_of(link, struct server_channel, link);

            channel = one->kind == channel_reply ? one : channel;
        }
    }
    channel_table_drop(&port->side.local.channels, channel);
    port_unlock(port);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunTimedOut);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

/* ---- senders on many threads ---- */

enum { senders = 4, of_sender = 400 };

struct sender {
    pthread_t thread;
    struct async_requests *requests;
    CFMessagePortRef remote;
    uint32_t number;
    bool cancels; /* every second one, at once */
    bool is_one_way; /* every third one */
    struct async_request *sent[of_sender];
    struct outcome outcomes[of_sender];
};

static struct sender crowd[senders];
static _Atomic uint32_t next_of[senders]; /* what the receiver expects of each */
static _Atomic int out_of_order;

static CFDataRef check_order(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    uint32_t words[2];

    (void)port;
    (void)message_id;
    (void)info;
    CFDataGetBytes(data, CFRangeMake(0, sizeof words), (UInt8 *)words);
    if (words[1] < next_of[words[0]]) {
        out_of_order++;
    }
    next_of[words[0]] = words[1] + 1;
    return CFRetain(data);
}

static void *send_all(void *argument)
{
    struct sender *sender = argument;

    for (uint32_t i = 0; i < of_sender; i++) {
        uint32_t words[2] = {sender->number, i};
        CFDataRef data = CFDataCreate(NULL, (const UInt8 *)words, sizeof words);

        sender->sent[i] =
            async_request_create(sender->remote, 7, data, kernel.monotonic_ns() + patience_ns, note_end, &sender->outcomes[i]);
        if (sender->is_one_way && i % 3 == 0) {
            async_request_set_one_way(sender->sent[i]);
        }
        async_request_send(sender->requests, sender->sent[i]);
        if (sender->cancels && i % 2 == 0) {
            async_request_cancel(sender->sent[i]);
        }
        CFRelease(data);
    }
    return NULL;
}

static void start_senders(struct async_requests *requests, CFMessagePortRef remote, bool cancels, bool is_one_way)
{
    memset(crowd, 0, sizeof crowd);
    out_of_order = 0;
    for (uint32_t i = 0; i < senders; i++) {
        next_of[i] = 0;
        crowd[i].requests = requests;
        crowd[i].remote = remote;
        crowd[i].number = i;
        crowd[i].cancels = cancels;
        crowd[i].is_one_way = is_one_way;
        REQUIRE(pthread_create(&crowd[i].thread, NULL, send_all, &crowd[i]) == 0);
    }
}

/* Runs the loop until all are over. Returns how many succeeded. */
static int end_senders(void)
{
    int succeeded = 0;

    for (int i = 0; i < senders; i++) {
        for (int j = 0; j < of_sender; j++) {
            struct outcome *outcome = &crowd[i].outcomes[j];

            run_until_count(&outcome->count, 1);
        }
        (void)pthread_join(crowd[i].thread, NULL);
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false); /* what comes twice comes now */
    for (int i = 0; i < senders; i++) {
        for (int j = 0; j < of_sender; j++) {
            struct outcome *outcome = &crowd[i].outcomes[j];

            EXPECT_EQ(outcome->count, 1);
            succeeded += outcome->result == kCFMessagePortSuccess;
            forget_outcome(outcome);
            async_request_release(crowd[i].sent[j]);
        }
    }
    return succeeded;
}

PORT_TEST_LIMIT(requests_of_many_threads_come_in_the_order_of_each, "", 300)
{
    struct port_thread server;
    CFMessagePortRef remote;
    struct async_requests *requests = async_requests_create();

    port_thread_start(&server, NAME, check_order, NULL);
    remote = port_connect(NAME);
    for (int one_way = 0; one_way < 2; one_way++) {
        start_senders(requests, remote, false, one_way);
        EXPECT_EQ(end_senders(), senders * of_sender);
        EXPECT_EQ(out_of_order, 0);
    }
    async_requests_destroy(requests);
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST_LIMIT(each_request_of_many_threads_ends_once_although_they_cancel_and_the_port_ends, "", 300)
{
    struct port_thread server;
    CFMessagePortRef remote;
    struct async_requests *requests = async_requests_create();

    port_thread_start(&server, NAME, check_order, NULL);
    remote = port_connect(NAME);
    start_senders(requests, remote, true, false);
    EXPECT(end_senders() >= senders * of_sender / 2);
    EXPECT_EQ(out_of_order, 0);
    start_senders(requests, remote, true, true);
    run_until_count(&crowd[0].outcomes[of_sender / 4].count, 1);
    CFMessagePortInvalidate(remote);
    (void)end_senders();
    async_requests_destroy(requests);
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST(a_request_that_is_cancelled_before_it_is_sent_is_not_sent, "")
{
    CFMessagePortRef port = open_holding();
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct outcome outcome = {.count = 0};
    struct async_request *request = async_request_create(remote, 7, NULL, kernel.monotonic_ns() + patience_ns, note_end, NULL);

    async_request_cancel(request);
    async_request_set_info(request, &outcome);
    async_request_send(requests, request);
    run_until_count(&outcome.count, 1);
    EXPECT_EQ(outcome.result, async_request_cancelled);
    EXPECT_EQ(held_count, 0);
    async_request_release(request);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

/* ---- a send that fails while the loop runs ---- */

static _Atomic int sends_to_fail;
static _Atomic int passes; /* of the loop */
static CFRunLoopRef serving_loop;

static ssize_t has_no_room(int socket, const struct msghdr *message)
{
    return atomic_fetch_sub(&sends_to_fail, 1) > 0 ? -EAGAIN : kernel_ports_linux.send_message(socket, message);
}

/* On the thread of a sender: the server's end of a channel that was not sent. The loop has seen its end before the sender goes on. */
static int close_and_let_the_loop_look(int descriptor)
{
    int result = kernel_linux.close(descriptor);
    double deadline_s = port_probe_now() + 0.2;
    int before = atomic_load(&passes);

    while (CFRunLoopGetCurrent() != serving_loop && atomic_load(&passes) == before && port_probe_now() < deadline_s) {
        sched_yield();
    }
    return result;
}

static void count_pass(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
    (void)atomic_fetch_add(&passes, 1);
}

static void *send_one(void *argument)
{
    struct sender *sender = argument;

    sender->sent[0] = begin(sender->requests, sender->remote, NULL, patience_ns, &sender->outcomes[0]);
    return NULL;
}

PORT_TEST(the_end_of_a_channel_that_was_not_sent_ends_no_request, "")
{
    struct port_thread server;
    struct sender *sender = &crowd[0];
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting, true, 0, count_pass, NULL);

    port_thread_start(&server, NAME, port_echo, NULL);
    serving_loop = CFRunLoopGetCurrent();
    CFRunLoopAddObserver(serving_loop, observer, kCFRunLoopDefaultMode);
    memset(crowd, 0, sizeof crowd);
    sender->remote = port_connect(NAME);
    sender->requests = async_requests_create();
    atomic_store(&sends_to_fail, 1);
    kernel_ports.send_message = has_no_room;
    kernel.close = close_and_let_the_loop_look;
    REQUIRE(pthread_create(&sender->thread, NULL, send_one, sender) == 0);
    run_until_count(&sender->outcomes[0].count, 1);
    (void)pthread_join(sender->thread, NULL);
    EXPECT_EQ(sender->outcomes[0].result, kCFMessagePortSuccess);
    kernel.close = kernel_linux.close;
    kernel_ports.send_message = kernel_ports_linux.send_message;
    forget_outcome(&sender->outcomes[0]);
    async_request_release(sender->sent[0]);
    async_requests_destroy(sender->requests);
    CFRelease(sender->remote);
    CFRunLoopObserverInvalidate(observer);
    CFRelease(observer);
    port_thread_stop(&server);
}

/* ---- ends without a reply ---- */

PORT_TEST_LIMIT(many_requests_in_flight_are_cancelled_and_leave_nothing, "", 120)
{
    static struct async_request *sent[many];
    static struct outcome outcomes[many];
    CFMessagePortRef port = open_holding();
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    CFDataRef data = port_data("a");
    int before;
    int in_flight;

    for (int i = 0; i < 4; i++) { /* these make what is made once: the control channel, a wait set */
        sent[i] = begin(requests, remote, data, patience_ns, &outcomes[i]);
        run_until_count(&held_count, i + 1);
    }
    for (int i = 1; i < 4; i++) {
        async_request_cancel(sent[i]);
        run_until_count(&outcomes[i].count, 1);
        async_request_release(sent[i]);
        run_until_count(&left_count, i);
        deferred_reply_answer(held[i], wire_answered, NULL);
    }
    held_count = 1;
    left_count = 0;
    released_count = 0;
    before = port_probe_count_descriptors();
    for (int i = 1; i < many; i++) {
        sent[i] = begin(requests, remote, data, patience_ns, &outcomes[i]);
    }
    in_flight = (int)(kernel_ports.descriptor_limit() / 8 < 256 ? kernel_ports.descriptor_limit() / 8 : 256);
    run_until_count(&held_count, in_flight < many ? in_flight : many);
    for (int i = 1; i < many; i++) {
        async_request_cancel(sent[i]);
    }
    for (int i = 1; i < many; i++) {
        run_until_count(&outcomes[i].count, 1);
        EXPECT_EQ(outcomes[i].result, async_request_cancelled);
        async_request_release(sent[i]);
    }
    run_until_count(&left_count, held_count - 1); /* each server's end hears of it, also those beyond the channels that are kept */
    deferred_reply_answer(held[0], wire_answered, data);
    run_until_count(&outcomes[0].count, 1);
    EXPECT(port_data_is(outcomes[0].reply, "a"));
    for (int i = 1; i < held_count; i++) {
        deferred_reply_answer(held[i], wire_answered, data); /* goes nowhere */
    }
    EXPECT_EQ(outcomes[1].count, 1);
    EXPECT(port_probe_descriptors_fall_to(before + 1)); /* a wait may make the timer of the wait set meanwhile */
    EXPECT_EQ(port->side.local.in_use, 0);
    EXPECT_EQ(released_count, held_count);
    forget_outcome(&outcomes[0]);
    async_request_release(sent[0]);
    CFRelease(data);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST(an_asker_that_leaves_is_noticed_although_a_channel_comes_just_then, "")
{
    CFStringRef mode = CFSTR("port");
    CFMessagePortRef port = port_open(NAME, NULL, NULL, mode);
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    CFDataRef data = port_data("a");
    struct outcome outcome;
    struct async_request *sent;

    held_count = left_count = released_count = 0;
    port->side.local.answering = hold;
    EXPECT(deferred_replies_listen(port, CFRunLoopGetCurrent()));
    sent = begin(requests, remote, data, patience_ns, &outcome);
    while (held_count < 1) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.001, true);
        (void)CFRunLoopRunInMode(mode, 0.001, true);
    }
    CFRunLoopRemoveSource(CFRunLoopGetCurrent(), port->side.local.channel_watch, kCFRunLoopDefaultMode); /* it is late */
    async_request_cancel(sent);
    run_until_count(&outcome.count, 1);
    /* The third message brings a control channel, for which ended channels are dropped. */
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(CFMessagePortSendRequest(remote, 1, data, 10, 0, NULL, NULL), kCFMessagePortSuccess);
    }
    while (held_count < 4) {
        (void)CFRunLoopRunInMode(mode, 0.01, true);
    }
    EXPECT_EQ(port->side.local.channels.counts[channel_control], 1);
    EXPECT_EQ(left_count, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), port->side.local.channel_watch, kCFRunLoopDefaultMode);
    run_until_count(&left_count, 1);
    answer_all(wire_answered, NULL);
    forget_outcome(&outcome);
    async_request_release(sent);
    CFRelease(data);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST(a_request_has_one_deadline_for_room_and_reply, "")
{
    pid_t pid = port_process_start_idle(NAME);
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct outcome outcome;
    struct outcome waiting;
    struct async_request *request;
    int64_t begun_ns;

    for (int i = 0; i < 5; i++) { /* nobody takes them */
        begun_ns = kernel.monotonic_ns();
        ask_here(requests, remote, NULL, 2000000, &outcome);
        EXPECT_EQ(outcome.result, kCFMessagePortReceiveTimeout);
        EXPECT(kernel.monotonic_ns() - begun_ns >= 2000000);
    }
    ask_here(requests, remote, NULL, 2000000, &outcome);
    EXPECT_EQ(outcome.result, kCFMessagePortSendTimeout);
    ask_here(requests, remote, NULL, -1, &outcome);
    EXPECT_EQ(outcome.result, kCFMessagePortSendTimeout);
    request = begin(requests, remote, NULL, patience_ns, &waiting);
    ask_here(requests, remote, NULL, 2000000, &outcome); /* a later one ends before one that waits for room */
    EXPECT_EQ(waiting.count, 0);
    async_request_cancel(request);
    async_request_cancel(request);
    run_until_count(&waiting.count, 1);
    EXPECT_EQ(waiting.result, async_request_cancelled);
    async_request_cancel(request); /* it is over */
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    EXPECT_EQ(waiting.count, 1);
    async_request_release(request);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_process_kill(pid);
}

/* As the kernel does where the receiver has no number left for a descriptor. */
static ssize_t receive_without_descriptors(int socket, struct msghdr *message)
{
    ssize_t size = kernel_ports_linux.receive_message(socket, message);

    for (struct cmsghdr *part = size < 0 ? NULL : CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (size_t at = CMSG_LEN(0); at < part->cmsg_len; at += sizeof(int)) {
            int descriptor;

            memcpy(&descriptor, (const char *)part + at, sizeof descriptor);
            close(descriptor);
        }
        part->cmsg_type = 0;
        message->msg_flags |= MSG_CTRUNC;
    }
    return size;
}

/* A receiver that lives gives up a request by itself when its time is over. It may close the channel a moment before the caller looks. */
PORT_TEST(a_channel_that_is_hung_up_when_the_time_is_over_is_no_failure, "")
{
    CFMessagePortRef port = open_holding();
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct outcome outcome;

    kernel_ports.receive_message = receive_without_descriptors; /* such a receiver hangs up at once */
    ask_here(requests, remote, NULL, 20000000, &outcome);
    EXPECT_EQ(outcome.result, kCFMessagePortReceiveTimeout);
    ask_here(requests, remote, NULL, patience_ns, &outcome);
    EXPECT_EQ(outcome.result, kCFMessagePortTransportError);
    kernel_ports.receive_message = kernel_ports_linux.receive_message;
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST(requests_wait_for_room_and_all_are_answered, "")
{
    static struct async_request *sent[many];
    static struct outcome outcomes[many];
    pid_t pid = port_process_start(NAME, port_echo, NULL, NULL);
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    CFDataRef data = port_data("a");

    for (int i = 0; i < many; i++) { /* sixty times as many as the queue holds */
        sent[i] = begin(requests, remote, data, patience_ns, &outcomes[i]);
    }
    for (int i = 0; i < many; i++) {
        run_until_count(&outcomes[i].count, 1);
        EXPECT_EQ(outcomes[i].result, kCFMessagePortSuccess);
        EXPECT(port_data_is(outcomes[i].reply, "a"));
        forget_outcome(&outcomes[i]);
        async_request_release(sent[i]);
    }
    CFRelease(data);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_process_kill(pid);
}

PORT_TEST(requests_end_when_their_receiver_dies, "")
{
    pid_t pid = port_process_start_idle(NAME);
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct async_request *sent[8];
    struct outcome outcomes[8];

    for (int i = 0; i < 8; i++) { /* five are in the queue, and three wait for room */
        sent[i] = begin(requests, remote, NULL, patience_ns, &outcomes[i]);
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
    port_process_kill(pid);
    for (int i = 0; i < 8; i++) {
        run_until_count(&outcomes[i].count, 1);
        EXPECT(outcomes[i].result == kCFMessagePortBecameInvalidError || outcomes[i].result == kCFMessagePortIsInvalid);
        async_request_release(sent[i]);
    }
    CFMessagePortInvalidate(remote);
    ask_here(requests, remote, NULL, patience_ns, &outcomes[0]);
    EXPECT_EQ(outcomes[0].result, kCFMessagePortIsInvalid);
    async_requests_destroy(requests);
    CFRelease(remote);
}

static int looks_in_vain;

static int no_datagram(bool takes_credentials)
{
    (void)takes_credentials;
    looks_in_vain++;
    return -EMFILE;
}

/* Nobody knows that the receiver is dead, so its request ends after some looks. Other requests come more often than these looks. */
PORT_TEST(a_dead_receivers_request_ends_while_others_are_busy, "")
{
    pid_t pid = port_process_start_idle(NAME);
    CFMessagePortRef dead = port_connect(NAME);
    CFMessagePortRef local = port_open(CFSTR("another port"), port_echo, NULL, kCFRunLoopDefaultMode);
    CFMessagePortRef other = port_connect(CFSTR("another port"));
    CFDataRef data = port_data("x");
    struct async_requests *requests = async_requests_create();
    struct outcome lost;
    struct outcome outcome;
    struct async_request *request = begin(requests, dead, NULL, patience_ns, &lost);

    ask_here(requests, other, data, patience_ns, &outcome); /* the other request is sent by then */
    forget_outcome(&outcome);
    kernel_ports.datagram_create = no_datagram;
    port_process_kill(pid);
    while (lost.count == 0) {
        ask_here(requests, other, data, patience_ns, &outcome);
        EXPECT_EQ(outcome.result, kCFMessagePortSuccess);
        forget_outcome(&outcome);
    }
    kernel_ports.datagram_create = kernel_ports_linux.datagram_create;
    EXPECT_EQ(lost.result, kCFMessagePortTransportError);
    EXPECT_EQ(lost.count, 1);
    EXPECT(looks_in_vain >= 5); /* they do not wait for a pause */
    async_request_release(request);
    async_requests_destroy(requests);
    CFRelease(data);
    CFRelease(other);
    port_drop(local);
    CFRelease(dead);
}

enum { judged_count = 5 };

/* Requests to a receiver that has died, which nobody can find out but by time. */
struct judged {
    struct async_request *sent[judged_count];
    int failed;
    int cancelled;
};

/* The first one cancels the others, and runs the loop until they have ended. */
static void note_judged(void *info, SInt32 result, uint32_t status, CFDataRef reply)
{
    struct judged *judged = info;

    (void)status;
    (void)reply;
    judged->failed += result == kCFMessagePortTransportError;
    judged->cancelled += result == async_request_cancelled;
    if (judged->failed == 1 && judged->cancelled == 0) {
        for (int i = 0; i < judged_count; i++) {
            async_request_cancel(judged->sent[i]);
        }
        run_until_count(&judged->cancelled, judged_count - 1);
    }
}

PORT_TEST(the_requests_of_a_dead_receiver_end_once_although_the_first_cancels_the_others, "1103")
{
    pid_t pid = port_process_start_idle(NAME);
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    int64_t deadline_ns = kernel.monotonic_ns() + patience_ns;
    struct judged judged = {.failed = 0};

    for (int i = 0; i < judged_count; i++) {
        judged.sent[i] = async_request_create(remote, 7, NULL, deadline_ns, note_judged, &judged);
        async_request_send(requests, judged.sent[i]);
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false); /* they are in the receiver's queue */
    kernel_ports.datagram_create = no_datagram;
    port_process_kill(pid);
    run_until_count(&judged.failed, 1);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
    kernel_ports.datagram_create = kernel_ports_linux.datagram_create;
    EXPECT_EQ(judged.failed, 1);
    EXPECT_EQ(judged.cancelled, judged_count - 1);
    for (int i = 0; i < judged_count; i++) {
        async_request_release(judged.sent[i]);
    }
    async_requests_destroy(requests);
    CFRelease(remote);
}

PORT_TEST(both_ends_hear_of_the_ports_end, "")
{
    CFMessagePortRef port = open_holding();
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct async_request *sent[2];
    struct outcome outcomes[2];

    for (int i = 0; i < 2; i++) {
        sent[i] = begin(requests, remote, NULL, patience_ns, &outcomes[i]);
    }
    run_until_count(&held_count, 2);
    CFMessagePortInvalidate(port);
    EXPECT_EQ(left_count, 2);
    for (int i = 0; i < 2; i++) {
        run_until_count(&outcomes[i].count, 1);
        EXPECT_EQ(outcomes[i].result, kCFMessagePortBecameInvalidError);
        async_request_release(sent[i]);
    }
    answer_all(wire_answered, NULL); /* goes nowhere */
    EXPECT_EQ(released_count, 2);
    async_requests_destroy(requests);
    CFRelease(remote);
    CFRelease(port);
}

PORT_TEST(a_change_of_the_name_ends_the_requests_to_the_old_one, "")
{
    CFMessagePortRef port = open_holding();
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct outcome outcome;
    struct async_request *request = begin(requests, remote, NULL, patience_ns, &outcome);

    run_until_count(&held_count, 1);
    EXPECT(CFMessagePortSetName(port, CFSTR("another name")));
    EXPECT_EQ(left_count, 1);
    run_until_count(&outcome.count, 1);
    EXPECT_EQ(outcome.result, kCFMessagePortBecameInvalidError);
    async_request_release(request);
    answer_all(wire_answered, NULL);
    CFRelease(remote);
    remote = port_connect(CFSTR("another name"));
    request = begin(requests, remote, NULL, patience_ns, &outcome);
    run_until_count(&held_count, 1);
    async_request_cancel(request);
    run_until_count(&left_count, 2); /* the wait set is still watched */
    answer_all(wire_answered, NULL);
    async_request_release(request);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST(what_is_deferred_counts_against_the_budget, "")
{
    CFMessagePortRef port = open_holding();
    struct async_requests *requests = async_requests_create();
    struct outcome first;
    struct outcome second;
    struct async_request *request;
    CFDataRef data = port_pattern(60, 1);
    CFMessagePortRef remote;

    CRLMessagePortSetMemoryBudget(port, 100);
    remote = port_connect(NAME);
    request = begin(requests, remote, data, patience_ns, &first);
    run_until_count(&held_count, 1);
    ask_here(requests, remote, data, patience_ns, &second);
    EXPECT_EQ(second.result, kCFMessagePortTransportError);
    answer_all(wire_answered, "x");
    run_until_count(&first.count, 1);
    forget_outcome(&first);
    async_request_release(request);
    request = begin(requests, remote, data, patience_ns, &first);
    run_until_count(&held_count, 1);
    answer_all(wire_answered, "x");
    run_until_count(&first.count, 1);
    EXPECT(port_data_is(first.reply, "x"));
    forget_outcome(&first);
    async_request_release(request);
    CFRelease(data);
    async_requests_destroy(requests);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST(requests_that_are_not_over_end_with_their_loop, "")
{
    pid_t pid = port_process_start_idle(NAME);
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct async_request *sent[7];
    struct outcome outcomes[7];

    for (int i = 0; i < 6; i++) {
        sent[i] = begin(requests, remote, NULL, patience_ns, &outcomes[i]);
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
    sent[6] = begin(requests, remote, NULL, patience_ns, &outcomes[6]); /* still in the inbox */
    async_requests_destroy(requests);
    for (int i = 0; i < 7; i++) {
        EXPECT_EQ(outcomes[i].count, 1);
        EXPECT_EQ(outcomes[i].result, kCFMessagePortBecameInvalidError);
        async_request_release(sent[i]);
    }
    CFRelease(remote);
    port_process_kill(pid);
}

PORT_TEST(a_sender_that_is_destroyed_leaves_the_ports_of_others_valid, "1103")
{
    pid_t pid = port_process_start_idle(NAME);
    CFMessagePortRef remote = port_connect(NAME);
    struct async_requests *requests = async_requests_create();
    struct outcome outcome = {.count = 0};
    struct async_request *request = async_request_create(remote, 7, NULL, kernel.monotonic_ns() + patience_ns, note_end, &outcome);

    async_request_set_ends_port(request);
    async_request_send(requests, request);
    async_requests_destroy(requests);
    EXPECT_EQ(outcome.result, kCFMessagePortBecameInvalidError);
    EXPECT(CFMessagePortIsValid(remote)); /* its owner lives */
    async_request_release(request);
    CFRelease(remote);
    port_process_kill(pid);
}

/* Sends a second request, and runs the loop until that is over. */
struct nested_end {
    struct async_requests *requests;
    CFMessagePortRef remote;
    struct outcome inner;
    int count;
};

static void run_the_loop(void *info, SInt32 result, uint32_t status, CFDataRef reply)
{
    struct nested_end *nested = info;

    (void)result;
    (void)status;
    (void)reply;
    ask_here(nested->requests, nested->remote, NULL, patience_ns, &nested->inner);
    forget_outcome(&nested->inner);
    nested->count++;
}

PORT_TEST(a_request_whose_end_runs_the_loop_takes_nothing_from_the_pass_around_it, "1103")
{
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, kCFRunLoopDefaultMode);
    struct nested_end nested = {.requests = async_requests_create(), .remote = port_connect(NAME)};
    int64_t deadline_ns = kernel.monotonic_ns() + patience_ns;
    struct async_request *one_way = async_request_create(nested.remote, 7, NULL, deadline_ns, run_the_loop, &nested);
    struct async_request *request = async_request_create(nested.remote, 7, NULL, deadline_ns, run_the_loop, &nested);

    async_request_set_one_way(one_way);
    async_request_send(nested.requests, one_way); /* ends when it is sent */
    run_until_count(&nested.count, 1);
    async_request_send(nested.requests, request); /* ends with its channel */
    run_until_count(&nested.count, 2);
    async_request_release(one_way);
    async_request_release(request);
    async_requests_destroy(nested.requests);
    CFRelease(nested.remote);
    port_drop(port);
}

/*
 * The asker's channel has an arena, and the asker is gone before its request is taken. The channel's end may be found by a sweep before
 * that, or be noticed by the wait set after it.
 */
PORT_TEST(an_asker_that_left_before_the_callout_is_reported, "")
{
    for (int sweeps = 0; sweeps < 2; sweeps++) {
        CFMessagePortRef port = open_holding();
        CFMessagePortRef remote = port_connect(NAME);
        struct async_requests *requests = async_requests_create();
        struct async_request *request;
        struct outcome outcome;
        CFDataRef large = port_pattern(100000, 1);

        request = begin(requests, remote, large, patience_ns, &outcome); /* makes the channel with its arena */
        run_until_count(&held_count, 1);
        answer_all(wire_answered, NULL);
        run_until_count(&outcome.count, 1);
        EXPECT(outcome.reply != NULL);
        forget_outcome(&outcome);
        async_request_release(request);

        CFRunLoopRemoveSource(CFRunLoopGetCurrent(), port->side.local.source, kCFRunLoopDefaultMode);
        if (sweeps == 0) {
            deferred_replies_end_listening(port);
        }
        request = begin(requests, remote, large, 1000000, &outcome);
        run_until_count(&outcome.count, 1);
        EXPECT_EQ(outcome.result, kCFMessagePortReceiveTimeout);
        async_request_release(request);
        if (sweeps == 0) {
            EXPECT(deferred_replies_listen(port, CFRunLoopGetCurrent()));
        } else {
            deferred_replies_tell(port, false);
            EXPECT_EQ(port->side.local.channels.ended_count, 1);
        }
        CFRunLoopAddSource(CFRunLoopGetCurrent(), port->side.local.source, kCFRunLoopDefaultMode);
        run_until_count(&held_count, 1);
        run_until_count(&left_count, 1);
        answer_all(wire_answered, NULL);
        CFRelease(large);
        async_requests_destroy(requests);
        CFRelease(remote);
        port_drop(port);
    }
}

/* ---- within the process ---- */

static void *ask_for_a_moment(void *info)
{
    CFMessagePortRef remote = port_connect(NAME);

    (void)info;
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 10, 0.002, MODE, NULL), kCFMessagePortReceiveTimeout);
    CFRelease(remote);
    return NULL;
}

static void *ask_and_get(void *info)
{
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef reply = NULL;

    (void)info;
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 1000, 1000, MODE, &reply), kCFMessagePortSuccess);
    EXPECT(port_data_is(reply, "late"));
    CFRelease(reply);
    CFRelease(remote);
    return NULL;
}

PORT_TEST_BOTH_WAYS(a_sender_that_blocks_gets_deferred_replies_or_gives_up, "")
{
    CFMessagePortRef port = open_holding();
    pthread_t thread;

    EXPECT_EQ(pthread_create(&thread, NULL, ask_for_a_moment, NULL), 0);
    run_until_count(&held_count, 1);
    run_until_count(&left_count, 1);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    answer_all(wire_answered, "nobody hears this");
    EXPECT_EQ(released_count, 1);

    EXPECT_EQ(pthread_create(&thread, NULL, ask_and_get, NULL), 0);
    run_until_count(&held_count, 1);
    answer_all(wire_answered, "late");
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_EQ(left_count, 1);
    EXPECT_EQ(released_count, 2);
    port_drop(port);
}

/* ---- refusals of the system ---- */

NTH_FAILURE(asynchronous_requests, "")
{
    struct async_requests *requests = async_requests_create();
    struct outcome outcomes[2] = {{.count = 0}, {.count = 0}};
    struct async_request *sent[2] = {NULL, NULL};
    CFMessagePortRef remote = NULL;
    CFMessagePortRef port = NULL;
    bool has_all = false;

    held_count = left_count = released_count = 0;
    if (requests) {
        Boolean shouldFree;
        CFRunLoopSourceRef source = NULL;

        port = CFMessagePortCreateLocal(NULL, NAME, NULL, NULL, &shouldFree);
        if (port) {
            port->side.local.answering = hold;
            source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
        }
        if (source) {
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
            has_all = CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode) &&
                      deferred_replies_listen(port, CFRunLoopGetCurrent());
            CFRelease(source);
        }
        remote = has_all ? CFMessagePortCreateRemote(NULL, NAME) : NULL;
    }
    for (int i = 0; remote && i < 2; i++) {
        sent[i] = begin(requests, remote, NULL, 300000000, &outcomes[i]);
        if (!sent[i]) {
            outcomes[i].count = 1;
            has_all = false;
        }
    }
    while (remote && (outcomes[0].count == 0 || outcomes[1].count == 0)) { /* each ends, at its deadline at the latest */
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, true);
        answer_all(wire_answered, NULL);
    }
    for (int i = 0; i < 2; i++) {
        MUST(outcomes[i].count <= 1);
        has_all &= remote && outcomes[i].result == kCFMessagePortSuccess && outcomes[i].reply;
        if (outcomes[i].reply) {
            CFRelease(outcomes[i].reply);
        }
        if (sent[i]) {
            async_request_release(sent[i]);
        }
    }
    if (requests) {
        async_requests_destroy(requests);
    }
    if (remote) {
        CFRelease(remote);
    }
    if (port) {
        CFMessagePortInvalidate(port);
        CFRelease(port);
    }
    return has_all;
}
