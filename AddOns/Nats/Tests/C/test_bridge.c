/* SPDX-License-Identifier: Apache-2.0 */
/* Bridges, with a server of the test's own: the test's process is one machine, and others are its children. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Port/port_probe.h"
#include "nats_machine.h"

/* ---- callbacks of the machines ---- */

/* Replies with the machine's name, the number and the data. */
static CFDataRef reply_with_place(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    char text[256];

    (void)local;
    (void)snprintf(text, sizeof text, "%s %d %.*s", (const char *)info, (int)message_id, (int)CFDataGetLength(data),
                   (const char *)CFDataGetBytePtr(data));
    return port_data(text);
}

static CFDataRef echo_data(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    return port_echo(local, message_id, data, info);
}

static CFDataRef end_machine(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)local;
    (void)message_id;
    (void)data;
    (void)info;
    _exit(0);
}

static bool data_is(CFDataRef data, const char *text)
{
    return data && port_data_is(data, text);
}

static CFDataRef request_reply(const char *name, SInt32 message_id, const char *text)
{
    CFDataRef data = port_data(text);
    CFDataRef reply = NULL;

    EXPECT_EQ(place_ask(name, message_id, data, 20, &reply), kCFMessagePortSuccess);
    CFRelease(data);
    return reply;
}

/* The test's process becomes the machine "here", with a bridge that imports a name, which has appeared. */
static CRLNatsBridgeRef import_here(const char *name, const char *machine, struct bridge_events *log)
{
    CRLNatsBridgeRef bridge;

    machine_become("here");
    bridge = place_bridge("here", log);
    REQUIRE(CRLNatsBridgeImport(bridge, name, machine, NULL));
    place_await(log, kCRLNatsNameAppeared, 1);
    return bridge;
}

/* ---- what users need first ---- */

PLACE_TEST(a_request_is_answered_by_another_machine, "1107 1108")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFDataRef reply;
    pid_t there;

    server_start("");
    there = machine_start("there", "a.port", reply_with_place, false);
    bridge = import_here("a.port", NULL, &log);
    for (int i = -2; i < 3; i++) {
        char expected[64];

        (void)snprintf(expected, sizeof expected, "there %d hello", i);
        reply = request_reply("a.port", i, "hello");
        EXPECT(data_is(reply, expected));
        CFRelease(reply);
    }
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsConnected), 1);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

PLACE_TEST(data_of_each_size_crosses_and_too_much_is_refused, "1109")
{
    static const CFIndex sizes[] = {0, 1, 100, 4096, 70000, 500000, (1 << 20) - 32};
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFDataRef reply = NULL;
    CFDataRef data;
    pid_t there;

    server_start("");
    there = machine_start("there", "echo", echo_data, false);
    bridge = import_here("echo", NULL, &log);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CFIndex size = sizes[i];

        data = port_pattern(size, (unsigned)size);
        EXPECT_EQ(place_ask("echo", 1, data, 30, &reply), kCFMessagePortSuccess);
        EXPECT(reply && port_is_pattern(reply, size, (unsigned)size));
        CFRelease(reply);
        CFRelease(data);
    }
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsMessageDropped), 0);
    data = port_pattern((1 << 20) - 31, 1);
    EXPECT_EQ(place_ask("echo", 1, data, 30, &reply), kCFMessagePortTransportError);
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsMessageDropped), 1);
    EXPECT(strstr(EVENT_TEXT(log, kCRLNatsMessageDropped), "echo") != NULL);
    CFRelease(data);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

PLACE_TEST(one_way_messages_arrive_once_and_in_order, "1110")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    int count = 2000;
    pid_t there;

    server_start("");
    there = machine_start("there", "notes", place_note, false);
    bridge = import_here("notes", NULL, &log);
    EXPECT_EQ(place_tell("notes", 0, count, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &count));
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

