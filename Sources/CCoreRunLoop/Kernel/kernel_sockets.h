/* SPDX-License-Identifier: Apache-2.0 */
/* The table's entries on sockets, as Linux fills them; what each does is said in kernel.h. Nobody but kernel.c includes this. */
#ifndef CRL_KERNEL_KERNEL_SOCKETS_H
#define CRL_KERNEL_KERNEL_SOCKETS_H

#include "Kernel/link_names.h"

#include "Kernel/kernel.h"

int kernel_socket_create(int family, int type, int protocol);
int kernel_socket_type(int socket);
int kernel_socket_bind(int socket, const void *address, size_t length);
int kernel_socket_listen(int socket, int backlog);
int kernel_socket_connect(int socket, const void *address, size_t length, int64_t deadline_ns);
int kernel_socket_accept(int socket, struct kernel_address *ret_peer);
int kernel_socket_receive(int socket, void *bytes, size_t size, struct kernel_address *ret_peer);
int kernel_socket_peek(int socket);
int kernel_socket_send(int socket, const void *bytes, size_t size, const void *address, size_t length, int64_t deadline_ns);
int kernel_socket_take_error(int socket);
int kernel_socket_address(int socket, bool is_of_peer, struct kernel_address *ret_address);
bool kernel_socket_is_idle(int socket);
int kernel_make_non_blocking(int descriptor, bool is_non_blocking);

#endif
