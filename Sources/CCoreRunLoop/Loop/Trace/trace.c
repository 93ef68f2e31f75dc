/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of threads, and the writing of events; see trace.h.
 *
 * A ring belongs to its thread alone. A signal handler may write between any two instructions of the thread that it has interrupted.
 * Therefore the place of an event is taken by one atomic addition, and the thread's own ring is published to its handlers by the last store
 * to own.session.
 */
#include "Loop/Trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "Kernel/Trace/kernel_trace.h"
#include "Kernel/kernel.h"
#include "Loop/Trace/trace_session.h"
#include "Support/error_text.h"
#include "Support/fault.h"

/* Written before its bit in trace_hearers is set. */
static _Atomic(trace_hearing *) stalls_hearing;
static _Atomic(trace_hearing *) statistics_hearing;

enum { usage_step_ns = 100000 };

struct own_ring {
    struct trace_session *session; /* of the ring; NULL: there is none */
    struct trace_session *refused; /* the session in which no ring could be made */
    struct trace_ring *ring;
    struct trace_event *events;
    uint64_t mask; /* the capacity less 1 */
    int64_t usage_ns; /* when the thread's usage was last written */
    const void *named; /* what has the last name that was written */
    uint64_t named_hash; /* of that name: another thing may have the address meanwhile */
    size_t size; /* of the mapping */
    bool has_ended; /* the thread gets no ring any more */
};

static __thread struct own_ring own __attribute__((tls_model("initial-exec")));

/* Maps the next ring of the file. Returns 0 or a negative errno. */
static int ring_make(struct trace_session *session, struct trace_ring **ret_ring)
{
    uint32_t number = atomic_fetch_add_explicit(&session->header->rings, 1, memory_order_relaxed);
    int64_t at = trace_file_rings_at + (int64_t)number * (int64_t)session->ring_size;
    void *memory;
    int result;

    if (number >= trace_ring_most) {
        return -EMFILE;
    }
    if (!kernel_trace.file_is(session->file, &session->identity)) {
        return -EBADF; /* the program has closed the number, and perhaps has another file there */
    }
    result = kernel_trace.file_reserve(session->file, at, session->ring_size);
    if (result == 0) {
        result = kernel_trace.file_map(session->file, at, session->ring_size, &memory);
    }
    if (result == 0) {
        *ret_ring = memory;
    }
    return result;
}

static void log_refusal(int error)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    char line[160];

    (void)snprintf(line, sizeof line, "trace: there is no room for a thread's events, which are lost: %s", error_text(-error));
    fault_log_once(&logged, line);
}

/* Makes the calling thread's ring in the session. Returns false if it gets none. */
static bool own_ring_make(struct trace_session *session)
{
    struct trace_ring *ring = NULL;
    int result = -ESRCH;

    (void)atomic_fetch_add_explicit(&session->making, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&trace_session_on, memory_order_seq_cst) == session) {
        result = ring_make(session, &ring);
    }
    (void)atomic_fetch_sub_explicit(&session->making, 1, memory_order_release);
    if (!ring) {
        if (result != -ESRCH) {
            own.refused = session;
            log_refusal(result);
        }
        return false;
    }
    ring->thread = kernel_trace.thread_id();
    kernel_trace.thread_name(ring->name);
    atomic_store_explicit(&ring->is_made, 1, memory_order_release);
    own.session = NULL; /* meanwhile a handler makes a ring of its own, which is then lost to the thread; the reader joins them */
    atomic_signal_fence(memory_order_seq_cst);
    own.ring = ring;
    own.events = (struct trace_event *)(void *)((char *)ring + trace_ring_events_at);
    own.mask = session->header->ring_capacity - 1;
    own.named = NULL;
    own.size = session->ring_size;
    atomic_signal_fence(memory_order_seq_cst);
    own.session = session;
    return true;
}

/* Finds or makes the thread's ring in the session that is on. Returns false if the event is to be dropped. */
static __attribute__((noinline)) bool own_ring_find(struct trace_session *session, enum trace_kind kind)
{
    if (trace_session_is_parents(session)) { /* a child that only calls exec gets no file */
        session = kind == trace_run_begins ? trace_session_begin_in_child() : NULL;
    }
    if (!session) {
        return false;
    }
    if (own.session == session) {
        return true;
    }
    if (own.has_ended || own.refused == session || !own_ring_make(session)) {
        (void)atomic_fetch_add_explicit(&session->header->lost, 1, memory_order_relaxed);
        return false;
    }
    return true;
}

