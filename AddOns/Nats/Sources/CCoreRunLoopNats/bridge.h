/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bridge between the message ports of a machine and a server; AddOns/Nats/bridge.md says what it does.
 *
 * All of it is used by the thread of its loop. Its parts, of which each knows those before it:
 *
 *   subject, bridge_frame     names and heads of messages as bytes
 *   loop_adapter, connection  cnats on the loop
 *   awaited                   what was sent and is waited for, by number
 *   stream_api                what JetStream is asked, as texts
 *   kept_name, kept_delivery  messages that the server keeps: sending them, and receiving them
 *   exporting, importing      a name that others reach here, and a name that is reached elsewhere
 */
#ifndef CRL_NATS_BRIDGE_H
#define CRL_NATS_BRIDGE_H

#include "nats_link_names.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "CRLMessagePort.h"
#include "CRLNats.h"
#include "CoreFoundation/CoreFoundation.h"
#include "awaited.h"
#include "bridge_frame.h"
#include "connection.h"
#include "subject.h"

/* How often the bridge looks after its names, says that they are here, and how long it believes others that do not say so. */
static const int64_t tick_ns = 250000000;
static const int64_t here_ns = 1000000000;
static const int64_t silence_max_ns = 3000000000;

enum { event_kinds = 16, inbox_max = 64 };

/* The two streams of a server that keeps messages. */
enum kept_stream { kept_messages = 1, kept_claims = 2, kept_streams = kept_messages | kept_claims };

struct exported_name;
struct imported_name;

/* Outlives the bridge, for those that may be late. The count may be changed by any thread, the pointer is the bridge's thread's. */
struct bridge_life {
    _Atomic int references;
    struct CRLNatsBridge *bridge; /* NULL: it has ended */
};

struct CRLNatsBridge {
    struct bridge_life *life; /* constant: a reference */
    CRLNatsBridgeCallBack callback; /* constant, as all down to the connection */
    void *info;
    char machine[machine_name_max + 1];
    uint64_t sender; /* random: this bridge among the others */
    char inbox[inbox_max]; /* the subject of what comes back, up to the number */
    struct connection *connection;
    CRLMessageSenderRef messages; /* sends to local ports */
    CFRunLoopTimerRef timer;
    struct subscription *inbox_subscription;
    struct awaited_table awaited;
    bool is_durable; /* constant */
    bool streams_are_asked_for;
    unsigned streams_made; /* bits of enum kept_stream: what the connection's server has */
    struct exported_name *exported;
    struct imported_name *imported;
    int64_t said_here_ns;
    bool is_holding_back; /* a port takes no messages at present */
    int64_t told_ns[event_kinds]; /* when each kind of error was told last */
    uint64_t untold[event_kinds]; /* errors of the kind since then */
};

static inline int64_t bridge_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct bridge_life *bridge_life_retain(struct bridge_life *life);
void bridge_life_release(struct bridge_life *life);

/* Tells what has happened; an error of one kind is told once a second. `name` may be NULL. */
void bridge_tell(struct CRLNatsBridge *bridge, CRLNatsEvent event, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Publishes a frame of this bridge; `reply` may be NULL. Returns false if there is no connection or no memory. */
bool bridge_publish(struct CRLNatsBridge *bridge, const char *subject, const char *reply, const struct bridge_frame *frame);

/* What the server is asked, or given to keep. */
struct question {
    const char *subject;
    const char *id; /* the server stores one message with this id; NULL: none */
    bool is_first; /* the server stores it only as the first of its subject */
    const struct bridge_frame *frame; /* NULL: the text */
    const char *text;
};

/* The subject at which the answer to a message of this number comes. */
void bridge_make_inbox(const struct CRLNatsBridge *bridge, uint64_t number, char ret_subject[subject_max]);

/* Asks the server; returns a number, by which it is forgotten, or 0 if it cannot be asked. `answered` is called once, later. */
uint64_t bridge_ask(struct CRLNatsBridge *bridge, const struct question *question, server_answered answered, void *info);
/* `answered` is not called any more. */
void bridge_forget(struct CRLNatsBridge *bridge, uint64_t number);

/* Decodes what has arrived. What no bridge sends is told, and dropped; `what` is the name of a port. */
bool bridge_decode(struct CRLNatsBridge *bridge, natsMsg *message, const char *what, struct bridge_frame *ret_frame);

#endif
