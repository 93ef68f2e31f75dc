/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two bridges do when they have no memory, or the kernel refuses something: once, at each place in turn (the n-th failure). A bridge
 * is made or refused; and whatever fails later, a name appears and a request is answered or fails, because the next tick tries again.
 */
#include <nats/nats.h>

#include "CRLMessagePort.h"
#include "Failure/nth_failure.h"
#include "nats_machine.h"

/* Both bridges of a run, on one loop: what one exports, the other imports. */
struct two_bridges {
    CRLNatsBridgeRef there;
    CRLNatsBridgeRef here;
    struct bridge_events there_log;
    struct bridge_events here_log;
};

/* cnats takes half a second to close the connections. Whoever counts what is left waits for that. */
static void end_bridges(struct two_bridges *two)
{
    if (two->here) {
        CRLNatsBridgeInvalidate(two->here);
    }
    if (two->there) {
        CRLNatsBridgeInvalidate(two->there);
    }
}

/* ---- without a server ---- */

static bool make_bridge_and_names(struct two_bridges *two)
{
    two->here = place_try_bridge("nats://127.0.0.1:1", "here", &two->here_log);
    NEED(two->here);
    NEED(CRLNatsBridgeExport(two->here, "a", false));
    NEED(CRLNatsBridgeImport(two->here, "b", NULL, NULL));
    return CRLNatsBridgeImport(two->here, "b", "there", NULL);
}

static bool make_and_end_bridge(void)
{
    struct two_bridges two = {NULL, NULL, {{0}, {{0}}}, {{0}, {{0}}}};
    bool result = make_bridge_and_names(&two);

    end_bridges(&two);
    return result;
}

/* cnats makes some things once, and keeps them. */
static bool connect_once_in_vain(void)
{
    natsConnection *nats = NULL;

    MUST(natsConnection_ConnectTo(&nats, "nats://127.0.0.1:1") != NATS_OK);
    nats_ReleaseThreadMemory();
    return true;
}

PLACE_TEST(nth_failure_a_bridge_and_its_names, "1117 1126")
{
    machine_become("here");
    nth_failure_run_primed("a_bridge_and_its_names", make_and_end_bridge, connect_once_in_vain);
}

PLACE_TEST(nth_failure_a_durable_bridge_and_its_names, "1117 1126")
{
    machine_become("here");
    place_set_durable();
    nth_failure_run_primed("a_durable_bridge_and_its_names", make_and_end_bridge, connect_once_in_vain);
}

/* ---- with a server ---- */

static CFDataRef echo_and_count(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    int *notes = info;

    (void)local;
    *notes += message_id;
    return CFRetain(data);
}

struct outcome {
    bool wants_reply;
    bool is_over;
    SInt32 result;
};

static void on_answer(void *info, SInt32 result, CRLReplyStatus status, CFDataRef reply)
{
    struct outcome *outcome = info;

    outcome->result = status == kCRLReplyAnswered ? result : kCFMessagePortTransportError;
    if (outcome->wants_reply && outcome->result == kCFMessagePortSuccess) {
        MUST(reply && CFDataGetLength(reply) == 3); /* not one that nobody has given */
    }
    outcome->is_over = true;
}

struct port_request {
    CRLMessageSenderRef sender;
    SInt32 message_id;
    bool wants_reply;
};

static bool is_unanswered(void *info)
{
    return !((struct outcome *)info)->is_over;
}

/* Returns false if there is no memory, or no answer. */
static bool try_to_ask(const struct port_request *request)
{
    struct outcome outcome = {request->wants_reply, false, 0};
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)"abc", 3);
    CFMessagePortRef far = CFMessagePortCreateRemote(NULL, CFSTR("far"));
    CRLSentMessageRef sent = NULL;

    if (data && far) {
        sent = CRLMessageSenderSend(request->sender, far, request->message_id, data, 0.5, request->wants_reply, on_answer, &outcome);
    }
    if (sent) {
        MUST(place_run_while(is_unanswered, &outcome));
        CRLSentMessageRelease(sent);
    }
    if (far) {
        CFRelease(far);
    }
    if (data) {
        CFRelease(data);
    }
    return sent && outcome.result == kCFMessagePortSuccess;
}

static bool cannot_ask(void *info)
{
    return !try_to_ask(info);
}

/* Whatever has failed once, later messages come through. */
static void ask_until_answered(CRLMessageSenderRef sender, SInt32 message_id, bool wants_reply)
{
    struct port_request request = {sender, message_id, wants_reply};

    MUST(place_run_while(cannot_ask, &request));
}

static bool has_no_far_name(void *info)
{
    return EVENT_COUNT(((struct two_bridges *)info)->here_log, kCRLNatsNameAppeared) == 0;
}

static bool use_bridges(struct two_bridges *two, int *notes)
{
    CFMessagePortContext context = {.info = notes};
    CRLMessageSenderRef sender;
    CFRunLoopSourceRef source;
    CFMessagePortRef port;

    two->there = place_try_bridge(server_url(), "there", &two->there_log);
    two->here = place_try_bridge(server_url(), "here", &two->here_log);
    NEED(two->there && two->here);
    port = bag_keep(CFMessagePortCreateLocal(NULL, CFSTR("near"), echo_and_count, &context, NULL));
    NEED(port);
    source = bag_keep(CFMessagePortCreateRunLoopSource(NULL, port, 0));
    NEED(source);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    NEED(CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode));
    NEED(CRLNatsBridgeExport(two->there, "near", false));
    NEED(CRLNatsBridgeImport(two->here, "near", NULL, "far"));
    MUST(place_run_while(has_no_far_name, two));
    sender = CRLMessageSenderCreate();
    NEED(sender);
    ask_until_answered(sender, 1, true);
    ask_until_answered(sender, 2, false);
    ask_until_answered(sender, 4, true);
    CRLMessageSenderDestroy(sender);
    return *notes >= 5; /* a one-way message that there is no memory for is told as dropped */
}

static bool carry_messages(void)
{
    struct two_bridges two = {NULL, NULL, {{0}, {{0}}}, {{0}, {{0}}}};
    int notes = 0;
    bool result = use_bridges(&two, &notes);

    end_bridges(&two);
    return result;
}

static void run_failures_from(unsigned first)
{
    server_start("");
    machine_become("here");
    nth_failure_be_patient(3, 18, first);
    nth_failure_run_primed("messages_over_bridges", carry_messages, connect_once_in_vain);
}

/* In two halves, which take turns with the processors: cnats's connections take half a second to close. */
PLACE_TEST(nth_failure_messages_over_bridges, "1107 1108 1126")
{
    run_failures_from(11);
}

PLACE_TEST(nth_failure_more_messages_over_bridges, "1107 1108 1126")
{
    run_failures_from(12);
}
