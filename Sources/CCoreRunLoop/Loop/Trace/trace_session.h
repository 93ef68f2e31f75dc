/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session is one trace: its file, and what threads need to make their rings in it (trace.c).
 *
 * A session is published by one atomic pointer, and lives until the process ends. A thread that makes its ring counts itself in `making`.
 * Whoever ends the session waits for that count before the file's number is closed, so that the number is no other file's then.
 */
#ifndef CRL_LOOP_TRACE_SESSION_H
#define CRL_LOOP_TRACE_SESSION_H

#include "Loop/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "Kernel/Trace/kernel_trace.h"
#include "Loop/Trace/trace_file.h"

struct trace_session {
    struct trace_session *previous; /* constant; for tools that look for leaks */
    int file; /* closed when the session has ended and `making` is 0 */
    struct kernel_file_identity identity; /* constant */
    struct trace_file_header *header; /* constant; NULL: the session stands for a parent's */
    struct trace_objects *objects; /* constant: both tables */
    size_t ring_size; /* constant */
    _Atomic uint32_t making; /* threads that make their ring now */
    char path[trace_path_size]; /* constant: what the first process was given, absolute if it could be made so */
};

/*
 * The trace that is on, or NULL. Sessions are never freed, so whoever has read a pointer may use it. Written by trace_start and trace_stop,
 * and in the child of a fork.
 */
extern _Atomic(struct trace_session *) trace_session_on __attribute__((visibility("hidden"))); /* or each look would be two loads */

/* True for what stands for the trace of a parent, in a child that has not run a loop yet. */
bool trace_session_is_parents(const struct trace_session *session);
/* In the first run of such a child: begins a session of its own. Returns NULL if there is none. */
struct trace_session *trace_session_begin_in_child(void);
/* In the child of a fork: the parent's session is not written to any more. */
void trace_session_forget_parent(void);

/*
 * Begins a trace. `size` is for each thread's events, in bytes; 0 for the default. Returns 0 or an errno: EEXIST if the file exists, EBUSY
 * if a trace is on already.
 */
int trace_start(const char *path, size_t size);
void trace_stop(void);

/* Begins the trace that the environment asks for, if it does. A file that cannot be made is one line on standard error. */
void trace_start_from_environment(void);

#endif
