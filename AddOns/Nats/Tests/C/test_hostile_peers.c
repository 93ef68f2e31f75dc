/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that send what no bridge sends, and a program that is no server: all on plain sockets. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Port/port_probe.h"
#include "Wire/bridge_frame.h"
#include "nats_machine.h"
#include "raw_peer.h"

enum { many_senders = 1000000, buffer_size = 1 << 16, bridges_most = 4 };

/* ---- a bridge among hostile peers ---- */

static CFDataRef echo_data(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)local;
    (void)message_id;
    (void)info;
    return CFRetain(data);
}

static bool is_not_served(void *info)
{
    CFDataRef data = port_data("still here");
    CFDataRef reply = NULL;
    SInt32 result = place_ask(info, 1, data, 5, &reply);
    bool is_served = result == kCFMessagePortSuccess && CFEqual(reply, data);

    if (reply) {
        CFRelease(reply);
    }
    CFRelease(data);
    return !is_served;
}

/* Publishes to each of the four subjects that concern the name. */
static void publish_to_victim(int peer, const void *bytes, size_t length)
{
    static const char *const subjects[] = {"crl.1.any.victim", "crl.1.at.there.victim", "crl.1.ctl.victim", "_INBOX.crl0123.1"};

    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        peer_publish(peer, subjects[i], "", bytes, length);
    }
}

PLACE_TEST(frames_that_no_bridge_sends_are_dropped, "1121")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    uint8_t bytes[80] = {0};
    double begin;
    pid_t there;
    int peer;

    server_start("");
    there = machine_start("there", "victim", echo_data, false);
    machine_become("here");
    bridge = place_bridge("here", &log);
    REQUIRE(CRLNatsBridgeImport(bridge, "victim", NULL, NULL));
    place_await(&log, kCRLNatsNameAppeared, 1);
    begin = port_probe_now();
    peer = peer_connect();
    srand(1);
    for (int round = 0; round < 2000; round++) {
        struct bridge_frame frame = {.type = (enum bridge_frame_type)(rand() % 36), .sender = 1, .number = (uint64_t)rand()};

        if (round % 2 == 0) {
            bridge_frame_encode(&frame, bytes); /* a head that is nearly right */
            bytes[rand() % bridge_frame_size] ^= (uint8_t)(1 << rand() % 8);
        } else {
            for (size_t i = 0; i < sizeof bytes; i++) {
                bytes[i] = (uint8_t)rand();
            }
        }
        publish_to_victim(peer, bytes, (size_t)rand() % sizeof bytes); /* often cut short */
    }
    peer_flush(peer);
    peer_publish_frame(peer, "crl.1.ctl.victim", (struct bridge_frame){.type = bridge_cancel, .sender = 7, .number = 9}, "");
    peer_publish_frame(peer, "crl.1.any.victim", (struct bridge_frame){.type = bridge_one_way, .sender = 7, .number = 9, .message_id = 3},
                       "x");
    peer_flush(peer);
    EXPECT(place_run_while(is_not_served, "victim"));
    EXPECT(EVENT_COUNT(log, kCRLNatsPeerMisbehaves) > 0);
    EXPECT(EVENT_COUNT(log, kCRLNatsPeerMisbehaves) <= 2 + (int)(port_probe_now() - begin)); /* one line a second */
    (void)close(peer);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

