/* SPDX-License-Identifier: Apache-2.0 */
/* Write queues for tests: one before a connected socket or a pipe, whose other end reads when it is told to. */
#ifndef CRL_TESTS_WRITE_PROBE_H
#define CRL_TESTS_WRITE_PROBE_H

#include "CRLWriteQueue.h"
#include "CoreFoundation/CoreFoundation.h"
#include "harness.h"

struct write_probe {
    CFSocketRef socket;
    CFWriteStreamRef stream;
    CRLWriteQueueRef queue;
    int peer; /* the reader's descriptor */
    size_t asked; /* bytes taken by the queue */
    size_t seen; /* bytes that the peer has read */
    bool is_wrong; /* one of them was another one */
    struct trace told;
    _Atomic int releases; /* of the queue's context */
    void (*action)(struct write_probe *probe); /* in the callback; NULL: none */
};

/* A socket pair, or a pipe's stream, with a queue that is scheduled in the default mode. The socket wants `types` for itself. */
void write_probe_begin(struct write_probe *probe, CFIndex limit, CFIndex mark, CFOptionFlags types);
void write_probe_begin_stream(struct write_probe *probe, CFIndex limit, CFIndex mark);
/* Writes the next bytes of a known sequence. */
CRLWriteResult write_probe_ask(struct write_probe *probe, size_t size);
/* Writes pieces until some wait. */
void write_probe_fill(struct write_probe *probe);
/* Reads what is there, at most `most` bytes, and compares it with the sequence. True at the end of the connection. */
bool write_probe_read(struct write_probe *probe, size_t most);
/* Runs the loop and reads, until all that was taken was read. */
void write_probe_read_all(struct write_probe *probe);
CRLWriteQueueCounts write_probe_counts(const struct write_probe *probe);
void write_probe_run(void); /* what is ready */
void write_probe_end(struct write_probe *probe);

#endif
