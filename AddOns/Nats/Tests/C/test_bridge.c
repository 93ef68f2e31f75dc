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
static CFDataRef say_where(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    char text[256];

    (void)local;
    (void)snprintf(text, sizeof text, "%s %d %.*s", (const char *)info, (int)message_id, (int)CFDataGetLength(data),
                   (const char *)CFDataGetBytePtr(data));
    return port_data(text);
}

static CFDataRef echo(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    return port_echo(local, message_id, data, info);
}

static CFDataRef die(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
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

static CFDataRef ask_for(const char *name, SInt32 message_id, const char *text)
{
    CFDataRef data = port_data(text);
    CFDataRef reply = NULL;

    EXPECT_EQ(place_ask(name, message_id, data, 20, &reply), kCFMessagePortSuccess);
    CFRelease(data);
    return reply;
}

/* The test's process becomes the machine "here", with a bridge that imports a name, which has appeared. */
static CRLNatsBridgeRef import_here(const char *name, const char *machine, struct told *told)
{
    CRLNatsBridgeRef bridge;

    machine_become("here");
    bridge = place_bridge("here", told);
    REQUIRE(CRLNatsBridgeImport(bridge, name, machine, NULL));
    place_await(told, kCRLNatsNameAppeared, 1);
    return bridge;
}

/* ---- what users need first ---- */

PLACE_TEST(a_request_is_answered_by_another_machine, "1107 1108")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFDataRef reply;
    pid_t there;

    server_start("");
    there = machine_start("there", "a.port", say_where, false);
    bridge = import_here("a.port", NULL, &told);
    for (int i = -2; i < 3; i++) {
        char expected[64];

        (void)snprintf(expected, sizeof expected, "there %d hello", i);
        reply = ask_for("a.port", i, "hello");
        EXPECT(data_is(reply, expected));
        CFRelease(reply);
    }
    EXPECT_EQ(TOLD(told, kCRLNatsConnected), 1);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

PLACE_TEST(data_of_each_size_crosses_and_too_much_is_refused, "1109")
{
    static const CFIndex sizes[] = {0, 1, 100, 4096, 70000, 500000, (1 << 20) - 32};
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFDataRef reply = NULL;
    CFDataRef data;
    pid_t there;

    server_start("");
    there = machine_start("there", "echo", echo, false);
    bridge = import_here("echo", NULL, &told);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CFIndex size = sizes[i];

        data = port_pattern(size, (unsigned)size);
        EXPECT_EQ(place_ask("echo", 1, data, 30, &reply), kCFMessagePortSuccess);
        EXPECT(reply && port_is_pattern(reply, size, (unsigned)size));
        CFRelease(reply);
        CFRelease(data);
    }
    EXPECT_EQ(TOLD(told, kCRLNatsMessageDropped), 0);
    data = port_pattern((1 << 20) - 31, 1);
    EXPECT_EQ(place_ask("echo", 1, data, 30, &reply), kCFMessagePortTransportError);
    EXPECT_EQ(TOLD(told, kCRLNatsMessageDropped), 1);
    EXPECT(strstr(told.texts[16 + kCRLNatsMessageDropped], "echo") != NULL);
    CFRelease(data);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

PLACE_TEST(one_way_messages_arrive_once_and_in_order, "1110")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    int count = 2000;
    pid_t there;

    server_start("");
    there = machine_start("there", "notes", place_note, false);
    bridge = import_here("notes", NULL, &told);
    EXPECT_EQ(place_tell("notes", 0, count, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &count));
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

PLACE_TEST(machines_share_a_name_or_are_told_apart, "1111")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    int firsts = 0;
    int seconds = 0;
    pid_t first;
    pid_t second;

    server_start("");
    first = machine_start("first", "jobs", say_where, true);
    second = machine_start("second", "jobs", say_where, true);
    bridge = import_here("jobs", NULL, &told);
    REQUIRE(CRLNatsBridgeImport(bridge, "jobs", "second", NULL));
    REQUIRE(CRLNatsBridgeImport(bridge, "jobs", "first", "the first's"));
    place_await(&told, kCRLNatsNameAppeared, 3);
    for (int i = 0; i < 200 && (firsts == 0 || seconds == 0); i++) {
        CFDataRef reply = ask_for("jobs", 1, "");

        firsts += data_is(reply, "first 1 ");
        seconds += data_is(reply, "second 1 ");
        CFRelease(reply);
    }
    EXPECT(firsts > 0 && seconds > 0);
    for (int i = 0; i < 10; i++) {
        CFDataRef reply = ask_for("jobs@second", 1, "");
        CFDataRef other = ask_for("the first's", 1, "");

        EXPECT(data_is(reply, "second 1 "));
        EXPECT(data_is(other, "first 1 "));
        CFRelease(reply);
        CFRelease(other);
    }
    machine_end(second, SIGTERM); /* it says goodbye */
    place_await(&told, kCRLNatsNameVanished, 1);
    for (int i = 0; i < 10; i++) {
        CFDataRef reply = ask_for("jobs", 1, "");

        EXPECT(data_is(reply, "first 1 "));
        CFRelease(reply);
    }
    place_end_bridge(bridge);
    machine_end(first, SIGTERM);
}

/* ---- ends ---- */

