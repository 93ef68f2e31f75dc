/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Sockets whose events are callbacks of a run loop: bytes to read, connections to accept, connections made, room to write.
 *
 * The loop waits for the socket together with everything else. There is no helper thread, no `select`, and no limit on descriptor numbers.
 * An object argument that is NULL, or of another type, stops the process with a message that names the function.
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

/** A socket with the callback for its events. */
typedef struct __CFSocket *CFSocketRef;

/** A socket's descriptor. */
typedef int CFSocketNativeHandle;

/** The address of a peer and the protocol to reach it: the arguments of socket(2) and an address. */
typedef struct {
    SInt32 protocolFamily; /**< PF_INET, PF_INET6, PF_UNIX and so on. */
    SInt32 socketType; /**< SOCK_STREAM, SOCK_DGRAM and so on. */
    SInt32 protocol; /**< IPPROTO_TCP, IPPROTO_UDP and so on; 0 for the default of the family. */
    CFDataRef address; /**< A `struct sockaddr` of the family. */
} CFSocketSignature;

/** The result of an operation on a socket. */
typedef CF_ENUM(CFIndex, CFSocketError) {
    kCFSocketSuccess = 0, /**< The operation succeeded. */
    kCFSocketError = -1L, /**< The operation failed. */
    kCFSocketTimeout = -2L /**< The time was up. */
};

/** The events of a socket. Read, Accept and Data exclude each other: they are one number in two bits, not flags. */
typedef CF_OPTIONS(CFOptionFlags, CFSocketCallBackType) {
    kCFSocketNoCallBack = 0, /**< Nothing. */
    kCFSocketReadCallBack = 1, /**< Bytes, the end, or a connection are ready; the callback itself reads or accepts. */
    kCFSocketAcceptCallBack = 2, /**< A connection was accepted: `data` points to its CFSocketNativeHandle, which the callback owns. */
    kCFSocketDataCallBack = 3, /**< Bytes were read: `data` is a CFDataRef, of length 0 at the end; `address` is the sender's. */
    kCFSocketConnectCallBack = 4, /**< The connection is made, or has failed if `data` is not NULL: it points to an SInt32, the errno. */
    kCFSocketWriteCallBack = 8 /**< There is room to write. */
};

/** The flags of a socket: which callbacks are enabled again automatically, and how errors and invalidation are handled. */
CF_ENUM(CFOptionFlags) {
    kCFSocketAutomaticallyReenableReadCallBack = 1, /**< Read is called as long as there is something to read. */
    kCFSocketAutomaticallyReenableAcceptCallBack = 2, /**< Accept is called for every connection. */
    kCFSocketAutomaticallyReenableDataCallBack = 3, /**< Data is called for all bytes that come; either of the two bits is enough. */
    kCFSocketAutomaticallyReenableWriteCallBack = 8, /**< Write is called as long as there is room. */
    kCFSocketLeaveErrors = 64, /**< The pending error stays in the socket for SO_ERROR, and Connect reports success. */
    kCFSocketCloseOnInvalidate = 128 /**< CFSocketInvalidate closes the descriptor. */
};

/** The callback. `type` is one event; the meaning of `address` and `data` depends on it. Both are valid during the call only. */
typedef void (*CFSocketCallBack)(CFSocketRef s, CFSocketCallBackType type, CFDataRef address, const void *data, void *info);

/** The data of a socket's callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to the callback. */
    const void *(*retain)(const void *info); /**< Called at creation, where its result becomes the `info`, and before each delivery. */
    void (*release)(const void *info); /**< Called after each delivery if there is a `retain`, and once at its invalidation or end. */
    CFStringRef (*copyDescription)(const void *info); /**< Returns a string for CFCopyDescription, which releases it. */
} CFSocketContext;

/**
 * Returns the type id of sockets.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFSocketGetTypeID(void) CRL_LINK(CFSocketGetTypeID);

/**
 * Creates a socket, and an object for it.
 *
 * A `protocolFamily` of 0 or less is PF_INET. With PF_INET a `socketType` of 0 or less is SOCK_STREAM, and a `protocol` of 0 or less is TCP
 * or UDP, depending on the type. With PF_LOCAL, too, a `socketType` of 0 or less is SOCK_STREAM. `callBackTypes` has at most one of Read,
 * Accept and Data, or'ed with Connect and Write. The callbacks come once the socket's run loop source is in a loop. The initial flags are
 * CloseOnInvalidate and automatic re-enabling of the chosen kind of reading. `callout` may be NULL for a socket without events. `context`
 * may be NULL and is copied.
 * Ownership: the caller releases the object; `info` is retained as the context says.
 * Threads: any.
 * Errors: NULL when the system refuses the socket, with the reason in errno, or when there is no memory. `info` is not retained then.
 * Differs from Apple: the descriptor is close-on-exec.
 */
