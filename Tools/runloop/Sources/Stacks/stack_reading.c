/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads files of samples, as reading.c reads traces: whatever the bytes are, they are copied once, and each number is judged in the copy.
 * A file that is cut off has the records before that.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Stacks/stack_file.h"
#include "regular_file.h"
#include "runloop.h"

enum { block_size = 1 << 20, step_most_ns = 1000000000 };

const char *path_of_stacks(const char *trace)
{
    char *path = make_room(strlen(trace) + sizeof ".stacks", 1);

    (void)sprintf(path, "%s.stacks", trace);
    return path;
}

static void add_record(struct traces *traces, const struct stack_record *record, const unsigned char *numbers)
{
    uint64_t number;

    invariant(record->count <= stack_frames_most);
    if (record->kind == stack_lost && record->count == 1) {
        memcpy(&number, numbers, sizeof number);
        traces->samples_lost = number > UINT64_MAX - traces->samples_lost ? UINT64_MAX : traces->samples_lost + number;
        return;
    }
    if (record->kind == 0 || record->kind >= stack_record_kind_count || record->time_ns < 0 || record->time_ns > time_most_ns ||
        (record->kind == stack_sample) != (record->count > 0)) {
        return;
    }
    traces->samples = grow_array(traces->samples, traces->sample_count, &traces->sample_capacity, sizeof *traces->samples);
    traces->samples[traces->sample_count++] = (struct sampled){.time_ns = record->time_ns,
                                                               .process = record->process,
                                                               .number = record->thread,
                                                               .thread = no_thread,
                                                               .kind = record->kind,
                                                               .count = record->count,
                                                               .first = traces->address_count};
    for (uint32_t i = 0; i < record->count; i++) {
        memcpy(&number, numbers + i * sizeof number, sizeof number);
        traces->addresses = grow_array(traces->addresses, traces->address_count, &traces->address_capacity, sizeof *traces->addresses);
        traces->addresses[traces->address_count++] = number;
    }
}

/* Adds the whole records of a block. Returns how many bytes these are; 0: there is none, or one that cannot be. */
static size_t add_block(struct traces *traces, const unsigned char *block, size_t size)
{
    size_t at = 0;

    while (size - at >= sizeof(struct stack_record)) {
        struct stack_record record;

        memcpy(&record, block + at, sizeof record);
        if (record.count > stack_frames_most || size - at - sizeof record < record.count * sizeof(uint64_t)) {
            break;
        }
        add_record(traces, &record, block + at + sizeof record);
        at += sizeof record + record.count * sizeof(uint64_t);
    }
    return at;
}

static int read_stacks(struct traces *traces, const char *path, int file)
{
    static unsigned char block[block_size];
    struct stack_file_header header;
    uint64_t at = sizeof header;
    size_t used;

    if (regular_file_copy(file, 0, &header, sizeof header) < sizeof header ||
        memcmp(header.magic, stack_file_magic, sizeof stack_file_magic) != 0) {
        return exit_success; /* something of the user's, or cut off before its first record */
    }
    if (header.order != stack_file_order) {
        return fail(exit_error, "%s: the samples are from a machine of the other byte order", path);
    }
    if (header.version != stack_file_version) {
        return fail(exit_error, "%s: the samples are of version %u, and this command reads version %d", path, header.version,
                    stack_file_version);
    }
    if (header.step_ns <= 0 || header.step_ns > step_most_ns) {
        return fail(exit_error, "%s: the samples do not say what time they stand for", path);
    }
    traces->sample_step_ns = header.step_ns;
    do {
        used = add_block(traces, block, regular_file_copy(file, at, block, sizeof block));
        at += used;
    } while (used > 0 && at < stack_file_most);
    return exit_success;
}

int traces_add_stacks(struct traces *traces, const char *trace)
{
    const char *path = path_of_stacks(trace);
    struct stat status;
    const char *reason;
    int file = regular_file_open(path, &status, &reason);
    int result;

    if (file < 0) {
        return exit_success; /* the trace was taken without them */
    }
    result = read_stacks(traces, path, file);
    (void)close(file);
    return result;
}

/* ---- whose they are ---- */

static bool is_of_one(const struct sampled *one, const struct sampled *other)
{
    return one->process == other->process && one->number == other->number;
}

static int by_number_and_time(const void *one, const void *other)
{
    const struct sampled *a = one;
    const struct sampled *b = other;

    if (a->process != b->process) {
        return a->process < b->process ? -1 : 1;
    }
    if (a->number != b->number) {
        return a->number < b->number ? -1 : 1;
    }
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static int by_thread_and_time(const void *one, const void *other)
{
    const struct sampled *a = one;
    const struct sampled *b = other;

    if (a->thread != b->thread) {
        return a->thread < b->thread ? -1 : 1;
    }
    if (a->time_ns != b->time_ns) {
        return a->time_ns < b->time_ns ? -1 : 1;
    }
    return a->first != b->first ? (a->first < b->first ? -1 : 1) : (a->kind > b->kind) - (a->kind < b->kind);
}

/*
 * A process that becomes another program has two traces, and the later one counts from where it begins; before all it is the first one.
 * Stores until when the answer holds.
 */
static uint32_t thread_of(const struct traces *traces, const struct sampled *sample, int64_t *ret_until_ns)
{
    uint32_t found = no_thread;
    uint32_t next = no_thread;
    int64_t began_ns = INT64_MIN;

    *ret_until_ns = INT64_MAX;
    for (uint32_t i = 0; i < traces->thread_count; i++) {
        const struct thread *thread = &traces->threads[i];
        const struct process *process = &traces->processes[thread->process];

        if (thread->number != sample->number || process->number != sample->process) {
            continue;
        }
        if (process->began_ns > sample->time_ns && process->began_ns < *ret_until_ns) {
            *ret_until_ns = process->began_ns;
            next = i;
        } else if (process->began_ns <= sample->time_ns && process->began_ns > began_ns) {
            began_ns = process->began_ns;
            found = i;
        }
    }
    return found == no_thread ? next : found;
}

/* A thread whose process was killed has run until its last sample. */
static void lengthen(struct thread *thread, const struct process *process, int64_t time_ns)
{
    if (process->ended_ns == 0 && time_ns > thread->last_ns) {
        thread->last_ns = time_ns;
    }
}

void traces_finish_stacks(struct traces *traces)
{
    size_t left = 0;
    int64_t until_ns = 0;

    if (traces->sample_count == 0) {
        return;
    }
    qsort(traces->samples, traces->sample_count, sizeof *traces->samples, by_number_and_time);
    for (size_t i = 0; i < traces->sample_count; i++) {
        struct sampled *sample = &traces->samples[i];
        const bool is_as_before = i > 0 && is_of_one(sample - 1, sample) && sample->time_ns < until_ns;

        sample->thread = is_as_before ? sample[-1].thread : thread_of(traces, sample, &until_ns);
    }
    for (size_t i = 0; i < traces->sample_count; i++) {
        const struct sampled sample = traces->samples[i];

        if (sample.thread != no_thread) {
            struct thread *thread = &traces->threads[sample.thread];

            lengthen(thread, &traces->processes[thread->process], sample.time_ns);
            traces->samples[left++] = sample;
        }
    }
    traces->sample_count = left;
    qsort(traces->samples, left, sizeof *traces->samples, by_thread_and_time);
}
