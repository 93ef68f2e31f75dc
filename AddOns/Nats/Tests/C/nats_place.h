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
#define PLACE_TEST(_name, _rules)     \
    static void placed_##_name(void); \
    TEST_LIMIT(_name, _rules, 120)    \
    {                                 \
        place_begin();                \
        placed_##_name();             \
        place_end();                  \
    }                                 \
    static void placed_##_name(void)

void place_begin(void);
void place_end(void);

/* A path in the test's folder; it is made if it is to be a directory. */
const char *place_path(const char *name);

/*
 * Starts a server, whose options are words with spaces between them; returns when it takes connections. The test is skipped if there is no
 * nats-server. The server has the same port until place_end.
 */
void server_start(const char *options);
/* Starts one that keeps messages; the bridges that are made from now on, here and on machines that are started, are durable. */
void server_start_keeping(void);
void server_restart(void);
void server_restart_with(const char *options);
/* Ends it by a signal. */
void server_stop(int signal);
/* Returns when the server has stopped, and does nothing more until server_resume. */
void server_pause(void);
void server_resume(void);
/* Asks the server over a connection of its own. Returns whether the answer contains the text. */
enum { server_answer_max = 2048 };
bool server_answers(const char *subject, const void *bytes, int size, const char *wanted, char ret_answer[server_answer_max]);
/* "nats://127.0.0.1:PORT" */
const char *server_url(void);
int server_port(void);
/* Returns a socket that is connected to a port on loopback, or -1; and one that listens on a free port. */
int loopback_connect(int port);
int loopback_listen(int *ret_port);

/*
 * Stops a child, and returns when it has stopped. The signal alone takes effect only when one thread of the process gets a processor, and
 * the others go on until then.
 */
void process_pause(pid_t pid);
void process_resume(pid_t pid);

/* ---- bridges ---- */

/* As server_start_keeping says, without the server. */
void place_set_durable(void);
/* What a bridge has told its program. */
struct bridge_events {
    int counts[32]; /* by the event's number plus 16 */
    char texts[32][256]; /* the last text of each */
};
#define EVENT_COUNT(_log, _event) ((_log).counts[(_event) + 16])
#define EVENT_TEXT(_log, _event) ((_log).texts[(_event) + 16])
/* A bridge on the calling thread's loop, with this machine's name. Without a log its events are lines of the file "events". */
CRLNatsBridgeRef place_bridge(const char *machine, struct bridge_events *log);
CRLNatsBridgeRef place_bridge_with(CRLNatsConfiguration configuration, struct bridge_events *log);
/* As place_bridge, but returns NULL if there is no bridge. */
CRLNatsBridgeRef place_try_bridge(const char *servers, const char *machine, struct bridge_events *log);
/* Ends it, and returns when cnats has closed its connection. */
void place_end_bridge(CRLNatsBridgeRef bridge);
/* Runs the loop until an event has come so often; fails the test if it takes too long. */
void place_await(const struct bridge_events *log, CRLNatsEvent event, int count);

/* Runs the loop while the condition is true. Returns false if that takes too long. */
bool place_run_while(bool (*condition)(void *info), void *info);

#endif
