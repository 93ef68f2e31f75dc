/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads trace files. A file may be cut off anywhere, or be made by somebody hostile: every number is checked against the file's size before
 * it is used as a place or a size.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runloop.h"

/* A file in memory. Its bytes may change at any time, because its process may go on: what is checked is read once. */
struct image {
    const char *path;
    const unsigned char *bytes;
    uint64_t size;
    const struct trace_file_header *header;
    uint64_t ring_capacity;
    uint64_t ring_size;
};

static char *copy_text(const char *text, size_t length)
{
    char *copy = make_room(length + 1, 1);

    memcpy(copy, text, length);
    return copy;
}

/* ---- loaded objects ---- */

static void read_objects(struct process *process, const struct image *image)
{
    const uint32_t which = atomic_load_explicit(&image->header->objects, memory_order_relaxed);
    const struct trace_objects *table =
        (const struct trace_objects *)(const void *)(image->bytes + (1 + (uint64_t)(which & 1)) * trace_file_step);
    uint32_t size = table->size < sizeof table->records ? table->size : (uint32_t)sizeof table->records;
    size_t capacity = 0;

    process->has_cut_objects = table->is_cut != 0;
    for (uint32_t at = 0; size - at >= sizeof(struct trace_object);) {
        struct trace_object record;

        memcpy(&record, table->records + at, sizeof record);
        invariant(at + sizeof record <= size && size <= sizeof table->records);
        if (record.size < sizeof record || record.size > size - at || record.length > record.size - sizeof record) {
            break;
        }
        process->objects = grow_array(process->objects, process->object_count, &capacity, sizeof *process->objects);
        process->objects[process->object_count++] = (struct object_map){
            record.bias, record.begin, record.end, copy_text((const char *)table->records + at + sizeof record, record.length), NULL};
        at += (record.size + 7) & ~7u;
        if (at > size) {
            break;
        }
    }
}

/* ---- rings ---- */

