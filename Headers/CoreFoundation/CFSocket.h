/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Sockets whose events are callbacks of a run loop: bytes to read, connections to accept, connections made, room to write.
 *
 * The loop itself waits for the socket, with everything else that it waits for: there is no helper thread, no `select`, and no limit on
 * descriptor numbers. An object argument that is NULL, or of another type, stops the process with one sentence that names the function.
 */

#if !defined(__COREFOUNDATION_CFSOCKET__)
#define __COREFOUNDATION_CFSOCKET__ 1

#include "CFBase.h"
#include "CFData.h"
#include "CFDate.h"
#include "CFRunLoop.h"
#include "CFString.h"

#if defined(__swift__)
#define CFSocketRef CRLSocketRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFSocket, CFSocket);

/** A socket, and who is to be told of its events. */
typedef struct __CFSocket *CFSocketRef;

/** A socket's descriptor. */
typedef int CFSocketNativeHandle;

/** What can be said to a peer, and by which protocol: the arguments of socket(2), and an address. */
typedef struct {
    SInt32 protocolFamily; /**< PF_INET, PF_INET6, PF_UNIX and so on. */
    SInt32 socketType; /**< SOCK_STREAM, SOCK_DGRAM and so on. */
    SInt32 protocol; /**< IPPROTO_TCP, IPPROTO_UDP and so on; 0: the family's usual one. */
    CFDataRef address; /**< A `struct sockaddr` of the family. */
} CFSocketSignature;

/** How an operation on a socket went. */
typedef CF_ENUM(CFIndex, CFSocketError) {
    kCFSocketSuccess = 0, /**< It went well. */
    kCFSocketError = -1L, /**< It failed. */
    kCFSocketTimeout = -2L /**< Its time was up. */
};

/** Events of a socket. Read, Accept and Data exclude each other: they are one number in two bits, not flags. */
typedef CF_OPTIONS(CFOptionFlags, CFSocketCallBackType) {
    kCFSocketNoCallBack = 0, /**< Nothing. */
    kCFSocketReadCallBack = 1, /**< There is something to read, or the end, or a connection to accept; the callback does it. */
    kCFSocketAcceptCallBack = 2, /**< A connection was accepted: `data` points to its CFSocketNativeHandle, which is the callback's now. */
    kCFSocketDataCallBack = 3, /**< Bytes were read: `data` is a CFDataRef, of length 0 at the end; `address` is the sender's. */
    kCFSocketConnectCallBack = 4, /**< The connection is made, or, if `data` is not NULL, failed: it points to an SInt32, the errno. */
    kCFSocketWriteCallBack = 8 /**< There is room to write. */
};

/** Flags of a socket: which callbacks are enabled again by themselves, and what happens to errors and at the end. */
CF_ENUM(CFOptionFlags) {
    kCFSocketAutomaticallyReenableReadCallBack = 1, /**< Read is called as long as there is something to read. */
    kCFSocketAutomaticallyReenableAcceptCallBack = 2, /**< Accept is called for every connection. */
    kCFSocketAutomaticallyReenableDataCallBack = 3, /**< Data is called for everything that comes; either of the two bits will do. */
    kCFSocketAutomaticallyReenableWriteCallBack = 8, /**< Write is called as long as there is room. */
    kCFSocketLeaveErrors = 64, /**< The pending error stays in the socket for SO_ERROR: Connect is called as if it had gone well. */
    kCFSocketCloseOnInvalidate = 128 /**< CFSocketInvalidate closes the descriptor. */
};

/** The callback: `type` is one event, and what `address` and `data` are depends on it; they are valid during the call. */
typedef void (*CFSocketCallBack)(CFSocketRef s, CFSocketCallBackType type, CFDataRef address, const void *data, void *info);

/** What a socket carries for its callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< The program's own; given to the callback. */
    const void *(*retain)(const void *info); /**< Called at creation, what it returns is kept as the `info`; and before each delivery. */
    void (*release)(const void *info); /**< Called after each delivery, and once when the socket is invalidated or freed. */
    CFStringRef (*copyDescription)(const void *info); /**< A text for CFCopyDescription, which releases it. */
} CFSocketContext;

