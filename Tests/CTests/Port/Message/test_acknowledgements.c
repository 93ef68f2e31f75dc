/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Senders and their acknowledgement pages: that they know of room as soon as there is some, how few packets wake them, and what happens
 * when either side forks, lies or has not the means. Pages by themselves are in test_ack_page.c, hostile clients in test_hostile.c.
 *
 * Most of these are one thread: what it calls to wait for room takes messages in the meantime, as another process would.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Message/remote_send.h"
#include "Port/Core/message_port.h"
#include "Port/page_probe.h"
#include "Port/port_probe.h"

enum { at_type = 5, limit = queue_limit_default };

/* ---- a receiver that runs when it is told to ---- */

static CFMessagePortRef local;
static CFMessagePortRef remote;
static int handled; /* messages, whose numbers have to be 1, 2, 3 */
static int sent;

static CFDataRef count_in_order(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port, (void)data, (void)info;
    EXPECT_EQ(message_id, ++handled);
    return NULL;
}

static bool take_one(void)
{
    return CFRunLoopRunInMode(MODE, 0, true) == kCFRunLoopRunHandledSource;
}

static void take_all(void)
{
    while (handled < sent && take_one()) {
    }
    EXPECT_EQ(handled, sent);
}

static SInt32 send_within(CFTimeInterval limit_s)
{
    SInt32 result = CFMessagePortSendRequest(remote, sent + 1, NULL, limit_s, 0, NULL, NULL);

    sent += result == kCFMessagePortSuccess ? 1 : 0;
    return result;
}

/* Until there is no room. How many were sent. */
static int fill(void)
{
    int count = 0;

    while (count < 10000 && send_within(0) == kCFMessagePortSuccess) {
        count++;
    }
    return count;
}

/* The server's end of the only control channel; NULL: there is none. */
static struct server_channel *control_channel(void)
{
    struct server_channel *channel;

    port_lock(local);
    channel = channel_table_some_control(&local->side.local.channels);
    port_unlock(local);
    return channel;
}

/* With a control channel and its page on both sides, and nothing under way. */
static void open_with_page(void)
{
    local = port_open(NAME, count_in_order, NULL, MODE);
    remote = port_connect(NAME);
    EXPECT_EQ(fill(), limit);
    take_all();
    REQUIRE(remote->side.remote.pacing.acks && control_channel());
}

static void close_both(void)
{
    take_all();
    CFRelease(remote);
    port_drop(local);
}

/* ---- counting ---- */

static _Atomic int packets; /* that wake senders */

static ssize_t send_and_count(int socket, const void *bytes, size_t size)
{
    packets += size > at_type && ((const uint8_t *)bytes)[at_type] == wire_ack ? 1 : 0;
    return kernel_ports_linux.send(socket, bytes, size);
}

PORT_TEST(either_side_gives_its_page_back_with_its_port_or_its_channel, "H9 H12")
{
    page_probe_count();
    open_with_page();
    EXPECT_EQ(page_probe_mapped, 2);
    close_both();
    EXPECT_EQ(page_probe_mapped, 0);
    sent = handled = 0;
    open_with_page();
    port_lock(local);
    channel_table_drop(&local->side.local.channels, channel_table_some_control(&local->side.local.channels));
    port_unlock(local);
    EXPECT_EQ(page_probe_mapped, 1);
    EXPECT(fill() > limit); /* by the kernel's queue, as the channel is hung up */
    EXPECT_EQ(page_probe_mapped, 0);
    close_both();
    EXPECT_EQ(page_probe_mapped, 0);
}

/* ---- room ---- */

PORT_TEST(room_is_known_as_soon_as_a_message_is_taken_and_without_a_packet, "225 226")
{
    kernel_ports.send = send_and_count;
    open_with_page();
    EXPECT_EQ(fill(), limit);
    for (int i = 0; i < 20; i++) {
        int count = 1 + i % limit;

        for (int j = 0; j < count; j++) {
            EXPECT(take_one());
        }
        EXPECT_EQ(fill(), count);
    }
    EXPECT_EQ(packets, 0); /* nobody has slept */
    close_both();
}

PORT_TEST(a_limit_that_is_changed_counts_from_the_next_message_that_is_taken, "226")
{
    open_with_page();
    EXPECT_EQ(fill(), limit);
    CRLMessagePortSetQueueLimit(local, 8);
    EXPECT_EQ(fill(), 0);
    EXPECT(take_one());
    EXPECT_EQ(fill(), 4);
    CRLMessagePortSetQueueLimit(local, 2);
    for (int i = 0; i < 6; i++) {
        EXPECT(take_one());
        EXPECT_EQ(fill(), 0);
    }
    EXPECT(take_one());
    EXPECT_EQ(fill(), 1);
    close_both();
}

