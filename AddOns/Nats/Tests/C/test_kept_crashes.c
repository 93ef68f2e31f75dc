/* SPDX-License-Identifier: Apache-2.0 */
/* Kept messages whose port or whose bridge goes between the claim and the acknowledgement. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "Port/port_probe.h"
#include "Wire/bridge_frame.h"
#include "nats_machine.h"

/* ---- a port that dies between the claim and its answer ---- */

static bool has_claims(int count)
{
    char answer[server_answer_max];
    char wanted[32];

    (void)snprintf(wanted, sizeof wanted, "\"messages\":%d,", count);
    return server_answers("$JS.API.STREAM.INFO.CRLCLAIMS", "", 0, wanted, answer);
}

static bool is_not_kept(void *info)
{
    struct bridge_frame message = {.type = bridge_one_way, .sender = 7, .number = 2};
    uint8_t head[bridge_frame_size];
    char answer[server_answer_max];

    (void)info;
    bridge_frame_encode(&message, head);
    return !server_answers("crl.1.kept.notes", head, sizeof head, "\"seq\":1", answer);
}

/* Each pass handles one event at most, so that the answer to the claim is handled in a later pass. */
static bool run_until_claimed(void)
{
    double limit = port_probe_now() + test_patience_s();

    while (!has_claims(1)) {
        if (port_probe_now() > limit) {
            return false;
        }
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, true);
    }
    return true;
}

static bool has_claim_still(void *info)
{
    (void)info;
    return !has_claims(0);
}

PLACE_TEST(a_claim_is_given_back_when_its_port_dies_before_it_has_the_message, "1118 1119")
{
    struct bridge_events log = {{0}, {{0}}};
    struct sleeping_machine later;
    CRLNatsBridgeRef bridge;
    CFMessagePortRef port;
    pid_t there;

    server_start_keeping();
    later = machine_start_later("there", "notes", place_note, true);
    machine_become("here");
    port = port_open(CFSTR("notes"), place_note, NULL, kCFRunLoopDefaultMode);
    bridge = place_bridge("here", &log);
    REQUIRE(CRLNatsBridgeExport(bridge, "notes", true));
    REQUIRE(place_run_while(is_not_kept, NULL));
    REQUIRE(run_until_claimed());
    port_drop(port);
    EXPECT(place_run_while(has_claim_still, NULL));
    EXPECT(!place_file_has("noted", ""));
    there = machine_wake(later);
    EXPECT(place_run_while(place_lacks_notes, &(int){1})); /* the other machine has claimed it, and handles it */
    EXPECT_EQ(EVENT_COUNT(log, kCRLNatsMessageInDoubt), 0);
    EXPECT(!place_file_has("events", "in doubt"));
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
}

/* ---- a bridge that crashes, and whose receiver lives ---- */

enum { crash_count = 30 };

/* Counts the lines of a file that name each message after the prefix. */
static void count_messages(const char *file_name, const char *prefix, int ret_counts[crash_count])
{
    FILE *file = fopen(place_path(file_name), "r");
    char line[512];

    memset(ret_counts, 0, crash_count * sizeof *ret_counts);
    while (file && fgets(line, sizeof line, file) && strchr(line, '\n')) {
        const char *found = strstr(line, prefix);
        int number;

        if (found && sscanf(found + strlen(prefix), "%d", &number) == 1 && number >= 0 && number < crash_count) {
            ret_counts[number]++;
        }
    }
    if (file) {
        (void)fclose(file);
    }
}

static bool some_are_missing(void *info)
{
    int noted[crash_count];
    int doubted[crash_count];

    (void)info;
    count_messages("noted", "", noted);
    count_messages("events", ": the message ", doubted);
    for (int i = 0; i < crash_count; i++) {
        if (noted[i] == 0 && doubted[i] == 0) {
            return true;
        }
    }
    return false;
}

static bool fewer_are_noted(void *info)
{
    int noted[crash_count];
    int count = 0;

    count_messages("noted", "", noted);
    for (int i = 0; i < crash_count; i++) {
        count += noted[i];
    }
    return count < *(int *)info;
}

/*
 * After 5 s the server delivers what the dead bridge has not acknowledged to the next one. Claimed messages are in doubt, and each is told
 * once; the program has handled some of them. The others are handled.
 */
PLACE_TEST(what_a_crashed_bridge_had_in_hand_is_in_doubt_and_the_rest_is_handled, "1118 1119")
{
    enum { claimed_most = 8 };
    struct bridge_events log = {{0}, {{0}}};
    struct sleeping_machine program;
    struct sleeping_machine next;
    int noted[crash_count];
    int doubted[crash_count];
    CRLNatsBridgeRef bridge;
    int in_doubt = 0;
    pid_t there;
    pid_t pid;

    server_start_keeping();
    program = program_start_later("there", "notes", place_note_slowly);
    next = machine_start_later("there", "notes", NULL, true);
    there = machine_start("there", "notes", NULL, true);
    machine_become("here");
    bridge = place_bridge("here", &log);
    REQUIRE(CRLNatsBridgeImport(bridge, "notes", NULL, NULL));
    place_await(&log, kCRLNatsNameAppeared, 1);
    pid = machine_wake(program);
    EXPECT_EQ(place_tell("notes", 0, crash_count, NULL), kCFMessagePortSuccess);
    EXPECT(place_run_while(fewer_are_noted, &(int){4}));
    machine_end(there, SIGKILL);
    there = machine_wake(next);
    while (some_are_missing(NULL)) { /* the test's limit ends it */
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, false);
    }
    count_messages("noted", "", noted);
    count_messages("events", ": the message ", doubted);
    for (int i = 0; i < crash_count; i++) {
        EXPECT(noted[i] <= 1);
        EXPECT(doubted[i] <= 1);
        in_doubt += doubted[i];
    }
    EXPECT(in_doubt >= 1 && in_doubt <= claimed_most);
    place_end_bridge(bridge);
    machine_end(there, SIGTERM);
    machine_end(pid, SIGKILL);
}
