/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls whose replies come in pages: that they do, that nobody can tell but by what it costs, and what happens when either side dies, forks
 * or has not the means. Pages by themselves are in test_reply_page.c, hostile ones in test_hostile.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Message/client_channel.h"
#include "Port/Core/message_port.h"
#include "Port/port_probe.h"
#include "older_kernel.h"

#define OTHER_MODE CFSTR("another reply mode")

enum { at_type = 5 }; /* in a frame */

/* ---- looking inside ---- */

/* The channel that the next call takes; NULL: a new one. */
static struct client_channel *channel_of(CFMessagePortRef remote)
{
    const struct link *channels = &remote->side.remote.free_channels;

    return channels->next == channels ? NULL : container_of(channels->next, struct client_channel, link);
}

static bool has_page(CFMessagePortRef remote)
{
    const struct client_channel *channel = channel_of(remote);

    return channel && channel->page;
}

/* The first of a server's channels with a page; NULL: there is none. */
static struct server_channel *channel_with_page(CFMessagePortRef local)
{
    struct channel_table *table = &local->side.local.channels;
    struct server_channel *result = NULL;

    port_lock(local);
    for (int i = 0; i < channel_buckets; i++) {
        list_for_each(link, &table->buckets[i]) {
            struct server_channel *channel = container_of(link, struct server_channel, link);

            result = channel->page ? channel : result;
        }
    }
    port_unlock(local);
    return result;
}

static uint32_t count_pages(CFMessagePortRef local)
{
    uint32_t count;

    port_lock(local);
    count = local->side.local.channels.page_count;
    port_unlock(local);
    return count;
}

/* Until the channel that answers has a page on both sides. */
static void ask_until_page(CFMessagePortRef remote)
{
    need_quiet_nested_sets();
    for (int i = 0; i <= reply_page_after; i++) {
        REQUIRE(port_ask(remote, 1, NULL, NULL) == kCFMessagePortSuccess);
    }
    REQUIRE(has_page(remote));
}

/* ---- counting ---- */

static _Atomic int received; /* packets that came to this process by channels */

static ssize_t receive_and_count(int socket, struct msghdr *message)
{
    ssize_t result = kernel_ports_linux.receive_message(socket, message);

    received += result > 0 && kernel_ports.is_channel(socket) ? 1 : 0;
    return result;
}

static CFDataRef reply_of_that_length(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)data;
    (void)info;
    return message_id > 0 ? port_pattern(message_id, (unsigned)message_id) : NULL;
}

static void expect_reply_of_length(CFMessagePortRef remote, SInt32 length, int packets)
{
    CFDataRef reply = NULL;
    int before = received;

    EXPECT_EQ(port_ask(remote, length, NULL, &reply), kCFMessagePortSuccess);
    EXPECT(port_is_pattern(reply, length, (unsigned)length));
    EXPECT_EQ(received - before, packets);
    if (reply) {
        CFRelease(reply);
    }
}

PORT_TEST(replies_that_fit_a_page_come_in_it_and_others_as_ever, "220 239 240")
{
    enum { most = reply_page_room - wire_header_size };
    pid_t owner = port_process_start(NAME, reply_of_that_length, NULL, NULL);
    CFMessagePortRef remote = port_connect(NAME);

    kernel_ports.receive_message = receive_and_count;
    ask_until_page(remote);
    for (int round = 0; round < 2; round++) {
        expect_reply_of_length(remote, 0, 0);
        expect_reply_of_length(remote, 1, 0);
        for (SInt32 length = 3840; length <= 4000; length++) {
            expect_reply_of_length(remote, length, length > most ? 1 : 0);
        }
        expect_reply_of_length(remote, 5000, 1);
        expect_reply_of_length(remote, 65536, 1);
        expect_reply_of_length(remote, 7, 0);
    }
    expect_reply_of_length(remote, 70000, 2); /* the reply and its memory */
    expect_reply_of_length(remote, 70000, 0); /* its data is in the channel's arena */
    expect_reply_of_length(remote, 3, 0);
    CFRelease(remote);
    port_process_kill(owner);
}

