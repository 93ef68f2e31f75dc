/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One CFMessagePortSendRequest, which call.c sends on its way: by the owner's socket (line_call.c), or within the process (letter_call.c).
 * On the calling thread, without locks; whoever calls has a reference to the port.
 */
#ifndef CRL_PORT_CALL_H
#define CRL_PORT_CALL_H

#include "Support/link_names.h"

#include "Port/message_port.h"

/* The longest wait between two looks where nothing wakes one. */
static const int64_t call_slice_ns = 10000000;

/* Until when to wait, by time limits as the program gives them. `now_ns` is the time, or 0 until somebody has asked for it. */
int64_t call_send_deadline(CFTimeInterval seconds, int64_t *now_ns);
int64_t call_reply_deadline(CFTimeInterval seconds, int64_t *now_ns);
/* A call that is_here has counted has ended, or is given up. */
void call_end_by_socket(CFMessagePortRef port);

/* The ways. A kCFMessagePort code; of the port's end as message_send. */
SInt32 line_call_send(CFMessagePortRef port, SInt32 message_id, const void *bytes, uint64_t length, CFTimeInterval timeout);
SInt32 line_call_request(CFMessagePortRef port, SInt32 message_id, const void *bytes, uint64_t length, CFTimeInterval send_timeout,
                         CFTimeInterval receive_timeout, CFStringRef mode, CFDataRef *ret_reply);
SInt32 letter_call_send(CFMessagePortRef port, SInt32 message_id, CFDataRef data, CFTimeInterval timeout);
SInt32 letter_call_request(CFMessagePortRef port, SInt32 message_id, CFDataRef data, CFTimeInterval send_timeout,
                           CFTimeInterval receive_timeout, CFStringRef mode, CFDataRef *ret_reply);

#endif
