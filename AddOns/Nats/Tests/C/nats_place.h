/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder and a server on loopback for a test of the bridge, and bridges on the test's own loop. nats_machine.h has other machines.
 *
 * Tests that need a server are skipped where there is none.
 */
#ifndef CRL_TESTS_NATS_PLACE_H
#define CRL_TESTS_NATS_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "CRLNats.h"
#include "CoreFoundation/CoreFoundation.h"
#include "harness.h"

/* TEST with a folder of its own, in which each machine has its directory of names. */
#define PLACE_TEST(_name, _rules)        \
    static void placed_##_name(void);    \
    TEST_LIMIT(_name, _rules, 120)       \
    {                                    \
        place_begin();                   \
        placed_##_name();                \
        place_end();                     \
    }                                    \
    static void placed_##_name(void)

void place_begin(void);
void place_end(void);

/* A path in the test's folder; it is made if it is to be a directory. */
const char *place_path(const char *name);

/* Starts a server, whose options are words with spaces between them; returns when it takes connections. The test is skipped if there is no
 * nats-server. It has its own port, until place_end. */
void server_start(const char *options);
/* On the same port as before. */
void server_restart(void);
void server_restart_with(const char *options);
/* Ends it by a signal. */
void server_stop(int signal);
/* Returns when the server has stopped, and does nothing more until server_resume. */
void server_pause(void);
void server_resume(void);
/* Publishes as a client of the server that is no bridge. */
void place_publish(const char *subject, const char *reply, const void *payload, size_t length);
/* "nats://127.0.0.1:PORT" */
const char *server_url(void);
int server_port(void);

/*
 * Stops a child, and returns when it has stopped. The signal alone takes effect only when one thread of the process gets a processor, and
 * the others go on until then.
 */
void process_pause(pid_t pid);
void process_resume(pid_t pid);

/* ---- bridges ---- */

/* The bridges of machines that are started, and place_bridge's, are durable from now on. */
void place_set_durable(void);
/* A bridge on the calling thread's loop, with this machine's name, whose events are counted here. */
struct told {
    int counts[32]; /* of the event, plus 16 */
    char texts[32][256]; /* the last text of each */
};
CRLNatsBridgeRef place_bridge(const char *machine, struct told *told);
CRLNatsBridgeRef place_bridge_with(CRLNatsConfiguration configuration, struct told *told);
/* As place_bridge, and NULL if there is none. */
CRLNatsBridgeRef place_try_bridge(const char *servers, const char *machine, struct told *told);
/* Ends it, and returns when cnats has closed its connection. */
void place_end_bridge(CRLNatsBridgeRef bridge);
#define TOLD(_told, _event) ((_told).counts[(_event) + 16])
/* Runs the loop until an event has come so often; fails the test after a patient while. */
void place_await(const struct told *told, CRLNatsEvent event, int count);

/* Runs the loop while it is true, patiently. */
bool place_run_while(bool (*condition)(void *info), void *info);

#endif
