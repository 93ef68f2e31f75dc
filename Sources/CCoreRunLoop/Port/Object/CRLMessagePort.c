/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls for replies that come later and messages that block nobody: they check their arguments and hand on. */
#include "CRLMessagePort.h"

#include "Kernel/kernel.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Run/thread_registry.h"
#include "Port/Async/async_dispatch.h"
#include "Port/Async/deferred_reply.h"
#include "Support/fault.h"

static void require(bool is_there, const char *function, const char *sentence)
{
    if (!is_there) {
        fault_stop(function, sentence);
    }
}

static struct received_message *received(CRLReceivedMessageRef message, const char *function)
{
    require(message != NULL, function, "there is no message");
    return (struct received_message *)(void *)message;
}

/* ---- replies that come later ---- */

Boolean CRLMessagePortSetCallBack(CFMessagePortRef local, CRLMessagePortCallBack callback)
{
    struct local_port *side;
    bool can;

    object_check(local, &message_port_class, "CRLMessagePortSetCallBack", "port");
    require(callback != NULL, "CRLMessagePortSetCallBack", "there is no callback");
    if (local->is_remote) {
        return false;
    }
    side = &local->side.local;
    port_lock(local);
    can = port_is_valid(local) && !side->source && !side->dispatch;
    if (can) {
        /* The message is opaque to the program, so the two types of function differ in name only. */
        side->answering = (answering_callout)(void (*)(void))callback;
    }
    port_unlock(local);
    return can;
}

Boolean CRLReceivedMessageWantsReply(CRLReceivedMessageRef message)
{
    const struct received_message *got = received(message, "CRLReceivedMessageWantsReply");

    return got->local_message ? got->local_message->loop != NULL : got->asker.channel || got->asker.has_left;
}

CFTimeInterval CRLReceivedMessageGetTimeLimit(CRLReceivedMessageRef message)
{
    const struct received_message *got = received(message, "CRLReceivedMessageGetTimeLimit");
    int64_t deadline_ns = got->local_message ? got->local_message->deadline_ns : got->asker.deadline_ns;
    int64_t left_ns;

    if (deadline_ns == 0 || deadline_ns == kernel_never) {
        return 0;
    }
    left_ns = deadline_ns - kernel.monotonic_ns();
    return left_ns > 0 ? (double)left_ns / 1e9 : 1e-9; /* over, but known */
}

CRLDeferredReplyRef CRLReceivedMessageDeferReply(CRLReceivedMessageRef message)
{
    return (CRLDeferredReplyRef)(void *)received_message_defer(received(message, "CRLReceivedMessageDeferReply"));
}

Boolean CRLDeferredReplySetLeftCallBack(CRLDeferredReplyRef reply, void (*left)(void *info), void *info, void (*release)(void *info))
{
    struct deferred_reply *deferred = (struct deferred_reply *)(void *)reply;
    bool listens;

    require(reply != NULL, "CRLDeferredReplySetLeftCallBack", "there is no reply");
    require(left != NULL, "CRLDeferredReplySetLeftCallBack", "there is no callback");
    listens = deferred_replies_listen(deferred_reply_port(deferred), thread_registry_current());
    deferred_reply_watch(deferred, left, info, release);
    return listens;
}

void CRLDeferredReplySend(CRLDeferredReplyRef reply, CRLReplyStatus status, CFDataRef data)
{
    require(reply != NULL, "CRLDeferredReplySend", "there is no reply");
    deferred_reply_answer((struct deferred_reply *)(void *)reply, status, data);
}

/* ---- messages that block nobody ---- */

CRLMessageSenderRef CRLMessageSenderCreate(void)
{
    return (CRLMessageSenderRef)(void *)async_requests_create();
}

void CRLMessageSenderDestroy(CRLMessageSenderRef sender)
{
    require(sender != NULL, "CRLMessageSenderDestroy", "there is no sender");
    async_requests_destroy((struct async_requests *)(void *)sender);
}

CRLSentMessageRef CRLMessageSenderSend(CRLMessageSenderRef sender, CFMessagePortRef remote, SInt32 msgid, CFDataRef data,
                                       CFTimeInterval timeout, Boolean wantsReply, CRLMessageSentCallBack callback, void *info)
{
    struct async_request *request;

    require(sender != NULL, "CRLMessageSenderSend", "there is no sender");
    require(callback != NULL, "CRLMessageSenderSend", "there is no callback");
    object_check(remote, &message_port_class, "CRLMessageSenderSend", "port");
    if (!remote->is_remote) {
        fault_stop("CRLMessageSenderSend", "the port is a local one");
    }
    request = async_request_create(remote, msgid, data, request_deadline_after(timeout), callback, info);
    if (!request) {
        return NULL;
    }
    async_request_set_ends_port(request);
    if (!wantsReply) {
        async_request_set_one_way(request);
    }
    async_request_send((struct async_requests *)(void *)sender, request);
    return (CRLSentMessageRef)(void *)request;
}

void CRLSentMessageCancel(CRLSentMessageRef message)
{
    require(message != NULL, "CRLSentMessageCancel", "there is no message");
    async_request_cancel((struct async_request *)(void *)message);
}

void CRLSentMessageRelease(CRLSentMessageRef message)
{
    require(message != NULL, "CRLSentMessageRelease", "there is no message");
    async_request_release((struct async_request *)(void *)message);
}
