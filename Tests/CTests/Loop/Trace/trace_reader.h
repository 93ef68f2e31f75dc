/* SPDX-License-Identifier: Apache-2.0 */
/* Reads trace files for tests: a directory of the test's own, and the events of a file as words. */
#ifndef CRL_TESTS_LOOP_TRACE_TRACE_READER_H
#define CRL_TESTS_LOOP_TRACE_TRACE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "Loop/Trace/trace_file.h"
#include "harness.h"

/* A path in a directory that is removed, with all in it, by trace_directory_end. */
const char *trace_directory_begin(void);
void trace_directory_end(void);
/* How many files are in the directory. */
int trace_directory_count(void);

struct trace_reading {
    char *bytes; /* of the file; trace_close frees them */
    uint64_t size;
    const struct trace_file_header *header;
};

/* False, after a failure of the test, if the file is no trace. */
bool trace_open(const char *path, struct trace_reading *ret_reading);
void trace_close(struct trace_reading *reading);

/* The ring of that number; NULL if it was not made. */
const struct trace_ring *trace_ring_at(const struct trace_reading *reading, uint32_t number);
uint64_t trace_ring_lost(const struct trace_reading *reading, const struct trace_ring *ring);
/* The event of that number, or NULL if it is not in the ring any more, or not whole. */
const struct trace_event *trace_event_at(const struct trace_reading *reading, const struct trace_ring *ring, uint64_t number);
/* The first event of the kind from `from` on, whose number goes into `from`; NULL: there is none. */
const struct trace_event *trace_find(const struct trace_reading *reading, const struct trace_ring *ring, enum trace_kind kind,
                                     uint64_t *from);
uint64_t trace_count(const struct trace_reading *reading, enum trace_kind kind); /* in all rings */
/*
 * All events of a ring as words: run } pass sleep wake:CAUSE source( ) timer( ) and so on; names are left out. A word other than `pass` and
 * brackets has @ and the milliseconds since the trace began.
 */
void trace_words(const struct trace_reading *reading, const struct trace_ring *ring, struct trace *ret_words);

#endif
