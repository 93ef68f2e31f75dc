/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * The add-on library libcorerunloop-nats: a bridge, by which programs use message ports of other machines through a NATS server.
 *
 * On the machine that has a port, a bridge exports its name. On the others a bridge imports it: there it owns a local port of that name,
 * as long as somebody exports it, and programs that know nothing of the network send to that one. AddOns/Nats/bridge.md says what a name
 * across machines promises, and what it does not.
 *
 * `CoreFoundation.h` does not include this header. Texts are UTF-8 that ends with a zero; the library copies what it keeps. The command
 * `messageport bridge` is made of these calls.
 */

#if !defined(CRL_NATS_H)
#define CRL_NATS_H 1

#include "CoreFoundation/CFBase.h"

CF_EXTERN_C_BEGIN

/** A bridge. It is not a CF object: CRLNatsBridgeInvalidate gives it up. */
typedef struct CRLNatsBridge *CRLNatsBridgeRef;

/** What a bridge tells. */
typedef CF_ENUM(SInt32, CRLNatsEvent) {
    kCRLNatsConnected = 0, /**< The server was reached. */
    kCRLNatsDisconnected = 1, /**< The connection is lost; it is being made again. */
    kCRLNatsNameAppeared = 2, /**< An imported name is exported, and has a local port; or the port of an exported name is there. */
    kCRLNatsNameVanished = 3, /**< The opposite. */
    kCRLNatsCannotConnect = -1, /**< No server was reached; it is tried again. */
    kCRLNatsRefused = -2, /**< The server wants other credentials; it is tried again. */
    kCRLNatsNameTaken = -3, /**< Another machine exports the name, and not both share it: only NAME\@MACHINE leads here. */
    /**
     * A name that was given cannot be one, or the bridge exports or imports it already; or the local port of an imported name cannot be
     * made, as another program has the name. The last is tried again whenever an exporter is heard, and told once until it succeeds.
     */
    kCRLNatsNameUnusable = -4,
    /**
     * A message was refused or dropped: it is too large, the receiver is too slow or has gone, there is no connection, or no memory. Also
     * messages that the server had not stored when the bridge ended.
     */
    kCRLNatsMessageDropped = -5,
    kCRLNatsPeerMisbehaves = -6, /**< Something that no bridge sends has arrived, and was dropped. */
    kCRLNatsServerComplains = -7, /**< The server does not allow a subject, for instance, or does not keep messages. */
    /**
     * A kept message may have been handled, or not: its receiver or its bridge died, or its bridge had no connection for longer than the
     * server waits, 5 s. It is not sent again.
     */
    kCRLNatsMessageInDoubt = -8
};

/**
 * Tells what happens. `name` is the port's, or NULL if it is about the server. `text` is one line for people with the name in it, in
 * which control characters of others are question marks; bytes that are no UTF-8 may be in what a server says. Each kind of error is told
 * once a second at most, with the number of those left out. kCRLNatsNameUnusable of a call, and kCRLNatsMessageInDoubt, are told each time.
 *
 * Ownership: `name` and `text` are the library's, and valid until the callback returns.
 * Threads: the bridge's; in a pass of its loop, or inside a call of CRLNatsBridgeExport, CRLNatsBridgeImport or CRLNatsBridgeInvalidate.
 * It may run the loop, and export and import names. It must not invalidate the bridge.
 */
typedef void (*CRLNatsBridgeCallBack)(CRLNatsBridgeRef bridge, CRLNatsEvent event, const char *name, const char *text, void *info);