/**
 * Gets the type id of sockets.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFSocketGetTypeID(void) CRL_LINK(CFSocketGetTypeID);

/**
 * Creates a socket, and an object for it.
 *
 * A `protocolFamily` of 0 or less is PF_INET; with PF_INET a `socketType` of 0 or less is SOCK_STREAM, and a `protocol` of 0 or less is TCP
 * or UDP as the type has it; with PF_LOCAL, too, a `socketType` of 0 or less is SOCK_STREAM. `callBackTypes` is one of Read, Accept and
 * Data at most, or'ed with Connect and Write; the callbacks come once the socket's run loop source is in a loop. The flags are
 * CloseOnInvalidate and the automatic re-enabling of the kind of reading that was asked for. `callout` may be NULL for a socket without
 * events. `context` may be NULL and is copied.
 * Ownership: the caller releases the object; `info` is retained as the context says.
 * Threads: any.
 * Errors: NULL when the system refuses the socket, the reason being in errno, or there is no memory; then `info` is not retained.
 * Differs from Apple: the descriptor is closed in programs that are executed.
 */
CF_EXPORT CFSocketRef CFSocketCreate(CFAllocatorRef allocator, SInt32 protocolFamily, SInt32 socketType, SInt32 protocol,
                                     CFOptionFlags callBackTypes, CFSocketCallBack callout, const CFSocketContext *context)
    CRL_LINK(CFSocketCreate) CF_RETURNS_RETAINED;

/**
 * Creates an object for the open descriptor `sock`, or returns the one that there is: then the other arguments are ignored.
 *
 * The other arguments are those of CFSocketCreate, and so are the flags: unless they are changed, CFSocketInvalidate closes `sock`.
 * Ownership: the caller releases the object; `info` is retained as the context says, unless the object was there.
 * Threads: any.
 * Errors: NULL when `sock` is not open, or there is no memory; then `info` is not retained.
 * Differs from Apple: NULL for a descriptor that is not open.
 */
CF_EXPORT CFSocketRef CFSocketCreateWithNative(CFAllocatorRef allocator, CFSocketNativeHandle sock, CFOptionFlags callBackTypes,
                                               CFSocketCallBack callout, const CFSocketContext *context)
    CRL_LINK(CFSocketCreateWithNative) CF_RETURNS_RETAINED;

/**
 * Creates a socket as CFSocketCreate does and gives it the signature's address, as CFSocketSetAddress does.
 *
 * Ownership: the caller releases the object; `info` is retained as the context says.
 * Threads: any.
 * Errors: NULL when there is no socket or the address cannot be had, the reason being in errno; `info` is released again.
 */
CF_EXPORT CFSocketRef CFSocketCreateWithSocketSignature(CFAllocatorRef allocator, const CFSocketSignature *signature,
                                                        CFOptionFlags callBackTypes, CFSocketCallBack callout,
                                                        const CFSocketContext *context)
    CRL_LINK(CFSocketCreateWithSocketSignature) CF_RETURNS_RETAINED;

/**
 * Creates a socket as CFSocketCreate does and connects it to the signature's address, as CFSocketConnectToAddress does.
 *
 * `timeout` is in seconds.
 * Ownership: the caller releases the object; `info` is retained as the context says.
 * Threads: any; it may wait.
 * Errors: NULL when there is no socket, or the connection fails or is not there in time, the reason being in errno; `info` is released
 * again.
 */
CF_EXPORT CFSocketRef CFSocketCreateConnectedToSocketSignature(CFAllocatorRef allocator, const CFSocketSignature *signature,
                                                               CFOptionFlags callBackTypes, CFSocketCallBack callout,
                                                               const CFSocketContext *context, CFTimeInterval timeout)
    CRL_LINK(CFSocketCreateConnectedToSocketSignature) CF_RETURNS_RETAINED;

