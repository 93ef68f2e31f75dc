/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the trace in Perfetto's format: protocol buffers, field by field. The numbers of the fields are those of Perfetto's published
 * trace_packet.proto, track_event.proto, track_descriptor.proto, profile_packet.proto and profile_common.proto.
 *
 * Each thread is a track. A span is a slice: a packet where it begins and one where it ends. An arrow is an instant on the track that it
 * comes from; this instant and the slice at its end have the same flow number. A thread's turns on a processor are a track below its own.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "Stacks/stack_file.h"
#include "runloop.h"

enum {
    trace_packet = 1, /* Trace */
    packet_timestamp = 8, /* TracePacket */
    packet_sequence = 10,
    packet_event = 11,
    packet_interned = 12,
    packet_flags = 13,
    packet_descriptor = 60,
    packet_sample = 66,
    interned_functions = 5, /* InternedData */
    interned_frames = 6,
    interned_stacks = 7,
    interned_paths = 17,
    interned_mappings = 19,
    interned_number = 1, /* of each of these */
    interned_text = 2,
    frame_function = 2,
    frame_mapping = 3,
    mapping_path = 7,
    stack_frame = 2, /* Callstack */
    sample_process = 2, /* PerfSample */
    sample_thread = 3,
    sample_stack = 4,
    sample_mode = 5,
    event_annotation = 4, /* TrackEvent */
    event_type = 9,
    event_track = 11,
    event_category = 22,
    event_name = 23,
    event_flow = 47,
    event_last_flow = 48,
    annotation_integer = 4, /* DebugAnnotation */
    annotation_text = 6,
    annotation_pointer = 7,
    annotation_name = 10,
    descriptor_number = 1, /* TrackDescriptor */
    descriptor_name = 2,
    descriptor_process = 3,
    descriptor_thread = 4,
    descriptor_parent = 5,
    process_pid = 1, /* ProcessDescriptor */
    process_name = 6,
    thread_pid = 1, /* ThreadDescriptor */
    thread_tid = 2,
    thread_name = 5,
};

enum { slice_begins = 1, slice_ends = 2, instant = 3 };
enum { forgets_interned = 1, needs_interned = 2 }; /* of packet_flags */
enum { mode_of_users = 2 };

/* A message that is being put together. */
struct message {
    unsigned char *bytes;
    size_t size, capacity;
};

static void put_byte(struct message *message, unsigned char byte)
{
    message->bytes = grow_array(message->bytes, message->size, &message->capacity, 1);
    message->bytes[message->size++] = byte;
}

static void put_varint(struct message *message, uint64_t number)
{
    while (number >= 0x80) {
        put_byte(message, (unsigned char)(number | 0x80));
        number >>= 7;
    }
    put_byte(message, (unsigned char)number);
}

static void put_number(struct message *message, unsigned field, uint64_t number)
{
    put_varint(message, field << 3);
    put_varint(message, number);
}

static void put_fixed(struct message *message, unsigned field, uint64_t number)
{
    put_varint(message, field << 3 | 1);
    for (int i = 0; i < 8; i++) {
        put_byte(message, (unsigned char)(number >> 8 * i));
    }
}

static void put_bytes(struct message *message, unsigned field, const void *bytes, size_t size)
{
    put_varint(message, field << 3 | 2);
    put_varint(message, size);
    for (size_t i = 0; i < size; i++) {
        put_byte(message, ((const unsigned char *)bytes)[i]);
    }
}

static void put_text(struct message *message, unsigned field, const char *text)
{
    put_bytes(message, field, text, strlen(text));
}

static void put_message(struct message *message, unsigned field, struct message *inner)
{
    put_bytes(message, field, inner->bytes, inner->size);
    inner->size = 0;
}

struct writer {
    const struct story *story;
    FILE *file;
    struct message packet, part, inner;
    uint32_t *flows_from; /* for each span the first arrow that leads to it, and for each arrow the next one; plus 1, 0: none */
    uint32_t *flows_next;
};

static void send_packet(struct writer *writer)
{
    struct message head = {NULL, 0, 0};

    invariant(writer->part.size == 0 && writer->inner.size == 0);
    put_number(&writer->packet, packet_sequence, 1);
    put_varint(&head, trace_packet << 3 | 2);
    put_varint(&head, writer->packet.size);
    (void)fwrite(head.bytes, 1, head.size, writer->file);
    (void)fwrite(writer->packet.bytes, 1, writer->packet.size, writer->file);
    free(head.bytes);
    writer->packet.size = 0;
}

/* Numbers of tracks: processes first, from 1, and then threads. */
static uint64_t track_of(const struct writer *writer, uint32_t thread)
{
    return 1 + writer->story->traces->process_count + thread;
}