PORT_TEST(every_message_is_noted_once_there_is_a_page, "226")
{
    struct port_thread server;
    struct server_channel *channel;

    port_thread_start(&server, NAME, port_echo, NULL);
    local = server.port;
    remote = port_connect(NAME);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(port_tell(remote, i, NULL), kCFMessagePortSuccess);
    }
    for (int i = 0; i < 20; i++) { /* one request at a time, whose replies would do */
        EXPECT_EQ(port_ask(remote, i, NULL, NULL), kCFMessagePortSuccess);
        channel = control_channel();
        REQUIRE(channel != NULL);
        port_lock(local);
        EXPECT_EQ(channel->last_acknowledged, remote->side.remote.pacing.sequence);
        port_unlock(local);
    }
    CFRelease(remote);
    port_thread_stop(&server);
}

/* ---- sleeping for want of room ---- */

static int sleeps;

/* Takes messages, one after the other, until a packet comes: when a quarter is left, or the one before, for the number 0. */
static int take_until_woken(int socket, uint32_t interest, int64_t deadline_ns)
{
    int before = packets;
    int expected = limit - limit / 4 - (remote->side.remote.pacing.sequence == limit / 4 ? 1 : 0);
    int count;

    (void)deadline_ns;
    EXPECT(socket == remote->side.remote.pacing.control && interest == kernel_readable);
    sleeps++;
    for (count = 0; packets == before && count < limit; count++) {
        EXPECT(take_one());
    }
    EXPECT_EQ(packets, before + 1);
    EXPECT_EQ(count, expected);
    return kernel_readable;
}

static void expect_few_packets(void)
{
    enum { messages = 400 };

    kernel_ports.send = send_and_count;
    kernel_ports.wait = take_until_woken;
    packets = sleeps = 0;
    for (int i = 0; i < messages; i++) {
        EXPECT_EQ(send_within(test_patience_s()), kCFMessagePortSuccess);
    }
    EXPECT_EQ(packets, sleeps);
    EXPECT(packets > messages / limit && packets <= messages / 4);
}

PORT_TEST(a_sleeping_sender_is_woken_once_when_a_quarter_of_the_queue_is_left, "225")
{
    open_with_page();
    expect_few_packets();
    close_both();
}

/* As if that many messages were left until numbers begin anew. */
static void begin_before_the_end_of_numbers(uint32_t before)
{
    sent = handled = 0;
    local = port_open(NAME, count_in_order, NULL, MODE);
    remote = port_connect(NAME);
    remote->side.remote.pacing.sequence = remote->side.remote.pacing.confirmed = UINT32_MAX - before;
}

PORT_TEST(a_stream_goes_on_through_the_end_of_the_numbers, "225 226")
{
    for (uint32_t before = 0; before < 2 * limit + 4; before++) {
        begin_before_the_end_of_numbers(before);
        EXPECT_EQ(fill(), limit);
        for (int i = 0; i < 3; i++) {
            EXPECT(take_one());
        }
        EXPECT_EQ(fill(), 3);
        close_both();
    }
}

PORT_TEST(a_sender_may_sleep_until_any_number, "225")
{
    for (uint32_t before = limit; before < 4 * limit; before++) {
        kernel_ports = kernel_ports_linux;
        begin_before_the_end_of_numbers(before + limit);
        EXPECT_EQ(fill(), limit);
        take_all();
        expect_few_packets();
        close_both();
    }
}

/* ---- a moment's look before the sleep ---- */

/* The clock stands still: how often it was read, and what is done at one of those times, without the sender's lock or with it. */
static int readings;
static int acting_reading;
static void (*act)(void);

static int64_t clock_that_stands(void)
{
    if (++readings == acting_reading) {
        act();
    }
    return 1000000000;
}

static void take_some(void)
{
    EXPECT(take_one());
}

/* Opened, with a full queue, and the clock stands. */
static void fill_and_stop_the_clock(void)
{
    open_with_page();
    EXPECT_EQ(fill(), limit);
    kernel.monotonic_ns = clock_that_stands;
    readings = acting_reading = 0;
    act = take_some;
}

static int sleep_and_take_one(int socket, uint32_t interest, int64_t deadline_ns)
{
    (void)socket, (void)interest, (void)deadline_ns;
    sleeps++;
    EXPECT(take_one());
    return 0;
}