/**
 * Gives the socket the local `address`, a `struct sockaddr`, and lets it listen for connections, up to 256 of which may wait.
 *
 * For an IPv4 or IPv6 port of 0 the system picks one: see CFSocketCopyAddress. Sockets that cannot listen just get the address. On all
 * interfaces (`in6addr_any`) an IPv6 socket has a port for IPv4 too, unless another socket has it there: then for IPv6 alone.
 * Threads: any.
 * Errors: kCFSocketError when the address cannot be had, or `s` is invalid; errno has the reason.
 */
CF_EXPORT CFSocketError CFSocketSetAddress(CFSocketRef s, CFDataRef address) CRL_LINK(CFSocketSetAddress);

/**
 * Connects the socket to `address`, a `struct sockaddr`.
 *
 * A `timeout` above 0 is the most seconds to wait; 0 waits as long as the protocol does; below 0 nothing is waited for: the connection is
 * made in the background, and the outcome is the Connect callback. The socket is left blocking, or not, as it was.
 * Threads: any; it may wait.
 * Errors: kCFSocketTimeout when the time is up: the attempt may go on; kCFSocketError when the connection is refused, or `s` is invalid;
 * errno has the reason. A `timeout` that is not a number is 0.
 */
CF_EXPORT CFSocketError CFSocketConnectToAddress(CFSocketRef s, CFDataRef address, CFTimeInterval timeout)
    CRL_LINK(CFSocketConnectToAddress);

/**
 * Makes the socket invalid for good: no more callbacks, its run loop source is invalidated, the descriptor is closed if the flags say so,
 * `info` is released, and the loops that watched it are woken. A second call does nothing.
 *
 * Ownership: the caller's reference is not given back.
 * Threads: any, also in the callback. While a callback is under way on another thread, `info` is released after it.
 */
CF_EXPORT void CFSocketInvalidate(CFSocketRef s) CRL_LINK(CFSocketInvalidate);

/**
 * Says whether the socket has not been invalidated.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFSocketIsValid(CFSocketRef s) CRL_LINK(CFSocketIsValid);

/**
 * Copies the socket's own address, a `struct sockaddr`.
 *
 * Ownership: the caller releases the data.
 * Threads: any.
 * Errors: NULL when the socket is invalid, or there is no memory.
 */
CF_EXPORT CFDataRef CFSocketCopyAddress(CFSocketRef s) CRL_LINK(CFSocketCopyAddress) CF_RETURNS_RETAINED;

/**
 * Copies the address of whom the socket is connected to, a `struct sockaddr`.
 *
 * Ownership: the caller releases the data.
 * Threads: any.
 * Errors: NULL when the socket is not connected or invalid, or there is no memory.
 */
CF_EXPORT CFDataRef CFSocketCopyPeerAddress(CFSocketRef s) CRL_LINK(CFSocketCopyPeerAddress) CF_RETURNS_RETAINED;

/**
 * Copies the socket's context into `*context`; `info` is NULL when the socket is invalid.
 *
 * The caller first sets `context->version` to 0, the only version there is.
 * Ownership: `info` stays the socket's.
 * Threads: any.
 * Errors: stops the process with one sentence when `context` is NULL.
 */
CF_EXPORT void CFSocketGetContext(CFSocketRef s, CFSocketContext *context) CRL_LINK(CFSocketGetContext);

/**
 * Gets the socket's descriptor; -1 when the socket is invalid.
 *
 * Ownership: the descriptor stays the socket's if that closes it; the program must not close it while the socket is valid.
 * Threads: any.
 */
CF_EXPORT CFSocketNativeHandle CFSocketGetNative(CFSocketRef s) CRL_LINK(CFSocketGetNative);

