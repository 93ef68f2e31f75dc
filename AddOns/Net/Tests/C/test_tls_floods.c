/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers of TLS that send without end what is no data: in the handshake, while a stream reads or writes, and when it is closed. A call takes
 * a bounded number of bytes, so that a loop goes on, and the streams end as with any other peer: rules 1009 to 1012.
 * The peer stands in the thread of the test, which gives it turns.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CFNetwork/CFNetwork.h>

#include "CRLNetwork.h"
#include "Loop/loop_probe.h"
#include "Stream/stream_recorder.h"
#include "session.h"
#include "tls_forge.h"

enum { most_of_a_call = 17408, most_of_closing = 32768, many_calls = 8 };

/* ---- the floods ---- */

/* When the flood begins. */
enum stage {
    stage_asked, /* the client has sent its hello */
    stage_agreed, /* the server has answered; from there on TLS 1.3 encrypts */
    stage_open,
};

/* What the client does then. In the handshake it cannot write. */
enum activity { activity_reads, activity_writes, activity_closes, activity_count };

/* The rounds of a flood: empty records, then alerts, then a message. Constant. */
struct flood {
    const char *name;
    int version; /* of TLS; 0: 1.2 and 1.3 */
    enum stage stage;
    int expected; /* the error of TLS that ends it; 0: it goes on as long as the peer */
    int empties;
    size_t padding; /* of each empty record */
    int alerts;
    const char *message; /* of the handshake; NULL: none */
    size_t length;
    const char *beginning; /* of the flood, sent once; NULL: none */
    size_t beginning_length;
    bool is_in_fragments; /* of one byte each */
    bool renews_keys;
    bool is_unfinished; /* the peer is in the midst of a message when it stops */
};

#define MESSAGE(text_) .message = (text_), .length = sizeof(text_) - 1
#define BEGINNING(text_) .beginning = (text_), .beginning_length = sizeof(text_) - 1

#define HELLO_REQUEST MESSAGE("\0\0\0\0")
#define NEW_KEYS MESSAGE("\x18\0\0\1\0"), .renews_keys = true
#define NEW_KEYS_OF_BOTH MESSAGE("\x18\0\0\1\1"), .renews_keys = true
#define TICKET_1_3 MESSAGE("\4\0\0\x1a\0\0\1\0\1\2\3\4\1n\0\14the ticket..\0\0")
#define TICKET_1_2 MESSAGE("\4\0\0\x12\0\0\1\0\0\14the ticket..")
#define MORE MESSAGE("\0"), .is_in_fragments = true, .is_unfinished = true