PORT_TEST(a_channel_gets_its_page_with_the_eighth_reply, "213")
{
    struct port_thread server;
    CFMessagePortRef remote;

    need_quiet_nested_sets();
    kernel_ports.receive_message = receive_and_count;
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    for (int i = 1; i <= reply_page_after; i++) {
        EXPECT(!has_page(remote));
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
        EXPECT_EQ(received, i);
    }
    EXPECT(has_page(remote));
    for (int i = 0; i < 20; i++) {
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(received, reply_page_after);
    EXPECT_EQ(count_pages(server.port), 1);
    CFRelease(remote);
    port_thread_stop(&server);
}

/* What a dropped request is told comes in the page, too. */
PORT_TEST(a_request_beyond_the_budget_is_dropped_by_the_page, "239")
{
    struct port_thread server;
    CFDataRef large = port_pattern(1500, 1);
    CFMessagePortRef remote;

    kernel_ports.receive_message = receive_and_count;
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    ask_until_page(remote);
    received = 0;
    CRLMessagePortSetMemoryBudget(server.port, 1000);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(port_ask(remote, 1, large, NULL), kCFMessagePortTransportError);
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(received, 0);
    EXPECT(has_page(remote));
    CFRelease(large);
    CFRelease(remote);
    port_thread_stop(&server);
}

/* ---- without the means ---- */

static int no_event(void)
{
    return -EMFILE;
}

static int no_mapping(int descriptor, uint64_t size, bool touch, void **ret_address)
{
    (void)descriptor, (void)size, (void)touch, (void)ret_address;
    return -ENOMEM;
}

static size_t few_descriptors(void)
{
    return 31; /* a channel at a time, and one page */
}

static void have_no_event(CFMessagePortRef port)
{
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true); /* the loop has its own */
    (void)port;
    kernel.event_create = no_event;
}

static void have_no_mapping(CFMessagePortRef port)
{
    (void)port;
    kernel_ports.memory_map = no_mapping;
}

static void expect_served_without_page(void (*prepare)(CFMessagePortRef port))
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, prepare);
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef data = port_data("in a packet");
    CFDataRef reply = NULL;

    received = 0;
    kernel_ports.receive_message = receive_and_count;
    for (int i = 0; i < 5 * reply_page_after; i++) {
        EXPECT_EQ(port_ask(remote, 1, data, &reply), kCFMessagePortSuccess);
        EXPECT(port_data_is(reply, "in a packet"));
        CFRelease(reply);
    }
    EXPECT_EQ(received, 5 * reply_page_after);
    CFRelease(data);
    CFRelease(remote);
    port_process_kill(owner);
}

PORT_TEST(a_server_that_cannot_take_a_page_serves_without, "M23 M24")
{
    expect_served_without_page(have_no_event);
    expect_served_without_page(have_no_mapping);
}

static _Atomic bool sets_are_refused;

static int set_unless_refused(void)
{
    return sets_are_refused ? -EMFILE : kernel_linux.set_create();
}

PORT_TEST(a_client_that_cannot_make_a_page_tries_again_later, "M23")
{
    struct port_thread server;
    CFMessagePortRef remote;

    need_quiet_nested_sets();
    kernel.set_create = set_unless_refused;
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    sets_are_refused = true;
    for (int i = 1; i < 2 * reply_page_after - 1; i++) {
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
        EXPECT(!has_page(remote));
    }
    sets_are_refused = false;
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT(has_page(remote));
    CFRelease(remote);
    port_thread_stop(&server);
}

static _Atomic bool queue_is_full;

static ssize_t send_unless_full(int socket, const struct msghdr *message)
{
    const uint8_t *bytes = message->msg_iov[0].iov_base;

    return queue_is_full && bytes[at_type] == wire_page ? -EAGAIN : kernel_ports_linux.send_message(socket, message);
}

PORT_TEST(a_full_queue_only_puts_a_page_off, "225")
{
    struct port_thread server;
    CFMessagePortRef remote;
    int descriptors;

    need_quiet_nested_sets();
    kernel_ports.send_message = send_unless_full;
    queue_is_full = true;
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    descriptors = port_probe_count_descriptors();
    for (int i = 1; i < 2 * reply_page_after - 1; i++) {
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
        EXPECT(!has_page(remote));
    }
    EXPECT_EQ(port_probe_count_descriptors(), descriptors);
    queue_is_full = false;
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT(has_page(remote));
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(count_pages(server.port), 1);
    CFRelease(remote);
    port_thread_stop(&server);
}

static int ask_much_as_another(void)
{
    CFMessagePortRef remote = port_connect(NAME);

    for (int i = 0; i < 3 * reply_page_after; i++) {
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    }
    CFRelease(remote);
    return 0;
}

PORT_TEST(clients_beyond_the_number_of_pages_are_served_without, "H12")
{
    struct port_thread server;
    CFMessagePortRef remote;

    need_quiet_nested_sets();
    kernel_ports.descriptor_limit = few_descriptors;
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    ask_until_page(remote);
    EXPECT_EQ(count_pages(server.port), 1);
    EXPECT_EQ(port_probe_in_child(ask_much_as_another), 0);
    EXPECT_EQ(count_pages(server.port), 1);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    EXPECT_EQ(port_probe_in_child(ask_much_as_another), 0); /* with its new channel it is noticed that the first has gone */
    EXPECT(count_pages(server.port) <= 1);
    port_thread_stop(&server);
}