PLACE_TEST(a_receiver_that_dies_ends_the_request_and_the_name, "1112")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFDataRef reply = NULL;
    SInt32 result;

    server_start("");
    (void)machine_start("there", "mortal", die, false);
    bridge = import_here("mortal", NULL, &told);
    result = place_ask("mortal", 1, NULL, 30, &reply); /* the whole machine goes, bridge and all */
    EXPECT(result == kCFMessagePortBecameInvalidError || result == kCFMessagePortTransportError);
    place_await(&told, kCRLNatsNameVanished, 1);
    EXPECT_EQ(place_ask("mortal", 1, NULL, 30, &reply), kCFMessagePortIsInvalid);
    place_end_bridge(bridge);
}

PLACE_TEST(a_caller_that_gives_up_waits_no_longer_than_its_limit, "1113")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFDataRef reply = NULL;
    double begin;
    pid_t there;

    server_start("");
    there = machine_start("there", "slow", echo, false);
    bridge = import_here("slow", NULL, &told);
    process_pause(there);
    begin = port_probe_now();
    EXPECT_EQ(place_ask("slow", 1, NULL, 0.2, &reply), kCFMessagePortReceiveTimeout);
    EXPECT(port_probe_now() - begin < test_patience_s());
    process_resume(there);
    reply = ask_for("slow", 2, "x"); /* the answer to the first goes nowhere */
    EXPECT(data_is(reply, "2:x") || data_is(reply, "x"));
    CFRelease(reply);
    place_end_bridge(bridge);
    machine_end(there, SIGKILL);
}

PLACE_TEST(a_server_that_comes_back_is_found_again, "1114")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFDataRef reply;
    pid_t there;

    server_start("");
    there = machine_start("there", "a.port", say_where, false);
    bridge = import_here("a.port", NULL, &told);
    server_stop(SIGKILL);
    place_await(&told, kCRLNatsDisconnected, 1);
    server_restart();
    place_await(&told, kCRLNatsConnected, 2);
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
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    char longest[200];

    server_start("");
    machine_become("here");
    bridge = place_bridge("here", &told);
    memset(longest, 'n', sizeof longest);
    longest[129] = '\0';
    for (int i = 0; i < 3; i++) {
        const char *name = i < 2 ? names[i] : longest;

        EXPECT(!CRLNatsBridgeExport(bridge, name, false));
        EXPECT(!CRLNatsBridgeImport(bridge, name, NULL, NULL));
        EXPECT(!CRLNatsBridgeImport(bridge, "right", name, NULL));
        EXPECT_EQ(TOLD(told, kCRLNatsNameUnusable), 3 * i + 3);
        EXPECT(strstr(told.texts[16 + kCRLNatsNameUnusable], name) != NULL);
    }
    EXPECT(CRLNatsBridgeExport(bridge, "right", false));
    EXPECT(!CRLNatsBridgeImport(bridge, "right", NULL, NULL)); /* it would talk to itself */
    EXPECT(strstr(told.texts[16 + kCRLNatsNameUnusable], "right") != NULL);
    place_end_bridge(bridge);
}

PLACE_TEST(two_exporters_of_a_name_without_sharing_are_an_error, "1116")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFMessagePortRef port;
    pid_t first;

    server_start("");
    first = machine_start("first", "single", say_where, false);
    machine_become("second");
    port = port_open(CFSTR("single"), say_where, "second", kCFRunLoopDefaultMode);
    bridge = place_bridge("second", &told);
    EXPECT(CRLNatsBridgeExport(bridge, "single", false));
    place_await(&told, kCRLNatsNameTaken, 1);
    EXPECT(strstr(told.texts[16 + kCRLNatsNameTaken], "single") && strstr(told.texts[16 + kCRLNatsNameTaken], "first"));
    place_end_bridge(bridge);
    port_drop(port);
    machine_end(first, SIGTERM);
}

PLACE_TEST(a_server_that_is_not_there_or_wants_other_credentials_is_an_error, "1117")
{
    struct told told = {{0}, {{0}}};
    struct told refused = {{0}, {{0}}};
    struct told taken = {{0}, {{0}}};
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
    bridge = place_bridge("here", &told);
    place_await(&told, kCRLNatsCannotConnect, 1);
    place_end_bridge(bridge);
}

PLACE_TEST(a_bridge_whose_credentials_are_refused_later_tries_again_until_they_are_taken, "1117")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;

    server_start("");
    machine_become("here");
    bridge = place_bridge_with((CRLNatsConfiguration){.servers = server_url(), .machine = "here", .user = "u", .password = "p"}, &told);
    place_await(&told, kCRLNatsConnected, 1);
    server_stop(SIGKILL);
    server_restart_with("--user another --pass p");
    place_await(&told, kCRLNatsRefused, 1);
    server_stop(SIGKILL);
    server_restart_with("");
    place_await(&told, kCRLNatsConnected, 2);
    place_end_bridge(bridge);
}

PLACE_TEST(a_subject_that_the_server_does_not_allow_is_told, "1117")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    char options[300];
    FILE *file = fopen(place_path("permissions"), "w");

    REQUIRE(file);
    (void)fputs("authorization { users = [{user: u, password: p, permissions: {subscribe: {deny: \">\"}}}] }\n", file);
    (void)fclose(file);
    (void)snprintf(options, sizeof options, "-c %s", place_path("permissions"));
    server_start(options);
    machine_become("here");
    bridge = place_bridge_with((CRLNatsConfiguration){.servers = server_url(), .machine = "here", .user = "u", .password = "p"}, &told);
    place_await(&told, kCRLNatsServerComplains, 1);
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