PLACE_TEST(a_million_exporters_of_a_name_take_no_memory, "1122")
{
    struct bridge_events log = {{0}, {{0}}};
    struct bridge_frame frame = {.type = bridge_here, .flags = bridge_shares, .number = 1};
    int senders = test_is_instrumented() ? many_senders / 100 : many_senders;
    static char text[buffer_size];
    CRLNatsBridgeRef bridge;
    size_t length = 0;
    size_t before;
    pid_t there;
    int peer;

    server_start("");
    there = machine_start("there", "victim", echo_data, true);
    machine_become("here");
    bridge = place_bridge("here", &log);
    REQUIRE(CRLNatsBridgeImport(bridge, "victim", NULL, NULL));
    place_await(&log, kCRLNatsNameAppeared, 1);
    EXPECT(place_run_while(is_not_served, "victim"));
    before = port_probe_resident_bytes();
    peer = peer_connect();
    for (int i = 1; i <= senders; i++) {
        uint8_t bytes[bridge_frame_size + 1] = {[bridge_frame_size] = 'm'};
        char subject[64];

        frame.sender = (uint64_t)i;
        bridge_frame_encode(&frame, bytes);
        (void)snprintf(subject, sizeof subject, i % 10 == 0 ? "crl.1.ctl.victim" : "crl.1.ctl.name%d", i);
        length += peer_format_message(text + length, subject, "", bytes, sizeof bytes);
        if (length > sizeof text - 1024 || i == senders) {
            peer_send(peer, text, length);
            length = 0;
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
        }
    }
    peer_flush(peer);
    EXPECT(place_run_while(is_not_served, "victim"));
    EXPECT(port_probe_resident_bytes() < before + (test_is_instrumented() ? 256u << 20 : 16u << 20));
    (void)close(peer);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

static bool is_not_heard(void *info)
{
    static char text[buffer_size];
    ssize_t count = recv(*(int *)info, text, sizeof text - 1, MSG_DONTWAIT);

    text[count > 0 ? count : 0] = '\0';
    return strstr(text, "MSG crl.1.ctl.victim") == NULL;
}

/* Waits until the server has all subscriptions of the bridge that exports the name: an announcement comes after them. */
static void await_victim(const struct bridge_events *log)
{
    int peer;

    place_await(log, kCRLNatsNameAppeared, 1);
    place_await(log, kCRLNatsConnected, 1);
    peer = peer_connect();
    peer_send(peer, "SUB crl.1.ctl.victim 1\r\n", 24);
    REQUIRE(place_run_while(is_not_heard, &peer));
    (void)close(peer);
}

/* The bridge of this process exports a name of its own. */
static CRLNatsBridgeRef export_victim(struct bridge_events *log, CFMessagePortRef *ret_port)
{
    CRLNatsBridgeRef bridge;

    machine_become("here");
    *ret_port = port_open(CFSTR("victim"), echo_data, NULL, kCFRunLoopDefaultMode);
    bridge = place_bridge("here", log);
    REQUIRE(CRLNatsBridgeExport(bridge, "victim", false));
    await_victim(log);
    return bridge;
}

PLACE_TEST(a_machines_name_that_cannot_be_one_is_dropped_and_texts_are_lines, "1121")
{
    static const struct bridge_frame rival = {.type = bridge_here, .sender = 7, .number = 1}; /* it was there before */
    struct bridge_events log = {{0}, {{0}}};
    CFMessagePortRef port;
    CRLNatsBridgeRef bridge;
    int peer;

    server_start("");
    bridge = export_victim(&log, &port);
    peer = peer_connect();
    peer_publish_frame(peer, "crl.1.ctl.victim", rival, "not UTF-8 \xFF");
    peer_publish_frame(peer, "crl.1.ctl.victim", rival, "");
    place_await(&log, kCRLNatsPeerMisbehaves, 1);
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsNameTaken), 0);
    peer_publish_frame(peer, "crl.1.ctl.victim", rival, "evil\nline\x1B[31m\x7F");
    place_await(&log, kCRLNatsNameTaken, 1);
    EXPECT(strstr(EVENT_TEXT(log, kCRLNatsNameTaken), "evil?line?[31m?") != NULL);
    (void)close(peer);
    place_end_bridge(bridge);
    port_drop(port);
}

struct other_machine {
    int peer;
    struct bridge_events *log;
};

/* Ends its export and announces it again, until the bridge has lost its name a second time. Such an error is told once a second. */
static bool is_lost_once(void *info)
{
    static const struct bridge_frame here = {.type = bridge_here, .sender = 7, .number = 1};
    static const struct bridge_frame bye = {.type = bridge_bye, .sender = 7, .number = 1};
    struct other_machine *rivalry = info;

    peer_publish_frame(rivalry->peer, "crl.1.ctl.victim", bye, "other");
    peer_publish_frame(rivalry->peer, "crl.1.ctl.victim", here, "other"); /* the bridge never takes the name because of silence */
    return EVENT_COUNT(*rivalry->log, kCRLNatsNameTaken) < 2;
}

PLACE_TEST(a_name_is_taken_over_as_soon_as_the_other_machine_says_goodbye, "1116")
{
    struct bridge_events log = {{0}, {{0}}};
    struct other_machine rivalry = {-1, &log};
    CFMessagePortRef port;
    CRLNatsBridgeRef bridge;

    server_start("");
    bridge = export_victim(&log, &port);
    rivalry.peer = peer_connect();
    EXPECT(place_run_while(is_lost_once, &rivalry));
    (void)close(rivalry.peer);
    place_end_bridge(bridge);
    port_drop(port);
}