CF_EXPORT CFSocketRef CFSocketCreate(CFAllocatorRef allocator, SInt32 protocolFamily, SInt32 socketType, SInt32 protocol,
                                     CFOptionFlags callBackTypes, CFSocketCallBack callout, const CFSocketContext *context)
    CRL_LINK(CFSocketCreate) CF_RETURNS_RETAINED;

/**
 * Creates an object for the open descriptor `sock`, or returns the existing object for it, and then ignores the other arguments.
 *
 * The other arguments are those of CFSocketCreate. The initial flags are the same too: unless they are changed, CFSocketInvalidate closes
 * `sock`.
 * Ownership: the caller releases the object. `info` is retained as the context says, unless the object existed already.
 * Threads: any.
 * Errors: NULL when `sock` is not open, or there is no memory. `info` is not retained then.
 * Differs from Apple: NULL for a descriptor that is not open.
 */
CF_EXPORT CFSocketRef CFSocketCreateWithNative(CFAllocatorRef allocator, CFSocketNativeHandle sock, CFOptionFlags callBackTypes,
                                               CFSocketCallBack callout, const CFSocketContext *context)
    CRL_LINK(CFSocketCreateWithNative) CF_RETURNS_RETAINED;

/**
 * Creates a socket like CFSocketCreate and gives it the signature's address like CFSocketSetAddress.
 *
 * Ownership: the caller releases the object; `info` is retained as the context says.
 * Threads: any.
 * Errors: NULL when there is no socket or the address cannot be set, with the reason in errno. `info` is released again.
 */
CF_EXPORT CFSocketRef CFSocketCreateWithSocketSignature(CFAllocatorRef allocator, const CFSocketSignature *signature,
                                                        CFOptionFlags callBackTypes, CFSocketCallBack callout,
                                                        const CFSocketContext *context)
    CRL_LINK(CFSocketCreateWithSocketSignature) CF_RETURNS_RETAINED;

/**
 * Creates a socket like CFSocketCreate and connects it to the signature's address like CFSocketConnectToAddress.
 *
 * `timeout` is in seconds.
 * Ownership: the caller releases the object; `info` is retained as the context says.
 * Threads: any; it may wait.
 * Errors: NULL when there is no socket, or when the connection fails or is not made in time, with the reason in errno. `info` is released
 * again.
 */
CF_EXPORT CFSocketRef CFSocketCreateConnectedToSocketSignature(CFAllocatorRef allocator, const CFSocketSignature *signature,
                                                               CFOptionFlags callBackTypes, CFSocketCallBack callout,
                                                               const CFSocketContext *context, CFTimeInterval timeout)
    CRL_LINK(CFSocketCreateConnectedToSocketSignature) CF_RETURNS_RETAINED;

/**
 * Binds the socket to the local `address`, a `struct sockaddr`, and makes it listen for connections, of which up to 256 may wait.
 *
 * For an IPv4 or IPv6 port of 0 the system picks one; CFSocketCopyAddress returns it. Sockets that cannot listen only get the address. On
 * all interfaces (`in6addr_any`) an IPv6 socket also gets the port for IPv4, unless another socket has it; then it gets the port for IPv6
 * alone.
 * Threads: any.
 * Errors: kCFSocketError when the address cannot be set, or `s` is invalid; errno has the reason.
 */
CF_EXPORT CFSocketError CFSocketSetAddress(CFSocketRef s, CFDataRef address) CRL_LINK(CFSocketSetAddress);

/**
 * Connects the socket to `address`, a `struct sockaddr`.
 *
 * A `timeout` above 0 is the longest time to wait, in seconds. 0 waits as long as the protocol does. Below 0 the call does not wait: the
 * connection is made in the background, and the Connect callback reports the outcome. The call does not change whether the socket is
 * blocking.
 * Threads: any; it may wait.
 * Errors: kCFSocketTimeout when the time is up; the attempt may go on. kCFSocketError when the connection is refused, or `s` is invalid. A
 * socket that is connected already stays so: with a limit above 0 that is success, otherwise kCFSocketError.
 * errno has the reason. A `timeout` that is not a number counts as 0.
 */
