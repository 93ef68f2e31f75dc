/* SPDX-License-Identifier: Apache-2.0 */
/* One-way messages that the server keeps until their receivers have them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Port/port_probe.h"
#include "Wire/bridge_frame.h"
#include "nats_machine.h"
#include "raw_peer.h"
#include "Wire/stream_api.h"

/* A bridge of this machine that imports a name. Its port is there although perhaps nobody exports the name. */
static CRLNatsBridgeRef import_kept(const char *name, struct bridge_events *log)
{
    CRLNatsBridgeRef bridge;

    machine_become("here");
    bridge = place_bridge("here", log);
    REQUIRE(CRLNatsBridgeImport(bridge, name, NULL, NULL));
    place_await(log, kCRLNatsNameAppeared, 1);
    return bridge;
}

/* Imports the port "notes" of another machine, by a server that keeps messages. */
static CRLNatsBridgeRef import_notes(CFMessagePortCallBack callback, struct bridge_events *log, pid_t *ret_there)
{
    server_start_keeping();
    *ret_there = machine_start("there", "notes", callback, true);
    return import_kept("notes", log);
}

PLACE_TEST(kept_messages_wait_for_a_receiver_and_arrive_in_order, "1118")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    struct sleeping_machine later;
    int count = 300;
    pid_t there;

    server_start_keeping();
    later = machine_start_later("there", "my.notes%", place_note, true);
    bridge = import_kept("my.notes%", &log);
    EXPECT_EQ(place_tell("my.notes%", 0, 200, NULL), kCFMessagePortSuccess); /* nobody exports the name */
    EXPECT(!place_file_has("noted", ""));
    there = machine_wake(later);
    EXPECT_EQ(place_tell("my.notes%", 200, 100, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &count));
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

PLACE_TEST(kept_messages_outlast_the_server, "1118 1114")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    struct sleeping_machine later;
    int count = 100;
    pid_t there;

    server_start_keeping();
    later = machine_start_later("there", "notes", place_note, true);
    bridge = import_kept("notes", &log);
    EXPECT_EQ(place_tell("notes", 0, 50, NULL), kCFMessagePortSuccess);
    server_stop(SIGTERM);
    place_await(&log, kCRLNatsDisconnected, 1);
    server_restart();
    EXPECT_EQ(place_tell("notes", 50, 50, NULL), kCFMessagePortSuccess);
    there = machine_wake(later);
    EXPECT(place_run_while(place_lacks_notes, &count));
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

/* Notes the number, and takes the machine with it in the third message. */
static CFDataRef note_and_die(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)place_note(local, message_id, data, info);
    if (message_id == 2) {
        (void)kill(getpid(), SIGKILL);
    }
    return NULL;
}

PLACE_TEST(a_kept_message_in_the_hands_of_a_machine_that_dies_is_not_handled_twice, "1119")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    struct sleeping_machine first;
    struct sleeping_machine later;
    int count = 20;
    pid_t there;

    server_start_keeping();
    first = machine_start_later("there", "notes", note_and_die, true);
    later = machine_start_later("another", "notes", place_note, true);
    bridge = import_kept("notes", &log);
    there = machine_wake(first);
    EXPECT_EQ(place_tell("notes", 0, 3, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &(int){3}));
    machine_end(there, SIGKILL);
    there = machine_wake(later);
    while (!place_file_has("events", "in doubt")) { /* the server gives it to the other machine after 5 seconds */
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, false);
    }
    EXPECT_EQ(place_tell("notes", 3, 17, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &count)); /* each number once */
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

PLACE_TEST(a_server_that_keeps_nothing_is_an_error, "1120")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;

    server_start("");
    place_set_durable();
    machine_become("here");
    bridge = place_bridge("here", &log);
    EXPECT(CRLNatsBridgeImport(bridge, "notes", NULL, NULL));
    place_await(&log, kCRLNatsServerComplains, 1);
    EXPECT(strstr(EVENT_TEXT(log, kCRLNatsServerComplains), "keeps no messages") != NULL);
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsNameAppeared), 0);
    place_end_bridge(bridge);
}

PLACE_TEST(what_the_server_has_not_stored_is_sent_again_or_told, "1118")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;

    server_start_keeping();
    bridge = import_kept("notes", &log);
    server_pause();
    EXPECT_EQ(place_tell("notes", 0, 3, NULL), kCFMessagePortSuccess);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 2.5, false); /* they are sent again meanwhile */
    place_end_bridge(bridge);
    EXPECT_STR(EVENT_TEXT(log, kCRLNatsMessageDropped), "notes: 3 messages were not stored by the server before the end");
    server_resume();
}