/* ---- timeouts ---- */

static CFDataRef echo_late(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    if (message_id == 2) {
        (void)sem_wait(info);
    }
    return CFRetain(data);
}

/* A wait that the kernel ends a little before its limit is waited out with an alarm, which is a descriptor, and stays. */
static int no_alarm(void)
{
    return -EMFILE;
}

PORT_TEST(a_timeout_closes_the_channel_with_its_page, "228 230 M10")
{
    struct port_thread server;
    CFDataRef late = port_data("late");
    CFDataRef good = port_data("good");
    CFDataRef reply = NULL;
    CFMessagePortRef remote;
    sem_t may_reply;
    int descriptors;

    kernel.alarm_create = no_alarm;
    (void)sem_init(&may_reply, 0, 0);
    port_thread_start(&server, NAME, echo_late, &may_reply);
    remote = port_connect(NAME);
    ask_until_page(remote);
    descriptors = port_probe_count_descriptors();
    for (int i = 0; i < 3; i++) {
        static const double limits_s[] = {0, 0.01, 0.03};

        EXPECT_EQ(CFMessagePortSendRequest(remote, 2, late, 5, limits_s[i], i < 2 ? MODE : OTHER_MODE, &reply),
                  kCFMessagePortReceiveTimeout);
        EXPECT(reply == NULL && channel_of(remote) == NULL);
        (void)sem_post(&may_reply);
        for (int j = 0; j < 2 * reply_page_after; j++) {
            EXPECT_EQ(port_ask(remote, 1, good, &reply), kCFMessagePortSuccess);
            EXPECT(port_data_is(reply, "good"));
            CFRelease(reply);
            reply = NULL;
        }
        EXPECT(has_page(remote));
        EXPECT_EQ(count_pages(server.port), 1);
        EXPECT(port_probe_descriptors_fall_to(descriptors + 1)); /* the other mode's wait set */
    }
    CFRelease(late);
    CFRelease(good);
    CFRelease(remote);
    port_thread_stop(&server);
}

/* ---- deaths ---- */

static bool dies_before_bell, dies_after_bell;

static int die_at_bell(int event)
{
    int result = 0;

    if (dies_before_bell) {
        (void)raise(SIGKILL);
    }
    result = kernel_linux.event_post(event);
    if (dies_after_bell) {
        (void)raise(SIGKILL);
    }
    return result;
}

static void watch_the_bell(CFMessagePortRef port)
{
    (void)port;
    kernel.event_post = die_at_bell;
}

enum { dies_at_once = 2, dies_while_awaited, dies_with_reply, dies_with_reply_and_bell };

static CFDataRef die_in_some_way(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)info;
    if (message_id == dies_at_once) {
        (void)raise(SIGKILL);
    }
    if (message_id > dies_at_once) {
        struct server_channel *channel = channel_with_page(port);

        while (atomic_load(&channel->page->is_awaited) == 0) { /* which keeps the client from seeing the reply before it announces itself */
            (void)sched_yield();
        }
    }
    if (message_id == dies_while_awaited) {
        (void)raise(SIGKILL);
    }
    dies_before_bell = message_id == dies_with_reply;
    dies_after_bell = message_id == dies_with_reply_and_bell;
    return CFRetain(data);
}

static void expect_end(SInt32 way, CFStringRef mode, SInt32 expected)
{
    pid_t owner = port_process_start(NAME, die_in_some_way, NULL, watch_the_bell);
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef data = port_data("last words");
    CFDataRef reply = NULL;
    double begun;

    ask_until_page(remote);
    begun = port_probe_now();
    EXPECT_EQ(CFMessagePortSendRequest(remote, way, data, test_patience_s(), test_patience_s(), mode, &reply), expected);
    EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
    EXPECT_EQ(reply != NULL, expected == kCFMessagePortSuccess);
    if (reply) {
        EXPECT(port_data_is(reply, "last words"));
        CFRelease(reply);
    }
    waitpid(owner, NULL, 0);
    EXPECT(port_ask(remote, 1, NULL, NULL) != kCFMessagePortSuccess);
    EXPECT(!CFMessagePortIsValid(remote));
    CFRelease(data);
    CFRelease(remote);
}