static void describe_tracks(struct writer *writer)
{
    const struct traces *traces = writer->story->traces;

    put_number(&writer->packet, packet_flags, forgets_interned); /* what packets of this sequence have said before */
    for (size_t i = 0; i < traces->process_count; i++) {
        put_number(&writer->inner, process_pid, (uint64_t)(int64_t)traces->processes[i].number);
        put_text(&writer->inner, process_name, traces->processes[i].program);
        put_number(&writer->part, descriptor_number, 1 + i);
        put_message(&writer->part, descriptor_process, &writer->inner);
        put_message(&writer->packet, packet_descriptor, &writer->part);
        send_packet(writer);
    }
    for (uint32_t i = 0; i < traces->thread_count; i++) {
        const struct thread *thread = &traces->threads[i];

        put_number(&writer->inner, thread_pid, (uint64_t)(int64_t)traces->processes[thread->process].number);
        put_number(&writer->inner, thread_tid, (uint64_t)(int64_t)thread->number);
        put_text(&writer->inner, thread_name, thread->name);
        put_number(&writer->part, descriptor_number, track_of(writer, i));
        put_message(&writer->part, descriptor_thread, &writer->inner);
        put_message(&writer->packet, packet_descriptor, &writer->part);
        send_packet(writer);
    }
}

/* Sends the event in `part`, which lacks its type and track. */
static void send_event_of_track(struct writer *writer, int type, uint64_t track, int64_t time_ns)
{
    put_number(&writer->part, event_type, (uint64_t)type);
    put_number(&writer->part, event_track, track);
    put_number(&writer->packet, packet_timestamp, (uint64_t)time_ns);
    put_message(&writer->packet, packet_event, &writer->part);
    send_packet(writer);
}

static void send_event(struct writer *writer, int type, uint32_t thread, int64_t time_ns)
{
    send_event_of_track(writer, type, track_of(writer, thread), time_ns);
}

static void annotate_text(struct writer *writer, const char *name, const char *text)
{
    put_text(&writer->inner, annotation_name, name);
    put_text(&writer->inner, annotation_text, text);
    put_message(&writer->part, event_annotation, &writer->inner);
}

static void begin_slice(struct writer *writer, uint32_t place)
{
    const struct span *span = &writer->story->spans[place];
    const char *name = writer->story->names[span->name].name;

    put_text(&writer->part, event_category, span_kind_name(span->kind));
    put_text(&writer->part, event_name, *name ? name : span_kind_name(span->kind));
    put_text(&writer->inner, annotation_name, "object");
    put_number(&writer->inner, annotation_pointer, span->object);
    put_message(&writer->part, event_annotation, &writer->inner);
    if (*writer->story->names[span->name].place) {
        annotate_text(writer, "place", writer->story->names[span->name].place);
    }
    if (span->kind == span_sleep) {
        annotate_text(writer, "ended by", cause_name(span->cause));
    } else if (span->kind == span_of_callout(trace_observer)) {
        annotate_text(writer, "activity", activity_name(span->cause));
    }
    if (span->due_ns != INT64_MIN) {
        put_text(&writer->inner, annotation_name, "late_ns");
        put_number(&writer->inner, annotation_integer, (uint64_t)(span->begin_ns - span->due_ns));
        put_message(&writer->part, event_annotation, &writer->inner);
    }
    if (span->off_ns > 0) {
        put_text(&writer->inner, annotation_name, "off_processor_ns");
        put_number(&writer->inner, annotation_integer, (uint64_t)span->off_ns);
        put_message(&writer->part, event_annotation, &writer->inner);
    }
    if (*span_state(span)) {
        annotate_text(writer, "state", span_state(span));
    }
    for (uint32_t flow = writer->flows_from[place]; flow != 0; flow = writer->flows_next[flow - 1]) {
        put_fixed(&writer->part, event_last_flow, flow);
    }
    send_event(writer, slice_begins, span->thread, span->begin_ns);
}

/* A thread's open slices. */
struct open {
    uint32_t spans[256];
    unsigned count;
};

static void end_slices(struct writer *writer, struct open *open, unsigned depth)
{
    while (open->count > depth) {
        const struct span *span = &writer->story->spans[open->spans[--open->count]];

        send_event(writer, slice_ends, span->thread, span->end_ns);
    }
}

static void put_slices(struct writer *writer)
{
    const struct story *story = writer->story;
    struct open *open = make_room(story->traces->thread_count, sizeof *open);

    for (uint32_t i = 0; i < story->span_count; i++) {
        struct open *own = &open[story->spans[i].thread];

        end_slices(writer, own, story->spans[i].depth);
        invariant(own->count == story->spans[i].depth && own->count < sizeof own->spans / sizeof own->spans[0]);
        begin_slice(writer, i);
        own->spans[own->count++] = i;
    }
    for (size_t i = 0; i < story->traces->thread_count; i++) {
        end_slices(writer, &open[i], 0);
    }
    free(open);
}

static void put_arrows(struct writer *writer)
{
    for (uint32_t i = 0; i < writer->story->flow_count; i++) {
        const struct flow *flow = &writer->story->flows[i];

        put_text(&writer->part, event_category, "arrow");
        put_text(&writer->part, event_name, flow_kind_name(flow->kind));
        put_fixed(&writer->part, event_flow, i + 1);
        send_event(writer, instant, flow->from_thread, flow->from_ns);
        if (flow->to_span == no_span) {
            put_text(&writer->part, event_category, "arrow");
            put_text(&writer->part, event_name, flow->kind == flow_reply ? "reply received" : flow_kind_name(flow->kind));
            put_fixed(&writer->part, event_last_flow, i + 1);
            send_event(writer, instant, flow->to_thread, flow->to_ns);
        }
    }
}