/* The thread's place among the threads. A thread may have several rings (trace.c says when). */
static uint32_t find_thread(struct traces *traces, uint32_t process, const struct trace_ring *ring)
{
    struct thread *thread;

    for (size_t i = 0; i < traces->thread_count; i++) {
        if (traces->threads[i].process == process && traces->threads[i].number == ring->thread) {
            return (uint32_t)i;
        }
    }
    traces->threads = grow_array(traces->threads, traces->thread_count, &traces->thread_capacity, sizeof *traces->threads);
    thread = &traces->threads[traces->thread_count];
    *thread = (struct thread){.process = process, .number = ring->thread, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    memcpy(thread->name, ring->name, sizeof ring->name);
    return (uint32_t)traces->thread_count++;
}

static void add_event(struct traces *traces, const struct event *event)
{
    struct thread *owner = &traces->threads[event->thread];

    invariant(event->thread < traces->thread_count && owner->process <= traces->process_count);
    traces->events = grow_array(traces->events, traces->event_count, &traces->event_capacity, sizeof *traces->events);
    traces->events[traces->event_count++] = *event;
    owner->first_ns = event->time_ns < owner->first_ns ? event->time_ns : owner->first_ns;
    owner->last_ns = event->time_ns > owner->last_ns ? event->time_ns : owner->last_ns;
}

static void read_ring(struct traces *traces, uint32_t process, const struct image *image, const struct trace_ring *ring)
{
    const struct trace_event *events = (const struct trace_event *)(const void *)((const char *)ring + trace_ring_events_at);
    uint64_t capacity = image->ring_capacity;
    uint64_t next = atomic_load_explicit(&ring->next, memory_order_acquire);
    uint32_t thread = find_thread(traces, process, ring);
    uint64_t loop = atomic_load_explicit(&ring->loop, memory_order_relaxed);

    invariant(capacity > 0 && (capacity & (capacity - 1)) == 0); /* check_image refuses others */
    if (loop != 0) {
        traces->threads[thread].loop = loop;
        traces->threads[thread].waker = atomic_load_explicit(&ring->waker, memory_order_relaxed);
    }
    traces->threads[thread].lost += next > capacity ? next - capacity : 0;
    for (uint64_t number = next > capacity ? next - capacity : 0; number < next; number++) {
        const struct trace_event *written = &events[number & (capacity - 1)];
        bool is_whole = atomic_load_explicit(&written->stamp, memory_order_acquire) == (uint32_t)(number + 1);
        struct event event = {written->time_ns, written->object, written->value, thread, written->kind, written->detail};

        if (!is_whole) {
            traces->threads[thread].lost++; /* the process was killed while it wrote the event, or is writing it now */
        } else if (event.kind > 0 && event.kind < trace_kind_count) {
            add_event(traces, &event);
        }
    }
}

/* ---- files ---- */

/* Reads what the file says of its sizes. Returns an exit status after a line on standard error. */
static int check_image(struct image *image)
{
    const struct trace_file_header *header = image->header;

    if (image->size < sizeof header->magic || memcmp(header->magic, trace_file_magic, sizeof trace_file_magic) != 0) {
        return fail(exit_error, "%s: this is no trace", image->path);
    }
    if (image->size < trace_file_rings_at) {
        return fail(exit_error, "%s: the trace is cut off before its first event", image->path);
    }
    if (header->order != trace_file_order) {
        return fail(exit_error, "%s: the trace is from a machine of the other byte order", image->path);
    }
    if (header->version != trace_file_version) {
        return fail(exit_error, "%s: the trace is of version %u, and this command reads version %d", image->path, header->version,
                    trace_file_version);
    }
    image->ring_capacity = header->ring_capacity;
    image->ring_size = header->ring_size;
    if (image->ring_capacity == 0 || (image->ring_capacity & (image->ring_capacity - 1)) != 0 || image->ring_size % trace_file_step != 0 ||
        image->ring_size < trace_ring_events_at + image->ring_capacity * sizeof(struct trace_event)) {
        return fail(exit_error, "%s: the sizes in the trace do not agree", image->path);
    }
    return exit_success;
}

static const char *last_part(const char *path, size_t size)
{
    size_t length = strnlen(path, size);
    size_t from = length;

    while (from > 0 && path[from - 1] != '/') {
        from--;
    }
    return copy_text(path + from, length - from);
}

static void read_image(struct traces *traces, const struct image *image)
{
    const struct trace_file_header *header = image->header;
    uint32_t rings = atomic_load_explicit(&header->rings, memory_order_relaxed);
    struct process *process;

    traces->processes = grow_array(traces->processes, traces->process_count, &traces->process_capacity, sizeof *traces->processes);
    process = &traces->processes[traces->process_count];
    *process = (struct process){.number = header->process,
                                .parent = header->parent,
                                .program = last_part(header->program, sizeof header->program),
                                .file = image->path,
                                .began_ns = header->began_ns,
                                .ended_ns = atomic_load_explicit(&header->ended_ns, memory_order_relaxed),
                                .lost = atomic_load_explicit(&header->lost, memory_order_relaxed)};
    read_objects(process, image);
    for (uint32_t i = 0; i < rings && i < trace_ring_most; i++) {
        uint64_t at = trace_file_rings_at + i * image->ring_size;
        const struct trace_ring *ring = (const struct trace_ring *)(const void *)(image->bytes + at);

        if (at + image->ring_size > image->size || at + image->ring_size < at) {
            break;
        }
        if (atomic_load_explicit(&ring->is_made, memory_order_acquire) == 1) {
            read_ring(traces, (uint32_t)traces->process_count, image, ring);
        }
    }
    traces->process_count++;
}

int traces_add(struct traces *traces, const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct image image = {.path = path};
    struct stat status;
    void *memory;
    int result;

    if (file < 0 || fstat(file, &status) < 0) {
        return fail(exit_error, "%s: %s", path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode) || status.st_size == 0) {
        (void)close(file);
        return fail(exit_error, "%s: this is no trace", path);
    }
    image.size = (uint64_t)status.st_size;
    memory = mmap(NULL, image.size, PROT_READ, MAP_SHARED, file, 0);
    (void)close(file);
    if (memory == MAP_FAILED) {
        return fail(exit_error, "%s: %s", path, strerror(errno));
    }
    image.bytes = memory;
    image.header = memory;
    result = check_image(&image);
    if (result == exit_success) {
        read_image(traces, &image);
    }
    (void)munmap(memory, image.size);
    return result;
}

/* Compares times only. The sort is stable, so the events of one thread at one time stay in the order in which it wrote them. */
static int compare_times(const void *one, const void *other)
{
    const struct event *a = one;
    const struct event *b = other;

    return a->time_ns != b->time_ns ? (a->time_ns < b->time_ns ? -1 : 1) : 0;
}

/* A stable merge sort. The events of a ring are nearly in order, and two parts in order are only copied. */
static void sort_events(struct event *events, size_t count)
{
    struct event *from = events;
    struct event *to = make_room(count, sizeof *to);
    struct event *spare = to;

    for (size_t width = 1; width < count; width *= 2) {
        struct event *swapped = from;

        for (size_t low = 0; low < count; low += 2 * width) {
            size_t middle = low + width < count ? low + width : count;
            size_t high = low + 2 * width < count ? low + 2 * width : count;
            size_t a = low;
            size_t b = middle;

            if (middle == high || compare_times(&from[middle - 1], &from[middle]) <= 0) {
                memcpy(to + low, from + low, (high - low) * sizeof *to);
                continue;
            }
            for (size_t i = low; i < high; i++) {
                invariant(a <= middle && b <= high);
                to[i] = a < middle && (b == high || compare_times(&from[a], &from[b]) <= 0) ? from[a++] : from[b++];
            }
        }
        from = to;
        to = swapped;
    }
    if (from != events) {
        memcpy(events, from, count * sizeof *events);
    }
    free(spare);
}

void traces_finish(struct traces *traces)
{
    traces->origin_ns = INT64_MAX;
    traces->end_ns = INT64_MIN;
    sort_events(traces->events, traces->event_count);
    for (size_t i = 0; i < traces->process_count; i++) {
        const struct process *process = &traces->processes[i];

        traces->origin_ns = process->began_ns < traces->origin_ns ? process->began_ns : traces->origin_ns;
        traces->end_ns = process->ended_ns > traces->end_ns ? process->ended_ns : traces->end_ns;
        traces->end_ns = process->began_ns > traces->end_ns ? process->began_ns : traces->end_ns;
    }
    if (traces->event_count > 0 && traces->events[traces->event_count - 1].time_ns > traces->end_ns) {
        traces->end_ns = traces->events[traces->event_count - 1].time_ns;
    }
    invariant(traces->process_count == 0 || traces->origin_ns <= traces->end_ns);
}