/* The longest message to a durable name; the bridge that imports it refuses longer ones. */
static const CFIndex longest_kept = (1 << 20) - 92;

static CFDataRef note_length(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    EXPECT_EQ(CFDataGetLength(data), longest_kept);
    return place_note(local, message_id, data, info);
}

PLACE_TEST(a_kept_message_just_under_the_servers_limit_crosses_and_more_is_refused, "1109 1118")
{
    CFDataRef longest = port_pattern(longest_kept, 1);
    CFDataRef too_long = port_pattern((1 << 20) - 32, 1);
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    pid_t there;

    bridge = import_notes(note_length, &log, &there);
    EXPECT_EQ(place_tell("notes", 7, 1, too_long), kCFMessagePortSuccess);
    EXPECT_EQ(place_tell("notes", 0, 1, longest), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &(int){1}));
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsDisconnected), 0); /* the server hangs up for a message that is too long */
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsMessageDropped), 1);
    CFRelease(longest);
    CFRelease(too_long);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

static void limit_payload(const char *path, int most)
{
    FILE *file = fopen(path, "w");

    REQUIRE(file);
    (void)fprintf(file, "max_payload: %d\n", most);
    (void)fclose(file);
}

PLACE_TEST(a_kept_message_that_the_next_server_cannot_take_is_dropped_and_the_next_ones_arrive, "1118")
{
    CFDataRef data = port_pattern(4000, 1);
    struct bridge_events log = {{0}, {{0}}};
    struct sleeping_machine later;
    CRLNatsBridgeRef bridge;
    char options[256];
    pid_t there;

    place_set_durable();
    (void)snprintf(options, sizeof options, "-js -c %s", place_path("conf"));
    limit_payload(place_path("conf"), 1 << 20);
    server_start(options);
    later = machine_start_later("there", "notes", place_note, true);
    bridge = import_kept("notes", &log);
    server_pause();
    EXPECT_EQ(place_tell("notes", 7, 1, data), kCFMessagePortSuccess); /* the bridge holds it */
    server_stop(SIGKILL);
    limit_payload(place_path("conf"), 2000);
    server_restart();
    place_await(&log, kCRLNatsMessageDropped, 1);
    EXPECT_EQ(place_tell("notes", 0, 1, NULL), kCFMessagePortSuccess);
    there = machine_wake(later);
    EXPECT(place_run_while(place_lacks_notes, &(int){1}));
    CFRelease(data);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

PLACE_TEST(a_server_that_comes_back_with_an_empty_store_keeps_messages_again, "1118 1114")
{
    struct bridge_events log = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    int count = 100;
    pid_t there;

    bridge = import_notes(place_note, &log, &there);
    EXPECT_EQ(place_tell("notes", 0, 1, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &(int){1}));
    server_stop(SIGKILL);
    place_await(&log, kCRLNatsDisconnected, 1);
    REQUIRE(rename(place_path("jetstream"), place_path("lost")) == 0);
    server_restart();
    EXPECT_EQ(place_tell("notes", 1, count - 1, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &count)); /* in their order */
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

/* ---- a peer that delivers in place of the server ---- */

static void publish_delivery(int peer, const char *subject, const char *acknowledgement, const struct bridge_frame *frame, size_t length)
{
    uint8_t head[bridge_frame_size];

    bridge_frame_encode(frame, head);
    peer_publish(peer, subject, acknowledgement, head, length);
}

PLACE_TEST(deliveries_that_are_forged_are_dropped, "1121 1119")
{
    struct bridge_frame request = {.type = bridge_request, .sender = 7, .number = 1};
    struct bridge_frame message = {.type = bridge_one_way, .sender = 7, .number = 2};
    struct bridge_events log = {{0}, {{0}}};
    char name[consumer_name_max];
    char subject[128];
    CRLNatsBridgeRef bridge;
    pid_t there;
    int peer;

    bridge = import_notes(place_note, &log, &there);
    EXPECT_EQ(place_tell("notes", 0, 1, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &(int){1})); /* the consumer is there */
    peer = peer_connect();
    api_consumer_name("crl.1.kept.notes", name);
    (void)snprintf(subject, sizeof subject, "crl.1.push.%s", name);
    publish_delivery(peer, subject, "somewhere", &request,
                     bridge_frame_size); /* this is told, and the others are counted: one line a second */
    publish_delivery(peer, subject, "somewhere", &message, 7); /* cut short */
    publish_delivery(peer, subject, "somewhere", &message,
                     bridge_frame_size); /* the server allows only itself a subject of its acknowledgements */
    EXPECT_EQ(place_tell("notes", 1, 1, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &(int){2})); /* and no other number */
    EXPECT(place_file_has("events", "what came as a kept message is none"));
    (void)close(peer);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

/* ---- a machine that ends in order ---- */

PLACE_TEST(a_machine_that_ends_in_order_gives_back_what_it_has_not_begun, "1118 1119")
{
    struct bridge_events log = {{0}, {{0}}};
    struct sleeping_machine first_program;
    struct sleeping_machine second_program;
    struct sleeping_machine second;
    CRLNatsBridgeRef bridge;
    pid_t programs[2];
    pid_t first;

    server_start_keeping();
    first_program = program_start_later("first", "notes", place_note_slowly);
    second_program = program_start_later("second", "notes", place_note_slowly);
    second = machine_start_later("second", "notes", NULL, true);
    first = machine_start("first", "notes", NULL, true);
    bridge = import_kept("notes", &log);
    programs[0] = machine_wake(first_program);
    EXPECT_EQ(place_tell("notes", 0, 60, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &(int){5}));
    machine_end(first, SIGTERM); /* eight are in the hands of its program, or of its bridge */
    programs[1] = machine_wake(second_program);
    first = machine_wake(second);
    while (!place_file_has("noted", "59")) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, false);
    }
    for (int i = 0; i < 2; i++) {
        machine_end(programs[i], SIGKILL);
    }
    place_end_bridge(bridge);
    machine_end(first, SIGTERM);
}

static bool lacks_the_last(void *info)
{
    (void)info;
    return !place_file_has("noted", "59");
}

PLACE_TEST(a_machine_whose_receiver_dies_leaves_what_waits_to_the_others, "1118")
{
    struct bridge_events log = {{0}, {{0}}};
    struct sleeping_machine first_program;
    struct sleeping_machine second_program;
    struct sleeping_machine second;
    CRLNatsBridgeRef bridge;
    pid_t programs[2];
    pid_t machines[2];

    server_start_keeping();
    first_program = program_start_later("first", "notes", place_note_slowly);
    second_program = program_start_later("second", "notes", place_note_slowly);
    second = machine_start_later("second", "notes", NULL, true);
    machines[0] = machine_start("first", "notes", NULL, true);
    bridge = import_kept("notes", &log);
    programs[0] = machine_wake(first_program);
    EXPECT_EQ(place_tell("notes", 0, 60, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &(int){5}));
    machines[1] = machine_wake(second);
    machine_end(programs[0], SIGKILL); /* the bridge of the first machine lives */
    programs[1] = machine_wake(second_program);
    EXPECT(place_run_while(lacks_the_last, NULL));
    machine_end(programs[1], SIGKILL);
    place_end_bridge(bridge);
    machine_end(machines[0], SIGTERM);
    machine_end(machines[1], SIGTERM);
}

PLACE_TEST(a_bridge_that_was_stopped_longer_than_the_server_waits_hands_over_nothing_twice, "1119")
{
    struct bridge_events log = {{0}, {{0}}};
    struct sleeping_machine program;
    CRLNatsBridgeRef bridge;
    int count = 40;
    pid_t there;
    pid_t pid;

    server_start_keeping();
    program = program_start_later("there", "notes", place_note_slowly);
    there = machine_start("there", "notes", NULL, true);
    bridge = import_kept("notes", &log);
    pid = machine_wake(program);
    EXPECT_EQ(place_tell("notes", 0, count, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &(int){3}));
    process_pause(there);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 5.5, false); /* now the server delivers them again */
    process_resume(there);
    while (!place_file_has("noted", "39")) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, false);
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.3, false);
    EXPECT(!place_lacks_notes(&count)); /* each number once, in order */
    place_end_bridge(bridge);
    machine_end(pid, SIGKILL);
    machine_end(there, SIGTERM);
}

