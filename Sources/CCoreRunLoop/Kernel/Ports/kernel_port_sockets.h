/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of message ports' table, as Linux fills them; what each does is said in kernel_ports.h. Only kernel_ports.c includes this. */
#ifndef CRL_KERNEL_KERNEL_PORT_SOCKETS_H
#define CRL_KERNEL_KERNEL_PORT_SOCKETS_H

#include "Kernel/link_names.h"

#include "Kernel/Ports/kernel_ports.h"

int kernel_port_datagram_create(bool takes_credentials);
int kernel_port_datagram_bind(int socket, const char *path);
int kernel_port_datagram_connect(int socket, const char *path);
int kernel_port_channel_create(int ret_ends[2]);
int kernel_port_send_room(int socket, int wanted);
ssize_t kernel_port_send(int socket, const void *bytes, size_t size);
ssize_t kernel_port_send_message(int socket, const struct msghdr *message);
ssize_t kernel_port_send_in_turn(int socket, const struct msghdr *message, int64_t limit_ns, int64_t *socket_limit_ns);
ssize_t kernel_port_receive_message(int socket, struct msghdr *message);
bool kernel_port_is_channel(int descriptor);
int kernel_port_identify_senders(int socket);
uint64_t kernel_port_process_number(int pidfd);
int kernel_port_hang_up(int socket);
int kernel_port_refuse_descriptors(int socket);
bool kernel_port_stop_receiving(int socket);
int kernel_port_stop_lingering(int descriptor);
int kernel_port_wait(int socket, uint32_t interest, int64_t deadline_ns);

#endif