/* ---- samples ---- */

static void put_interned(struct writer *writer, unsigned field, uint64_t number, const char *text)
{
    put_number(&writer->inner, interned_number, number);
    if (text) {
        put_text(&writer->inner, interned_text, text);
    }
    put_message(&writer->part, field, &writer->inner);
}

static void send_interned(struct writer *writer)
{
    put_number(&writer->packet, packet_flags, needs_interned);
    put_message(&writer->packet, packet_interned, &writer->part);
    send_packet(writer);
}

/* Frames have no part without a file that they are of; all are in one without a name. */
static void intern_functions(struct writer *writer)
{
    const struct story *story = writer->story;

    put_interned(writer, interned_paths, 1, "");
    put_number(&writer->inner, interned_number, 1);
    put_number(&writer->inner, mapping_path, 1);
    put_message(&writer->part, interned_mappings, &writer->inner);
    send_interned(writer);
    for (uint32_t i = 0; i < story->name_count; i++) {
        put_interned(writer, interned_functions, i + UINT64_C(1), story->names[i].name);
        put_number(&writer->inner, interned_number, i + UINT64_C(1));
        put_number(&writer->inner, frame_function, i + UINT64_C(1));
        put_number(&writer->inner, frame_mapping, 1);
        put_message(&writer->part, interned_frames, &writer->inner);
        send_interned(writer);
    }
}

/* The outermost function comes first. */
static void intern_stack(struct writer *writer, uint32_t node)
{
    const struct stack_node *nodes = writer->story->nodes;
    uint32_t names[stack_frames_most];
    unsigned count = 0;

    for (uint32_t at = node + 1; at > 0; at = nodes[at - 1].parent) {
        invariant(count < stack_frames_most);
        names[count++] = nodes[at - 1].name;
    }
    put_number(&writer->inner, interned_number, node + UINT64_C(1));
    while (count > 0) {
        put_number(&writer->inner, stack_frame, names[--count] + UINT64_C(1));
    }
    put_message(&writer->part, interned_stacks, &writer->inner);
    send_interned(writer);
}

static void put_samples(struct writer *writer)
{
    const struct story *story = writer->story;
    const struct traces *traces = story->traces;
    bool *is_interned = make_room(story->node_count, sizeof *is_interned);

    if (story->sample_count > 0) {
        intern_functions(writer);
    }
    for (size_t i = 0; i < story->sample_count; i++) {
        const struct stack_sample_of_story *sample = &story->samples[i];
        const struct thread *thread = &traces->threads[sample->thread];

        if (!is_interned[sample->node]) {
            intern_stack(writer, sample->node);
            is_interned[sample->node] = true;
        }
        put_number(&writer->part, sample_process, (uint64_t)(int64_t)traces->processes[thread->process].number);
        put_number(&writer->part, sample_thread, (uint64_t)(int64_t)thread->number);
        put_number(&writer->part, sample_stack, sample->node + UINT64_C(1));
        put_number(&writer->part, sample_mode, mode_of_users);
        put_number(&writer->packet, packet_timestamp, (uint64_t)sample->time_ns);
        put_number(&writer->packet, packet_flags, needs_interned);
        put_message(&writer->packet, packet_sample, &writer->part);
        send_packet(writer);
    }
    free(is_interned);
}

static void put_turns(struct writer *writer)
{
    const struct story *story = writer->story;

    for (size_t i = 0; i < story->turn_count; i++) {
        const struct processor_turn *turn = &story->turns[i];
        const uint64_t track = track_of(writer, turn->thread) + story->traces->thread_count;

        if (i == 0 || story->turns[i - 1].thread != turn->thread) {
            put_number(&writer->part, descriptor_number, track);
            put_text(&writer->part, descriptor_name, "processor");
            put_number(&writer->part, descriptor_parent, track_of(writer, turn->thread));
            put_message(&writer->packet, packet_descriptor, &writer->part);
            send_packet(writer);
        }
        put_text(&writer->part, event_category, "processor");
        put_text(&writer->part, event_name, turn_kind_name((int)turn->kind));
        send_event_of_track(writer, slice_begins, track, turn->begin_ns);
        send_event_of_track(writer, slice_ends, track, turn->end_ns);
    }
}

int write_perfetto(const struct story *story, FILE *file)
{
    struct writer writer = {.story = story, .file = file};

    writer.flows_from = make_room(story->span_count, sizeof *writer.flows_from);
    writer.flows_next = make_room(story->flow_count, sizeof *writer.flows_next);
    for (uint32_t i = 0; i < story->flow_count; i++) {
        if (story->flows[i].to_span != no_span) {
            writer.flows_next[i] = writer.flows_from[story->flows[i].to_span];
            writer.flows_from[story->flows[i].to_span] = i + 1;
        }
    }
    describe_tracks(&writer);
    put_slices(&writer);
    put_arrows(&writer);
    put_samples(&writer);
    put_turns(&writer);
    return exit_success;
}
