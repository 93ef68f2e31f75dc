/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Sending to the ports of CFMachPort: what mach_msg does on Apple's systems, for messages between the threads of one process.
 *
 * `CoreFoundation.h` does not include this header. There are no rights, no out-of-line memory, no trailers, no notifications and no
 * receiving by hand: a message is its bytes, and a run loop receives it.
 */

#if !defined(CRL_MACH_PORT_H)
#define CRL_MACH_PORT_H 1

#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFDate.h"
#include "CoreFoundation/CFMachPort.h"

CF_EXTERN_C_BEGIN

/**
 * What every message begins with, laid out as on Apple's systems.
 *
 * The two ports change places on the way, as they do there: who sends sets `msgh_remote_port` to the receiver and `msgh_local_port` to
 * where an answer should go; who receives finds there the port to answer to, and the port that the message came to.
 */
typedef struct {
    UInt32 msgh_bits; /**< Passed on unchanged. */
    UInt32 msgh_size; /**< Bytes of the whole message, this header included. */
    mach_port_t msgh_remote_port; /**< To whom. */
    mach_port_t msgh_local_port; /**< From whom: any number, or MACH_PORT_NULL. */
    UInt32 msgh_voucher_port; /**< Passed on unchanged. */
    SInt32 msgh_id; /**< What the message is; the program's own. */
} mach_msg_header_t;

/** How sending went. */
typedef CF_ENUM(CFIndex, CRLMachPortResult) {
    kCRLMachPortSuccess = 0, /**< The message is in the port's queue. */
    kCRLMachPortSendTimeout = -1, /**< The queue stayed full; nothing was sent. */
    kCRLMachPortIsInvalid = -3, /**< No valid port of this process has the number, or the port became invalid meanwhile. */
    kCRLMachPortTooSmall = -4, /**< The size is less than the header's, or more than 256 MiB. */
    kCRLMachPortNoMemory = -5 /**< There is no memory for another message. */
};

/**
 * Copies a message into the queue of the port `message->msgh_remote_port`, and wakes the loop that watches it.
 *
 * A port's queue holds five messages, as Mach's. When it is full, the call waits up to `timeout` seconds for room; 0 or less does not wait,
 * and neither does a number that is none.
 * Threads: any; it may wait, without running the loop, so that a thread must not wait for a queue that it empties itself. Unlike Mach's own
 * call not in a signal handler: it allocates, and takes locks. CFRunLoopSourceSignal and CFRunLoopWakeUp may be called there.
 * Errors: as CRLMachPortResult says; stops the process with one sentence when `message` is NULL.
 */
CF_EXPORT CRLMachPortResult CRLMachPortSend(const mach_msg_header_t *message, CFTimeInterval timeout) CRL_LINK(CRLMachPortSend);

CF_EXTERN_C_END

#endif /* ! CRL_MACH_PORT_H */