/* Sends one message, for which there has to be made room. How often the clock was read. */
static int readings_of_a_send(void)
{
    int before = readings;

    EXPECT_EQ(send_within(test_patience_s()), kCFMessagePortSuccess);
    return readings - before;
}

PORT_TEST(a_message_that_is_taken_within_a_moment_puts_no_sender_to_sleep, "225 226")
{
    kernel_ports.send = send_and_count;
    kernel_ports.wait = sleep_and_take_one;
    fill_and_stop_the_clock();
    packets = 0;
    for (int i = 0; i < 20; i++) {
        acting_reading = readings + 50;
        EXPECT(readings_of_a_send() >= 50);
    }
    EXPECT_EQ(sleeps, 0);
    EXPECT_EQ(packets, 0);
    kernel.monotonic_ns = kernel_linux.monotonic_ns;
    close_both();
}

PORT_TEST(looks_in_vain_become_rare_and_are_as_often_as_before_once_they_are_not, "225")
{
    enum { most = 64, many = 100 };

    kernel_ports.wait = sleep_and_take_one;
    fill_and_stop_the_clock();
    for (int left_out = 1; left_out <= 4 * most; left_out *= 2) {
        EXPECT(readings_of_a_send() > many); /* in vain */
        for (int i = 0; i < (left_out < most ? left_out : most); i++) {
            EXPECT(readings_of_a_send() < many);
        }
    }
    acting_reading = readings + 50;
    EXPECT(readings_of_a_send() >= 50); /* not in vain */
    EXPECT(readings_of_a_send() > many);
    EXPECT(readings_of_a_send() < many);
    EXPECT(readings_of_a_send() > many);
    kernel.monotonic_ns = kernel_linux.monotonic_ns;
    close_both();
}

static int64_t passing_ns;

static int64_t clock_that_passes(void)
{
    passing_ns += 1000;
    if (++readings == acting_reading) {
        act();
    }
    return passing_ns;
}

static void lose_most_of_a_millisecond(void)
{
    passing_ns += 990000;
}

PORT_TEST(a_moments_look_ends_with_the_moment_and_with_the_senders_time, "213 225")
{
    kernel_ports.wait = sleep_and_take_one;
    open_with_page();
    EXPECT_EQ(fill(), limit);
    passing_ns = kernel_linux.monotonic_ns();
    kernel.monotonic_ns = clock_that_passes;
    EXPECT(readings_of_a_send() < 40); /* of 20 looks */
    EXPECT_EQ(sleeps, 1);
    remote->side.remote.pacing.skips_left = 0;
    readings = 0;
    acting_reading = 2; /* the first says when the time is over */
    act = lose_most_of_a_millisecond;
    EXPECT_EQ(send_within(0.001), kCFMessagePortSendTimeout);
    EXPECT(readings > 5 && readings < 15); /* of ten looks */
    EXPECT_EQ(sleeps, 1);
    kernel.monotonic_ns = kernel_linux.monotonic_ns;
    close_both();
}

static void end_remote(void)
{
    atomic_store(&remote->is_valid, false); /* as another thread that has the lock between two looks */
}

PORT_TEST(a_port_that_ends_during_a_moments_look_sends_nothing_and_says_that_it_has_become_invalid, "211 225")
{
    fill_and_stop_the_clock();
    kernel_ports.wait = sleep_and_take_one;
    act = end_remote;
    acting_reading = readings + 50;
    EXPECT_EQ(send_within(test_patience_s()), kCFMessagePortBecameInvalidError);
    EXPECT_EQ(sleeps, 0);
    atomic_store(&remote->is_valid, true);
    kernel.monotonic_ns = kernel_linux.monotonic_ns;
    close_both();
}

/* ---- and in it ---- */

static int wakes;

/* One message is taken, too few for a packet, and the wait ends with its time. */
static int take_one_and_time_out(int socket, uint32_t interest, int64_t deadline_ns)
{
    int64_t now_ns = kernel.monotonic_ns();

    (void)socket, (void)interest;
    EXPECT(deadline_ns - now_ns <= INT64_C(10000000));
    wakes++;
    EXPECT(take_one());
    return 0;
}

PORT_TEST(a_sleeping_sender_looks_itself_now_and_then, "225 226")
{
    kernel_ports.send = send_and_count;
    open_with_page();
    EXPECT_EQ(fill(), limit);
    kernel_ports.wait = take_one_and_time_out;
    for (int i = 1; i <= 20; i++) {
        packets = 0;
        EXPECT_EQ(send_within(test_patience_s()), kCFMessagePortSuccess);
        EXPECT_EQ(wakes, i);
    }
    close_both();
}