/** How a bridge reaches its server. What is NULL or false is not used. CRLNatsBridgeCreate copies the texts. */
typedef struct {
    CFIndex version; /**< 0. */
    const char *servers; /**< At most 16 URLs with commas between: nats://HOST:PORT or tls://HOST:PORT. They may have user and password. */
    const char *user; /**< For servers whose URL has none. */
    const char *password; /**< The user's; a password without a user makes no bridge. */
    const char *credentials; /**< A file with a JWT and its seed, as nsc writes it. */
    const char *authorities; /**< A file of certificates in PEM that may have signed the server's. NULL: the system's. Means TLS. */
    const char *certificate; /**< The client's own certificate in a file in PEM. Means TLS. */
    const char *key; /**< The certificate's key in a file in PEM. One of the two without the other makes no bridge. */
    const char *machine; /**< This machine's name among the bridges, of at most 64 bytes. NULL: the host name. */
    Boolean durable; /**< One-way messages are kept by the server (JetStream) until their receivers have them. */
    CRLNatsBridgeCallBack callback; /**< NULL: errors are lines on standard error. */
    void *info; /**< A pointer of the program's; passed to the callback. */
} CRLNatsConfiguration;

/**
 * Creates a bridge on the run loop of the calling thread, and begins to connect. The bridge works while that loop runs in its default mode.
 *
 * No pass of the loop waits for the network: the library connects on a thread of its own, again and again, with waits of 50 ms to 5 s.
 * Ownership: the caller gives the bridge up by CRLNatsBridgeInvalidate, before its thread ends.
 * Threads: any. All other calls on the bridge belong to the same thread, on which the callback comes.
 * Errors: NULL if the configuration cannot be followed, with a line on standard error that says why: no server, a text that is no URL, a
 * file that cannot be read, settings that do not agree, or a machine's name that cannot be one. NULL without a line if there is no memory.
 * `configuration` must not be NULL.
 */
CF_EXPORT CRLNatsBridgeRef CRLNatsBridgeCreate(const CRLNatsConfiguration *configuration) CRL_LINK(CRLNatsBridgeCreate);

/**
 * Exports a name: other machines reach the local port that has the name on this one, now or later. It may be of any process of the user.
 *
 * With `shares`, several machines may export the name. Each message then goes to one of them. Otherwise the machine that came first has it.
 * The name is exported for as long as the bridge lives. The text may be freed after the call.
 * Threads: the bridge's.
 * Errors: false if the name cannot be one (empty, more than 128 bytes, not UTF-8), or if the bridge exports or imports it already; the
 * callback says why before the call returns. False without a word if there is no memory. `bridge` and `name` must not be NULL.
 */
CF_EXPORT Boolean CRLNatsBridgeExport(CRLNatsBridgeRef bridge, const char *name, Boolean shares) CRL_LINK(CRLNatsBridgeExport);

/**
 * Imports a name: as long as a machine exports it, the bridge owns a local port for it here.
 *
 * With a `machine`, messages go to that one. Otherwise they go to one that exports the name. The local port is called `localName`. If
 * that is NULL, it is called `name`, or with a machine NAME\@MACHINE.
 * Threads: the bridge's.
 * Errors: as CRLNatsBridgeExport, for each of the three names; a machine's has at most 64 bytes. A local name that another program has is
 * no error of this call: the callback tells it once the name is exported. `machine` and `localName` may be NULL, the others must not.
 */
CF_EXPORT Boolean CRLNatsBridgeImport(CRLNatsBridgeRef bridge, const char *name, const char *machine, const char *localName)
    CRL_LINK(CRLNatsBridgeImport);

/**
 * Ends a bridge: it says goodbye to the others, its local ports become invalid, and its connection is closed. The memory goes: the bridge
 * must not be used any more.
 *
 * It does not wait: a thread of the library closes the connection. What was published is sent if the socket has room for it. A callback may
 * come inside the call, for kept messages that the server has not stored, and none after it.
 * Threads: the bridge's, and not in its callback. `bridge` must not be NULL.
 */
CF_EXPORT void CRLNatsBridgeInvalidate(CRLNatsBridgeRef bridge) CRL_LINK(CRLNatsBridgeInvalidate);

CF_EXTERN_C_END

#endif /* ! CRL_NATS_H */
