/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Message ports for programs that pass messages on: replies that come after the callback has returned, and messages that block nobody.
 *
 * `CoreFoundation.h` does not include this header, and Apple's library has nothing like it. The objects here are not CF objects: each has
 * the one call that gives it up. An argument that must not be NULL, and is, stops the process with a message that names the function.
 */

#if !defined(CRL_MESSAGE_PORT_H)
#define CRL_MESSAGE_PORT_H 1

#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFDate.h"
#include "CoreFoundation/CFMessagePort.h"

CF_EXTERN_C_BEGIN

/** A message that a local port has received. It is valid while the callback runs. */
typedef struct CRLReceivedMessage *CRLReceivedMessageRef;

/** The reply that a callback has deferred. */
typedef struct CRLDeferredReply *CRLDeferredReplyRef;

/** Sends messages in the loop of one thread, which never waits for a receiver. */
typedef struct CRLMessageSender *CRLMessageSenderRef;

/** A message that was handed to a sender. */
typedef struct CRLSentMessage *CRLSentMessageRef;

/**
 * Why a request has no answer.
 *
 * Whoever asked by CFMessagePortSendRequest sees an empty reply for the second and third, and kCFMessagePortTransportError for the last.
 */
typedef CF_ENUM(UInt32, CRLReplyStatus) {
    kCRLReplyAnswered = 0, /**< It has one. */
    kCRLReplyUnhandled = 1, /**< Nobody handles messages of this number. */
    kCRLReplyMalformed = 2, /**< The handler cannot read the request. */
    kCRLReplyFailed = 3 /**< The handler has failed. */
};

/** A local port's callback, as CFMessagePortCallBack, that also gets the message itself. */
typedef CFDataRef (*CRLMessagePortCallBack)(CFMessagePortRef local, SInt32 msgid, CFDataRef data, void *info,
                                            CRLReceivedMessageRef message);

/**
 * Tells how a message ended: a result of CFMessagePortSendRequest, or kCRLMessageCancelled. `reply` is NULL unless a reply was wanted and
 * came. It lives until the callback returns. With a `status` other than kCRLReplyAnswered it is a text that says why there is no answer.
 */
typedef void (*CRLMessageSentCallBack)(void *info, SInt32 result, CRLReplyStatus status, CFDataRef reply);

/** A result beside those of CFMessagePortSendRequest. */
CF_ENUM(SInt32) {
    kCRLMessageCancelled = 1 /**< CRLSentMessageCancel ended it; it may have been handled. */
};

/* Replies that come later */

/**
 * Makes the messages of the local port `local` go to `callback`, in the place of the callback that it was created with.
 *
 * Threads: any, before the port's run loop source is created.
 * Errors: false for a port that is remote or invalid, or has a source or a dispatch queue already.
 */
CF_EXPORT Boolean CRLMessagePortSetCallBack(CFMessagePortRef local, CRLMessagePortCallBack callback) CRL_LINK(CRLMessagePortSetCallBack);

/**
 * Returns whether a reply is waited for; false for a one-way message.
 *
 * Threads: the callback's.
 */
CF_EXPORT Boolean CRLReceivedMessageWantsReply(CRLReceivedMessageRef message) CRL_LINK(CRLReceivedMessageWantsReply);

/**
 * Returns how many seconds the asker will still wait, more than 0. Returns 0 if that is not known: CFMessagePortSendRequest tells its limit
 * to nobody.
 *
 * Threads: the callback's.
 */
CF_EXPORT CFTimeInterval CRLReceivedMessageGetTimeLimit(CRLReceivedMessageRef message) CRL_LINK(CRLReceivedMessageGetTimeLimit);

/**
 * Defers the reply: what the callback returns is not sent. CRLDeferredReplySend has to follow, for a one-way message, too.
 *
 * The message counts against the port's memory budget until then.
 * Ownership: CRLDeferredReplySend gives the result up.
 * Threads: the callback's, once.
 * Errors: NULL when there is no memory; then nothing has changed.
 */