PORT_TEST(a_server_that_dies_before_its_reply_is_in_the_page_ends_the_wait, "232 M1")
{
    expect_end(dies_at_once, MODE, kCFMessagePortBecameInvalidError);
    expect_end(dies_at_once, OTHER_MODE, kCFMessagePortBecameInvalidError);
    expect_end(dies_while_awaited, MODE, kCFMessagePortBecameInvalidError);
    expect_end(dies_while_awaited, OTHER_MODE, kCFMessagePortBecameInvalidError);
}

PORT_TEST(a_reply_in_the_page_wins_over_the_death_of_who_wrote_it, "231 M1")
{
    expect_end(dies_with_reply, MODE, kCFMessagePortSuccess); /* only the hang-up wakes the client */
    expect_end(dies_with_reply, OTHER_MODE, kCFMessagePortSuccess);
    expect_end(dies_with_reply_and_bell, MODE, kCFMessagePortSuccess);
    expect_end(dies_with_reply_and_bell, OTHER_MODE, kCFMessagePortSuccess);
}

static int may_answer[2]; /* a pipe */
static _Atomic pid_t answering;

static CFDataRef answer_when_told(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    char byte;

    (void)port;
    (void)info;
    if (message_id == 2) {
        (void)!read(may_answer[0], &byte, 1);
        dies_before_bell = true;
    }
    return CFRetain(data);
}

/* Between the look into the page and the one at the socket the server answers and dies. */
static ssize_t receive_after_death(int socket, struct msghdr *message)
{
    siginfo_t ended;

    if (answering) {
        (void)!write(may_answer[1], "x", 1);
        while (waitid(P_PID, (id_t)answering, &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
        }
        answering = 0;
    }
    return kernel_ports_linux.receive_message(socket, message);
}

PORT_TEST(a_reply_that_comes_between_the_looks_wins_over_the_hang_up, "231 M1")
{
    CFDataRef data = port_data("last words");
    CFDataRef reply = NULL;
    CFMessagePortRef remote;
    pid_t owner;

    REQUIRE(pipe(may_answer) == 0);
    owner = port_process_start(NAME, answer_when_told, NULL, watch_the_bell);
    kernel_ports.receive_message = receive_after_death;
    remote = port_connect(NAME);
    ask_until_page(remote);
    answering = owner;
    EXPECT_EQ(CFMessagePortSendRequest(remote, 2, data, 5, 0, MODE, &reply), kCFMessagePortSuccess);
    EXPECT_EQ(answering, 0);
    EXPECT(port_data_is(reply, "last words"));
    if (reply) {
        CFRelease(reply);
    }
    CFRelease(data);
    CFRelease(remote);
    waitpid(owner, NULL, 0);
    (void)close(may_answer[0]);
    (void)close(may_answer[1]);
}

static CFDataRef invalidate_itself(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)info;
    if (message_id == 2) {
        CFMessagePortInvalidate(port);
    }
    return CFRetain(data);
}

PORT_TEST(a_port_with_pages_may_end_in_its_callback, "203 232 H26")
{
    for (int i = 0; i < 4; i++) {
        struct port_thread server;
        CFMessagePortRef remote;

        port_thread_start(&server, NAME, invalidate_itself, NULL);
        (void)CFRetain(server.port); /* its thread ends with it */
        remote = port_connect(NAME);
        ask_until_page(remote);
        EXPECT_EQ(CFMessagePortSendRequest(remote, 2, NULL, 5, test_patience_s(), i % 2 ? MODE : OTHER_MODE, NULL),
                  kCFMessagePortBecameInvalidError);
        CFRelease(remote);
        port_thread_stop(&server);
        EXPECT_EQ(count_pages(server.port), 0);
        CFRelease(server.port);
    }
}

PORT_TEST(a_port_whose_channels_have_pages_ends_and_nothing_stays, "203")
{
    struct port_thread server;
    CFMessagePortRef remote;
    int descriptors;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    ask_until_page(remote);
    descriptors = port_probe_count_descriptors();
    CFMessagePortInvalidate(server.port);
    EXPECT_EQ(count_pages(server.port), 0);
    EXPECT(port_probe_count_descriptors() <= descriptors - 2); /* its end of the channel and the bell, and its sockets */
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortIsInvalid);
    CFRelease(remote);
    port_thread_stop(&server);
}

static _Atomic CFMessagePortRef ending;

static pthread_t client_thread;

/* The end of the port comes between the look at the channel and the page's being taken for it, by the server's thread. */
static int end_and_make_event(void)
{
    CFMessagePortRef port = pthread_equal(pthread_self(), client_thread) ? NULL : atomic_exchange(&ending, NULL);

    if (port) {
        CFMessagePortInvalidate(port);
    }
    return kernel_linux.event_create();
}

