/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls for programs that pass messages on: CRLMessagePort.h. */
#include <math.h>

#include "CRLMessagePort.h"
#include "Failure/nth_failure.h"
#include "Port/port_probe.h"

enum { many = 40, held_most = 64 };

/* What came of a message. */
struct outcome {
    int count;
    SInt32 result;
    CRLReplyStatus status;
    CFDataRef reply;
};

static void note_end(void *info, SInt32 result, CRLReplyStatus status, CFDataRef reply)
{
    struct outcome *outcome = info;

    *outcome = (struct outcome){outcome->count + 1, result, status, reply ? CFRetain(reply) : NULL};
}

static void run_until_count(const int *count, int value)
{
    while (__atomic_load_n(count, __ATOMIC_RELAXED) < value) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, true);
    }
}

static void send_here(CRLMessageSenderRef sender, CFMessagePortRef remote, SInt32 message_id, Boolean wants_reply, struct outcome *outcome)
{
    CFDataRef data = port_data("text");
    CRLSentMessageRef sent = CRLMessageSenderSend(sender, remote, message_id, data, INFINITY, wants_reply, note_end, outcome);

    REQUIRE(sent);
    CRLSentMessageRelease(sent);
    CFRelease(data);
}

/* ---- the receiver ---- */

static CRLDeferredReplyRef held[held_most];
static int held_count;
static int left_count;
static int released_count;
static bool last_wants_reply;
static CFTimeInterval last_limit_s;
static struct trace order;

static void note_left(void *info)
{
    (void)info;
    (void)__atomic_fetch_add(&left_count, 1, __ATOMIC_RELAXED);
}

static void note_release(void *info)
{
    (void)info;
    released_count++;
}

static CFDataRef hold(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info, CRLReceivedMessageRef message)
{
    (void)port;
    (void)data;
    (void)info;
    trace_addf(&order, "%d", (int)message_id);
    last_wants_reply = CRLReceivedMessageWantsReply(message);
    last_limit_s = CRLReceivedMessageGetTimeLimit(message);
    if (last_wants_reply) {
        CRLDeferredReplyRef reply = CRLReceivedMessageDeferReply(message);

        if (reply) {
            EXPECT(CRLDeferredReplySetLeftCallBack(reply, note_left, NULL, note_release));
            held[held_count++] = reply;
        }
    }
    return NULL;
}

/* A port whose callback gets its messages too late: its source is in no loop yet. */
static CFMessagePortRef open_holding(CFRunLoopSourceRef *ret_source)
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, NULL, NULL, NULL);

    REQUIRE(port && CRLMessagePortSetCallBack(port, hold));
    *ret_source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    EXPECT(!CRLMessagePortSetCallBack(port, hold)); /* too late now */
    return port;
}

static void close_holding(CFMessagePortRef port, CFRunLoopSourceRef source)
{
    CFRelease(source);
    port_drop(port);
}

PORT_TEST(a_program_that_passes_messages_on_replies_later, "1100 1101")
{
    CFRunLoopSourceRef source;
    CFMessagePortRef port = open_holding(&source);
    CFMessagePortRef remote = port_connect(NAME);
    CRLMessageSenderRef sender = CRLMessageSenderCreate();
    struct outcome outcomes[3] = {{0}};
    CFDataRef why = port_data("why");

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    EXPECT(!CRLMessagePortSetCallBack(remote, hold));
    for (int i = 0; i < 3; i++) {
        send_here(sender, remote, i, true, &outcomes[i]);
    }
    run_until_count(&held_count, 3);
    EXPECT(last_wants_reply);
    EXPECT_EQ(outcomes[0].count + outcomes[1].count + outcomes[2].count, 0);
    CRLDeferredReplySend(held[2], kCRLReplyAnswered, why);
    CRLDeferredReplySend(held[1], kCRLReplyFailed, why);
    CRLDeferredReplySend(held[0], kCRLReplyAnswered, NULL);
    for (int i = 0; i < 3; i++) {
        run_until_count(&outcomes[i].count, 1);
        EXPECT_EQ(outcomes[i].result, kCFMessagePortSuccess);
        EXPECT(i == 0 ? CFDataGetLength(outcomes[i].reply) == 0 : port_data_is(outcomes[i].reply, "why"));
        CFRelease(outcomes[i].reply);
    }
    EXPECT_EQ(outcomes[1].status, kCRLReplyFailed);
    EXPECT_EQ(outcomes[2].status, kCRLReplyAnswered);
    EXPECT_EQ(left_count, 0);
    EXPECT_EQ(released_count, 3);
    CFRelease(why);
    CRLMessageSenderDestroy(sender);
    CFRelease(remote);
    close_holding(port, source);
}

PORT_TEST(messages_that_block_nobody_keep_their_order, "1102")
{
    CFRunLoopSourceRef source;
    CFMessagePortRef port = open_holding(&source);
    CFMessagePortRef remote = port_connect(NAME);
    CRLMessageSenderRef sender = CRLMessageSenderCreate();
    static struct outcome outcomes[many];
    struct trace expected = {0};

    for (int i = 0; i < many; i++) { /* far more than the queue holds, requests among them */
        send_here(sender, remote, i, i % 10 == 9, &outcomes[i]);
        trace_addf(&expected, "%d", i);
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, false);
    EXPECT(outcomes[0].count == 1 && outcomes[many - 1].count == 0); /* the queue is full */
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    run_until_count(&held_count, many / 10);
    EXPECT_TRACE(&order, expected.text);
    for (int i = 0; i < held_count; i++) {
        CRLDeferredReplySend(held[i], kCRLReplyAnswered, NULL);
    }
    for (int i = 0; i < many; i++) {
        run_until_count(&outcomes[i].count, 1);
        EXPECT_EQ(outcomes[i].result, kCFMessagePortSuccess);
        EXPECT((outcomes[i].reply != NULL) == (i % 10 == 9));
        if (outcomes[i].reply) {
            CFRelease(outcomes[i].reply);
        }
    }
    CRLMessageSenderDestroy(sender);
    CFRelease(remote);
    close_holding(port, source);
}

