/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: what the loops of a process do, written into a file as it happens (trace_file.h).
 *
 * Any thread may write an event, also in a signal handler and with a lock held. Nothing is allocated and no lock is taken for that. Each
 * thread has a ring of its own in the file; its first event makes that, by a few system calls. When the ring is full, the latest event
 * takes the place of the oldest.
 *
 * Rooms above may hear the events, too. While nobody does, and no trace is on, an event costs one relaxed load and a branch that is not
 * taken.
 */
#ifndef CRL_LOOP_TRACE_TRACE_H
#define CRL_LOOP_TRACE_TRACE_H

#include "Loop/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "Loop/Trace/trace_file.h"
#include "Support/locked_read.h"

/* Who hears the events. */
enum trace_hearer {
    trace_file_hears = 1,
    trace_stalls_hear = 2, /* Run/stall.c, once a loop is watched for stalls */
    trace_statistics_hear = 4, /* statistics.c, if the environment asks for it */
};

/*
 * Who hears events: `any` is 0 while nobody does. The kernel counts in `probes` those who trace the process by its probes
 * (trace_probes.c), and the process sets bits in `own`. Relaxed: whoever hears an event looks again whether it is wanted.
 */
union trace_hearers {
    struct {
        _Atomic uint16_t probes; /* written by the kernel */
        _Atomic uint16_t own; /* of enum trace_hearer */
    };
    _Atomic uint32_t any;
};

extern union trace_hearers trace_hearers __attribute__((visibility("hidden"))); /* or each look would be two loads */

/* Hears each event, on its thread: perhaps with a lock held, perhaps in a signal handler. Keeps errno. */
typedef void trace_hearing(enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value);

/* Installs a hearer other than the file, for good. */
void trace_let_hear(enum trace_hearer hearer, trace_hearing *hearing);

/* Passes the probe of the event. In a build without probes it does nothing. */
void trace_probe(enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value);

/* Gives an event to those who hear it. Keeps errno. */
void trace_write(enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value);

static inline bool trace_is_on(void)
{
    return __builtin_expect(atomic_load_explicit(&trace_hearers.any, memory_order_relaxed) != 0, 0);
}

static inline void trace_event(enum trace_kind kind, uint32_t detail, const volatile void *object, uint64_t value)
{
    if (trace_is_on()) {
        trace_write(kind, detail, (uintptr_t)object, value);
    }
}

static inline void trace_callout_begin(enum trace_callout kind, const volatile void *item, void (*function)(void))
{
    trace_event(trace_callout_begins, kind, item, (uintptr_t)function);
}

static inline void trace_callout_end(enum trace_callout kind, const volatile void *item)
{
    trace_event(trace_callout_ends, kind, item, 0);
}

/* In the callout of an item that has a descriptor, which its lock guards. */
static inline void trace_note_descriptor(uint32_t readiness, const volatile void *item, struct lock *lock, const int *descriptor)
{
    if (trace_is_on()) {
        trace_write(trace_descriptor_is_ready, readiness, (uintptr_t)item, (uint64_t)locked_read_int(lock, descriptor));
    }
}

/* For the thread of a loop, when a run begins: notes in its ring which loop and which waker are its own. Only while a trace is on. */
void trace_note_loop(const void *loop, const void *waker);

/* Writes the name of `object`, unless it was the last one that this thread wrote. At most trace_name_most bytes of it. */
void trace_write_name(const void *object, const char *name);

/* The calling thread's loop has ended. Its events from now on are counted as lost, and its ring is unmapped. */
void trace_thread_ends(void);

/* In the child of a fork, which must not write into its parent's file: its first run begins a file of its own. */
void trace_forget_parent(void);

#endif