PORT_TEST(a_port_may_end_while_it_takes_a_page, "203")
{
    struct port_thread server;
    CFMessagePortRef remote;

    need_quiet_nested_sets();
    client_thread = pthread_self();
    kernel.event_create = end_and_make_event;
    port_thread_start(&server, NAME, port_echo, NULL);
    (void)CFRetain(server.port);
    remote = port_connect(NAME);
    for (int i = 1; i < reply_page_after; i++) {
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    }
    ending = server.port;
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT(port_ask(remote, 1, NULL, NULL) != kCFMessagePortSuccess);
    CFRelease(remote);
    port_thread_stop(&server);
    EXPECT_EQ(count_pages(server.port), 0);
    EXPECT(ending == NULL);
    CFRelease(server.port);
}

/* ---- replies that are there before anybody looks ---- */

static struct reply_page *_Atomic awaited_page; /* a request that has been sent is answered there before the call goes on */
static CFMessagePortRef answering_port;
static _Atomic int bells; /* rung in this process */
static _Atomic int the_bell;

static ssize_t send_and_let_answer(int socket, const void *bytes, size_t size)
{
    ssize_t result = kernel_ports_linux.send(socket, bytes, size);
    struct reply_page *page = atomic_load(&awaited_page);

    while (result > 0 && page && atomic_load(&page->size) == 0) {
        (void)sched_yield();
    }
    if (page) {
        (void)count_pages(answering_port); /* it has looked whether anybody awaits when it drops its lock */
    }
    return result;
}

static int post_and_count(int event)
{
    bells += event == the_bell ? 1 : 0;
    return kernel_linux.event_post(event);
}

static pthread_t client;
static _Atomic int waits; /* of the client's, in wait sets */

static int wait_and_count(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    waits += deadline_ns != 0 && pthread_equal(pthread_self(), client) ? 1 : 0;
    return kernel_linux.set_wait(set, events, capacity, deadline_ns);
}

/* A server in a thread, and a remote whose channel has a page. From here on requests are answered before the client looks. */
static CFMessagePortRef start_quick_server(struct port_thread *server, CFMessagePortCallBack callout)
{
    CFMessagePortRef remote;

    kernel_ports.send = send_and_let_answer;
    kernel.event_post = post_and_count;
    kernel.set_wait = wait_and_count;
    client = pthread_self();
    the_bell = -1;
    port_thread_start(server, NAME, callout, NULL);
    remote = port_connect(NAME);
    ask_until_page(remote);
    the_bell = channel_with_page(server->port)->bell;
    answering_port = server->port;
    awaited_page = channel_of(remote)->page;
    return remote;
}

PORT_TEST(a_reply_that_is_there_at_once_is_found_without_a_bell, "213 228")
{
    CFDataRef data = port_data("at once");
    struct port_thread server;
    CFMessagePortRef remote = start_quick_server(&server, port_echo);
    static const double limits_s[] = {10, 0, 864000, -1};

    for (int i = 0; i < 16; i++) {
        CFDataRef reply = NULL;

        EXPECT_EQ(CFMessagePortSendRequest(remote, i, data, 5, limits_s[i % 4], i / 4 % 2 ? MODE : OTHER_MODE, &reply),
                  kCFMessagePortSuccess);
        EXPECT(port_data_is(reply, "at once"));
        CFRelease(reply);
    }
    EXPECT_EQ(bells, 0);
    CFRelease(data);
    CFRelease(remote);
    port_thread_stop(&server);
}

static struct trace activities;

static void note_activity(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)info;
    trace_add(&activities, activity == kCFRunLoopEntry ? "E" : activity == kCFRunLoopExit ? "X" : "?");
}

PORT_TEST(observers_see_a_run_although_the_reply_is_there_at_once, "213 214 216")
{
    struct port_thread server;
    CFMessagePortRef remote = start_quick_server(&server, port_echo);
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopEntry | kCFRunLoopExit, true, 0, note_activity, NULL);

    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, MODE);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_TRACE(&activities, "E X");
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 5, 0, MODE, NULL), kCFMessagePortSuccess);
    EXPECT_TRACE(&activities, "E X E X");
    EXPECT_EQ(bells, 0);
    CFRunLoopObserverInvalidate(observer);
    CFRelease(observer);
    CFRelease(remote);
    port_thread_stop(&server);
}

static void count_timer(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    ++*(int *)info;
}

static void count_readable(CFFileDescriptorRef descriptor, CFOptionFlags kinds, void *info)
{
    (void)kinds;
    ++*(int *)info;
    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
}