static const struct flood floods[] = {
    {"requests for a handshake before the hello", 0, stage_asked, 0, HELLO_REQUEST},
    {"requests for a handshake in fragments before the hello", 0, stage_asked, 0, HELLO_REQUEST, .is_in_fragments = true},
    {"alerts and requests before the hello", 0, stage_asked, 0, HELLO_REQUEST, .alerts = 4},
    {"alerts before the hello", 0, stage_asked, errSSLProtocol, .alerts = 1},
    {"empty records before the hello", 0, stage_asked, errSSLProtocol, .empties = 1},
    {"tickets before the hello", 0, stage_asked, errSSLUnexpectedRecord, TICKET_1_3},

    {"requests for a handshake in the handshake", TLS1_2_VERSION, stage_agreed, 0, HELLO_REQUEST},
    {"requests in fragments in the handshake", TLS1_2_VERSION, stage_agreed, 0, HELLO_REQUEST, .is_in_fragments = true},
    {"alerts and requests in the handshake", TLS1_2_VERSION, stage_agreed, 0, HELLO_REQUEST, .alerts = 4},
    {"empty records and requests in the handshake", TLS1_2_VERSION, stage_agreed, 0, HELLO_REQUEST, .empties = 30},
    {"alerts in the handshake", TLS1_2_VERSION, stage_agreed, errSSLProtocol, .alerts = 1},
    {"empty records in the handshake", TLS1_2_VERSION, stage_agreed, errSSLProtocol, .empties = 1},
    {"tickets in the handshake", TLS1_2_VERSION, stage_agreed, errSSLUnexpectedRecord, TICKET_1_2},
    {"a certificate in fragments", TLS1_2_VERSION, stage_agreed, 0, MORE, BEGINNING("\x0b\1\x80\0")},

    {"requests for a handshake in that of TLS 1.3", TLS1_3_VERSION, stage_agreed, 0, HELLO_REQUEST},
    {"alerts and requests in that of TLS 1.3", TLS1_3_VERSION, stage_agreed, 0, HELLO_REQUEST, .alerts = 4},
    {"new keys in that of TLS 1.3", TLS1_3_VERSION, stage_agreed, errSSLUnexpectedRecord, NEW_KEYS},
    {"alerts in that of TLS 1.3", TLS1_3_VERSION, stage_agreed, errSSLProtocol, .alerts = 1},
    {"empty records in that of TLS 1.3", TLS1_3_VERSION, stage_agreed, errSSLProtocol, .empties = 1},
    {"tickets in that of TLS 1.3", TLS1_3_VERSION, stage_agreed, errSSLUnexpectedRecord, TICKET_1_3},
    {"a certificate of TLS 1.3 in fragments", TLS1_3_VERSION, stage_agreed, 0, MORE, BEGINNING("\x08\0\0\2\0\0\x0b\1\x80\0")},

    {"requests for a handshake", TLS1_2_VERSION, stage_open, 0, HELLO_REQUEST},
    {"requests for a handshake in fragments", TLS1_2_VERSION, stage_open, 0, HELLO_REQUEST, .is_in_fragments = true},
    {"alerts and requests", TLS1_2_VERSION, stage_open, 0, HELLO_REQUEST, .alerts = 4},
    {"empty records and requests", TLS1_2_VERSION, stage_open, 0, HELLO_REQUEST, .empties = 30},
    {"alerts", TLS1_2_VERSION, stage_open, errSSLProtocol, .alerts = 1},
    {"empty records", TLS1_2_VERSION, stage_open, errSSLProtocol, .empties = 1},
    {"tickets", TLS1_2_VERSION, stage_open, errSSLUnexpectedRecord, TICKET_1_2},

    {"new keys", TLS1_3_VERSION, stage_open, 0, NEW_KEYS},
    {"new keys of both", TLS1_3_VERSION, stage_open, 0, NEW_KEYS_OF_BOTH}, /* the client comes to wait for room to answer */
    {"new keys in fragments", TLS1_3_VERSION, stage_open, 0, NEW_KEYS, .is_in_fragments = true},
    {"alerts and new keys", TLS1_3_VERSION, stage_open, 0, NEW_KEYS, .alerts = 4},
    {"empty records and new keys", TLS1_3_VERSION, stage_open, 0, NEW_KEYS, .empties = 30},
    {"empty records of full length and new keys", TLS1_3_VERSION, stage_open, 0, NEW_KEYS, .empties = 2, .padding = forge_most_content},
    {"alerts of TLS 1.3", TLS1_3_VERSION, stage_open, errSSLProtocol, .alerts = 1},
    {"empty records of TLS 1.3", TLS1_3_VERSION, stage_open, errSSLProtocol, .empties = 1},
    {"tickets of TLS 1.3", TLS1_3_VERSION, stage_open, 0, TICKET_1_3},
    {"tickets in fragments", TLS1_3_VERSION, stage_open, 0, TICKET_1_3, .is_in_fragments = true},
    {"a long ticket in fragments", TLS1_3_VERSION, stage_open, 0, MORE, BEGINNING("\4\1\x80\0")},
    {"requests of TLS 1.3", TLS1_3_VERSION, stage_open, errSSLUnexpectedRecord, HELLO_REQUEST},
};

/* Calls `check` with each flood, in each version of TLS and each activity of the client at which it can come; under tools with a third. */
static void try_each_flood(void (*check)(const struct flood *flood, int version, enum activity activity))
{
    CRLNetworkInstall();
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i += test_is_instrumented() ? 3 : 1) {
        for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
            for (enum activity activity = activity_reads; activity < activity_count; activity++) {
                bool is_there = floods[i].version == 0 || floods[i].version == version;

                if (is_there && (floods[i].stage == stage_open || activity != activity_writes)) {
                    check(&floods[i], version, activity);
                }
            }
        }
    }
}