PLACE_TEST(machines_share_a_name_or_are_told_apart, "1111")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    int firsts = 0;
    int seconds = 0;
    pid_t first;
    pid_t second;

    server_start("");
    first = machine_start("first", "jobs", reply_with_place, true);
    second = machine_start("second", "jobs", reply_with_place, true);
    bridge = import_here("jobs", NULL, &log);
    REQUIRE(CRLNatsBridgeImport(bridge, "jobs", "second", NULL));
    REQUIRE(CRLNatsBridgeImport(bridge, "jobs", "first", "the first's"));
    place_await(&log, kCRLNatsNameAppeared, 3);
    for (int i = 0; i < 200 && (firsts == 0 || seconds == 0); i++) {
        CFDataRef reply = request_reply("jobs", 1, "");

        firsts += data_is(reply, "first 1 ");
        seconds += data_is(reply, "second 1 ");
        CFRelease(reply);
    }
    EXPECT(firsts > 0 && seconds > 0);
    for (int i = 0; i < 10; i++) {
        CFDataRef reply = request_reply("jobs@second", 1, "");
        CFDataRef other = request_reply("the first's", 1, "");

        EXPECT(data_is(reply, "second 1 "));
        EXPECT(data_is(other, "first 1 "));
        CFRelease(reply);
        CFRelease(other);
    }
    machine_end(second, SIGTERM); /* it says goodbye */
    place_await(&log, kCRLNatsNameVanished, 1);
    for (int i = 0; i < 10; i++) {
        CFDataRef reply = request_reply("jobs", 1, "");

        EXPECT(data_is(reply, "first 1 "));
        CFRelease(reply);
    }
    place_end_bridge(bridge);
    machine_end(first, SIGTERM);
}

/* ---- ends ---- */

PLACE_TEST(a_receiver_that_dies_ends_the_request_and_the_name, "1112")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFDataRef reply = NULL;
    SInt32 result;

    server_start("");
    (void)machine_start("there", "mortal", end_machine, false);
    bridge = import_here("mortal", NULL, &log);
    result = place_ask("mortal", 1, NULL, 30, &reply); /* the whole machine goes, bridge and all */
    EXPECT(result == kCFMessagePortBecameInvalidError || result == kCFMessagePortTransportError);
    place_await(&log, kCRLNatsNameVanished, 1);
    EXPECT_EQ(place_ask("mortal", 1, NULL, 30, &reply), kCFMessagePortIsInvalid);
    place_end_bridge(bridge);
}

PLACE_TEST(a_caller_that_gives_up_waits_no_longer_than_its_limit, "1113")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFDataRef reply = NULL;
    double begin;
    pid_t there;

    server_start("");
    there = machine_start("there", "slow", echo_data, false);
    bridge = import_here("slow", NULL, &log);
    process_pause(there);
    begin = port_probe_now();
    EXPECT_EQ(place_ask("slow", 1, NULL, 0.2, &reply), kCFMessagePortReceiveTimeout);
    EXPECT(port_probe_now() - begin < test_patience_s());
    process_resume(there);
    reply = request_reply("slow", 2, "x"); /* the answer to the first goes nowhere */
    EXPECT(data_is(reply, "2:x") || data_is(reply, "x"));
    CFRelease(reply);
    place_end_bridge(bridge);
    machine_end(there, SIGKILL);
}

PLACE_TEST(a_server_that_comes_back_is_found_again, "1114")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFDataRef reply;
    pid_t there;

    server_start("");
    there = machine_start("there", "a.port", reply_with_place, false);
    bridge = import_here("a.port", NULL, &log);
    server_stop(SIGKILL);
    place_await(&log, kCRLNatsDisconnected, 1);
    server_restart();
    place_await(&log, kCRLNatsConnected, 2);
    while (place_tell("a.port", 1, 1, NULL) != kCFMessagePortSuccess) { /* it may have gone meanwhile, and comes back */
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.02, false);
    }
    do { /* the other machine may still be on its way back */
        CFDataRef data = port_data("again");

        reply = NULL;
        (void)place_ask("a.port", 3, data, 5, &reply);
        CFRelease(data);
    } while (!reply);
    EXPECT(data_is(reply, "there 3 again"));
    CFRelease(reply);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

/* ---- what is wrong ---- */

PLACE_TEST(a_name_that_cannot_be_one_is_an_error_with_the_name, "1105 1115")
{
    static const char *const names[] = {"", "not UTF-8 \xFF"};
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    char longest[200];

    server_start("");
    machine_become("here");
    bridge = place_bridge("here", &log);
    memset(longest, 'n', sizeof longest);
    longest[129] = '\0';
    for (int i = 0; i < 3; i++) {
        const char *name = i < 2 ? names[i] : longest;

        EXPECT(!CRLNatsBridgeExport(bridge, name, false));
        EXPECT(!CRLNatsBridgeImport(bridge, name, NULL, NULL));
        EXPECT(!CRLNatsBridgeImport(bridge, "right", name, NULL));
        EXPECT_EQ(EVENT_COUNT(log, kCRLNatsNameUnusable), 3 * i + 3);
        EXPECT(strstr(EVENT_TEXT(log, kCRLNatsNameUnusable), name) != NULL);
    }
    EXPECT(CRLNatsBridgeExport(bridge, "right", false));
    EXPECT(!CRLNatsBridgeImport(bridge, "right", NULL, NULL)); /* it would talk to itself */
    EXPECT(strstr(EVENT_TEXT(log, kCRLNatsNameUnusable), "right") != NULL);
    place_end_bridge(bridge);
}