/* Whoever asks again and again in a callback, and is always answered at once, must not keep the mode's other timers and sources waiting. */
PORT_TEST(a_due_timer_has_its_turn_although_the_reply_is_there_at_once, "35 213 216 T20")
{
    struct port_thread server;
    CFMessagePortRef remote = start_quick_server(&server, port_echo);
    int fired = 0;
    CFRunLoopTimerContext context = {.info = &fired};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0, 0, 0, count_timer, &context);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, MODE);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(fired, 1);
    EXPECT_EQ(bells, 0);
    CFRelease(timer);
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST(a_ready_descriptor_has_its_turn_although_the_reply_is_there_at_once, "35 213 216 T20")
{
    struct port_thread server;
    CFMessagePortRef remote = start_quick_server(&server, port_echo);
    int served = 0;
    int event = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    CFFileDescriptorContext context = {.info = &served};
    CFFileDescriptorRef descriptor = CFFileDescriptorCreate(NULL, event, true, count_readable, &context);
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, descriptor, 0);

    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    }
    EXPECT(served >= 2);
    EXPECT_EQ(bells, 0);
    CFFileDescriptorInvalidate(descriptor);
    CFRelease(source);
    CFRelease(descriptor);
    CFRelease(remote);
    port_thread_stop(&server);
}

/* ---- bells that are late ---- */

/* Answers when the client has slept twice and would, if it were awake, have slept a hundred times; or soon, where a yield takes long. */
static CFDataRef echo_to_second_sleep(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)info;
    if (message_id == 2) {
        double deadline = port_probe_now() + test_patience_s() / 2;

        while (waits < 2 && port_probe_now() < deadline) {
            (void)sched_yield();
        }
        deadline = port_probe_now() + test_patience_s() / 10;
        for (int i = 0; i < 1000 && port_probe_now() < deadline; i++) {
            (void)sched_yield();
        }
    }
    return CFRetain(data);
}

/* Of a reply that was found without it; that is also how a bell comes that was rung while the client found the reply. */
static void expect_late_bell_to_be_passed_over(CFStringRef mode)
{
    struct port_thread server;
    CFMessagePortRef remote = start_quick_server(&server, echo_to_second_sleep);
    CFDataRef data = port_data("second");
    CFDataRef reply = NULL;

    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 5, 5, mode, NULL), kCFMessagePortSuccess);
    (void)kernel_linux.event_post(the_bell);
    awaited_page = NULL;
    waits = 0;
    EXPECT_EQ(CFMessagePortSendRequest(remote, 2, data, 5, test_patience_s(), mode, &reply), kCFMessagePortSuccess);
    EXPECT(port_data_is(reply, "second"));
    EXPECT_EQ(waits, 2);
    EXPECT_EQ(bells, 1);
    CFRelease(reply);
    CFRelease(data);
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST(a_bell_for_the_reply_before_does_not_end_the_wait, "213 228")
{
    expect_late_bell_to_be_passed_over(MODE);
}

static void ignore_activity(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
}

PORT_TEST(nor_does_it_end_a_wait_that_is_observed, "213 214 228")
{
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, 0, ignore_activity, NULL);

    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, MODE);
    expect_late_bell_to_be_passed_over(MODE);
    CFRunLoopObserverInvalidate(observer);
    CFRelease(observer);
}

PORT_TEST(a_late_bell_does_not_shorten_or_lengthen_a_timeout, "228 233")
{
    struct port_thread server;
    CFMessagePortRef remote;
    sem_t may_reply;

    (void)sem_init(&may_reply, 0, 0);
    client = pthread_self();
    kernel.set_wait = wait_and_count;
    port_thread_start(&server, NAME, echo_late, &may_reply);
    remote = port_connect(NAME);
    for (int i = 0; i < 2; i++) {
        double begun;

        ask_until_page(remote);
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
        (void)kernel_linux.event_post(channel_with_page(server.port)->bell);
        waits = 0;
        begun = port_probe_now();
        EXPECT_EQ(CFMessagePortSendRequest(remote, 2, NULL, 5, 0.25, i == 0 ? MODE : OTHER_MODE, NULL), kCFMessagePortReceiveTimeout);
        EXPECT(port_probe_now() - begun >= 0.25);
        EXPECT(waits >= 2 && waits <= 4);
        (void)sem_post(&may_reply);
    }
    CFRelease(remote);
    port_thread_stop(&server);
}

/* ---- where channels with pages go ---- */