static void append_event(int64_t now_ns, enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value)
{
    uint64_t number = atomic_fetch_add_explicit(&own.ring->next, 1, memory_order_relaxed);
    struct trace_event *event = &own.events[number & own.mask];

    event->time_ns = now_ns;
    event->kind = (uint16_t)kind;
    event->detail = (uint16_t)detail;
    event->object = object;
    event->value = value;
    atomic_store_explicit(&event->stamp, (uint32_t)(number + 1), memory_order_release);
}

/* So a reader can tell waits that returned at once, and callouts that waited. */
static __attribute__((noinline)) void write_usage(int64_t now_ns)
{
    uint64_t waits;
    int64_t processor_ns = kernel_trace.thread_usage(&waits);

    own.usage_ns = now_ns;
    append_event(now_ns, trace_usage, 0, waits, (uint64_t)processor_ns);
}

static void write_event(enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value)
{
    struct trace_session *session = atomic_load_explicit(&trace_session_on, memory_order_acquire);
    int64_t now_ns;

    /* Without a session nothing is traced any more: the caller has looked before the trace was stopped, or could not begin in a child. */
    if (__builtin_expect(own.session != session || !session, 0) && !own_ring_find(session, kind)) {
        return;
    }
    now_ns = kernel.monotonic_ns();
    if (__builtin_expect(now_ns - own.usage_ns >= usage_step_ns, 0)) {
        write_usage(now_ns);
    }
    append_event(now_ns, kind, detail, object, value);
}

void trace_write(enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value)
{
    uint32_t hearers = atomic_load_explicit(&trace_hearers.own, memory_order_acquire);

    if (hearers & trace_file_hears) {
        write_event(kind, detail, object, value);
    }
    if (__builtin_expect(hearers & trace_stalls_hear, 0)) {
        atomic_load_explicit(&stalls_hearing, memory_order_relaxed)(kind, detail, object, value);
    }
    if (__builtin_expect(hearers & trace_statistics_hear, 0)) {
        atomic_load_explicit(&statistics_hearing, memory_order_relaxed)(kind, detail, object, value);
    }
    if (__builtin_expect(atomic_load_explicit(&trace_hearers.probes, memory_order_relaxed) != 0, 0)) {
        trace_probe(kind, detail, object, value);
    }
}

void trace_let_hear(enum trace_hearer hearer, trace_hearing *hearing)
{
    atomic_store_explicit(hearer == trace_stalls_hear ? &stalls_hearing : &statistics_hearing, hearing, memory_order_relaxed);
    (void)atomic_fetch_or_explicit(&trace_hearers.own, (uint16_t)hearer, memory_order_release);
}

void trace_note_loop(const void *loop, const void *waker)
{
    struct trace_session *session = atomic_load_explicit(&trace_session_on, memory_order_acquire);

    if ((session && own.session == session) || own_ring_find(session, trace_run_begins)) {
        atomic_store_explicit(&own.ring->loop, (uintptr_t)loop, memory_order_relaxed);
        atomic_store_explicit(&own.ring->waker, (uintptr_t)waker, memory_order_relaxed);
    }
}

void trace_write_name(const void *object, const char *name)
{
    struct trace_session *session = atomic_load_explicit(&trace_session_on, memory_order_acquire);
    size_t length = strnlen(name, trace_name_most);
    uint64_t pieces[trace_name_most / sizeof(uint64_t)] = {0};
    uint64_t hash = length;

    memcpy(pieces, name, length);
    for (size_t i = 0; i * sizeof pieces[0] < length; i++) {
        hash = hash * 31 + pieces[i];
    }
    if (!session || (own.session != session && !own_ring_find(session, trace_name)) || (own.named == object && own.named_hash == hash)) {
        return;
    }
    own.named = object;
    own.named_hash = hash;
    for (size_t i = 0; i * sizeof pieces[0] < length; i++) {
        trace_write(trace_name, (uint32_t)(i * sizeof pieces[0]), (uintptr_t)object, pieces[i]);
    }
}

/* The events stay in the file, and the ring's memory goes. A thread without a loop keeps its mapping until the process ends. */
void trace_thread_ends(void)
{
    struct trace_ring *ring = own.ring;

    own.has_ended = true;
    own.session = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    own.ring = NULL;
    if (ring) {
        kernel_trace.file_unmap(ring, own.size);
    }
}

void trace_forget_parent(void)
{
    own = (struct own_ring){.has_ended = own.has_ended};
    trace_session_forget_parent();
}