/* ---- the peer ---- */

struct flooder {
    const struct flood *flood;
    enum activity activity;
    struct tls_forge forge;
    int socket; /* -1: it has left */
    int client_socket;
    bool has_begun; /* to flood */
    size_t length; /* of what is made and not sent, from `place` on */
    size_t place;
    unsigned char bytes[131072];
};

/* A failure of the test, with the flood's name. */
static void flooder_fail(const struct flooder *flooder, const char *what, long number)
{
    static const char *const activities[] = {"reading", "writing", "closing"};

    test_failed(__FILE__, __LINE__, "%s, %s: %s: %ld", flooder->flood->name, activities[flooder->activity], what, number);
}

static void open_tcp_pair(int ret_ends[2])
{
    UInt32 port;
    int listener = listener_open(&port);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    ret_ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(connect(ret_ends[0], (struct sockaddr *)&address, sizeof address) == 0);
    ret_ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
}

/* On a pair of sockets of the domain AF_UNIX or AF_INET. */
static void flooder_start(struct flooder *flooder, const struct flood *flood, int version, enum activity activity, int domain)
{
    const int most_underway = 40000; /* the kernel takes twice that, and counts more than the bytes */
    int ends[2];

    (domain == AF_UNIX ? socket_pair_open : open_tcp_pair)(ends);
    REQUIRE(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &most_underway, sizeof most_underway) == 0);
    REQUIRE(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    flooder->flood = flood;
    flooder->activity = activity;
    flooder->client_socket = ends[0];
    flooder->socket = ends[1];
    flooder->has_begun = false;
    flooder->length = flooder->place = 0;
    tls_forge_create(&flooder->forge, version, ends[1]);
}