static CFDataRef descend(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    CFDataRef reply = NULL;

    (void)port;
    (void)data;
    if (message_id > 0) {
        EXPECT_EQ(port_ask(((CFMessagePortRef *)info)[message_id % 2], message_id - 1, NULL, &reply), kCFMessagePortSuccess);
        EXPECT(reply && memcmp(CFDataGetBytePtr(reply), &(SInt32){message_id - 1}, sizeof(SInt32)) == 0);
        if (reply) {
            CFRelease(reply);
        }
    }
    return CFDataCreate(NULL, (const UInt8 *)&message_id, sizeof message_id);
}

PORT_TEST(requests_within_requests_have_pages_of_their_own, "236 237 M14")
{
    enum { depth = 6 };
    CFMessagePortRef remotes[2];
    CFMessagePortRef a = port_open(CFSTR("A"), descend, remotes, MODE);
    CFMessagePortRef b = port_open(CFSTR("B"), descend, remotes, MODE);

    kernel_ports.receive_message = receive_and_count;
    remotes[0] = port_connect(CFSTR("A"));
    remotes[1] = port_connect(CFSTR("B"));
    for (int i = 0; i < 3 * reply_page_after; i++) {
        received = 0;
        EXPECT_EQ(port_ask(remotes[0], depth, NULL, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(received, 0);
    EXPECT_EQ(count_pages(a), depth / 2 + 1);
    EXPECT_EQ(count_pages(b), depth / 2);
    CFRelease(remotes[0]);
    CFRelease(remotes[1]);
    port_drop(a);
    port_drop(b);
}

struct passing {
    CFMessagePortRef remote;
    int thread;
};

static void *ask_in_turns(void *info)
{
    const struct passing *passing = info;

    for (int i = 0; i < 40; i++) {
        CFDataRef data = port_pattern(i, (unsigned)passing->thread);
        CFDataRef reply = NULL;

        EXPECT_EQ(CFMessagePortSendRequest(passing->remote, i, data, 5, test_patience_s(), i % 3 ? MODE : OTHER_MODE, &reply),
                  kCFMessagePortSuccess);
        EXPECT(port_is_pattern(reply, i, (unsigned)passing->thread));
        if (reply) {
            CFRelease(reply);
        }
        CFRelease(data);
    }
    return NULL;
}

/* With its page a channel goes to whichever thread asks next: two at once, and one whose predecessor's loop has ended. */
PORT_TEST(channels_with_pages_go_from_thread_to_thread_and_from_mode_to_mode, "209 213 235")
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);
    struct passing passings[2];
    pthread_t threads[2];
    CFMessagePortRef remote = port_connect(NAME);

    kernel_ports.receive_message = receive_and_count;
    ask_until_page(remote);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 2; i++) {
            passings[i] = (struct passing){remote, i};
            REQUIRE(pthread_create(&threads[i], NULL, ask_in_turns, &passings[i]) == 0);
        }
        for (int i = 0; i < 2; i++) {
            (void)pthread_join(threads[i], NULL);
        }
        (void)ask_in_turns(&(struct passing){remote, 2});
    }
    received = 0;
    (void)ask_in_turns(&(struct passing){remote, 3});
    EXPECT_EQ(received, 0);
    EXPECT(has_page(remote));
    CFRelease(remote);
    port_process_kill(owner);
}

static _Atomic int socket_waits;

static int wait_for_socket(int socket, uint32_t interest, int64_t deadline_ns)
{
    socket_waits++;
    return kernel_ports_linux.wait(socket, interest, deadline_ns);
}

static pthread_key_t last_key;
static CFMessagePortRef late_remote;
static SInt32 late_result;

/* In the C library's last round of destructors, when the thread's loop has ended. */
static void ask_in_the_last_round(void *value)
{
    uintptr_t left = (uintptr_t)value - 1;

    if (left > 0) {
        (void)pthread_setspecific(last_key, (void *)left);
        return;
    }
    for (int i = 0; i < 3 && late_result == kCFMessagePortSuccess; i++) {
        late_result = port_ask(late_remote, 1, NULL, NULL);
    }
}