/**
 * Creates the socket's run loop source, to be added to the modes in which its callbacks may come; later calls return the same source.
 *
 * Nothing is waited for before the source is added. `order` counts in the first call only. While a socket is neither connected nor
 * listening there are no callbacks; the program may connect its descriptor by itself, or let it listen, or take its connection away by
 * AF_UNSPEC and connect it anew. If another thread than the loop's does that with a Unix socket while the loop sleeps, Connect and Write
 * come when the loop wakes next, or after CFSocketEnableCallBacks.
 * Ownership: the caller releases the source, which keeps the socket alive.
 * Threads: any.
 * Errors: NULL when the socket is invalid, or there is no memory.
 * Differs from Apple: sockets are performed behind the loop's wait, not before it. Otherwise as there: all that were ready at one look, 64
 * at most, or one if the run is to return after a source; then due timers or one source of version 1, in the same pass. Version-0 sources
 * come before them, whatever their order, also in a run that is to return. Signalling a socket's source does nothing.
 */
CF_EXPORT CFRunLoopSourceRef CFSocketCreateRunLoopSource(CFAllocatorRef allocator, CFSocketRef s, CFIndex order)
    CRL_LINK(CFSocketCreateRunLoopSource) CF_RETURNS_RETAINED;

/**
 * Gets the socket's flags.
 *
 * Threads: any.
 */
CF_EXPORT CFOptionFlags CFSocketGetSocketFlags(CFSocketRef s) CRL_LINK(CFSocketGetSocketFlags);

/**
 * Sets the socket's flags, all of them; it enables no callback by itself.
 *
 * Threads: any.
 */
CF_EXPORT void CFSocketSetSocketFlags(CFSocketRef s, CFOptionFlags flags) CRL_LINK(CFSocketSetSocketFlags);

/**
 * Disables the callbacks `callBackTypes`, even those that are enabled again by themselves, until CFSocketEnableCallBacks.
 *
 * What happens meanwhile is told after that. Connections that come in, and bytes, wait in the system. While the socket's source is in no
 * mode of any loop this does nothing, and what was disabled, or told once, is enabled with the next mode that it is added to.
 * Threads: any; on the loop's own thread none of these callbacks comes after the return.
 * Errors: types that the socket was not created with are ignored, and so is an invalid socket.
 */
CF_EXPORT void CFSocketDisableCallBacks(CFSocketRef s, CFOptionFlags callBackTypes) CRL_LINK(CFSocketDisableCallBacks);

/**
 * Enables the callbacks `callBackTypes` again: those that CFSocketDisableCallBacks disabled, and those that come once only.
 *
 * Write comes once, unless the flags say otherwise, and so does a kind of reading whose flag was taken away; Read comes once at the end of
 * what the other side sends, whatever the flags; Connect comes once in the socket's life, and is not enabled again. If what the callback
 * tells of is there already, it is told in the next pass; but in a run with a limit of 0 what was told before and is enabled again, by an
 * observer for instance, is left to the next run, as the loop would else have a source to handle each time that it is run. Enabled in its
 * own callback it costs no system call. Data may be called Read or Accept, too, here and in CFSocketDisableCallBacks: these are the bits of
 * its number.
 * Threads: any, also in the callback; a sleeping loop takes notice without being woken.
 * Errors: types that the socket was not created with are ignored, and so is an invalid socket.
 */
CF_EXPORT void CFSocketEnableCallBacks(CFSocketRef s, CFOptionFlags callBackTypes) CRL_LINK(CFSocketEnableCallBacks);

/**
 * Sends `data` once: all of it, or as much as the system takes.
 *
 * A NULL or empty `address` sends to whom the socket is connected to. A `timeout` above 0 is the most seconds to wait for room in a
 * blocking socket; otherwise there is no limit. A socket that is not blocking never waits. SIGPIPE is not raised.
 * Threads: any, several at once; it may wait, and holds no lock meanwhile.
 * Errors: kCFSocketTimeout when there was no room for anything in time; kCFSocketError when nothing was sent for another reason, `data` is
 * NULL or empty (an empty datagram is sent all the same), or `s` is invalid. kCFSocketSuccess says that something was sent, not that all
 * was: use send(2) where the rest matters. errno has the reason of the two others.
 * Differs from Apple: the time being up is kCFSocketTimeout.
 */
