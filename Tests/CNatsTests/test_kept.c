/* SPDX-License-Identifier: Apache-2.0 */
/* One-way messages that the server keeps until their receivers have them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nats_place.h"

/* The bridge of this machine, whose port is there although nobody exports the name. */
static CRLNatsBridgeRef import_kept(const char *name, struct told *told)
{
    CRLNatsBridgeRef bridge;

    machine_become("here");
    bridge = place_bridge("here", told);
    REQUIRE(CRLNatsBridgeImport(bridge, name, NULL, NULL));
    place_await(told, kCRLNatsNameAppeared, 1);
    return bridge;
}

PLACE_TEST(kept_messages_wait_for_a_receiver_and_arrive_in_order, "1118")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    struct sleeping_machine later;
    int count = 300;
    pid_t there;

    place_set_durable();
    server_start("-js");
    later = machine_start_later("there", "my.notes%", place_note, true);
    bridge = import_kept("my.notes%", &told);
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
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    struct sleeping_machine later;
    int count = 100;
    pid_t there;

    place_set_durable();
    server_start("-js");
    later = machine_start_later("there", "notes", place_note, true);
    bridge = import_kept("notes", &told);
    EXPECT_EQ(place_tell("notes", 0, 50, NULL), kCFMessagePortSuccess);
    server_stop(SIGTERM);
    place_await(&told, kCRLNatsDisconnected, 1);
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

static bool is_not_in_doubt(void *info)
{
    (void)info;
    return !place_file_has("events", "in doubt");
}

PLACE_TEST(a_kept_message_in_the_hands_of_a_machine_that_dies_is_not_handled_twice, "1119")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;
    struct sleeping_machine first;
    struct sleeping_machine later;
    int count = 20;
    pid_t there;

    place_set_durable();
    server_start("-js");
    first = machine_start_later("there", "notes", note_and_die, true);
    later = machine_start_later("another", "notes", place_note, true);
    bridge = import_kept("notes", &told);
    there = machine_wake(first);
    EXPECT_EQ(place_tell("notes", 0, 3, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &(int){3}));
    machine_end(there, SIGKILL);
    there = machine_wake(later);
    EXPECT(place_run_while(is_not_in_doubt, NULL)); /* the server gives it to the other machine after 5 seconds */
    EXPECT_EQ(place_tell("notes", 3, 17, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(place_lacks_notes, &count)); /* each number once */
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

PLACE_TEST(a_server_that_keeps_nothing_is_an_error, "1120")
{
    struct told told = {{0}, {{0}}};
    CRLNatsBridgeRef bridge;

    server_start("");
    place_set_durable();
    machine_become("here");
    bridge = place_bridge("here", &told);
    EXPECT(CRLNatsBridgeImport(bridge, "notes", NULL, NULL));
    place_await(&told, kCRLNatsServerComplains, 1);
    EXPECT(strstr(told.texts[16 + kCRLNatsServerComplains], "keeps no messages") != NULL);
    EXPECT_EQ(TOLD(told, kCRLNatsNameAppeared), 0);
    place_end_bridge(bridge);
}
