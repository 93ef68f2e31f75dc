/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions, the rings of threads, and the writing of events; see trace.h.
 *
 * A session is published by one atomic pointer, and lives until the process ends. The lock is for whoever begins or ends one, and no event
 * takes it. A thread that makes its ring counts itself in `making`. Whoever ends the session waits for that count before the file's number
 * is closed, so that the number is no other file's then.
 *
 * A ring belongs to its thread alone. A signal handler may write between any two instructions of the thread that it has interrupted.
 * Therefore the place of an event is taken by one atomic addition, and the thread's own ring is published to its handlers by the last store
 * to own.session.
 */
#include "Loop/Trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Kernel/kernel_trace.h"
#include "Loop/Trace/trace_objects.h"
#include "Support/fault.h"
#include "Support/lock.h"

enum {
    capacity_least = 64,
    capacity_default = 65536,
    capacity_most = 1 << 24,
    names_tried = 100,
    process_digits_most = 24, /* of a process's number behind a path, with its point */
};

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
static _Atomic(struct trace_session *) trace_session;
/* Written before its bit in trace_hearers is set. */
static _Atomic(trace_hearing *) stalls_hearing;
static _Atomic(trace_hearing *) statistics_hearing;

static struct lock session_lock;
static struct trace_session *latest GUARDED_BY(&session_lock);
/* Stands in trace_session in a child whose parent was traced, until its first run. Its path is the parent's. */
static struct trace_session parents;
static int32_t parent_process;

struct own_ring {
    struct trace_session *session; /* of the ring; NULL: there is none */
    struct trace_session *refused; /* the session in which no ring could be made */
    struct trace_ring *ring;
    struct trace_event *events;
    uint64_t mask; /* the capacity less 1 */
    const void *named; /* what has the last name that was written */
    size_t size; /* of the mapping */
    bool has_ended; /* the thread gets no ring any more */
};

static __thread struct own_ring own __attribute__((tls_model("initial-exec")));

/* ---- the rings ---- */

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

    (void)snprintf(line, sizeof line, "trace: there is no room for a thread's events, which are lost: %s", strerror(-error));
    fault_log_once(&logged, line);
}

