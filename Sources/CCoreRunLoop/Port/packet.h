/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One packet in or out: a frame, its data, the descriptors and the sender's credentials that come with it. No state; nothing blocks.
 */
#ifndef CRL_PORT_PACKET_H
#define CRL_PORT_PACKET_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "Port/wire.h"

/* A buffer for one frame, lent to one thread at a time; a second thread gets one of its own for the occasion. */
struct scratch {
    _Atomic(uint8_t *) buffer;
};

uint8_t *scratch_take(struct scratch *scratch); /* wire_frame_max bytes; NULL if there is no memory */
void scratch_give(struct scratch *scratch, uint8_t *buffer);
void scratch_free(struct scratch *scratch);

enum { packet_small = 4096 }; /* bytes of data, for many of which there is always room */

/*
 * What the kernel may count of a socket's room for a packet of so many bytes, and the largest packet for which it counts no more than so
 * much, 0 if there is none. Both depend on the machine's pages, and on how the kernel was built only within what is allowed for here.
 */
uint64_t packet_charge_max(uint64_t size, uint64_t page_size);
uint64_t packet_size_within(uint64_t charge, uint64_t page_size);

struct packet {
    size_t size;
    int descriptors[wire_descriptors_max]; /* the receiver's, who closes them */
    int descriptor_count;
    bool has_sender;
    pid_t pid;
    uid_t uid;
    bool is_cut; /* bytes or descriptors were lost */
    bool lacks_descriptors; /* and that only because this process had no room for them */
};

/* `data` has frame->length bytes, or is NULL when they are elsewhere. 0 or a negative errno. */
int packet_send(int socket, const struct wire_frame *frame, const void *data, const int *descriptors, int count);

/* 0, or a negative errno: -EAGAIN when there is none; an end of file is a packet of size 0. */
int packet_receive(int socket, uint8_t *buffer, struct packet *ret_packet);

void packet_close(struct packet *packet);

/* Takes a descriptor out of the packet; the caller owns it then. */
int packet_take(struct packet *packet, int index);

#endif
