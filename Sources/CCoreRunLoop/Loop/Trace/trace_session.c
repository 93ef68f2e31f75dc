/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: the file of a trace, from its making to its end, and in the child of a fork. See trace_session.h.
 *
 * The lock is for whoever begins or ends a session, and no event takes it.
 */
#include "Loop/Trace/trace_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Loop/Trace/trace.h"
#include "Loop/Trace/trace_objects.h"
#include "Support/error_text.h"
#include "Support/fault.h"
#include "Support/lock.h"

enum {
    capacity_least = 64,
    capacity_default = 65536,
    capacity_most = 1 << 24,
    names_tried = 100,
    process_digits_most = 24, /* of a process's number behind a path, with its point */
};

_Atomic(struct trace_session *) trace_session_on;

static struct lock session_lock;
static struct trace_session *latest GUARDED_BY(&session_lock);
/* Stands in trace_session_on in a child whose parent was traced, until its first run. Its path is the parent's. */
static struct trace_session parents;
static int32_t parent_process;

/* ---- the file ---- */

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
    atomic_store_explicit(&trace_session_on, session, memory_order_seq_cst);
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

    (void)snprintf(line, sizeof line, "trace: %.300s: %.100s; %s", path, error_text(error), consequence);
    fault_log_once(&logged, line);
}

/* With `is_shared` a file that exists is left alone, and the trace goes to another name. Returns 0 or a negative errno. */
REQUIRES(&session_lock) static int start_locked(const char *path, size_t size, bool is_shared)
{
    struct trace_session *session;
    uint32_t capacity = capacity_for(size);
    char other[trace_path_size];
    int result;

    if (atomic_load_explicit(&trace_session_on, memory_order_relaxed)) {
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
    if (session->header->parent == 0) { /* a child keeps its parent's list, as the loader may not be asked there */
        session_list_objects(session);
    }
    atomic_store_explicit(&session->header->ended_ns, kernel.monotonic_ns(), memory_order_relaxed);
    atomic_store_explicit(&session->header->state, state, memory_order_release);
}

void trace_stop(void)
{
    struct trace_session *session;

    lock_take(&session_lock);
    (void)atomic_fetch_and_explicit(&trace_hearers.own, (uint16_t)~trace_file_hears, memory_order_relaxed);
    session = atomic_exchange_explicit(&trace_session_on, NULL, memory_order_seq_cst);
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
    struct trace_session *session = atomic_load_explicit(&trace_session_on, memory_order_acquire);

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

bool trace_session_is_parents(const struct trace_session *session)
{
    return session == &parents;
}

/* Only the thread that forked exists. It may hold the lock, if a handler of that thread has forked; nobody else does. */
NOT_CHECKED void trace_session_forget_parent(void)
{
    struct trace_session *session = atomic_load_explicit(&trace_session_on, memory_order_relaxed);

    lock_reset(&session_lock);
    if (!session || session == &parents) {
        return;
    }
    parent_process = session->header->process;
    parents.ring_size = session->ring_size;
    parents.header = session->header; /* for its capacity, program and objects */
    parents.objects = session->objects;
    memcpy(parents.path, session->path, sizeof parents.path);
    (void)kernel.close(session->file);
    atomic_store_explicit(&trace_session_on, &parents, memory_order_release);
}

/* In the first run of a child. The objects are the parent's: the loader may not be asked in the child of a process with threads. */
struct trace_session *trace_session_begin_in_child(void)
{
    struct trace_session *session = NULL;
    char path[trace_path_size];
    int result = -ENOMEM;

    lock_take(&session_lock);
    if (atomic_load_explicit(&trace_session_on, memory_order_relaxed) == &parents) {
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
            atomic_store_explicit(&trace_session_on, NULL, memory_order_release);
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