PLACE_TEST(one_way_messages_whose_receiver_goes_before_it_has_them_are_told, "1122")
{
    static const struct bridge_frame message = {.type = bridge_one_way, .sender = 7, .number = 9};
    struct bridge_events log = {{0}, {{0}}};
    CFMessagePortRef port;
    CRLNatsBridgeRef bridge;
    int peer;

    server_start("");
    machine_become("here");
    port = CFMessagePortCreateLocal(NULL, CFSTR("victim"), echo_data, NULL, NULL); /* without a source: it takes nothing */
    REQUIRE(port);
    CRLMessagePortSetQueueLimit(port, 1);
    bridge = place_bridge("here", &log);
    REQUIRE(CRLNatsBridgeExport(bridge, "victim", false));
    await_victim(&log);
    peer = peer_connect();
    for (int i = 0; i < 500; i++) {
        peer_publish_frame(peer, "crl.1.any.victim", message, "text");
    }
    peer_publish(peer, "crl.1.any.victim", "", "the last", 8);
    place_await(&log, kCRLNatsPeerMisbehaves, 1); /* the bridge has them all */
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsMessageDropped), 0);
    CFMessagePortInvalidate(port);
    CFRelease(port);
    place_await(&log, kCRLNatsMessageDropped, 1);
    (void)close(peer);
    place_end_bridge(bridge);
}

/* ---- a callback that runs the loop ---- */

static int nested_peer;
static int nested_taken;

static void run_loop_in_callback(CRLNatsBridgeRef bridge, CRLNatsEvent event, const char *name, const char *text, void *info)
{
    struct bridge_events *log = info;

    (void)bridge;
    (void)name;
    (void)text;
    EVENT_COUNT(*log, event)++;
    if (event == kCRLNatsNameTaken) {
        nested_taken++;
    } else if (event == kCRLNatsPeerMisbehaves) {
        peer_publish_frame(nested_peer, "crl.1.ctl.victim", (struct bridge_frame){.type = bridge_here, .sender = 7, .number = 1}, "rival");
        while (nested_taken == 0) {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, true);
        }
    }
}

PLACE_TEST(a_callback_that_runs_the_loop_takes_nothing_from_the_pass_around_it, "1121")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFMessagePortRef port;

    server_start("");
    machine_become("here");
    port = port_open(CFSTR("victim"), echo_data, NULL, kCFRunLoopDefaultMode);
    bridge = CRLNatsBridgeCreate(
        &(CRLNatsConfiguration){.servers = server_url(), .machine = "here", .callback = run_loop_in_callback, .info = &log});
    REQUIRE(bridge && CRLNatsBridgeExport(bridge, "victim", false));
    await_victim(&log);
    nested_peer = peer_connect();
    /* The bridge's callback runs the loop until the subscription by which this came has ended. */
    peer_publish_frame(nested_peer, "crl.1.any.victim", (struct bridge_frame){.type = bridge_who, .sender = 7, .number = 1}, "");
    place_await(&log, kCRLNatsPeerMisbehaves, 1);
    EXPECT_EQ(nested_taken, 1);
    (void)close(nested_peer);
    place_end_bridge(bridge);
    port_drop(port);
}

/* ---- an exporter that answers wrongly ---- */

/* Receives a request from the server: waits for "MSG SUBJECT ID REPLY LENGTH", and returns its reply subject and number. */
static uint64_t take_request(int peer, char ret_reply[128])
{
    static char text[buffer_size];
    struct bridge_frame frame;
    const char *found = NULL;
    size_t length = 0;
    size_t size = 0;

    while (!found || sscanf(found, "MSG %*s %*s %127s %zu", ret_reply, &size) != 2 || !strchr(found, '\n') ||
           (size_t)(text + length - strchr(found, '\n')) < size + 3) {
        ssize_t count = recv(peer, text + length, sizeof text - 1 - length, 0);

        REQUIRE(count > 0);
        length += (size_t)count;
        text[length] = '\0';
        found = strstr(text, "MSG crl.1.any.liar");
    }
    REQUIRE(bridge_frame_decode((const uint8_t *)strchr(found, '\n') + 1, size, &frame) == bridge_frame_ok);
    return frame.number;
}

