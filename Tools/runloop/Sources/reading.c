/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads trace files. A file may be cut off anywhere, be made by somebody hostile, or change while it is read, because its process goes on:
 * everything is copied once, and each number is judged in the copy before it is used as a place, a size or a time.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Stacks/stack_file.h"
#include "regular_file.h"
#include "runloop.h"

enum {
    events_most = 1 << 27, /* that one command reads: twice what a thousand threads keep, unless they are asked for more */
    events_at_once = 2048,
};

/* A file and the copy of its header. */
struct image {
    const char *path;
    int file;
    uint64_t size;
    bool is_of_samples; /* it is read with its trace */
    struct trace_file_header header;
};

/* Differences between such times, and one more of them, are in the range of their type. */
static bool is_time(int64_t time_ns)
{
    return time_ns >= 0 && time_ns <= time_most_ns;
}

/* ---- loaded objects ---- */

static void read_objects(struct process *process, const struct image *image)
{
    static struct trace_objects table;
    const uint64_t which = image->header.objects & 1;
    uint32_t size;
    size_t capacity = 0;

    memset(&table, 0, sizeof table); /* for what the file does not have any more */
    (void)regular_file_copy(image->file, (1 + which) * trace_file_step, &table, sizeof table);
    size = table.size < sizeof table.records ? table.size : (uint32_t)sizeof table.records;
    process->has_cut_objects = table.is_cut != 0;
    for (uint32_t at = 0; size - at >= sizeof(struct trace_object);) {
        struct trace_object record;

        memcpy(&record, table.records + at, sizeof record);
        invariant(at + sizeof record <= size && size <= sizeof table.records);
        if (record.size < sizeof record || record.size > size - at || record.length > record.size - sizeof record) {
            break;
        }
        process->objects = grow_array(process->objects, process->object_count, &capacity, sizeof *process->objects);
        process->objects[process->object_count++] = (struct object_map){
            record.bias, record.begin, record.end, copy_text((const char *)table.records + at + sizeof record, record.length), false};
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

    invariant(event->thread < traces->thread_count && owner->process < traces->process_count);
    traces->events = grow_array(traces->events, traces->event_count, &traces->event_capacity, sizeof *traces->events);
    traces->events[traces->event_count++] = *event;
    owner->first_ns = event->time_ns < owner->first_ns ? event->time_ns : owner->first_ns;
    owner->last_ns = event->time_ns > owner->last_ns ? event->time_ns : owner->last_ns;
}

/* An event that the process was writing when it was killed, or is writing now, is not whole. */
static bool is_whole(const struct trace_event *event, uint64_t number)
{
    return event->stamp == (uint32_t)(number + 1) && is_time(event->time_ns);
}

/* Copies events of the ring, from that number on, at most as many as lie there side by side. Returns how many these were. */
static uint64_t read_events(struct traces *traces, uint32_t thread, const struct image *image, uint64_t events_at, uint64_t number,
                            uint64_t next)
{
    static struct trace_event events[events_at_once];
    const uint64_t place = number & (image->header.ring_capacity - 1);
    const uint64_t together = image->header.ring_capacity - place < next - number ? image->header.ring_capacity - place : next - number;
    const size_t wanted = together < events_at_once ? (size_t)together : events_at_once;
    const uint64_t at = events_at + place * sizeof *events;
    const size_t count = regular_file_copy(image->file, at, events, wanted * sizeof *events) / sizeof *events;
    size_t whole = 0;

    for (size_t i = 0; i < count; i++) {
        const struct trace_event *event = &events[i];

        if (!is_whole(event, number + i)) {
            continue;
        }
        whole++;
        if (event->kind > 0 && event->kind < trace_kind_count) {
            add_event(traces, &(struct event){event->time_ns, event->object, event->value, thread, event->kind, event->detail});
        }
    }
    traces->threads[thread].lost += wanted - whole;
    if (whole == 0) {
        uint64_t skipped = (regular_file_skip(image->file, at + wanted * sizeof *events) - at) / sizeof *events;

        skipped = skipped < together ? skipped : together;
        if (skipped > wanted) {
            traces->threads[thread].lost += skipped - wanted;
            return skipped;
        }
    }
    return wanted;
}

/* Returns false if the ring has more events than this command reads. */
static bool read_ring(struct traces *traces, uint32_t process, const struct image *image, uint64_t at, const struct trace_ring *ring)
{
    const uint64_t capacity = image->header.ring_capacity;
    const uint64_t next = ring->next;
    uint64_t number = next > capacity ? next - capacity : 0;
    uint32_t thread = find_thread(traces, process, ring);

    invariant(capacity > 0 && (capacity & (capacity - 1)) == 0); /* check_image refuses others */
    if (ring->loop != 0) {
        traces->threads[thread].loop = ring->loop;
        traces->threads[thread].waker = ring->waker;
    }
    if (next - number > events_most - traces->events_read) {
        return false;
    }
    traces->events_read += next - number;
    traces->threads[thread].lost += number;
    while (number < next) {
        number += read_events(traces, thread, image, at + trace_ring_events_at, number, next);
    }
    return true;
}

/* ---- files ---- */

/* Copies the header and judges its numbers. Returns an exit status after a line on standard error. */
static int read_header(struct image *image)
{
    struct trace_file_header *header = &image->header;
    size_t size = regular_file_copy(image->file, 0, header, sizeof *header);

    if (size >= sizeof header->magic && memcmp(header->magic, stack_file_magic, sizeof stack_file_magic) == 0) {
        image->is_of_samples = true;
        return exit_success;
    }
    if (size < sizeof header->magic || memcmp(header->magic, trace_file_magic, sizeof trace_file_magic) != 0) {
        return fail(exit_error, "%s: this is no trace", image->path);
    }
    if (size < sizeof *header || image->size < trace_file_rings_at) {
        return fail(exit_error, "%s: the trace is cut off before its first event", image->path);
    }
    if (header->order != trace_file_order) {
        return fail(exit_error, "%s: the trace is from a machine of the other byte order", image->path);
    }
    if (header->version != trace_file_version) {
        return fail(exit_error, "%s: the trace is of version %u, and this command reads version %d", image->path, header->version,
                    trace_file_version);
    }
    if (header->ring_capacity == 0 || (header->ring_capacity & (header->ring_capacity - 1)) != 0 ||
        header->ring_size % trace_file_step != 0 ||
        header->ring_size < trace_ring_events_at + header->ring_capacity * sizeof(struct trace_event)) {
        return fail(exit_error, "%s: the sizes in the trace do not agree", image->path);
    }
    return is_time(header->began_ns) ? exit_success : fail(exit_error, "%s: the trace has no time at which it began", image->path);
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

static int read_image(struct traces *traces, const struct image *image)
{
    const struct trace_file_header *header = &image->header;
    const uint64_t whole_rings = (image->size - trace_file_rings_at) / header->ring_size;
    const uint32_t process = (uint32_t)traces->process_count;

    traces->processes = grow_array(traces->processes, traces->process_count, &traces->process_capacity, sizeof *traces->processes);
    traces->process_count++;
    traces->processes[process] = (struct process){.number = header->process,
                                                  .parent = header->parent,
                                                  .program = last_part(header->program, sizeof header->program),
                                                  .file = image->path,
                                                  .began_ns = header->began_ns,
                                                  .began_s = header->began_wall_ns / 1000000000,
                                                  .ended_ns = is_time(header->ended_ns) ? header->ended_ns : 0,
                                                  .lost = header->lost};
    read_objects(&traces->processes[process], image);
    for (uint32_t i = 0; i < header->rings && i < trace_ring_most && i < whole_rings; i++) {
        uint64_t at = trace_file_rings_at + i * header->ring_size;
        struct trace_ring ring;

        if (regular_file_copy(image->file, at, &ring, sizeof ring) < sizeof ring) {
            break;
        }
        if (ring.is_made == 1 && !read_ring(traces, process, image, at, &ring)) {
            return fail(exit_error, "%s: this would be more than %d events", image->path, events_most);
        }
    }
    return exit_success;
}

int traces_add(struct traces *traces, const char *path)
{
    struct image image = {.path = path};
    struct stat status;
    const char *reason;
    int result;

    image.file = regular_file_open(path, &status, &reason);
    if (image.file < 0) {
        return fail(exit_error, "%s: %s", path, reason);
    }
    image.size = (uint64_t)status.st_size;
    result = read_header(&image);
    if (result == exit_success && !image.is_of_samples) {
        result = read_image(traces, &image);
    }
    (void)close(image.file);
    return result == exit_success && !image.is_of_samples ? traces_add_stacks(traces, path) : result;
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
    traces_finish_stacks(traces);
    sort_events(traces->events, traces->event_count);
    for (size_t i = 0; i < traces->process_count; i++) {
        const struct process *process = &traces->processes[i];

        traces->origin_ns = process->began_ns < traces->origin_ns ? process->began_ns : traces->origin_ns;
        traces->end_ns = process->ended_ns > traces->end_ns ? process->ended_ns : traces->end_ns;
        traces->end_ns = process->began_ns > traces->end_ns ? process->began_ns : traces->end_ns;
    }
    for (size_t i = 0; i < traces->thread_count; i++) {
        traces->end_ns = traces->threads[i].last_ns > traces->end_ns ? traces->threads[i].last_ns : traces->end_ns;
    }
    invariant(traces->process_count == 0 || traces->origin_ns <= traces->end_ns);
}

int traces_read(struct traces *traces, int count, char **files)
{
    int status = exit_success;

    for (int i = 0; i < count && status == exit_success; i++) {
        status = traces_add(traces, files[i]);
    }
    if (status == exit_success && traces->process_count == 0) {
        status = fail(exit_error, "%s: these are samples, and their trace has to be named", files[0]);
    }
    if (status == exit_success) {
        traces_finish(traces);
    }
    return status;
}
