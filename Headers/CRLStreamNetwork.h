/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * What an add-on library gives to hosts and to the streams of sockets: addresses of names, names of addresses, and TLS. Programs do not
 * need this header: libcorerunloop-net (CRLNetwork.h) is such a library.
 *
 * The core library knows numeric addresses and "localhost" by itself. For other names, for the names of addresses, for
 * kCFStreamPropertySocketSecurityLevel and for kCFStreamPropertySSLSettings it calls the functions that are installed here. It calls each
 * without a lock, on the thread that uses the stream or the host, or runs its loop. None of them may change the program's signal mask, or
 * wait, unless its comment says so.
 */

#if !defined(CRL_STREAM_NETWORK_H)
#define CRL_STREAM_NETWORK_H 1

#include "CoreFoundation/CFArray.h"
#include "CoreFoundation/CFDictionary.h"
#include "CoreFoundation/CFRunLoop.h"
#include "CoreFoundation/CFStream.h"

CF_EXTERN_C_BEGIN

/**
 * Told by `resolve`, once: the addresses of the host, each a CFData with a `struct sockaddr` with its port, in the order in which they are
 * to be tried. NULL, or an empty array, with an `error` when there are none. Not called before `resolve` has returned.
 */
typedef void (*CRLStreamResolved)(void *context, CFArrayRef found, CFStreamError error);

/** What `handshake`, `receive` and `send` wait for when they return -EAGAIN. */
CF_ENUM(UInt32) {
    kCRLStreamWaitsToRead = 1, /**< Bytes from the peer. */
    kCRLStreamWaitsToWrite = 2 /**< Room to send. */
};

/** The functions of an add-on library. The functions for names, or those for TLS, may all be NULL. */
typedef struct {
    CFIndex version; /**< 1; 0: the table ends before advanceQuery. */

    /** Begins to resolve a name, which is not numeric. Returns the query, or NULL without memory. */
    void *(*resolve)(CFStringRef host, UInt32 port, CRLStreamResolved completion, void *context);
    /** As `resolve`, of an address, a `struct sockaddr`; `completion` gets its names, each a CFString. May be NULL. */
    void *(*resolveAddress)(CFDataRef address, CRLStreamResolved completion, void *context);
    /** Lets the query go on in a mode of a loop, where `completion` is then called. May be called again for the same mode. */
    void (*scheduleQuery)(void *query, CFRunLoopRef loop, CFStringRef mode);
    /** Ends that. */
    void (*unscheduleQuery)(void *query, CFRunLoopRef loop, CFStringRef mode);
    /** Waits until `completion` was called, on this thread or another one. For a stream that a program reads without a loop. */
    void (*waitForQuery)(void *query);
    /**
     * Frees the query, once. After the return `completion` is not called any more, and none is under way on another thread. May be called
     * in `completion`, and while it has not come.
     */
    void (*freeQuery)(void *query);

    /**
     * Makes a session on the connected, or connecting, `socket`, which the session does not close. `settings` is the value of
     * kCFStreamPropertySSLSettings, or a dictionary with the level that was set; `host` is the name that the program connects to, or NULL.
     * Returns NULL, with `*error`, for settings that it refuses or without memory.
     */
    void *(*createSession)(int socket, CFStringRef host, CFDictionaryRef settings, CFStreamError *error);
    /**
     * Goes on with the handshake, and never waits. Returns 0 when it is done, -EAGAIN with `*waits`, or -EPROTO with `*error`. Called again
     * after it, when no bytes could be moved: goes on with a message of the peer that changes keys, if the session is in the midst of one.
     */
    int (*handshake)(void *session, UInt32 *waits, CFStreamError *error);
    /**
     * Receives at least one byte, and never waits. Returns 0 at the end, -EAGAIN with `*waits`, -EPROTO with `*error`, or a negative errno
     * of the socket.
     */
    CFIndex (*receive)(void *session, UInt8 *bytes, CFIndex size, UInt32 *waits, CFStreamError *error);
    /** Sends at least one byte, and never waits. As `receive`; it is called again with the same bytes after -EAGAIN. */
    CFIndex (*send)(void *session, const UInt8 *bytes, CFIndex size, UInt32 *waits, CFStreamError *error);
    /**
     * Returns what `receive` would return at once: above 0 for bytes, 0 for the end, -EAGAIN, or an error. It takes from the socket what it
     * needs to know that, so that the kernel does not report a part of a record again and again.
     */
    CFIndex (*look)(void *session, CFStreamError *error);
    /** Returns whether the session holds something from the socket that `receive` has not given yet: then it is worth a look. */
    Boolean (*holdsBytes)(void *session);
    /**
     * Copies a property of the session, such as the peer's certificates; NULL for one that it does not know. After an error,
     * kCFErrorLocalizedFailureReasonKey is the reason in words, a CFString, if there is more to say than its number does.
     */
    CFTypeRef (*copyProperty)(void *session, CFStringRef name);
    /** Says farewell to the peer, if that can be done at once, and frees the session. */
    void (*freeSession)(void *session);

    /**
     * Goes on with a query that `resolve` has returned, and never waits; `completion` may be called in it. With version 1 streams use this,
     * and not scheduleQuery nor waitForQuery. May be called on several threads at once, but not after freeQuery.
     */
    void (*advanceQuery)(void *query);
    /** Returns a descriptor that can be polled: it is readable whenever there is something to advance. The same one always. */
    int (*queryDescriptor)(void *query);
} CRLStreamNetwork;

/**
 * Installs the functions for all streams of the process. The table is not copied, and must stay. Only the first call counts.
 *
 * `receive` and `send` of one session may be called on two threads at once.
 * Threads: any, before the streams that need it are opened.
 */
CF_EXPORT void CRLStreamSetNetwork(const CRLStreamNetwork *network) CRL_LINK(CRLStreamSetNetwork);

CF_EXTERN_C_END

#endif /* ! CRL_STREAM_NETWORK_H */