/* ---- a connection that is lost while a message is in the hands of its receiver ---- */

static CFDataRef handle_without_the_server(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    const struct bridge_events *log = info;

    server_stop(SIGTERM);
    place_await(log, kCRLNatsDisconnected, 1);
    return place_note(local, message_id, data, NULL);
}

/* A question to the server, and the text that its answer is to contain. */
struct server_request {
    const char *subject;
    const void *bytes;
    int size;
    const char *wanted;
    char answer[server_answer_max];
};

static bool is_not_answered(void *info)
{
    struct server_request *request = info;

    return !server_answers(request->subject, request->bytes, request->size, request->wanted, request->answer);
}

PLACE_TEST(a_message_that_was_handled_without_a_connection_is_acknowledged_over_the_next, "1119")
{
    struct bridge_frame message = {.type = bridge_one_way, .sender = 7, .number = 2};
    struct bridge_events log = {{0}, {{0}}};
    uint8_t head[bridge_frame_size];
    char name[consumer_name_max];
    char subject[128];
    struct server_request keep = {"crl.1.kept.notes", head, sizeof head, "\"seq\":1", ""};
    struct server_request look = {subject, "", 0, "\"num_ack_pending\":0", ""};
    CRLNatsBridgeRef bridge;
    CFMessagePortRef port;

    server_start_keeping();
    machine_become("here");
    port = port_open(CFSTR("notes"), handle_without_the_server, &log, kCFRunLoopDefaultMode);
    bridge = place_bridge("here", &log);
    REQUIRE(CRLNatsBridgeExport(bridge, "notes", true));
    bridge_frame_encode(&message, head);
    REQUIRE(place_run_while(is_not_answered, &keep));
    EXPECT(place_run_while(place_lacks_notes, &(int){1}));
    server_restart();
    place_await(&log, kCRLNatsConnected, 2);
    api_consumer_name("crl.1.kept.notes", name);
    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.INFO.CRL.%s", name);
    EXPECT(place_run_while(is_not_answered, &look));
    EXPECT(strstr(look.answer, "\"delivered\":{\"consumer_seq\":1,") != NULL); /* once: no other bridge has seen it */
    place_end_bridge(bridge);
    port_drop(port);
}