static void *run_lying_exporter(void *info)
{
    int peer = *(int *)info;
    char reply[128];
    uint64_t number = take_request(peer, reply);

    peer_publish(peer, reply, "", "short", 5);
    peer_publish_frame(peer, reply, (struct bridge_frame){.type = bridge_reply, .sender = 5, .number = number + 4096}, "another's");
    peer_publish_frame(peer, reply, (struct bridge_frame){.type = bridge_here, .sender = 5, .number = number}, "m");
    peer_publish_frame(peer, reply, (struct bridge_frame){.type = bridge_taken, .sender = 5, .number = number}, "");
    peer_publish_frame(peer, reply, (struct bridge_frame){.type = bridge_reply, .sender = 5, .number = number}, "the reply");
    peer_publish_frame(peer, reply, (struct bridge_frame){.type = bridge_reply, .sender = 5, .number = number}, "a second one");
    peer_publish_frame(peer, reply, (struct bridge_frame){.type = bridge_failed, .sender = 5, .number = number, .detail = 77}, "a third");
    peer_flush(peer);
    return NULL;
}

/* The server may get the bridge's subscription after the first of them. */
static bool has_not_appeared(void *info)
{
    struct other_machine *liar = info;

    peer_publish_frame(liar->peer, "crl.1.ctl.liar", (struct bridge_frame){.type = bridge_here, .sender = 5, .number = 1}, "m");
    return EVENT_COUNT(*liar->log, kCRLNatsNameAppeared) == 0;
}

PLACE_TEST(an_exporter_that_lies_gives_one_reply_at_most, "1121 1108")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFDataRef reply = NULL;
    pthread_t liar;
    int peer;

    server_start("");
    peer = peer_connect();
    peer_send(peer, "SUB crl.1.any.liar 1\r\n", 22);
    peer_flush(peer);
    machine_become("here");
    bridge = place_bridge("here", &log);
    REQUIRE(CRLNatsBridgeImport(bridge, "liar", NULL, NULL));
    place_await(&log, kCRLNatsConnected, 1);
    EXPECT(place_run_while(has_not_appeared, &(struct other_machine){peer, &log}));
    REQUIRE(pthread_create(&liar, NULL, run_lying_exporter, &peer) == 0);
    EXPECT_EQ(place_ask("liar", 1, NULL, 20, &reply), kCFMessagePortSuccess);
    EXPECT(reply && port_data_is(reply, "the reply"));
    CFRelease(reply);
    (void)pthread_join(liar, NULL);
    EXPECT(EVENT_COUNT(log, kCRLNatsPeerMisbehaves) > 0);
    place_await(&log, kCRLNatsNameVanished, 1); /* nothing announces the name any more */
    (void)close(peer);
    place_end_bridge(bridge);
}

/* ---- a program that is no server ---- */

static _Atomic bool is_over;
static _Atomic int served;

static const char *const last_words[] = {
    "MSG _INBOX.crl.1 1 999999999999\r\nx",
    "MSG\r\n",
    "MSG a 1 -5\r\n\r\n",
    "HMSG a 1 90 3\r\nxxx\r\n",
    "INFO {\r\n",
    "\r\n\r\n\r\n",
    "-ERR 'something'\r\n",
    "MSG crl.1.ctl.a 2 40\r\nCLRb",
    "PING\r\nPING\r\nPING\r\n",
    "\x01\x02\xFF\xFE",
    "MSG a 18446744073709551616 1\r\nx\r\n",
};

/* Begins as a server does, then sends something else, or nothing, and closes the connection. */
static void *run_false_server(void *info)
{
    static const char info_line[] =
        "INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"proto\":1,\"headers\":true,\"max_payload\":1048576}\r\n";
    int listener = *(int *)info;

    while (!is_over) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        char text[4096];
        int peer;

        if (poll(&ready, 1, 10) != 1) {
            continue;
        }
        peer = accept(listener, NULL, NULL);
        if (send(peer, info_line, sizeof info_line - 1, MSG_NOSIGNAL) > 0 && recv(peer, text, sizeof text, 0) > 0) {
            const char *word = last_words[(size_t)served % (sizeof last_words / sizeof last_words[0])];

            (void)send(peer, "PONG\r\n", served % 3 == 2 ? 3 : 6, MSG_NOSIGNAL);
            (void)send(peer, word, strlen(word), MSG_NOSIGNAL);
        }
        (void)close(peer);
        served++;
    }
    return NULL;
}