static void *ask_and_end(void *info)
{
    late_result = port_ask(late_remote, 1, NULL, NULL);
    (void)pthread_setspecific(last_key, (void *)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
    return info;
}

PORT_TEST(a_thread_without_a_loop_gets_its_replies_by_the_page_too, "171 213 P7")
{
    pid_t owner;
    pthread_t thread;

    if (test_is_instrumented()) {
        SKIP("the tool has taken down what it knows of a thread by the last round");
    }
    kernel_ports.receive_message = receive_and_count;
    kernel_ports.wait = wait_for_socket;
    owner = port_process_start(NAME, port_echo, NULL, NULL);
    REQUIRE(pthread_key_create(&last_key, ask_in_the_last_round) == 0);
    late_remote = port_connect(NAME);
    ask_until_page(late_remote);
    received = 0;
    test_allow_left(0, 2); /* the one such loop of the process, and its mode's name */
    REQUIRE(pthread_create(&thread, NULL, ask_and_end, NULL) == 0);
    (void)pthread_join(thread, NULL);
    EXPECT_EQ(late_result, kCFMessagePortSuccess);
    EXPECT_EQ(received, 0);
    EXPECT_EQ(socket_waits, 0); /* where the bell is not heard */
    EXPECT_EQ(port_ask(late_remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(late_remote);
    port_process_kill(owner);
}

/* ---- forks ---- */

static CFMessagePortRef forked_remote;
static int forked_set, forked_bell;
static const struct reply_page *forked_pages[2];

static bool is_mapped(const struct reply_page *page)
{
    unsigned char unused;

    return mincore((void *)(uintptr_t)page, reply_page_size, &unused) == 0;
}

static int look_for_pages(void)
{
    EXPECT(fcntl(forked_set, F_GETFD) < 0 && fcntl(forked_bell, F_GETFD) < 0);
    EXPECT(!is_mapped(forked_pages[0]) && !is_mapped(forked_pages[1]));
    EXPECT_EQ(port_ask(forked_remote, 1, NULL, NULL), kCFMessagePortIsInvalid);
    CFMessagePortInvalidate(forked_remote);
    CFRelease(forked_remote);
    return 0;
}

PORT_TEST(pages_are_the_parents_after_a_fork, "176 P1 P2")
{
    struct port_thread server;

    kernel_ports.receive_message = receive_and_count;
    port_thread_start(&server, NAME, port_echo, NULL);
    forked_remote = port_connect(NAME);
    ask_until_page(forked_remote);
    forked_set = channel_of(forked_remote)->set;
    forked_bell = channel_with_page(server.port)->bell;
    forked_pages[0] = channel_of(forked_remote)->page;
    forked_pages[1] = channel_with_page(server.port)->page;
    received = 0;
    EXPECT(is_mapped(forked_pages[0]) && is_mapped(forked_pages[1]));
    EXPECT_EQ(port_probe_in_child(look_for_pages), 0);
    EXPECT_EQ(port_ask(forked_remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_ask(forked_remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(received, 0);
    CFRelease(forked_remote);
    port_thread_stop(&server);
}

PORT_TEST(a_receiver_may_fork_for_each_request_with_a_page, "M6")
{
    pid_t owner = port_process_start(NAME, port_fork_and_echo, NULL, NULL);
    CFMessagePortRef remote = port_connect(NAME);

    kernel_ports.receive_message = receive_and_count;
    ask_until_page(remote);
    received = 0;
    for (int i = 0; i < 10; i++) {
        EXPECT_EQ(port_ask(remote, i, NULL, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(received, 0);
    CFRelease(remote);
    port_process_kill(owner);
}

/* ---- hosted loops ---- */

static void serve_hosted(int ready)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, kCFRunLoopDefaultMode);
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};

    REQUIRE(port && epoll_ctl(set, EPOLL_CTL_ADD, CRLRunLoopGetDescriptor(loop), &event) == 0);
    (void)!write(ready, "r", 1);
    while (CRLRunLoopPrepare(loop, kCFRunLoopDefaultMode)) {
        (void)epoll_wait(set, &event, 1, -1);
        (void)CRLRunLoopDispatch(loop);
    }
}

PORT_TEST(a_hosted_loop_answers_by_pages, "213")
{
    int ready[2];
    char byte;
    pid_t owner;
    CFMessagePortRef remote;
    CFDataRef data = port_data("hosted");

    REQUIRE(pipe(ready) == 0);
    owner = fork();
    if (owner == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve_hosted(ready[1]);
        _exit(1);
    }
    REQUIRE(read(ready[0], &byte, 1) == 1);
    kernel_ports.receive_message = receive_and_count;
    remote = port_connect(NAME);
    ask_until_page(remote);
    received = 0;
    for (int i = 0; i < 20; i++) {
        CFDataRef reply = NULL;

        EXPECT_EQ(port_ask(remote, i, data, &reply), kCFMessagePortSuccess);
        EXPECT(port_data_is(reply, "hosted"));
        CFRelease(reply);
    }
    EXPECT_EQ(received, 0);
    CFRelease(data);
    CFRelease(remote);
    (void)close(ready[0]);
    (void)close(ready[1]);
    port_process_kill(owner);
}
