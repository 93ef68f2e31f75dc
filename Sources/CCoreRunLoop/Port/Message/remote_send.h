/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends frames to the owner's socket, when the pacing lets them go (Channel/send_pacing.h), and says which messages go by the local queue
 * instead. Any thread may call; without REQUIRES, it holds no lock.
 */
#ifndef CRL_PORT_MESSAGE_REMOTE_SEND_H
#define CRL_PORT_MESSAGE_REMOTE_SEND_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"

enum { remote_send_room_beside = 4096 }; /* bytes of the socket's room that are left for handing over channels and pages */

/* The content that goes with a frame. */
struct load {
    const void *bytes; /* NULL: the frame has no data, or it travels elsewhere */
    int descriptors[wire_descriptors_max];
    int count; /* of the descriptors */
};

enum send_way {
    send_by_local_queue, /* of an owner in this process */
    send_by_socket
};

/*
 * Chooses the way of one message. remote_port_end_by_socket has to follow a send by the socket, because the local queue stays unused until
 * all messages that went by the socket are through.
 */
enum send_way remote_port_begin_send(CFMessagePortRef port);
/* Called when a message that went by the socket has been sent or given up, and no longer waits for a reply. */
void remote_port_end_by_socket(CFMessagePortRef port);
/*
 * Returns how much data may travel in a packet: so much that the socket has room for as many such packets as the queue holds. For a
 * `length` that always fits, the result may be smaller.
 */
uint64_t remote_port_packet_data_max(CFMessagePortRef port, uint64_t length);
/* Returns false if the queue is full. Whether the port is valid makes no difference. Never waits. */
bool remote_port_has_room(CFMessagePortRef port);
/*
 * Hands a watch channel to the owner, whose end closes it; `ret_end` gets our end. Returns 0 or a negative errno: -EAGAIN if the queue is
 * full. Never waits.
 */
REQUIRES(the_port_lock) int remote_port_offer_watch(CFMessagePortRef port, int *ret_end);
/* Hands a page for a reply channel to the owner. Returns 0 or a negative errno. Never waits. */
int remote_port_offer_page(CFMessagePortRef port, uint32_t channel, uint64_t token, const int descriptors[wire_descriptors_max]);
/*
 * Sends a frame, and until the deadline waits for room if there is none. Sets `frame->sequence` and the fields of the control channel. The
 * result is a kCFMessagePort code. kCFMessagePortIsInvalid means that the receiver was gone before, so the program may connect anew and
 * send again (rules 207, 211). kCFMessagePortBecameInvalidError means that it went while the call waited for room (rule 243). After either
 * the caller has to invalidate the port.
 */
SInt32 remote_port_send(CFMessagePortRef port, struct wire_frame *frame, const struct load *load, int64_t deadline_ns);

#endif
