/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the libraries beside ours do in this benchmark. Each is compiled if it is here. A function takes the descriptor of a connected
 * socket, which it closes, and returns when the other end is closed or all is sent.
 */
#ifndef CRL_BENCHMARKS_STREAMS_PEERS_H
#define CRL_BENCHMARKS_STREAMS_PEERS_H

#if defined(__cplusplus)
extern "C" {
#endif

enum { message_size = 64, messages = 20000, block_size = 65536, blocks = 4000 };

/* Reads on a loop, and writes what was read at once. */
void serve_by_libuv(int descriptor);
void serve_by_asio(int descriptor);
void serve_by_gio(int descriptor);

/* Sends `blocks` blocks of zeros on a loop, each when the one before was sent. */
void send_by_libuv(int descriptor);
void send_by_asio(int descriptor);
void send_by_gio(int descriptor);

/* Opens streams that wait for bytes, once each; all buffers are the caller's. The streams stay until the process ends. */
void wait_by_libuv(const int *descriptors, int count);
void wait_by_asio(const int *descriptors, int count);
void wait_by_gio(const int *descriptors, int count);

#if defined(__cplusplus)
}
#endif

#endif
