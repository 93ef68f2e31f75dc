/* SPDX-License-Identifier: Apache-2.0 */
/* Connections over loopback TCP, the clients of an echo server, and a server of bare epoll that others are compared with. */
#ifndef ECHO_SOCKETS_H
#define ECHO_SOCKETS_H

#include <stdbool.h>

/* The process may have this many descriptors, and its threads run on one processor from now on. */
bool echo_prepare(int descriptors);
/* Makes connected pairs of sockets. Those of servers do not block. */
bool echo_connect(int *ret_clients, int *ret_servers, int count);
/*
 * Has every client send `size` bytes, await them, and so on, `echoes` times, all at once. Returns the processor time of the calling thread
 * in nanoseconds; 0 if a connection has failed.
 */
unsigned long echo_run_clients(const int *clients, int count, int size, int echoes);
/* Serves until the clients have closed their sockets. */
void echo_serve(const int *servers, int count);
void echo_close(const int *sockets, int count);
/* Echoes once what is there. Returns false at the end. */
bool echo_once(int server);

#endif