CF_EXPORT CFSocketError CFSocketSendData(CFSocketRef s, CFDataRef address, CFDataRef data, CFTimeInterval timeout)
    CRL_LINK(CFSocketSendData);

/* The name registry of 1999: nobody runs its servers any more */

/**
 * Does nothing: the servers that it would ask do not exist.
 *
 * Threads: any.
 * Errors: always kCFSocketError.
 */
CF_EXPORT CFSocketError CFSocketRegisterValue(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout, CFStringRef name,
                                              CFPropertyListRef value)
    CRL_LINK(CFSocketRegisterValue);

/**
 * Does nothing: the servers that it would ask do not exist. `*value` and `*nameServerAddress` are left alone.
 *
 * Threads: any.
 * Errors: always kCFSocketError.
 */
CF_EXPORT CFSocketError CFSocketCopyRegisteredValue(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout, CFStringRef name,
                                                    CFPropertyListRef *value, CFDataRef *nameServerAddress)
    CRL_LINK(CFSocketCopyRegisteredValue);

/**
 * Does nothing: the servers that it would ask do not exist.
 *
 * Threads: any.
 * Errors: always kCFSocketError.
 */
CF_EXPORT CFSocketError CFSocketRegisterSocketSignature(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout,
                                                        CFStringRef name, const CFSocketSignature *signature)
    CRL_LINK(CFSocketRegisterSocketSignature);

/**
 * Does nothing: the servers that it would ask do not exist. `*signature` and `*nameServerAddress` are left alone.
 *
 * Threads: any.
 * Errors: always kCFSocketError.
 */
CF_EXPORT CFSocketError CFSocketCopyRegisteredSocketSignature(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout,
                                                              CFStringRef name, CFSocketSignature *signature,
                                                              CFDataRef *nameServerAddress)
    CRL_LINK(CFSocketCopyRegisteredSocketSignature);

/**
 * Does nothing: the servers that it would ask do not exist.
 *
 * Threads: any.
 * Errors: always kCFSocketError.
 */
CF_EXPORT CFSocketError CFSocketUnregister(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout, CFStringRef name)
    CRL_LINK(CFSocketUnregister);

/**
 * Sets the port number that CFSocketGetDefaultNameRegistryPortNumber gets.
 *
 * Threads: any.
 */
CF_EXPORT void CFSocketSetDefaultNameRegistryPortNumber(UInt16 port) CRL_LINK(CFSocketSetDefaultNameRegistryPortNumber);

/**
 * Gets the port number of name registry servers: 2454 unless it was set.
 *
 * Threads: any.
 */
CF_EXPORT UInt16 CFSocketGetDefaultNameRegistryPortNumber(void) CRL_LINK(CFSocketGetDefaultNameRegistryPortNumber);

/** Key of the command in a name registry's messages: "Command". */
CF_EXPORT const CFStringRef kCFSocketCommandKey CRL_LINK(kCFSocketCommandKey);
/** Key of the name in a name registry's messages: "Name". */
CF_EXPORT const CFStringRef kCFSocketNameKey CRL_LINK(kCFSocketNameKey);
/** Key of the value in a name registry's messages: "Value". */
CF_EXPORT const CFStringRef kCFSocketValueKey CRL_LINK(kCFSocketValueKey);
/** Key of the result in a name registry's answers: "Result". */
CF_EXPORT const CFStringRef kCFSocketResultKey CRL_LINK(kCFSocketResultKey);
/** Key of the error in a name registry's answers: "Error". */
CF_EXPORT const CFStringRef kCFSocketErrorKey CRL_LINK(kCFSocketErrorKey);
/** The command that registers a name: "Register". */
CF_EXPORT const CFStringRef kCFSocketRegisterCommand CRL_LINK(kCFSocketRegisterCommand);
/** The command that looks a name up: "Retrieve". */
CF_EXPORT const CFStringRef kCFSocketRetrieveCommand CRL_LINK(kCFSocketRetrieveCommand);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFSOCKET__ */
