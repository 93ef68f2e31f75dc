/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives one packet: a frame, its data, the descriptors and the sender's credentials that come with it. There is no state. Only
 * packet_send_in_turn waits.
 */
#ifndef CRL_PORT_WIRE_PACKET_H
#define CRL_PORT_WIRE_PACKET_H

#include "Port/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "Port/Wire/peer.h"
#include "Port/Wire/wire.h"

/* A buffer for one frame, lent to one thread at a time; a second thread gets one of its own for the occasion. */
struct scratch {
    _Atomic(uint8_t *) buffer;
};

uint8_t *scratch_take(struct scratch *scratch); /* wire_frame_max bytes; NULL if there is no memory */
void scratch_give(struct scratch *scratch, uint8_t *buffer);
void scratch_free(struct scratch *scratch);

enum { packet_small = 4096 }; /* bytes of data; a socket always has room for many such packets */

/*
 * The first returns the most room of a socket that the kernel may count for a packet of `size` bytes. The second returns the largest packet
 * for which it counts at most `charge`, or 0 if there is none. Both depend on the page size, and leave room for differences in how the
 * kernel was configured.
 */
uint64_t packet_charge_max(uint64_t size, uint64_t page_size);
uint64_t packet_size_within(uint64_t charge, uint64_t page_size);

struct packet {
    size_t size;
    int descriptors[wire_descriptors_max]; /* belong to the receiver, which closes them */
    int descriptor_count;
    bool has_sender;
    struct peer sender;
    uid_t uid;
    bool is_cut; /* bytes or descriptors were lost */
    bool lacks_descriptors; /* descriptors were lost, and only because this process had none left */
};

/* Sends a packet. `data` has frame->length bytes, or is NULL if they travel elsewhere. Returns 0 or a negative errno. */
int packet_send(int socket, const struct wire_frame *frame, const void *data, const int *descriptors, int count);
/* As packet_send, but waits for room for about `limit_ns`, in the order in which senders came. -EAGAIN and -EINTR: it was not sent. */
int packet_send_in_turn(int socket, const struct wire_frame *frame, const void *data, const int *descriptors, int count, int64_t limit_ns,
                        int64_t *socket_limit_ns);

/* Receives a packet. Returns 0, or a negative errno: -EAGAIN if there is none. The end of a channel is a packet of size 0. */
int packet_receive(int socket, uint8_t *buffer, struct packet *ret_packet);

/* Takes a packet and drops it, with what it brings. Returns 1, 0 at the end of a channel, or a negative errno. */
int packet_skip(int socket);

/*
 * Closes a socket to which a peer can send packets. The file behind it receives none any more. What came with those in its queue is closed
 * afterwards.
 */
void packet_socket_close(int socket);
/*
 * Makes `number`, which stands for such a socket, stand for the file behind `fresh`. Closes `fresh` and the file of before. Returns 0 or a
 * negative errno.
 */
int packet_socket_replace(int fresh, int number);

void packet_close(struct packet *packet);

/* Takes a descriptor out of the packet; the caller owns it then. */
int packet_take(struct packet *packet, int index);

#endif
