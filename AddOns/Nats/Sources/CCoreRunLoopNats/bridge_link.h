/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bridge between the message ports of a machine and a server, and what its parts need of it: they tell the program what has happened,
 * publish frames, and ask the server. AddOns/Nats/bridge.md says what a bridge does.
 *
 * The thread of the bridge's loop uses all of it; only what cnats calls runs on other threads (nats_connection.c, loop_adapter.c). The
 * library's modules, each of which calls only those before it:
 *
 *   subject, bridge_frame, stream_api       names, heads of messages and JetStream's texts: pure functions
 *   loop_adapter, subscription, publishing, nats_connection
 *                                           cnats on the loop
 *   pending_answers                         what was sent and waits for an answer, by number
 *   bridge_link, configuration              this file; and the program's settings
 *   asker                                   requests whose sender stops waiting
 *   kept_name, kept_delivery                messages that the server keeps: sending them, and receiving them
 *   exporting, importing                    a name that others reach here, and a name that is reached elsewhere
 *   nats_bridge                             the public calls, and what comes from the connection and the timer
 */
#ifndef CRL_NATS_BRIDGE_LINK_H
#define CRL_NATS_BRIDGE_LINK_H

#include "nats_link_names.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "CRLMessagePort.h"
#include "CRLNats.h"
#include "CoreFoundation/CoreFoundation.h"
#include "Wire/bridge_frame.h"
#include "Connection/nats_connection.h"
#include "pending_answers.h"
#include "Wire/subject.h"

/* How often the bridge updates its names, how often it announces them, and how long an announcement or a report of work counts. */
static const int64_t tick_interval_ns = 250000000;
static const int64_t announce_interval_ns = 1000000000;
static const int64_t silence_max_ns = 3000000000;
/* Between two reports that a message is still under way: to its sender, or to the server that keeps it. */
static const int64_t working_interval_ns = 1000000000;

enum { event_kinds = 16, inbox_max = 64 };

/* The two streams of a server that keeps messages, as bits. */
enum kept_stream { kept_messages = 1, kept_claims = 2, kept_streams = kept_messages | kept_claims };

struct exported_name;
struct imported_name;

/* Outlives the bridge, for callbacks on other threads that come after its end. */
struct bridge_life {
    _Atomic int references; /* any thread */
    struct CRLNatsBridge *bridge; /* the bridge's thread; NULL after the bridge's end */
};

/* The bridge's thread uses every field. "Constant" fields do not change once CRLNatsBridgeCreate has returned. */
struct CRLNatsBridge {
    struct bridge_life *life; /* constant; a reference */
    CRLNatsBridgeCallBack callback; /* constant; may be NULL */
    void *info; /* constant */
    char machine[machine_name_max + 1]; /* constant */
    uint64_t sender; /* constant; random and not 0: names this bridge among the others */
    char inbox[inbox_max]; /* constant; the subject of answers to this bridge, without the number at its end */
    struct nats_connection *connection; /* constant */
    CRLMessageSenderRef messages; /* constant; sends to local ports */
    CFRunLoopTimerRef timer; /* constant */
    struct subscription *inbox_subscription; /* constant */
    bool is_durable; /* constant */
    struct pending_answers pending;
    bool has_asked_for_streams; /* over the present connection */
    unsigned streams_made; /* bits of enum kept_stream: what the connection's server has */
    struct exported_name *exported; /* a list */
    struct imported_name *imported; /* a list */
    int64_t announced_ns; /* when the exported names were announced last */
    bool has_paused_ports; /* some imported name's port takes no messages at present */
    int64_t told_ns[event_kinds]; /* when each kind of error was told last; 0: never */
    uint64_t untold[event_kinds]; /* errors of the kind since then */
};

static inline int64_t bridge_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Any thread. */
struct bridge_life *bridge_life_retain(struct bridge_life *life);
void bridge_life_release(struct bridge_life *life);

/*
 * Tells the program what has happened. Errors of one kind are told once a second; the next one that is told says how many were not.
 * `name` may be NULL. The program's callback may run the loop, but does not end the bridge.
 */
void bridge_tell(struct CRLNatsBridge *bridge, CRLNatsEvent event, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for errors of which each one is told. */
void bridge_tell_always(struct CRLNatsBridge *bridge, CRLNatsEvent event, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Publishes a frame of this bridge; `reply` may be NULL. Returns false if there is no connection or no memory. */
bool bridge_publish(struct CRLNatsBridge *bridge, const char *subject, const char *reply, const struct bridge_frame *frame);

/* A request to the server itself, or a message that it is to keep. */
struct server_question {
    const char *subject;
    const char *id; /* the server stores one message with this id; NULL: none */
    bool is_first; /* the server stores it only if no message of the subject is stored yet */
    const struct bridge_frame *frame; /* exactly one of this and `text` is there */
    const char *text;
};

/* The subject at which the answer to a message of this number comes. */
void bridge_make_inbox(const struct CRLNatsBridge *bridge, uint64_t number, char ret_subject[subject_max]);

/* Asks the server. Returns the question's number, or 0 if the server cannot be asked. `answered` is called once, and never by this call. */
uint64_t bridge_ask(struct CRLNatsBridge *bridge, const struct server_question *question, server_answer_callback answered, void *info);
/* The question's `answered` is not called any more. Does nothing if it was called already. */
void bridge_forget(struct CRLNatsBridge *bridge, uint64_t number);

/* Decodes a message. One that no bridge sends is told and dropped: returns false. `what` is the name of a port, for the text. */
bool bridge_decode(struct CRLNatsBridge *bridge, natsMsg *message, const char *what, struct bridge_frame *ret_frame);

#endif
