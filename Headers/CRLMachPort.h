/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Sends messages to the ports of CFMachPort, between the threads of one process. On Apple's systems mach_msg does this.
 *
 * `CoreFoundation.h` does not include this header. There are no rights, no out-of-line memory, no trailers, no notifications and no
 * explicit receiving: a message is its bytes, and a run loop receives it.
 */

#if !defined(CRL_MACH_PORT_H)
#define CRL_MACH_PORT_H 1

#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFDate.h"
#include "CoreFoundation/CFMachPort.h"

CF_EXTERN_C_BEGIN

/**
 * The head of every message, with the layout of Apple's systems.
 *
 * The two ports change places on the way, as on Apple's systems. The sender sets `msgh_remote_port` to the receiver and `msgh_local_port`
 * to the port for an answer. The receiver finds the port for the answer in `msgh_remote_port`, and the port that received the message in
 * `msgh_local_port`.
 */
typedef struct {
    UInt32 msgh_bits; /**< Passed on unchanged. */
    UInt32 msgh_size; /**< Bytes of the whole message, this header included. */
    mach_port_t msgh_remote_port; /**< The receiver. */
    mach_port_t msgh_local_port; /**< The port for an answer: any number, or MACH_PORT_NULL. */
    UInt32 msgh_voucher_port; /**< Passed on unchanged. */
    SInt32 msgh_id; /**< A number of the program's that tells messages apart. */
} mach_msg_header_t;

/** The result of sending a message. */
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
 * A port's queue holds five messages, as Mach's does. When it is full, the call waits up to `timeout` seconds for room. 0, a negative
 * number and not-a-number do not wait.
 * Threads: any, but not in a signal handler: the call allocates and takes locks. It may wait without running the loop, so a thread must not
 * wait for a queue that it empties itself.
 * Errors: the values of CRLMachPortResult. A NULL `message` stops the process with a message.
 * Differs from Apple: mach_msg may be called in a signal handler. Here CFRunLoopSourceSignal and CFRunLoopWakeUp may.
 */
CF_EXPORT CRLMachPortResult CRLMachPortSend(const mach_msg_header_t *message, CFTimeInterval timeout) CRL_LINK(CRLMachPortSend);

CF_EXTERN_C_END

#endif /* ! CRL_MACH_PORT_H */