/* Closes the peer's socket, for TCP with a reset. */
static void flooder_leave(struct flooder *flooder, bool resets)
{
    const struct linger at_once = {.l_onoff = resets};

    REQUIRE(setsockopt(flooder->socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    close(flooder->socket);
    flooder->socket = -1;
}

static void flooder_stop(struct flooder *flooder)
{
    tls_forge_free(&flooder->forge);
    if (flooder->socket >= 0) {
        close(flooder->socket);
    }
    close(flooder->client_socket);
}

/* How many bytes the client has not taken. */
static long flooder_unread(const struct flooder *flooder)
{
    int count;

    REQUIRE(ioctl(flooder->client_socket, FIONREAD, &count) == 0);
    return count;
}

/* Sends what the socket takes of what was made. Returns whether that is all. */
static bool flooder_send(struct flooder *flooder)
{
    ssize_t count = 1;

    while (count > 0 && flooder->place < flooder->length) {
        count = send(flooder->socket, flooder->bytes + flooder->place, flooder->length - flooder->place, MSG_DONTWAIT | MSG_NOSIGNAL);
        flooder->place += count > 0 ? (size_t)count : 0;
    }
    if (flooder->place == flooder->length) {
        flooder->place = flooder->length = 0;
    }
    return flooder->length == 0;
}

/* Takes what the client has sent. */
static void flooder_hear(struct flooder *flooder)
{
    char bytes[16384];

    while (recv(flooder->socket, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

/* Adds a record to what is to be sent. */
static void flooder_add(struct flooder *flooder, unsigned char type, const void *content, size_t length, size_t padding)
{
    REQUIRE(flooder->length + length + padding + forge_most_added <= sizeof flooder->bytes);
    flooder->length += tls_forge_seal(&flooder->forge, type, content, length, padding, flooder->bytes + flooder->length);
}

static void add_message(struct flooder *flooder, const char *message, size_t length)
{
    size_t step = flooder->flood->is_in_fragments ? 1 : length;

    for (size_t i = 0; i < length; i += step) {
        flooder_add(flooder, forge_handshake, message + i, step, 0);
    }
}

static void add_round(struct flooder *flooder)
{
    const struct flood *flood = flooder->flood;

    for (int i = 0; i < flood->empties; i++) {
        flooder_add(flooder, flood->stage == stage_open ? forge_data : forge_handshake, "", 0, flood->padding);
    }
    for (int i = 0; i < flood->alerts; i++) {
        flooder_add(flooder, forge_alert, "\1\x5a", 2, 0); /* a warning: the user has cancelled */
    }
    if (flood->message) {
        add_message(flooder, flood->message, flood->length);
    }
    if (flood->renews_keys) {
        tls_forge_renew_keys(&flooder->forge);
    }
}

/* Fills the socket: there is more than any call may take. */
static void flooder_fill(struct flooder *flooder)
{
    bool is_full = !flooder_send(flooder);

    if (!flooder->has_begun && flooder->flood->beginning) {
        add_message(flooder, flooder->flood->beginning, flooder->flood->beginning_length);
    }
    flooder->has_begun = true;
    while (!is_full) {
        while (flooder->length < sizeof flooder->bytes / 4) {
            add_round(flooder);
        }
        is_full = !flooder_send(flooder);
    }
    EXPECT(flooder_unread(flooder) > most_of_closing);
}

/* The server's answer alone, without what follows it. Returns whether it is there. */
static bool answer(struct flooder *flooder)
{
    (void)tls_forge_shake_hands(&flooder->forge);
    if (BIO_pending(flooder->forge.out) == 0) {
        return false;
    }
    flooder->length = tls_forge_take_first(&flooder->forge, flooder->bytes, sizeof flooder->bytes);
    tls_forge_use(&flooder->forge, flooder->forge.is_1_3 ? forge_handshake_keys : forge_no_keys);
    return true;
}

/* Goes on to the stage where the flood begins; the client needs turns, too. Returns whether it is there. */
static bool flooder_shake_hands(struct flooder *flooder)
{
    bool is_done;
    char byte;

    if (flooder->flood->stage == stage_asked) {
        return recv(flooder->socket, &byte, 1, MSG_PEEK) == 1;
    }
    if (flooder->flood->stage == stage_agreed) {
        return answer(flooder);
    }
    is_done = tls_forge_shake_hands(&flooder->forge);
    tls_forge_flush(&flooder->forge);
    if (is_done) {
        tls_forge_use(&flooder->forge, forge_application_keys);
    }
    return is_done;
}

/* Settings of a client that trusts everybody. */
static CFDictionaryRef create_settings(void)
{
    CFTypeRef keys[] = {kCFStreamSSLValidatesCertificateChain, kCFStreamSSLPeerName};
    CFTypeRef values[] = {kCFBooleanFalse, kCFNull};

    return CFDictionaryCreate(NULL, keys, values, 2, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
}

/* ---- one call ---- */

struct sitting {
    struct flooder flooder;
    void *session;
    bool is_open;
};

static void sitting_begin(struct sitting *sitting, const struct flood *flood, int version, enum activity activity)
{
    CFDictionaryRef settings = create_settings();
    CFStreamError error;
    UInt32 waits;
    bool is_there = false;

    flooder_start(&sitting->flooder, flood, version, activity, AF_UNIX);
    sitting->session = session_create(sitting->flooder.client_socket, NULL, settings, &error);
    REQUIRE(sitting->session);
    sitting->is_open = false;
    for (int i = 0; i < many_calls && !(is_there && sitting->is_open == (flood->stage == stage_open)); i++) {
        sitting->is_open = sitting->is_open || session_handshake(sitting->session, &waits, &error) == 0;
        is_there = is_there || flooder_shake_hands(&sitting->flooder);
    }
    REQUIRE(is_there && sitting->is_open == (flood->stage == stage_open));
    CFRelease(settings);
}

static CFIndex call_once(struct sitting *sitting, int number, CFStreamError *error)
{
    UInt32 waits;
    UInt8 bytes[8] = "x";
    CFIndex result;

    if (!sitting->is_open) {
        return session_handshake(sitting->session, &waits, error);
    }
    if (number % 2 == 0) {
        return session_look(sitting->session, error);
    }
    if (sitting->flooder.activity == activity_reads) {
        return session_receive(sitting->session, bytes, sizeof bytes, &waits, error);
    }
    result = session_send(sitting->session, bytes, 1, &waits, error);
    return result == 1 ? -EAGAIN : result;
}

/* Calls while the peer floods. Returns what has come of it: -EAGAIN or a failure. */
static CFIndex call_often(struct sitting *sitting, CFStreamError *error)
{
    CFIndex result = -EAGAIN;
    long total = 0;

    for (int i = 0; i < many_calls && result == -EAGAIN; i++) {
        long before;
        long taken;

        flooder_fill(&sitting->flooder);
        before = flooder_unread(&sitting->flooder);
        result = call_once(sitting, i, error);
        taken = before - flooder_unread(&sitting->flooder);
        total += taken;
        if (taken > most_of_a_call) {
            flooder_fail(&sitting->flooder, "bytes of a call", taken);
        }
    }
    EXPECT(total > 0);
    return result;
}

/* The peer ends its flood with a byte of data, which the client gets. */
static void expect_byte(struct sitting *sitting)
{
    struct flooder *flooder = &sitting->flooder;
    CFStreamError error;
    UInt32 waits;
    UInt8 bytes[8];
    CFIndex result = -EAGAIN;

    flooder_add(flooder, forge_data, "a", 1, 0);
    for (int calls = 0; calls < 10 * many_calls && result == -EAGAIN; calls++) {
        (void)flooder_send(flooder);
        flooder_hear(flooder);
        result = session_look(sitting->session, &error);
    }
    if (result != 1 || session_receive(sitting->session, bytes, sizeof bytes, &waits, &error) != 1 || bytes[0] != 'a') {
        flooder_fail(flooder, "no byte after the flood", result);
    }
}

static void expect_bounded_calls(const struct flood *flood, int version, enum activity activity)
{
    static struct sitting sitting;
    CFStreamError error = {0, 0};
    CFIndex result = -EAGAIN;
    long before;
    long taken;

    sitting_begin(&sitting, flood, version, activity);
    if (activity != activity_closes) {
        result = call_often(&sitting, &error);
        if (result != (flood->expected ? -EPROTO : -EAGAIN) || error.error != flood->expected) {
            flooder_fail(&sitting.flooder, "outcome", result == -EPROTO ? error.error : result);
        }
        if (result == -EAGAIN && activity == activity_reads && sitting.is_open && !flood->is_unfinished) {
            expect_byte(&sitting);
        }
    }
    flooder_fill(&sitting.flooder);
    before = flooder_unread(&sitting.flooder);
    session_free(sitting.session);
    taken = before - flooder_unread(&sitting.flooder);
    if (taken > most_of_closing) {
        flooder_fail(&sitting.flooder, "bytes of closing", taken);
    }
    flooder_stop(&sitting.flooder);
}

TEST(a_call_takes_a_bounded_number_of_bytes_whatever_a_tls_peer_sends, "1009 1010")
{
    try_each_flood(expect_bounded_calls);
}

/* ---- a loop ---- */

enum { flood_turns = 6 };

/* How the peer ends its flood. */
enum departure {
    departure_with_farewell, /* where it can */
    departure_with_end, /* of its bytes; it answers what comes after that with a reset */
    departure_with_reset,
};

/* Streams on the loop, and a timer that is always due: the peer has a turn whenever it fires. */
struct run {
    struct flooder flooder;
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    struct stream_recorder reading;
    struct stream_recorder writing;
    enum departure departure;
    bool floods;
    int turns; /* since the flood began */
    long left; /* what the client had not taken after the last turn */
    long most_taken; /* between two turns */
    bool is_over;
};

static void close_both(struct run *run)
{
    long before = flooder_unread(&run->flooder);

    if (run->departure != departure_with_farewell) {
        flooder_leave(&run->flooder, run->departure == departure_with_reset);
    }
    CFReadStreamClose(run->reader);
    CFWriteStreamClose(run->writer);
    before -= flooder_unread(&run->flooder);
    if (before > most_of_closing) {
        flooder_fail(&run->flooder, "bytes of closing", before);
    }
    run->is_over = true;
}

static void end_flood(struct run *run)
{
    struct flooder *flooder = &run->flooder;

    if (run->departure != departure_with_farewell) {
        if (flooder->socket >= 0) {
            flooder_leave(flooder, run->departure == departure_with_reset);
        }
        return;
    }
    if (flooder->flood->is_unfinished || flooder->flood->stage != stage_open) {
        shutdown(flooder->socket, SHUT_WR);
        return;
    }
    if (run->turns == flood_turns) {
        flooder_add(flooder, forge_data, "a", 1, 0);
        flooder_add(flooder, forge_alert, "\1\0", 2, 0);
    }
    (void)flooder_send(flooder);
    flooder_hear(flooder);
}

static void take_turn(CFRunLoopTimerRef timer, void *info)
{
    struct run *run = info;
    bool is_open = CFReadStreamGetStatus(run->reader) == kCFStreamStatusOpen;
    long taken = run->left - flooder_unread(&run->flooder);

    CFRunLoopTimerSetNextFireDate(timer, 0);
    if (!run->floods) {
        run->floods = flooder_shake_hands(&run->flooder);
    } else if (run->flooder.flood->stage != stage_open || is_open || run->turns > 0) {
        run->most_taken = taken > run->most_taken ? taken : run->most_taken;
        if (run->turns < flood_turns) {
            flooder_fill(&run->flooder);
        } else {
            end_flood(run);
        }
        run->left = flooder_unread(&run->flooder);
        if (++run->turns == 3 && run->flooder.activity == activity_closes) {
            close_both(run);
        }
    }
}

static void note_end(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    struct run *run = recorder->context;

    (void)stream;
    run->is_over = run->is_over || (type & (kCFStreamEventErrorOccurred | kCFStreamEventEndEncountered));
}

static void write_byte(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    (void)recorder;
    if (type == kCFStreamEventCanAcceptBytes) {
        (void)CFWriteStreamWrite((CFWriteStreamRef)stream, (const UInt8 *)"x", 1);
    }
}

static void run_begin(struct run *run, const struct flood *flood, int version, enum activity activity, int domain)
{
    CFDictionaryRef settings = create_settings();

    memset(run, 0, sizeof *run);
    flooder_start(&run->flooder, flood, version, activity, domain);
    run->reading = (struct stream_recorder){.reads = 8, .action = note_end, .context = run};
    run->writing = (struct stream_recorder){.action = activity == activity_writes ? write_byte : NULL};
    CFStreamCreatePairWithSocket(NULL, run->flooder.client_socket, &run->reader, &run->writer);
    EXPECT(CFReadStreamSetProperty(run->reader, kCFStreamPropertySSLSettings, settings));
    recorder_add_reader(&run->reading, run->reader);
    recorder_add_writer(&run->writing, run->writer);
    (void)CFReadStreamOpen(run->reader);
    (void)CFWriteStreamOpen(run->writer);
    CFRelease(settings);
}

static void run_to_its_end(struct run *run)
{
    CFRunLoopTimerContext context = {.info = run};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, 0, 1, 0, 0, take_turn, &context);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    for (int passes = 0; passes < 1000 && !run->is_over; passes++) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    }
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
}

/* The error of TLS that ends the streams; 0: the farewell. */
static SInt32 expected_error(const struct flood *flood)
{
    if (flood->expected) {
        return flood->expected;
    }
    return flood->stage != stage_open ? errSSLClosedAbort : flood->is_unfinished ? errSSLClosedNoNotify : 0;
}

static void expect_loop_goes_on(const struct flood *flood, int version, enum activity activity)
{
    static struct run run;
    CFStreamError error;

    run_begin(&run, flood, version, activity, AF_UNIX);
    run_to_its_end(&run);
    error = CFReadStreamGetError(run.reader);
    if (!run.is_over || run.turns < 2) {
        flooder_fail(&run.flooder, "turns", run.turns);
    }
    if (run.most_taken > 2 * most_of_a_call) { /* each of two streams has looked */
        flooder_fail(&run.flooder, "bytes between two turns", run.most_taken);
    }
    if (activity != activity_closes && error.error != expected_error(flood)) {
        flooder_fail(&run.flooder, "error", error.error);
    }
    if (activity != activity_closes && expected_error(flood) == 0) {
        EXPECT_TRACE(&run.reading.trace, "open bytes 1\"a\" end");
    }
    CFRelease(run.reader);
    CFRelease(run.writer);
    flooder_stop(&run.flooder);
}

TEST(a_timer_fires_between_looks_whatever_a_tls_peer_sends, "1009 1010 1011 1012")
{
    try_each_flood(expect_loop_goes_on);
}

/* ---- two threads ---- */

static void read_to_the_end(void *context)
{
    struct run *run = context;
    UInt8 byte;
    CFIndex count;

    while ((count = CFReadStreamRead(run->reader, &byte, 1)) == 1) {
        run->reading.total++;
    }
    EXPECT_EQ(count, 0);
}

static atomic_bool writes;
static atomic_bool is_writing;

static void write_until_told(void *context)
{
    struct run *run = context;

    while (writes) {
        REQUIRE(CFWriteStreamWrite(run->writer, (const UInt8 *)"x", 1) == 1);
    }
    is_writing = false;
}

/* Sends a byte of data and then new keys, of which each byte is a record that is sent alone. They may ask for an answer. */
static void send_round_in_parts(struct flooder *flooder, bool asks)
{
    const char keys[] = {24, 0, 0, 1, asks};

    flooder_add(flooder, forge_data, "a", 1, 0);
    for (size_t i = 0; i < sizeof keys; i++) {
        flooder_add(flooder, forge_handshake, keys + i, 1, 0);
        while (!flooder_send(flooder)) {
            flooder_hear(flooder);
        }
        flooder_hear(flooder);
        sched_yield();
    }
    tls_forge_renew_keys(&flooder->forge);
}

TEST(two_threads_read_and_write_while_keys_change_in_parts, "1008 1009 1010")
{
    static const struct flood none = {"none", .stage = stage_open};
    static struct run run;
    int rounds = test_is_instrumented() ? 30 : 300;
    struct probe_thread threads[2];
    bool is_ready = false;

    CRLNetworkInstall();
    run_begin(&run, &none, TLS1_3_VERSION, activity_reads, AF_UNIX);
    while (!is_ready || CFReadStreamGetStatus(run.reader) != kCFStreamStatusOpen) {
        run_what_is_ready();
        is_ready = is_ready || flooder_shake_hands(&run.flooder);
    }
    writes = is_writing = true;
    probe_thread_start(&threads[0], read_to_the_end, &run);
    probe_thread_start(&threads[1], write_until_told, &run);
    for (int i = 0; i < rounds; i++) {
        send_round_in_parts(&run.flooder, i % 2 == 1);
    }
    writes = false;
    while (is_writing) {
        flooder_hear(&run.flooder);
    }
    flooder_add(&run.flooder, forge_alert, "\1\0", 2, 0);
    (void)flooder_send(&run.flooder);
    probe_thread_join(&threads[0]);
    probe_thread_join(&threads[1]);
    EXPECT_EQ(run.reading.total, rounds);
    CFRelease(run.reader);
    CFRelease(run.writer);
    flooder_stop(&run.flooder);
}

/* ---- peers that go away ---- */

/* A flood that does not end by itself, and ends in the midst of a record. */
static void expect_departure(enum departure departure, enum activity activity)
{
    static const struct flood new_keys = {"new keys", .stage = stage_open, .message = "\x18\0\0\1", .length = 5, .renews_keys = true};
    static struct run run;
    CFStreamError error;

    run_begin(&run, &new_keys, TLS1_3_VERSION, activity, AF_INET);
    run.departure = departure;
    run_to_its_end(&run);
    error = CFReadStreamGetError(run.reader);
    EXPECT(run.is_over);
    if (activity == activity_closes) {
        EXPECT_EQ(CFReadStreamGetStatus(run.reader), kCFStreamStatusClosed);
        EXPECT_EQ(error.error, 0);
    } else if (departure == departure_with_reset) {
        EXPECT_ERRNO(error, ECONNRESET);
    } else {
        EXPECT_EQ(error.domain, kCFStreamErrorDomainSSL);
        EXPECT_EQ(error.error, errSSLClosedNoNotify);
    }
    CFRelease(run.reader);
    CFRelease(run.writer);
    flooder_stop(&run.flooder);
}

/* SIGPIPE, if it came, would end the test. */
TEST(a_tls_peer_may_reset_its_connection_while_streams_close, "1011 327")
{
    CRLNetworkInstall();
    expect_departure(departure_with_end, activity_reads);
    expect_departure(departure_with_end, activity_closes);
    expect_departure(departure_with_reset, activity_reads);
    expect_departure(departure_with_reset, activity_closes);
}