PORT_TEST(a_message_that_is_cancelled_or_loses_its_receiver_ends, "1103")
{
    CFRunLoopSourceRef source;
    CFMessagePortRef port = open_holding(&source);
    CFMessagePortRef remote = port_connect(NAME);
    CRLMessageSenderRef sender = CRLMessageSenderCreate();
    struct outcome cancelled = {0};
    struct outcome deserted = {0};
    CRLSentMessageRef sent;

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    sent = CRLMessageSenderSend(sender, remote, 1, NULL, 100, true, note_end, &cancelled);
    run_until_count(&held_count, 1);
    EXPECT(last_limit_s > 50 && last_limit_s <= 100);
    CRLSentMessageCancel(sent);
    CRLSentMessageRelease(sent);
    run_until_count(&cancelled.count, 1);
    EXPECT_EQ(cancelled.result, kCRLMessageCancelled);
    run_until_count(&left_count, 1);
    CRLDeferredReplySend(held[0], kCRLReplyAnswered, NULL); /* goes nowhere */
    close_holding(port, source);
    send_here(sender, remote, 2, false, &deserted);
    run_until_count(&deserted.count, 1);
    EXPECT_EQ(deserted.result, kCFMessagePortIsInvalid);
    EXPECT(!CFMessagePortIsValid(remote));
    CRLMessageSenderDestroy(sender);
    CFRelease(remote);
}

PORT_TEST(a_sender_that_is_destroyed_ends_its_messages, "1103")
{
    CFRunLoopSourceRef source;
    CFMessagePortRef port = open_holding(&source);
    CFMessagePortRef remote = port_connect(NAME);
    CRLMessageSenderRef sender = CRLMessageSenderCreate();
    struct outcome outcome = {0};

    send_here(sender, remote, 1, true, &outcome);
    CRLMessageSenderDestroy(sender);
    EXPECT_EQ(outcome.count, 1);
    EXPECT_EQ(outcome.result, kCFMessagePortBecameInvalidError);
    CFRelease(remote);
    close_holding(port, source);
}

PORT_TEST(wrong_arguments_of_those_who_pass_on_stop_the_process, "1104")
{
    CFRunLoopSourceRef source;
    CFMessagePortRef port = open_holding(&source);
    CRLMessageSenderRef sender = CRLMessageSenderCreate();

    EXPECT_STOPS("CRLMessagePortSetCallBack: ", { CRLMessagePortSetCallBack(port, NULL); });
    EXPECT_STOPS("CRLReceivedMessageWantsReply: ", { CRLReceivedMessageWantsReply(NULL); });
    EXPECT_STOPS("CRLDeferredReplySend: ", { CRLDeferredReplySend(NULL, kCRLReplyAnswered, NULL); });
    EXPECT_STOPS("CRLDeferredReplySetLeft", { CRLDeferredReplySetLeftCallBack(NULL, note_left, NULL, NULL); });
    EXPECT_STOPS("CRLMessageSenderSend: the port is a local", { CRLMessageSenderSend(sender, port, 1, NULL, 1, true, note_end, NULL); });
    EXPECT_STOPS("CRLMessageSenderSend: ", { CRLMessageSenderSend(NULL, port, 1, NULL, 1, true, note_end, NULL); });
    EXPECT_STOPS("CRLMessageSenderDestroy: ", { CRLMessageSenderDestroy(NULL); });
    EXPECT_STOPS("CRLSentMessageCancel: ", { CRLSentMessageCancel(NULL); });
    EXPECT_STOPS("CRLSentMessageRelease: ", { CRLSentMessageRelease(NULL); });
    CRLMessageSenderDestroy(sender);
    close_holding(port, source);
}

/* ---- failures ---- */

NTH_FAILURE(messages_that_are_passed_on, "1101 1102")
{
    CFMessagePortRef port = bag_keep(CFMessagePortCreateLocal(NULL, NAME, NULL, NULL, NULL));
    CFRunLoopSourceRef source = NULL;
    CFMessagePortRef remote = NULL;
    CRLMessageSenderRef sender = NULL;
    struct outcome outcome = {0};
    CRLSentMessageRef sent;
    bool was_sent = false;

    held_count = 0;
    NEED(port);
    MUST(CRLMessagePortSetCallBack(port, hold));
    NEED(source = bag_keep(CFMessagePortCreateRunLoopSource(NULL, port, 0)));
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    NEED(CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    NEED(sender = CRLMessageSenderCreate());
    sent = CRLMessageSenderSend(sender, remote, 1, NULL, 100, false, note_end, &outcome);
    if (sent) {
        CRLSentMessageRelease(sent);
        for (int i = 0; i < 200 && outcome.count == 0; i++) {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, true);
        }
        was_sent = outcome.count == 1 && outcome.result == kCFMessagePortSuccess;
    }
    CRLMessageSenderDestroy(sender);
    MUST(!sent || outcome.count == 1);
    return was_sent;
}
