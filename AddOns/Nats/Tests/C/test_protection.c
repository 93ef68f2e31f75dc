/* SPDX-License-Identifier: Apache-2.0 */
/* TLS to the server, whose certificate the test makes for the name localhost. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nats_machine.h"

static void start_protected_server(void)
{
    char command[512];
    char options[512];

    (void)snprintf(command, sizeof command,
                   "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost "
                   "-addext subjectAltName=DNS:localhost -keyout %s -out %s > /dev/null 2>&1",
                   place_path("key.pem"), place_path("certificate.pem"));
    if (system(command) != 0) {
        SKIP("there is no openssl here (make deps)");
    }
    (void)snprintf(options, sizeof options, "--tls --tlscert %s --tlskey %s", place_path("certificate.pem"), place_path("key.pem"));
    server_start(options);
}

/* Expects that a connection to a host with these authorities is made, or not, as soon as one of the tries says so. */
static void expect_of_host(const char *host, const char *authorities, CRLNatsEvent expected)
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    char url[64];

    (void)snprintf(url, sizeof url, "tls://%s:%d", host, server_port());
    bridge = place_bridge_with((CRLNatsConfiguration){.servers = url, .machine = "here", .authorities = authorities}, &log);
    place_await(&log, expected, 1);
    EXPECT(expected == kCRLNatsConnected || EVENT_COUNT(log, kCRLNatsConnected) == 0);
    place_end_bridge(bridge);
}

PLACE_TEST(a_server_is_trusted_by_its_certificate_and_name_only, "1124")
{
    machine_become("here");
    start_protected_server();
    expect_of_host("localhost", place_path("certificate.pem"), kCRLNatsConnected);
    expect_of_host("localhost", NULL, kCRLNatsCannotConnect); /* nobody has signed it */
    expect_of_host("127.0.0.1", place_path("certificate.pem"), kCRLNatsCannotConnect); /* it is not for that name */
}

PLACE_TEST(a_server_without_tls_is_none_if_tls_is_wanted, "1124")
{
    machine_become("here");
    server_start("");
    expect_of_host("localhost", NULL, kCRLNatsCannotConnect);
}

PLACE_TEST(settings_that_cannot_be_followed_make_no_bridge, "1124")
{
    machine_become("here");
    EXPECT(!CRLNatsBridgeCreate(&(CRLNatsConfiguration){.servers = "tls://localhost:1", .machine = "here", .authorities = "/nowhere"}));
    EXPECT(!CRLNatsBridgeCreate(
        &(CRLNatsConfiguration){.servers = "tls://localhost:1", .machine = "here", .certificate = "/nowhere", .key = "/nowhere"}));
}
