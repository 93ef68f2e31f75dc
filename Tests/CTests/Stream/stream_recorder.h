/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of streams that writes down its events: `open`, `bytes`, `room`, `error`, `end`. After an event it does what the test asks for.
 */
#ifndef CRL_TESTS_STREAM_RECORDER_H
#define CRL_TESTS_STREAM_RECORDER_H

#include <CoreFoundation/CoreFoundation.h>

#include "harness.h"

enum { events_all = 31 };

struct stream_recorder {
    struct trace trace;
    const char *name; /* before each event, with a colon; NULL: none */
    CFIndex reads; /* bytes that are read after `bytes`, and noted as `3"abc"`; 0: none */
    const char *writes; /* what is written after `room`, at most once; NULL: nothing */
    bool reads_all; /* reads without noting the bytes, and adds them to `total` */
    void (*action)(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type); /* last; NULL: none */
    void *context; /* the action's own */
    _Atomic int calls;
    _Atomic int ends; /* the events `end` */
    _Atomic long total;
    _Atomic int retains;
    _Atomic int releases;
};

#define RECORDER_NAMED(name_) {.name = (name_)}

/* Makes the recorder the client for `events`. */
void recorder_watch_reader(struct stream_recorder *recorder, CFReadStreamRef stream, CFOptionFlags events);
void recorder_watch_writer(struct stream_recorder *recorder, CFWriteStreamRef stream, CFOptionFlags events);
/* The same for all events, scheduled in the default mode of this thread's loop. */
void recorder_add_reader(struct stream_recorder *recorder, CFReadStreamRef stream);
void recorder_add_writer(struct stream_recorder *recorder, CFWriteStreamRef stream);

/* Runs the default mode until it has nothing to do. */
void run_what_is_ready(void);
/* Runs the default mode until `*counter` has come to `wanted`; the test fails if that takes too long. */
void run_until_count(const _Atomic int *counter, int wanted);

/* Two streams of one connection, or bound to each other. */
struct stream_pair {
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
};
/* To a host; they are not open. */
struct stream_pair stream_pair_to(CFStringRef host, UInt32 port);
void stream_pair_release(struct stream_pair pair);

/* Two streams on one end of a pair of sockets, which they close, and the other end. */
struct peered_pair {
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    int peer;
};
struct peered_pair peered_pair_open(void);
void peered_pair_free(struct peered_pair pair);

/* A read stream of the text, whose bytes stay the caller's. */
CFReadStreamRef reader_of(const char *text);
/* Reads up to `size` bytes and adds them to the trace as `3"abc"`, or the result below 1. */
void note_read(struct trace *trace, CFReadStreamRef stream, CFIndex size);
CFIndex write_text(CFWriteStreamRef stream, const char *text);
/* Expects an error of the POSIX domain. */
#define EXPECT_ERRNO(_error, _expected)                      \
    do {                                                     \
        CFStreamError error_ = (_error);                     \
        EXPECT_EQ(error_.domain, kCFStreamErrorDomainPOSIX); \
        EXPECT_EQ(error_.error, _expected);                  \
    } while (0)

/* A pair of connected sockets. */
void socket_pair_open(int ret_ends[2]);
/* A listening TCP socket on loopback, and its port. */
int listener_open(UInt32 *ret_port);
enum { refusing_port = 1 }; /* nobody listens there on loopback, and the system never picks it, unlike a port that was just closed */
bool descriptor_is_open(int descriptor);

#endif
