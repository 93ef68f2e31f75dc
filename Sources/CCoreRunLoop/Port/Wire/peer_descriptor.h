/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes what a peer has sent so that the close holds up nobody.
 *
 * The last close of a file may wait: until a TCP socket with SO_LINGER has sent its data, or until a file server (FUSE, NFS) or a device
 * answers. O_NONBLOCK does not change that. A peer can pass such a file and close its own copy first. It can also leave the file in the
 * queue of a socket that we close, or in a packet that we read without room for it. So nobody in Port closes such a descriptor by itself,
 * packet_receive has room for all descriptors of a packet, and packet_socket_close empties the queue first.
 *
 * A thread closes what may wait. It exists only while there is something to close. Any thread calls these functions, with or without a
 * port's lock. A process without a descriptor left is the one exception: there the kernel drops, and closes, what comes with a packet.
 */
#ifndef CRL_PORT_WIRE_PEER_DESCRIPTOR_H
#define CRL_PORT_WIRE_PEER_DESCRIPTOR_H

#include "Port/link_names.h"

#include <stdbool.h>

void peer_descriptor_close(int descriptor); /* one that came with a packet */

/* For fork handlers, around all other locks of Port. The child's own thread closes what was left, with the next descriptor. */
void peer_descriptors_before_fork(void);
void peer_descriptors_after_fork(bool is_child);

#endif