CF_EXPORT CFSocketError CFSocketConnectToAddress(CFSocketRef s, CFDataRef address, CFTimeInterval timeout)
    CRL_LINK(CFSocketConnectToAddress);

/**
 * Makes the socket invalid permanently: no more callbacks, its run loop source is invalidated, the descriptor is closed if the flags say
 * so, `info` is released, and the loops that watched it are woken. A second call does nothing.
 *
 * Ownership: the caller's reference is not given back.
 * Threads: any, also in the callback. While a callback runs on another thread, `info` is released after it.
 */
CF_EXPORT void CFSocketInvalidate(CFSocketRef s) CRL_LINK(CFSocketInvalidate);

/**
 * Returns whether the socket has not been invalidated.
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
 * Copies the address of the socket's peer, a `struct sockaddr`.
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
 * Errors: stops the process with a message when `context` is NULL.
 */
CF_EXPORT void CFSocketGetContext(CFSocketRef s, CFSocketContext *context) CRL_LINK(CFSocketGetContext);

/**
 * Returns the socket's descriptor; -1 when the socket is invalid.
 *
 * Ownership: a socket with CloseOnInvalidate owns the descriptor. The program must not close it while the socket is valid.
 * Threads: any.
 */
CF_EXPORT CFSocketNativeHandle CFSocketGetNative(CFSocketRef s) CRL_LINK(CFSocketGetNative);

/**
 * Creates the socket's run loop source; later calls return the same source.
 *
 * Add it to the modes in which the callbacks may come; the loop does not watch the socket before that. Only the `order` of the first call
 * counts. There are no callbacks while the socket is neither connected nor listening. The program may itself connect the descriptor, make
 * it listen, or dissolve its connection with AF_UNSPEC and connect it again. If a thread other than the loop's does that with a Unix socket
 * while the loop sleeps, Connect and Write come when the loop next wakes, or after CFSocketEnableCallBacks.
 * Ownership: the caller releases the source, which keeps the socket alive.
 * Threads: any.
 * Errors: NULL when the socket is invalid, or there is no memory.
 * Differs from Apple: the loop performs sockets after its wait, not before it. The rest is as on Apple's systems. A pass performs all
 * sockets that were ready at one look, at most 64, or one if the run is to return after a source. Due timers or one version-1 source follow
 * in the same pass. Version-0 sources come before sockets whatever their order, also in a run that is to return. Signalling a socket's
 * source does nothing.
 */
CF_EXPORT CFRunLoopSourceRef CFSocketCreateRunLoopSource(CFAllocatorRef allocator, CFSocketRef s, CFIndex order)
    CRL_LINK(CFSocketCreateRunLoopSource) CF_RETURNS_RETAINED;

/**
 * Returns the socket's flags.
 *
 * Threads: any.
 */
CF_EXPORT CFOptionFlags CFSocketGetSocketFlags(CFSocketRef s) CRL_LINK(CFSocketGetSocketFlags);

/**
 * Replaces all flags of the socket; the call itself enables no callback.
 *
 * Threads: any.
 */
CF_EXPORT void CFSocketSetSocketFlags(CFSocketRef s, CFOptionFlags flags) CRL_LINK(CFSocketSetSocketFlags);

/**
 * Disables the callbacks `callBackTypes` until CFSocketEnableCallBacks, even those that are enabled again automatically.
 *
 * Events that happen meanwhile are reported after that; connections and bytes wait in the system. While the socket's source is in no mode
 * of any loop, the call does nothing. When the source is next added to a mode, every callback that was disabled, or was delivered once, is
 * enabled.
 * Threads: any; on the loop's own thread none of these callbacks comes after the return.
 * Errors: types with which the socket was not created are ignored, and so is an invalid socket.
 */
CF_EXPORT void CFSocketDisableCallBacks(CFSocketRef s, CFOptionFlags callBackTypes) CRL_LINK(CFSocketDisableCallBacks);