/* 0: it goes on. */
static int64_t end_of_wait_ns;

static int64_t clock_that_stops(void)
{
    return end_of_wait_ns != 0 ? end_of_wait_ns : kernel_linux.monotonic_ns();
}

/* The clock is at the sender's deadline afterwards. */
static int take_one_and_be_late(int socket, uint32_t interest, int64_t deadline_ns)
{
    (void)socket, (void)interest;
    EXPECT(take_one());
    end_of_wait_ns = deadline_ns;
    return 0;
}

PORT_TEST(a_sleeping_sender_looks_once_more_when_its_time_is_over, "225 226")
{
    open_with_page();
    EXPECT_EQ(fill(), limit);
    kernel.monotonic_ns = clock_that_stops;
    kernel_ports.wait = take_one_and_be_late;
    EXPECT_EQ(send_within(test_patience_s()), kCFMessagePortSuccess);
    end_of_wait_ns = 0;
    kernel = kernel_linux;
    kernel_ports = kernel_ports_linux;
    close_both();
}

static bool is_to_take_all;

/*
 * A server that takes everything between a sender's look at the page and its word that it is going to sleep: where the sender asks, with
 * its port's lock, whether it may.
 */
static int64_t take_all_and_say_time(void)
{
    if (is_to_take_all && lock_is_taken(&remote->lock)) {
        is_to_take_all = false;
        take_all();
    }
    return kernel_linux.monotonic_ns();
}

static int count_sleep(int socket, uint32_t interest, int64_t deadline_ns)
{
    (void)socket, (void)interest, (void)deadline_ns;
    sleeps++;
    return 0;
}

PORT_TEST(what_is_taken_before_a_sender_says_that_it_sleeps_is_seen, "225")
{
    kernel_ports.send = send_and_count;
    open_with_page();
    EXPECT_EQ(fill(), limit);
    kernel.monotonic_ns = take_all_and_say_time;
    kernel_ports.wait = count_sleep;
    is_to_take_all = true;
    remote->side.remote.pacing.skips_left = 1; /* so that nothing sees it before */
    EXPECT_EQ(send_within(test_patience_s()), kCFMessagePortSuccess);
    EXPECT(!is_to_take_all);
    EXPECT_EQ(sleeps, 0);
    EXPECT_EQ(packets, 0); /* and nobody was there to be told */
    kernel = kernel_linux;
    kernel_ports = kernel_ports_linux;
    close_both();
}

PORT_TEST(who_does_not_wait_is_sent_no_packet, "225")
{
    kernel_ports.send = send_and_count;
    open_with_page();
    for (int i = 0; i < 50; i++) {
        EXPECT_EQ(fill(), limit); /* and is refused */
        take_all();
    }
    EXPECT_EQ(packets, 0);
    close_both();
}

/* ---- several threads ---- */

enum { threads = 3, messages_of_each = 400 };

static _Atomic int counted;

static CFDataRef count(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port, (void)message_id, (void)data, (void)info;
    counted++;
    return NULL;
}

static void *send_many(void *info)
{
    for (int i = 0; i < messages_of_each; i++) {
        EXPECT_EQ(port_tell(info, i, NULL), kCFMessagePortSuccess);
    }
    return NULL;
}