CF_EXPORT CRLDeferredReplyRef CRLReceivedMessageDeferReply(CRLReceivedMessageRef message) CRL_LINK(CRLReceivedMessageDeferReply);

/**
 * Makes `left` be called once if nobody waits for the reply any more: the asker has given up or died, or the port has ended.
 *
 * Askers in other processes are noticed in the default mode of the loop of the thread that calls this first for a port. `left` may be
 * called on any thread, perhaps in this call, and may come a little later than a reply that another thread sends. `release`, which may be
 * NULL, gets `info` when neither can use it any more.
 * Threads: any, once for a reply, before it is sent.
 * Errors: false when there is no memory or descriptor: then only askers in this process are noticed.
 */
CF_EXPORT Boolean CRLDeferredReplySetLeftCallBack(CRLDeferredReplyRef reply, void (*left)(void *info), void *info,
                                                  void (*release)(void *info)) CRL_LINK(CRLDeferredReplySetLeftCallBack);

/**
 * Sends the deferred reply, and gives it up. If nobody waits any more, the reply is thrown away.
 *
 * `data` may be NULL, for an empty reply. With a `status` other than kCRLReplyAnswered it is a text in UTF-8 that says why.
 * Ownership: `data` stays the caller's.
 * Threads: any.
 */
CF_EXPORT void CRLDeferredReplySend(CRLDeferredReplyRef reply, CRLReplyStatus status, CFDataRef data) CRL_LINK(CRLDeferredReplySend);

/* Messages that block nobody */

/**
 * Creates a sender on the calling thread's run loop, which sends in its default mode.
 *
 * Ownership: the caller destroys it by CRLMessageSenderDestroy, on the same thread.
 * Threads: any; the callbacks come on this one.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CRLMessageSenderRef CRLMessageSenderCreate(void) CRL_LINK(CRLMessageSenderCreate);

/**
 * Destroys a sender. Messages that are not over end with kCFMessagePortBecameInvalidError.
 *
 * Threads: the sender's, and not in one of its callbacks. No other thread may use it any more.
 */
CF_EXPORT void CRLMessageSenderDestroy(CRLMessageSenderRef sender) CRL_LINK(CRLMessageSenderDestroy);

/**
 * Hands a message to the sender, which sends it to the remote port `remote` once its queue has room, in the order of the calls for a port.
 *
 * `timeout` is in seconds, for the whole: the wait for room and for the reply. Ten days or more, and not-a-number, mean no limit. A message
 * whose time is over is tried once. `callback` is called once on the sender's thread: with the reply, or for a message that wants none
 * when it was sent. At most 256 requests to one port are under way at once, others wait their turn.
 * If the receiver is found to be gone, the port is invalidated before the callback.
 * Ownership: the caller releases the result by CRLSentMessageRelease. `data` is retained and must not change.
 * Threads: any.
 * Errors: NULL, with no callback, when there is no memory. Others come as the callback's result.
 */
CF_EXPORT CRLSentMessageRef CRLMessageSenderSend(CRLMessageSenderRef sender, CFMessagePortRef remote, SInt32 msgid, CFDataRef data,
                                                 CFTimeInterval timeout, Boolean wantsReply, CRLMessageSentCallBack callback, void *info)
    CRL_LINK(CRLMessageSenderSend);

/**
 * Ends a message that is not over: its result is kCRLMessageCancelled. The receiver learns that nobody waits.
 *
 * Threads: any, as long as the sender is not destroyed.
 */
CF_EXPORT void CRLSentMessageCancel(CRLSentMessageRef message) CRL_LINK(CRLSentMessageCancel);

/**
 * Gives the caller's reference to a message up, which goes on.
 *
 * Threads: any.
 */
CF_EXPORT void CRLSentMessageRelease(CRLSentMessageRef message) CRL_LINK(CRLSentMessageRelease);

CF_EXTERN_C_END

#endif /* ! CRL_MESSAGE_PORT_H */