/**
 * Enables the callbacks `callBackTypes` again: those that CFSocketDisableCallBacks disabled, and those that come only once.
 *
 * Write comes once, unless the flags say otherwise. So does a kind of reading whose flag was removed. Read comes once at the end of the
 * peer's data, whatever the flags. Connect comes once in the socket's life and is not enabled again.
 *
 * An event that already holds is reported in the next pass. There is one exception in a run with a limit of 0: an event that was reported
 * before and is enabled again, for instance by an observer, waits for the next run. Otherwise the loop would have a source to handle each
 * time that it is run. Enabling a callback inside itself costs no system call. Data may also be named Read or Accept, here and in
 * CFSocketDisableCallBacks, because these are the bits of its number.
 * Threads: any, also in the callback. A sleeping loop takes notice without CFRunLoopWakeUp.
 * Errors: types with which the socket was not created are ignored, and so is an invalid socket.
 */
CF_EXPORT void CFSocketEnableCallBacks(CFSocketRef s, CFOptionFlags callBackTypes) CRL_LINK(CFSocketEnableCallBacks);

/**
 * Sends `data` once: all of it, or as much as the system takes.
 *
 * A NULL or empty `address` sends to the peer to which the socket is connected. A `timeout` above 0 is the longest time in seconds to wait
 * for room in a blocking socket; otherwise there is no limit. A non-blocking socket never waits. SIGPIPE is not raised.
 * Threads: any, several at once; it may wait, and holds no lock meanwhile.
 * Errors: kCFSocketTimeout when there was no room in time. kCFSocketError when nothing was sent for another reason, when `data` is NULL or
 * empty (an empty datagram is sent all the same), or when `s` is invalid. errno has the reason for both. kCFSocketSuccess means that
 * something was sent, not that all was: use send(2) where the rest matters.
 * Differs from Apple: a wait that ends without room returns kCFSocketTimeout.
 */
CF_EXPORT CFSocketError CFSocketSendData(CFSocketRef s, CFDataRef address, CFDataRef data, CFTimeInterval timeout)
    CRL_LINK(CFSocketSendData);

/* The name registry of 1999, whose servers nobody runs any more */

/**
 * Does nothing, because the name servers that it would ask no longer exist.
 *
 * Threads: any.
 * Errors: always kCFSocketError.
 */
CF_EXPORT CFSocketError CFSocketRegisterValue(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout, CFStringRef name,
                                              CFPropertyListRef value)
    CRL_LINK(CFSocketRegisterValue);

/**
 * Does nothing, because the name servers that it would ask no longer exist. `*value` and `*nameServerAddress` are left unchanged.
 *
 * Threads: any.
 * Errors: always kCFSocketError.
 */
CF_EXPORT CFSocketError CFSocketCopyRegisteredValue(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout, CFStringRef name,
                                                    CFPropertyListRef *value, CFDataRef *nameServerAddress)
    CRL_LINK(CFSocketCopyRegisteredValue);

/**
 * Does nothing, because the name servers that it would ask no longer exist.
 *
 * Threads: any.
 * Errors: always kCFSocketError.
 */
CF_EXPORT CFSocketError CFSocketRegisterSocketSignature(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout,
                                                        CFStringRef name, const CFSocketSignature *signature)
    CRL_LINK(CFSocketRegisterSocketSignature);

/**
 * Does nothing, because the name servers that it would ask no longer exist. `*signature` and `*nameServerAddress` are left unchanged.
 *
 * Threads: any.
 * Errors: always kCFSocketError.
 */
CF_EXPORT CFSocketError CFSocketCopyRegisteredSocketSignature(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout,
                                                              CFStringRef name, CFSocketSignature *signature,
                                                              CFDataRef *nameServerAddress)
    CRL_LINK(CFSocketCopyRegisteredSocketSignature);

/**
 * Does nothing, because the name servers that it would ask no longer exist.
 *
 * Threads: any.
 * Errors: always kCFSocketError.
 */
CF_EXPORT CFSocketError CFSocketUnregister(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout, CFStringRef name)
    CRL_LINK(CFSocketUnregister);

/**
 * Sets the port number that CFSocketGetDefaultNameRegistryPortNumber returns.
 *
 * Threads: any.
 */
CF_EXPORT void CFSocketSetDefaultNameRegistryPortNumber(UInt16 port) CRL_LINK(CFSocketSetDefaultNameRegistryPortNumber);

/**
 * Returns the port number of name registry servers: 2454 unless it was set.
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
