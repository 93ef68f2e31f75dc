/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of credentials, for a server with an operator and an account. Wrong ones are refused with a text that says so, tried again with
 * waits, and taken once they are right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nats_machine.h"

static void start_server_with_accounts(void)
{
    const char *slash = strrchr(__FILE__, '/');
    char command[512];
    char options[256];

    (void)snprintf(command, sizeof command, "command -v python3 openssl > /dev/null");
    if (system(command) != 0) {
        SKIP("there is no python3 or no openssl here (make deps)");
    }
    (void)snprintf(command, sizeof command, "%.*s/make-credentials %s", (int)(slash - __FILE__), __FILE__, place_path(""));
    REQUIRE(system(command) == 0);
    (void)snprintf(options, sizeof options, "-c %s", place_path("server.conf"));
    server_start(options);
    machine_become("here");
}

static CRLNatsBridgeRef bridge_with_credentials(const char *file, struct bridge_events *log)
{
    return place_bridge_with((CRLNatsConfiguration){.servers = server_url(), .machine = "here", .credentials = place_path(file)}, log);
}

PLACE_TEST(a_server_with_accounts_takes_a_bridge_with_credentials, "1117 1127")
{
    struct bridge_events there = {{0}, {{0}}};
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef exporter;
    CRLNatsBridgeRef bridge;
    CFMessagePortRef port;

    start_server_with_accounts();
    port = CFMessagePortCreateLocal(NULL, CFSTR("near"), place_note, NULL, NULL);
    exporter = bridge_with_credentials("right.creds", &there);
    bridge = bridge_with_credentials("right.creds", &log);
    EXPECT(CRLNatsBridgeExport(exporter, "near", false));
    EXPECT(CRLNatsBridgeImport(bridge, "near", NULL, "far"));
    place_await(&log, kCRLNatsNameAppeared, 1); /* they hear each other */
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsRefused), 0);
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsServerComplains), 0);
    CRLNatsBridgeInvalidate(exporter);
    place_end_bridge(bridge);
    CFMessagePortInvalidate(port);
    CFRelease(port);
}

/* How often the server has refused somebody. */
static int count_refusals(void)
{
    FILE *log = fopen(place_path("server.log"), "r");
    char line[512];
    int count = 0;

    while (log && fgets(line, sizeof line, log)) {
        count += strstr(line, "authentication error") != NULL;
    }
    if (log) {
        (void)fclose(log);
    }
    return count;
}

static void expect_refusal(const char *file)
{
    enum { tries_most = 24 }; /* in 2 s: cnats tries twice, and the waits grow from 50 ms */
    struct bridge_events log = {{0}, {{0}}};
    const char *text = EVENT_TEXT(log, kCRLNatsRefused);
    int refused_before = count_refusals();
    CRLNatsBridgeRef bridge = bridge_with_credentials(file, &log);
    int refused;

    place_await(&log, kCRLNatsRefused, 1);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 2, false);
    refused = count_refusals() - refused_before;
    EXPECT(strstr(text, "the server wants other credentials: ") == text && strlen(text) > strlen("the server wants other credentials: "));
    EXPECT(refused >= 2 && refused <= tries_most);
    EXPECT(EVENT_COUNT(log, kCRLNatsRefused) <= 4); /* once a second */
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsConnected), 0);
    place_end_bridge(bridge);
}

PLACE_TEST(credentials_of_a_stranger_are_refused_and_tried_with_waits, "1117 1127")
{
    start_server_with_accounts();
    expect_refusal("stranger.creds");
}

PLACE_TEST(credentials_with_another_key_are_refused_and_tried_with_waits, "1117 1127")
{
    start_server_with_accounts();
    expect_refusal("forged.creds");
}

PLACE_TEST(credentials_that_have_expired_are_refused_and_tried_with_waits, "1117 1127")
{
    start_server_with_accounts();
    expect_refusal("expired.creds");
}

static void copy_file(const char *from, const char *to)
{
    char command[512];

    (void)snprintf(command, sizeof command, "cp %s %s", place_path(from), place_path(to));
    REQUIRE(system(command) == 0);
}

PLACE_TEST(credentials_that_are_mended_are_taken_at_the_next_try, "1117 1127")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;

    start_server_with_accounts();
    copy_file("forged.creds", "mine.creds");
    bridge = bridge_with_credentials("mine.creds", &log);
    place_await(&log, kCRLNatsRefused, 1);
    copy_file("right.creds", "mine.creds");
    place_await(&log, kCRLNatsConnected, 1);
    place_end_bridge(bridge);
}

PLACE_TEST(a_file_without_credentials_is_told_with_its_reason, "1124 1127")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    FILE *file;

    start_server_with_accounts();
    file = fopen(place_path("garbage.creds"), "w");
    REQUIRE(file);
    (void)fputs("-----BEGIN NATS USER JWT-----\nno such thing\n", file);
    (void)fclose(file);
    bridge = bridge_with_credentials("garbage.creds", &log);
    place_await(&log, kCRLNatsCannotConnect, 1);
    EXPECT(strstr(EVENT_TEXT(log, kCRLNatsCannotConnect), "garbage.creds") != NULL);
    place_end_bridge(bridge);
    EXPECT(!CRLNatsBridgeCreate(&(CRLNatsConfiguration){.servers = server_url(), .machine = "here", .credentials = "/nowhere"}));
}