static bool is_served_less(void *info)
{
    return served < *(int *)info;
}

/* Bridges to a false server. */
struct false_server {
    CRLNatsBridgeRef bridges[bridges_most];
    struct bridge_events logs[bridges_most];
    int listener;
    pthread_t thread;
};

static void false_server_begin(struct false_server *server, int count, const char *format)
{
    char url[128];
    int port;

    memset(server, 0, sizeof *server);
    served = 0;
    is_over = false;
    server->listener = loopback_listen(&port);
    (void)snprintf(url, sizeof url, format, port, port);
    REQUIRE(pthread_create(&server->thread, NULL, run_false_server, &server->listener) == 0);
    machine_become("here");
    for (int i = 0; i < count; i++) {
        server->bridges[i] = place_bridge_with((CRLNatsConfiguration){.servers = url, .machine = "here"}, &server->logs[i]);
        REQUIRE(CRLNatsBridgeImport(server->bridges[i], "a", NULL, NULL));
    }
}

static void false_server_end(struct false_server *server)
{
    for (int i = 1; i < bridges_most && server->bridges[i]; i++) {
        CRLNatsBridgeInvalidate(server->bridges[i]);
    }
    place_end_bridge(server->bridges[0]); /* waits for the connections of all */
    is_over = true;
    (void)pthread_join(server->thread, NULL);
    (void)close(server->listener);
}

PLACE_TEST(a_server_that_is_none_crashes_nobody, "1123")
{
    static struct false_server server;
    int rounds = 6 * bridges_most;

    false_server_begin(&server, bridges_most, "nats://127.0.0.1:%d");
    EXPECT(place_run_while(is_served_less, &rounds));
    for (int i = 0; i < bridges_most; i++) {
        EXPECT_EQ(EVENT_COUNT(server.logs[i], kCRLNatsNameAppeared), 0);
    }
    false_server_end(&server);
}

/*
 * Each try waits at least half as long as it may: 25 ms, 50 ms, and so on. With two servers a try asks up to three times: the one, the
 * other if that fails, and once more if the connection ends before the loop gives it up, as cnats does not wait between two servers.
 */
PLACE_TEST(a_server_that_ends_each_connection_is_asked_less_and_less, "1123")
{
    static const struct {
        const char *urls;
        int rounds;
        double least_s;
    } cases[] = {{"nats://127.0.0.1:%d", 7, 1.5}, {"nats://127.0.0.1:%d,nats://localhost:%d", 10, 0.17}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct false_server server;
        double begin = port_probe_now();
        int rounds = cases[i].rounds;

        false_server_begin(&server, 1, cases[i].urls);
        EXPECT(place_run_while(is_served_less, &rounds));
        EXPECT(port_probe_now() - begin >= cases[i].least_s);
        EXPECT(EVENT_COUNT(server.logs[0], kCRLNatsConnected) <= 2);
        EXPECT(EVENT_COUNT(server.logs[0], kCRLNatsDisconnected) <= 2);
        EXPECT(EVENT_COUNT(server.logs[0], kCRLNatsCannotConnect) > 0);
        EXPECT(EVENT_COUNT(server.logs[0], kCRLNatsCannotConnect) <= 2 + (int)(port_probe_now() - begin)); /* one line a second */
        false_server_end(&server);
    }
}

static void occupy(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    struct timespec busy = {0, 300000000};

    (void)observer;
    (void)activity;
    (void)info;
    if (served > 0) {
        (void)nanosleep(&busy, NULL);
    }
}

static bool was_not_told_the_end(void *info)
{
    return EVENT_COUNT(*(struct bridge_events *)info, kCRLNatsDisconnected) == 0;
}

/* cnats connects again by itself before the loop can give the connection up. Its wait is 2.5 s at least. */
PLACE_TEST(a_server_that_ends_each_connection_is_not_asked_again_while_the_loop_is_busy, "1123")
{
    static struct false_server server;
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting, true, 0, occupy, NULL);
    double begin = port_probe_now();

    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, kCFRunLoopDefaultMode);
    false_server_begin(&server, 1, "nats://127.0.0.1:%d");
    EXPECT(place_run_while(was_not_told_the_end, &server.logs[0]));
    EXPECT(served <= 1 + (int)((port_probe_now() - begin) / 2.5));
    CFRunLoopObserverInvalidate(observer);
    CFRelease(observer);
    false_server_end(&server);
}