PORT_TEST(stress_threads_that_wait_for_room_are_all_served, "209 225")
{
    struct port_thread server;
    pthread_t senders[threads];
    CFMessagePortRef shared;

    port_thread_start(&server, NAME, count, NULL);
    shared = port_connect(NAME);
    for (int i = 0; i < threads; i++) {
        REQUIRE(pthread_create(&senders[i], NULL, send_many, shared) == 0);
    }
    for (int i = 0; i < threads; i++) {
        (void)pthread_join(senders[i], NULL);
    }
    EXPECT_EQ(port_ask(shared, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(counted, threads * messages_of_each + 1);
    CFRelease(shared);
    port_thread_stop(&server);
}

/* ---- without the means ---- */

static int no_memory(uint64_t size, bool reserve)
{
    (void)size, (void)reserve;
    return -ENOSPC;
}

static int no_channel(int ret_ends[2])
{
    (void)ret_ends;
    return -EMFILE;
}

static int no_mapping(int descriptor, uint64_t size, bool touch, void **ret_address)
{
    (void)descriptor, (void)size, (void)touch, (void)ret_address;
    return -ENOMEM;
}

/* As at a server without memory for it: a client asks for its pages to be there. */
static int no_mapping_of_others(int descriptor, uint64_t size, bool touch, void **ret_address)
{
    return touch ? kernel_ports_linux.memory_map(descriptor, size, touch, ret_address) : -ENOMEM;
}

/* By the kernel's queue, which holds at least what a host's limit lets it, and nothing is lost. */
static void expect_all_by_the_kernels_queue(void)
{
    EXPECT(remote->side.remote.pacing.control < 0 && remote->side.remote.pacing.acks == NULL && remote->side.remote.pacing.has_no_control);
    for (int i = 0; i < 20; i++) {
        EXPECT(fill() > 0);
        take_all();
    }
}

static void expect_client_to_do_without(void)
{
    int descriptors;

    sent = handled = 0;
    local = port_open(NAME, count_in_order, NULL, MODE);
    remote = port_connect(NAME);
    descriptors = port_probe_count_descriptors();
    EXPECT(fill() > 0);
    EXPECT_EQ(port_probe_count_descriptors(), descriptors);
    take_all();
    kernel_ports = kernel_ports_linux;
    expect_all_by_the_kernels_queue();
    close_both();
}

PORT_TEST(a_client_that_cannot_make_an_acknowledgement_page_relies_on_the_kernels_queue, "M23 M24")
{
    kernel_ports.memory_create = no_memory;
    expect_client_to_do_without();
    kernel_ports.memory_map = no_mapping;
    expect_client_to_do_without();
    kernel_ports.channel_create = no_channel;
    expect_client_to_do_without();
}

static int see_the_end(int socket, uint32_t interest, int64_t deadline_ns)
{
    sleeps++;
    return kernel_ports_linux.wait(socket, interest, deadline_ns);
}

PORT_TEST(a_server_that_cannot_map_an_acknowledgement_page_leaves_it_to_the_kernels_queue, "M24")
{
    int descriptors;

    for (int waits = 0; waits < 2; waits++) {
        sent = handled = sleeps = 0;
        kernel_ports.memory_map = no_mapping_of_others;
        kernel_ports.wait = see_the_end;
        local = port_open(NAME, count_in_order, NULL, MODE);
        remote = port_connect(NAME);
        EXPECT(!take_one()); /* the loop has its descriptors now */
        descriptors = port_probe_count_descriptors();
        EXPECT_EQ(fill(), limit); /* the client does not know yet */
        take_all();
        EXPECT(control_channel() == NULL);
        EXPECT_EQ(local->side.local.offenders[0].count, 0);
        EXPECT_EQ(send_within(waits ? test_patience_s() : 0), kCFMessagePortSuccess);
        EXPECT_EQ(sleeps, waits); /* it finds the channel hung up, and only who waits is woken by that */
        EXPECT_EQ(port_probe_count_descriptors(), descriptors);
        kernel_ports = kernel_ports_linux;
        expect_all_by_the_kernels_queue();
        close_both();
    }
}

PORT_TEST(a_control_channel_that_the_server_gives_up_is_done_without, "H12 225")
{
    open_with_page();
    port_lock(local);
    channel_table_drop(&local->side.local.channels, channel_table_some_control(&local->side.local.channels)); /* for another client's */
    port_unlock(local);
    EXPECT(fill() > 0);
    take_all();
    EXPECT(fill() > 0); /* with patience or without */
    take_all();
    expect_all_by_the_kernels_queue();
    close_both();
}

/* ---- lies of the server's ---- */

static void lie(uint32_t taken, uint32_t queue_limit)
{
    struct ack_page *page = control_channel()->acks;

    atomic_store(&page->taken, taken);
    atomic_store(&page->queue_limit, queue_limit);
}

PORT_TEST(numbers_that_were_not_sent_and_old_ones_confirm_nothing, "241 H23")
{
    uint32_t sequence;

    open_with_page();
    EXPECT_EQ(fill(), limit);
    sequence = remote->side.remote.pacing.sequence;
    for (uint32_t shift = 0; shift < 32; shift++) {
        lie(sequence + (UINT32_C(1) << shift), limit);
        EXPECT_EQ(fill(), 0);
        EXPECT_EQ(remote->side.remote.pacing.confirmed, sequence - limit);
        lie(sequence - limit - (UINT32_C(1) << shift), limit);
        EXPECT_EQ(fill(), 0);
        EXPECT_EQ(remote->side.remote.pacing.confirmed, sequence - limit);
    }
    lie(sequence, 0); /* nothing has been taken yet, it says */
    EXPECT_EQ(fill(), 0);
    EXPECT_EQ(remote->side.remote.pacing.queue_limit, limit);
    lie(sequence - limit, 1);
    EXPECT_EQ(fill(), 0);
    lie(sequence - limit, limit);
    EXPECT(take_one()); /* and the truth is in the page again */
    EXPECT_EQ(fill(), 1);
    close_both();
}

PORT_TEST(a_queue_that_is_said_to_be_endless_is_the_kernels, "241 H23")
{
    int most;

    local = port_open(NAME, count_in_order, NULL, MODE);
    remote = port_connect(NAME);
    remote->side.remote.pacing.has_no_control = true;
    most = fill(); /* as the kernel has it */
    take_all();
    CFRelease(remote);
    port_drop(local);
    sent = handled = 0;
    open_with_page();
    EXPECT_EQ(fill(), limit);
    lie(remote->side.remote.pacing.confirmed, UINT32_MAX);
    EXPECT_EQ(fill(), most - limit);
    EXPECT_EQ(remote->side.remote.pacing.queue_limit, UINT32_MAX);
    EXPECT(remote_port_packet_data_max(remote, wire_inline_max) > 0);
    lie(remote->side.remote.pacing.confirmed, UINT32_MAX);
    close_both();
}

/* Wakes without end, and nothing is taken. */
static int wake_in_vain(int socket, uint32_t interest, int64_t deadline_ns)
{
    static const uint8_t garbage[3 * wire_header_size] = {0x5A};

    (void)kernel_ports_linux.send(control_channel()->descriptor, garbage, 1 + (size_t)(sleeps * 37) % sizeof garbage);
    sleeps++;
    return kernel_ports_linux.wait(socket, interest, deadline_ns);
}

PORT_TEST(packets_that_are_none_wake_a_sender_and_no_more, "241 H23 225")
{
    open_with_page();
    EXPECT_EQ(fill(), limit);
    kernel_ports.wait = wake_in_vain;
    for (int i = 0; i < 50 && sleeps <= 4; i++) { /* a busy machine may leave an attempt no time for so many */
        double begun = port_probe_now();

        sleeps = 0;
        EXPECT_EQ(send_within(0.02), kCFMessagePortSendTimeout);
        EXPECT(port_probe_now() - begun >= 0.02);
    }
    EXPECT(sleeps > 4); /* it looks each 10 ms without being woken */
    EXPECT(CFMessagePortIsValid(remote));
    kernel_ports = kernel_ports_linux;
    take_all();
    EXPECT_EQ(fill(), limit);
    close_both();
}

/* ---- forks ---- */

static const void *forked_pages[2];
static int forked_control;

static bool is_mapped(const void *page)
{
    unsigned char unused;

    return mincore((void *)(uintptr_t)page, shared_page_size, &unused) == 0;
}

static int look_for_what_is_the_parents(void)
{
    EXPECT(!is_mapped(forked_pages[0]) && !is_mapped(forked_pages[1]));
    EXPECT_EQ(page_probe_mapped, 2); /* nothing was given back that is not there, and may be something else by now */
    EXPECT(fcntl(forked_control, F_GETFD) < 0);
    EXPECT_EQ(send_within(0), kCFMessagePortIsInvalid);
    CFMessagePortInvalidate(remote);
    CFRelease(remote);
    CFMessagePortInvalidate(local);
    CFRelease(local);
    EXPECT_EQ(page_probe_mapped, 2);
    return 0;
}

PORT_TEST(acknowledgement_pages_are_the_parents_after_a_fork, "176 P1 P2")
{
    kernel_ports.send = send_and_count;
    page_probe_count();
    open_with_page();
    EXPECT_EQ(fill(), limit);
    forked_pages[0] = remote->side.remote.pacing.acks;
    forked_pages[1] = control_channel()->acks;
    forked_control = remote->side.remote.pacing.control;
    EXPECT(is_mapped(forked_pages[0]) && is_mapped(forked_pages[1]));
    EXPECT_EQ(port_probe_in_child(look_for_what_is_the_parents), 0);
    EXPECT_EQ(fill(), 0);
    EXPECT(take_one());
    EXPECT_EQ(fill(), 1);
    EXPECT(take_one());
    EXPECT_EQ(fill(), 1);
    EXPECT_EQ(packets, 0);
    close_both();
}