/* Makes the calling thread's ring in the session. Returns false if it gets none. */
static bool own_ring_make(struct trace_session *session)
{
    struct trace_ring *ring = NULL;
    int result = -ESRCH;

    (void)atomic_fetch_add_explicit(&session->making, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&trace_session, memory_order_seq_cst) == session) {
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

static struct trace_session *begin_in_child(void);

/* Finds or makes the thread's ring in the session that is on. Returns false if the event is to be dropped. */
static __attribute__((noinline)) bool own_ring_find(struct trace_session *session, enum trace_kind kind)
{
    if (session == &parents) { /* a child that only calls exec gets no file */
        session = kind == trace_run_begins ? begin_in_child() : NULL;
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

static void write_event(enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value)
{
    struct trace_session *session = atomic_load_explicit(&trace_session, memory_order_acquire);
    struct trace_event *event;
    uint64_t number;
    int64_t now_ns;

    /* Without a session nothing is traced any more: the caller has looked before the trace was stopped, or could not begin in a child. */
    if (__builtin_expect(own.session != session || !session, 0) && !own_ring_find(session, kind)) {
        return;
    }
    now_ns = kernel.monotonic_ns();
    number = atomic_fetch_add_explicit(&own.ring->next, 1, memory_order_relaxed);
    event = &own.events[number & own.mask];
    event->time_ns = now_ns;
    event->kind = (uint16_t)kind;
    event->detail = (uint16_t)detail;
    event->object = object;
    event->value = value;
    atomic_store_explicit(&event->stamp, (uint32_t)(number + 1), memory_order_release);
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
    struct trace_session *session = atomic_load_explicit(&trace_session, memory_order_acquire);

    if ((session && own.session == session) || own_ring_find(session, trace_run_begins)) {
        atomic_store_explicit(&own.ring->loop, (uintptr_t)loop, memory_order_relaxed);
        atomic_store_explicit(&own.ring->waker, (uintptr_t)waker, memory_order_relaxed);
    }
}

void trace_write_name(const void *object, const char *name)
{
    size_t length = strlen(name);

    if (!own.session || own.session != atomic_load_explicit(&trace_session, memory_order_acquire) || own.named == object) {
        return;
    }
    own.named = object;
    for (size_t at = 0; at < length && at < trace_name_most; at += sizeof(uint64_t)) {
        uint64_t piece = 0;

        memcpy(&piece, name + at, length - at < sizeof piece ? length - at : sizeof piece);
        trace_write(trace_name, (uint32_t)at, (uintptr_t)object, piece);
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

/* ---- the sessions ---- */

/* Lists the loaded objects in the table that does not count yet. Then that one counts. */
static void session_list_objects(struct trace_session *session)
{
    struct trace_file_header *header = session->header;
    uint32_t other = 1 - atomic_load_explicit(&header->objects, memory_order_relaxed);

    trace_objects_list(&session->objects[other], header->program);
    atomic_store_explicit(&header->objects, other, memory_order_release);
}

static void header_fill(struct trace_session *session, uint32_t capacity)
{
    struct trace_file_header *header = session->header;

    header->version = trace_file_version;
    header->order = trace_file_order;
    header->pointer_size = sizeof(void *);
    header->process = kernel_trace.process_id();
    header->ring_size = session->ring_size;
    header->ring_capacity = capacity;
    header->began_ns = kernel.monotonic_ns();
    header->began_wall_ns = kernel.wall_ns();
    atomic_store_explicit(&header->state, trace_is_running, memory_order_relaxed);
    kernel_trace.program(header->program, sizeof header->program);
}

static uint32_t capacity_for(size_t size)
{
    size_t wanted = size / sizeof(struct trace_event);
    uint32_t capacity = capacity_least;

    if (size == 0) {
        return capacity_default;
    }
    while (capacity < wanted && capacity < (uint32_t)capacity_most) {
        capacity *= 2;
    }
    return capacity;
}

static size_t ring_size_for(uint32_t capacity)
{
    size_t size = trace_ring_events_at + capacity * sizeof(struct trace_event);

    return (size + trace_file_step - 1) / trace_file_step * trace_file_step;
}

/* Makes the file of a session at `path`, with all but the rings. The magic number comes last. Returns 0 or a negative errno. */
static int session_open(struct trace_session *session, const char *path, uint32_t capacity)
{
    void *memory;
    int result;

    session->file = kernel_trace.file_create(path, &session->identity);
    if (session->file < 0) {
        return session->file;
    }
    session->ring_size = ring_size_for(capacity);
    result = kernel_trace.file_reserve(session->file, 0, trace_file_rings_at);
    if (result == 0) {
        result = kernel_trace.file_map(session->file, 0, trace_file_rings_at, &memory);
    }
    if (result < 0) {
        (void)kernel.close(session->file);
        kernel_trace.file_remove(path);
        return result;
    }
    session->header = memory;
    session->objects = (struct trace_objects *)(void *)((char *)memory + trace_file_step);
    header_fill(session, capacity);
    return 0;
}

static void session_publish(struct trace_session *session)
{
    atomic_thread_fence(memory_order_release);
    memcpy(session->header->magic, trace_file_magic, sizeof trace_file_magic);
    atomic_store_explicit(&trace_session, session, memory_order_seq_cst);
    (void)atomic_fetch_or_explicit(&trace_hearers.own, (uint16_t)trace_file_hears, memory_order_release);
}

/* Copies the path, and makes it absolute if the working directory is known: a child may work elsewhere. Returns 0 or a negative errno. */
static int path_copy(char ret_path[trace_path_size], const char *path)
{
    size_t used = 0;

    if (*path != '/' && kernel_trace.directory(ret_path, trace_path_size) == 0) {
        used = strlen(ret_path);
        ret_path[used++] = '/';
    }
    if (strlen(path) + used + process_digits_most >= trace_path_size) {
        return -ENAMETOOLONG;
    }
    memcpy(ret_path + used, path, strlen(path) + 1);
    return 0;
}

/* The names for a process whose file exists, or is its parent's: PATH.PROCESS, PATH.PROCESS.2 and so on. */
static void path_of_process(const struct trace_session *session, int attempt, char ret_path[trace_path_size])
{
    int32_t process = kernel_trace.process_id();
    const int most = trace_path_size - process_digits_most; /* path_copy has left room */

    if (attempt < 2) {
        (void)snprintf(ret_path, trace_path_size, "%.*s.%d", most, session->path, (int)process);
    } else {
        (void)snprintf(ret_path, trace_path_size, "%.*s.%d.%d", most, session->path, (int)process, attempt);
    }
}

static int session_open_for_process(struct trace_session *session, uint32_t capacity, char ret_path[trace_path_size])
{
    int result = -EEXIST;

    for (int attempt = 1; result == -EEXIST && attempt < names_tried; attempt++) {
        path_of_process(session, attempt, ret_path);
        result = session_open(session, ret_path, capacity);
    }
    return result;
}

/* Ends the making of a session that could not be opened. */
static int session_give_up(struct trace_session *session, int error)
{
    free(session);
    return error;
}

REQUIRES(&session_lock) static void session_begin(struct trace_session *session)
{
    session->previous = latest;
    latest = session;
    session_list_objects(session);
    session_publish(session);
}

static void log_once(const char *path, int error, const char *consequence)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    char line[512];

    (void)snprintf(line, sizeof line, "trace: %.300s: %.100s; %s", path, strerror(error), consequence);
    fault_log_once(&logged, line);
}

/* With `is_shared` a file that exists is left alone, and the trace goes to another name. Returns 0 or a negative errno. */
REQUIRES(&session_lock) static int start_locked(const char *path, size_t size, bool is_shared)
{
    struct trace_session *session;
    uint32_t capacity = capacity_for(size);
    char other[trace_path_size];
    int result;

    if (atomic_load_explicit(&trace_session, memory_order_relaxed)) {
        return -EBUSY;
    }
    session = calloc(1, sizeof *session);
    result = session ? path_copy(session->path, path) : -ENOMEM;
    if (result == 0) {
        result = session_open(session, session->path, capacity);
    }
    if (result == -EEXIST && is_shared) {
        result = session_open_for_process(session, capacity, other);
        if (result == 0) {
            log_once(path, EEXIST, "the trace goes to that name with the process behind it");
        }
    }
    if (result < 0) {
        return session_give_up(session, result);
    }
    session_begin(session);
    return 0;
}

int trace_start(const char *path, size_t size)
{
    int result;

    lock_take(&session_lock);
    result = start_locked(path, size, false);
    lock_drop(&session_lock);
    return -result;
}

static void session_end(struct trace_session *session, enum trace_file_state state)
{
    session_list_objects(session);
    atomic_store_explicit(&session->header->ended_ns, kernel.monotonic_ns(), memory_order_relaxed);
    atomic_store_explicit(&session->header->state, state, memory_order_release);
}

void trace_stop(void)
{
    struct trace_session *session;

    lock_take(&session_lock);
    (void)atomic_fetch_and_explicit(&trace_hearers.own, (uint16_t)~trace_file_hears, memory_order_relaxed);
    session = atomic_exchange_explicit(&trace_session, NULL, memory_order_seq_cst);
    if (session && session != &parents) {
        while (atomic_load_explicit(&session->making, memory_order_seq_cst) > 0) {
            kernel.yield();
        }
        if (kernel_trace.file_is(session->file, &session->identity)) {
            (void)kernel.close(session->file);
        }
        session_end(session, trace_was_stopped);
    }
    lock_drop(&session_lock);
}

/* The process ends by itself: the objects that it has loaded meanwhile are listed. */
__attribute__((destructor)) static void note_exit(void)
{
    struct trace_session *session = atomic_load_explicit(&trace_session, memory_order_acquire);

    if (session && session != &parents && session->header->process == kernel_trace.process_id()) { /* no child without handlers */
        session_end(session, trace_has_exited);
    }
}

void trace_start_from_environment(void)
{
    const char *path = kernel_ports.environment("CORERUNLOOP_TRACE");
    const char *size = kernel_ports.environment("CORERUNLOOP_TRACE_BUFFER");
    int result;

    if (!path || *path == '\0') {
        return;
    }
    lock_take(&session_lock);
    result = start_locked(path, size ? (size_t)strtoull(size, NULL, 10) : 0, true);
    lock_drop(&session_lock);
    if (result < 0 && result != -EBUSY) {
        log_once(path, -result, "nothing is traced");
    }
}

/* ---- the child of a fork ---- */

/* Only the thread that forked exists. It may hold the lock, if a handler of that thread has forked; nobody else does. */
NOT_CHECKED void trace_forget_parent(void)
{
    struct trace_session *session = atomic_load_explicit(&trace_session, memory_order_relaxed);

    lock_reset(&session_lock);
    own = (struct own_ring){.has_ended = own.has_ended};
    if (!session || session == &parents) {
        return;
    }
    parent_process = session->header->process;
    parents.ring_size = session->ring_size;
    parents.header = session->header; /* for its capacity, program and objects */
    parents.objects = session->objects;
    memcpy(parents.path, session->path, sizeof parents.path);
    (void)kernel.close(session->file);
    atomic_store_explicit(&trace_session, &parents, memory_order_release);
}

/* In the first run of a child. The objects are the parent's: the loader may not be asked in the child of a process with threads. */
static struct trace_session *begin_in_child(void)
{
    struct trace_session *session = NULL;
    char path[trace_path_size];
    int result = -ENOMEM;

    lock_take(&session_lock);
    if (atomic_load_explicit(&trace_session, memory_order_relaxed) == &parents) {
        session = calloc(1, sizeof *session);
        if (session) {
            memcpy(session->path, parents.path, sizeof session->path);
            result = session_open_for_process(session, parents.header->ring_capacity, path);
        }
        if (result < 0) {
            (void)session_give_up(session, result);
            session = NULL;
            log_once(parents.path, -result, "this child is not traced");
            (void)atomic_fetch_and_explicit(&trace_hearers.own, (uint16_t)~trace_file_hears, memory_order_relaxed);
            atomic_store_explicit(&trace_session, NULL, memory_order_release);
        } else {
            session->header->parent = parent_process;
            session->previous = latest;
            latest = session;
            session->objects[0] = parents.objects[atomic_load_explicit(&parents.header->objects, memory_order_acquire)];
            session_publish(session);
        }
    }
    lock_drop(&session_lock);
    return session;
}