static bool is_not_told(void *info)
{
    return EVENT_COUNT(*(struct bridge_events *)info, kCRLNatsPeerMisbehaves) == 0;
}

PLACE_TEST(a_server_that_delivers_more_than_it_should_fills_no_memory, "1122")
{
    struct bridge_frame message = {.type = bridge_one_way, .sender = 7, .number = 1};
    struct bridge_events log = {{0}, {{0}}};
    uint8_t head[bridge_frame_size];
    char name[consumer_name_max];
    char text[512];
    struct server_request stream = {"$JS.API.STREAM.CREATE.CRL", text, 0, "\"config\"", ""};
    struct server_request consumer = {"$JS.API.CONSUMER.DURABLE.CREATE.CRL.more", text, 0, "\"config\"", ""};
    struct server_request keep = {"crl.1.kept.notes", head, sizeof head, "\"seq\"", ""};
    CRLNatsBridgeRef bridge;
    CFMessagePortRef port;

    server_start_keeping();
    stream.size = snprintf(text, sizeof text, "{\"name\":\"CRL\",\"subjects\":[\"crl.1.kept.>\"],\"storage\":\"memory\"}");
    REQUIRE(place_run_while(is_not_answered, &stream));
    api_consumer_name("crl.1.kept.notes", name);
    consumer.size = snprintf(text, sizeof text,
                             "{\"stream_name\":\"CRL\",\"config\":{\"durable_name\":\"more\",\"deliver_subject\":\"crl.1.push.%s\","
                             "\"deliver_group\":\"crl\",\"ack_policy\":\"explicit\",\"max_ack_pending\":1000}}",
                             name);
    REQUIRE(place_run_while(is_not_answered, &consumer));
    for (; message.number <= 200; message.number++) {
        bridge_frame_encode(&message, head);
        REQUIRE(!is_not_answered(&keep));
    }
    machine_become("here");
    port = CFMessagePortCreateLocal(NULL, CFSTR("notes"), place_note, NULL, NULL); /* without a source: it takes nothing */
    bridge = place_bridge("here", &log);
    REQUIRE(port && CRLNatsBridgeExport(bridge, "notes", true));
    EXPECT(place_run_while(is_not_told, &log));
    EXPECT(strstr(EVENT_TEXT(log, kCRLNatsPeerMisbehaves), "has not delivered so many") != NULL);
    place_end_bridge(bridge);
    port_drop(port);
}
