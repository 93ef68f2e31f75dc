/* SPDX-License-Identifier: Apache-2.0 */
/* Receivers that are slow, refuse, die or come back, in processes of their own beside the bridge that exports them. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "Port/port_probe.h"
#include "nats_machine.h"

/* What the message's number asks for. */
enum { answer_at_once, answer_after_silence, answer_too_much, answer_unhandled, die_unanswered, note_after_a_second };

static CFDataRef serve_message(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info, CRLReceivedMessageRef message)
{
    CRLDeferredReplyRef reply;

    (void)info;
    switch (message_id) {
    case answer_after_silence:
        (void)usleep(3500000); /* longer than a bridge waits for a sign of life */
        return CFRetain(data);
    case answer_too_much:
        return port_pattern(1 << 21, 1);
    case answer_unhandled:
        reply = CRLReceivedMessageDeferReply(message);
        CRLDeferredReplySend(reply, kCRLReplyUnhandled, NULL);
        return NULL;
    case die_unanswered:
        (void)kill(getpid(), SIGKILL);
        return NULL;
    case note_after_a_second:
        (void)usleep(1500000); /* longer than a bridge keeps the server waiting for a sign */
        return place_note(local, 0, data, info);
    default:
        return CFRetain(data);
    }
}

static SInt32 send_request(SInt32 message_id, double limit_s, CFDataRef *ret_reply)
{
    CFDataRef data = port_data("text");
    SInt32 result = place_ask("service", message_id, data, limit_s, ret_reply);

    CFRelease(data);
    return result;
}

static bool is_not_served(void *info)
{
    CFDataRef reply = NULL;
    bool is_answered = send_request(answer_at_once, 5, &reply) == kCFMessagePortSuccess && port_data_is(reply, "text");

    (void)info;
    if (reply) {
        CFRelease(reply);
    }
    return !is_answered;
}

/* The bridges of two machines; the program there sleeps yet. */
static CRLNatsBridgeRef import_service(pid_t *ret_there, struct bridge_events *log)
{
    CRLNatsBridgeRef bridge;

    *ret_there = machine_start("there", "service", NULL, false);
    machine_become("here");
    bridge = place_bridge("here", log);
    REQUIRE(CRLNatsBridgeImport(bridge, "service", NULL, NULL));
    place_await(log, kCRLNatsConnected, 1);
    return bridge;
}

PLACE_TEST(a_slow_receiver_is_waited_for_and_one_that_refuses_is_told, "1112 1125")
{
    struct bridge_events log = {{0}, {{0}}};
    struct sleeping_machine program;
    CFDataRef reply = NULL;
    CRLNatsBridgeRef bridge;
    pid_t there;
    pid_t pid;

    server_start("");
    program = program_start_later("there", "service", serve_message);
    bridge = import_service(&there, &log);
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsNameAppeared), 0); /* nobody has the name there */
    pid = machine_wake(program);
    place_await(&log, kCRLNatsNameAppeared, 1);
    EXPECT_EQ(send_request(answer_after_silence, 20, &reply), kCFMessagePortSuccess);
    EXPECT(reply && port_data_is(reply, "text"));
    CFRelease(reply);
    reply = NULL;
    EXPECT_EQ(send_request(answer_too_much, 20, &reply), kCFMessagePortTransportError);
    EXPECT(place_file_has("events", "service: a reply of 2097152 bytes"));
    EXPECT_EQ(send_request(answer_unhandled, 20, &reply), kCFMessagePortSuccess);
    EXPECT(reply && CFDataGetLength(reply) == 0);
    CFRelease(reply);
    EXPECT_EQ(send_request(answer_after_silence, 0.2, &reply), kCFMessagePortReceiveTimeout); /* cancelled there */
    EXPECT(!is_not_served(NULL) || place_run_while(is_not_served, NULL));
    place_end_bridge(bridge);
    machine_end(pid, SIGKILL);
    machine_end(there, SIGTERM);
}

PLACE_TEST(a_receiver_that_dies_beside_its_bridge_is_missed_at_once_and_may_come_back, "1112 1107")
{
    struct bridge_events log = {{0}, {{0}}};
    struct sleeping_machine first;
    struct sleeping_machine second;
    CFDataRef reply = NULL;
    CRLNatsBridgeRef bridge;
    SInt32 result;
    pid_t there;
    pid_t pid;

    server_start("");
    first = program_start_later("there", "service", serve_message);
    second = program_start_later("there", "service", serve_message);
    bridge = import_service(&there, &log);
    pid = machine_wake(first);
    place_await(&log, kCRLNatsNameAppeared, 1);
    result = send_request(die_unanswered, 30, &reply);
    EXPECT(result == kCFMessagePortTransportError || result == kCFMessagePortBecameInvalidError);
    machine_end(pid, SIGKILL);
    place_await(&log, kCRLNatsNameVanished, 1); /* the bridge there lives, and says goodbye */
    pid = machine_wake(second);
    place_await(&log, kCRLNatsNameAppeared, 2);
    EXPECT(!is_not_served(NULL) || place_run_while(is_not_served, NULL));
    place_end_bridge(bridge);
    machine_end(pid, SIGKILL);
    machine_end(there, SIGTERM);
}

PLACE_TEST(a_name_that_a_program_here_has_is_not_imported, "1115")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    CFMessagePortRef own;
    pid_t there;

    server_start("");
    there = machine_start("there", "service", port_echo, false);
    machine_become("here");
    own = port_open(CFSTR("service"), port_echo, NULL, kCFRunLoopDefaultMode);
    bridge = place_bridge("here", &log);
    EXPECT(CRLNatsBridgeImport(bridge, "service", NULL, NULL));
    place_await(&log, kCRLNatsNameUnusable, 1);
    EXPECT(strstr(EVENT_TEXT(log, kCRLNatsNameUnusable), "service") != NULL);
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsNameAppeared), 0);
    port_drop(own);
    place_await(&log, kCRLNatsNameAppeared, 1); /* it is free now */
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsNameUnusable), 1);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

static bool is_not_in_doubt(void *info)
{
    (void)info;
    return !place_file_has("events", "its receiver died");
}

PLACE_TEST(a_kept_message_whose_receiver_dies_is_in_doubt_and_the_next_waits, "1119")
{
    struct bridge_events log = {{0}, {{0}}};
    struct sleeping_machine first;
    struct sleeping_machine second;
    CRLNatsBridgeRef bridge;
    pid_t there;
    pid_t pid;

    server_start_keeping();
    first = program_start_later("there", "service", serve_message);
    second = program_start_later("there", "service", serve_message);
    bridge = import_service(&there, &log);
    place_await(&log, kCRLNatsNameAppeared, 1);
    pid = machine_wake(first);
    EXPECT_EQ(place_tell("service", die_unanswered, 1, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(is_not_in_doubt, NULL));
    machine_end(pid, SIGKILL);
    EXPECT_EQ(place_tell("service", note_after_a_second, 1, NULL), kCFMessagePortSuccess);
    pid = machine_wake(second);
    EXPECT(place_run_while(place_lacks_notes, &(int){1}));
    place_end_bridge(bridge);
    machine_end(pid, SIGKILL);
    machine_end(there, SIGTERM);
}