PLACE_TEST(two_exporters_of_a_name_without_sharing_are_an_error, "1116")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFMessagePortRef port;
    pid_t first;

    server_start("");
    first = machine_start("first", "single", reply_with_place, false);
    machine_become("second");
    port = port_open(CFSTR("single"), reply_with_place, "second", kCFRunLoopDefaultMode);
    bridge = place_bridge("second", &log);
    EXPECT(CRLNatsBridgeExport(bridge, "single", false));
    place_await(&log, kCRLNatsNameTaken, 1);
    EXPECT(strstr(EVENT_TEXT(log, kCRLNatsNameTaken), "single") && strstr(EVENT_TEXT(log, kCRLNatsNameTaken), "first"));
    place_end_bridge(bridge);
    port_drop(port);
    machine_end(first, SIGTERM);
}

PLACE_TEST(a_server_that_is_not_there_or_wants_other_credentials_is_an_error, "1117")
{
    struct bridge_events log = {{0}, {{0}}};
    struct bridge_events refused = {{0}, {{0}}};
    struct bridge_events taken = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;

    server_start("--user u --pass p");
    machine_become("here");
    bridge = place_bridge("here", &refused);
    place_await(&refused, kCRLNatsRefused, 1);
    place_end_bridge(bridge);
    bridge = place_bridge_with((CRLNatsConfiguration){.servers = server_url(), .machine = "here", .user = "u", .password = "p"}, &taken);
    place_await(&taken, kCRLNatsConnected, 1);
    place_end_bridge(bridge);
    server_stop(SIGKILL);
    bridge = place_bridge("here", &log);
    place_await(&log, kCRLNatsCannotConnect, 1);
    place_end_bridge(bridge);
}

PLACE_TEST(a_bridge_whose_credentials_are_refused_later_tries_again_until_they_are_taken, "1117")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;

    server_start("");
    machine_become("here");
    bridge = place_bridge_with((CRLNatsConfiguration){.servers = server_url(), .machine = "here", .user = "u", .password = "p"}, &log);
    place_await(&log, kCRLNatsConnected, 1);
    server_stop(SIGKILL);
    server_restart_with("--user another --pass p");
    place_await(&log, kCRLNatsRefused, 1);
    server_stop(SIGKILL);
    server_restart_with("");
    place_await(&log, kCRLNatsConnected, 2);
    place_end_bridge(bridge);
}

PLACE_TEST(a_subject_that_the_server_does_not_allow_is_told, "1117")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    char options[300];
    FILE *file = fopen(place_path("permissions"), "w");

    REQUIRE(file);
    (void)fputs("authorization { users = [{user: u, password: p, permissions: {subscribe: {deny: \">\"}}}] }\n", file);
    (void)fclose(file);
    (void)snprintf(options, sizeof options, "-c %s", place_path("permissions"));
    server_start(options);
    machine_become("here");
    bridge = place_bridge_with((CRLNatsConfiguration){.servers = server_url(), .machine = "here", .user = "u", .password = "p"}, &log);
    place_await(&log, kCRLNatsServerComplains, 1);
    place_end_bridge(bridge);
}

PLACE_TEST(a_bridge_that_is_not_connected_ends_at_once, "1117")
{
    CRLNatsBridgeRef bridge;

    machine_become("here");
    bridge = place_bridge_with((CRLNatsConfiguration){.servers = "nats://127.0.0.1:1", .machine = "here"}, NULL);
    EXPECT(CRLNatsBridgeImport(bridge, "a", NULL, NULL));
    place_end_bridge(bridge);
    EXPECT(CRLNatsBridgeCreate(&(CRLNatsConfiguration){.servers = NULL, .machine = "here"}) == NULL);
    EXPECT(CRLNatsBridgeCreate(&(CRLNatsConfiguration){.servers = "nats://127.0.0.1:1", .machine = ""}) == NULL);
    EXPECT(CRLNatsBridgeCreate(&(CRLNatsConfiguration){.servers = "nats://127.0.0.1:1", .machine = "here", .key = "k"}) == NULL);
    EXPECT(CRLNatsBridgeCreate(&(CRLNatsConfiguration){.servers = "nats://127.0.0.1:1", .machine = "here", .certificate = "c"}) == NULL);
    EXPECT(CRLNatsBridgeCreate(&(CRLNatsConfiguration){.servers = "nats://127.0.0.1:1", .machine = "here", .password = "p"}) == NULL);
}
