/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command runloop with traces that change while they are read: each copy of a part of the file may differ from the one before. The
 * command says why it refuses a trace, or writes it with the samples beside it in all three forms, and what is wrong in it. fuzz_symbols.c
 * reads symbols.
 *
 * Input: two bytes for each copy that is taken, which say where it differs and how, then what differs in a small trace.
 * The command leaves its memory to the end of its process; here it is freed after each input.
 */
#include <fcntl.h>
#include <sanitizer/allocator_interface.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "Stacks/stack_file.h"
#include "check.h"
#include "regular_file.h"
#include "runloop.h"

enum { changes = 24, file_size = trace_file_rings_at + 2 * trace_file_step, blocks_most = 1 << 16 };

static const uint8_t *input;
static size_t input_size;
static unsigned copies;
static unsigned char trace[file_size];
static unsigned char stacks[1024]; /* the samples beside it */
static size_t stacks_size;
static int stacks_file; /* the descriptor that stands for them; -1: none */

/* ---- the memory of the command ---- */

static const volatile void *blocks[blocks_most];
static bool is_noting;

/* The place of a block, or of its end in the table: one of the places behind where its address leads to. */
static size_t place_of(const volatile void *block)
{
    size_t at = (size_t)((uintptr_t)block >> 4) * 0x9E3779B97F4A7C15u >> 48;

    while (blocks[at] && blocks[at] != block) {
        at = (at + 1) % blocks_most;
    }
    return at;
}

static void note_block(const volatile void *block, size_t size)
{
    (void)size;
    if (is_noting && block) {
        blocks[place_of(block)] = block;
    }
}

/* Moves the blocks behind it to where they are found without it. */
static void forget_block(const volatile void *block)
{
    size_t at = is_noting && block ? place_of(block) : blocks_most;

    if (at == blocks_most || !blocks[at]) {
        return;
    }
    blocks[at] = NULL;
    for (at = (at + 1) % blocks_most; blocks[at]; at = (at + 1) % blocks_most) {
        const volatile void *moved = blocks[at];

        blocks[at] = NULL;
        blocks[place_of(moved)] = moved;
    }
}

static void free_all(void)
{
    is_noting = false;
    for (size_t i = 0; i < blocks_most; i++) {
        if (blocks[i]) {
            free((void *)(uintptr_t)blocks[i]);
            blocks[i] = NULL;
        }
    }
}

/* ---- instead of command_line.c and regular_file.c ---- */

int fail(int status, const char *format, ...)
{
    CHECK(status == exit_error && format);
    return status;
}

int misuse(const char *format, ...)
{
    CHECK(format);
    return exit_usage;
}

int regular_file_open(const char *path, struct stat *ret_status, const char **ret_reason)
{
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const bool is_stacks = strcmp(path, "trace.stacks") == 0;

    CHECK(is_stacks || strcmp(path, "trace") == 0);
    *ret_reason = "";
    memset(ret_status, 0, sizeof *ret_status);
    ret_status->st_size = (off_t)(is_stacks ? stacks_size : sizeof trace);
    stacks_file = is_stacks ? file : -1;
    return file;
}

/* Changes the copy: its end is cut off, or some of 8 bytes are others, of which the last may be the upper one of a number. */
static size_t change_copy(unsigned char *bytes, size_t count, unsigned where, unsigned what)
{
    if (where >= 0xF0) {
        return count * (where - 0xF0) / 16;
    }
    for (size_t i = 0; i < 8 && where * 4 + i < count; i++) {
        bytes[where * 4 + i] ^= (what >> i & 1) == 0 ? 0 : i == 7 ? 0x80 : 0xFF;
    }
    return count;
}

size_t regular_file_copy(int descriptor, uint64_t at, void *ret_bytes, size_t size)
{
    const unsigned char *bytes = descriptor == stacks_file ? stacks : trace;
    const size_t whole = descriptor == stacks_file ? stacks_size : sizeof trace;
    size_t count = at < whole ? (size < whole - at ? size : (size_t)(whole - at)) : 0;
    const uint8_t *change = copies < changes && 2 * copies + 1 < input_size ? input + 2 * copies : NULL;

    CHECK(descriptor >= 0);
    copies++;
    memcpy(ret_bytes, bytes + (count > 0 ? at : 0), count);
    return change ? change_copy(ret_bytes, count, change[0], change[1]) : count;
}

uint64_t regular_file_skip(int descriptor, uint64_t at)
{
    CHECK(descriptor >= 0);
    return at;
}

/* Instead of symbols.c: names that are the same for different functions, and one that is no text. */
struct object_map *object_at(const struct process *process, uint64_t address)
{
    return process->object_count > 0 && address % 3 ? process->objects : NULL;
}

struct code_name symbol_name(struct process *process, uint64_t address)
{
    static const char *const names[] = {"one", "two", "</script>\"\x1b\xff", ""};

    CHECK(address != 0);
    return (struct code_name){names[address & 3], process->object_count > 0 && address & 4 ? "a.c:1" : ""};
}

/* ---- the trace ---- */

/* Overlays a good part of a file with bytes of the input; 0xAA stands for what is there already. */
static void overlay(void *part, size_t size, size_t *from)
{
    unsigned char *bytes = part;

    for (size_t i = 0; i < size && *from < input_size; i++, (*from)++) {
        bytes[i] = input[*from] == 0xAA ? bytes[i] : input[*from];
    }
}

static void make_ring(int number, size_t *from)
{
    unsigned char *at = trace + trace_file_rings_at + number * trace_file_step;
    struct trace_ring *ring = (void *)at;
    struct trace_event *events = (void *)(at + trace_ring_events_at);

    *ring = (struct trace_ring){.is_made = 1, .thread = number, .name = "thread", .loop = 5, .waker = 6, .next = 40};
    for (uint32_t i = 0; i < 40; i++) {
        events[i] = (struct trace_event){
            .time_ns = i * 2 + number + 1, .stamp = i + 1, .kind = i % (trace_kind_count - 1) + 1, .detail = 2, .object = 5, .value = i};
    }
    overlay(ring, sizeof *ring, from);
    overlay(events, 40 * sizeof *events, from);
}

/* Two records of each kind, and one kind more. */
static void make_stacks(size_t *from)
{
    const struct stack_file_header header = {.version = stack_file_version, .order = stack_file_order, .step_ns = 10, .process = 1};
    const uint64_t address = 5;

    memcpy(stacks, &header, sizeof header);
    memcpy(stacks, stack_file_magic, sizeof stack_file_magic);
    stacks_size = sizeof header;
    for (uint32_t i = 0; i < 12; i++) {
        const struct stack_record record = {.time_ns = i * 7 + 1,
                                            .process = 1,
                                            .thread = (int32_t)(i % 2),
                                            .kind = i % 6 + 1,
                                            .count = i % 6 + 1 == stack_sample || i % 6 + 1 == stack_lost};

        memcpy(stacks + stacks_size, &record, sizeof record);
        memcpy(stacks + stacks_size + sizeof record, &address, record.count * sizeof address);
        stacks_size += sizeof record + record.count * sizeof address;
    }
    CHECK(stacks_size <= sizeof stacks);
    overlay(stacks, stacks_size, from);
}

static void make_trace(void)
{
    struct trace_file_header *header = (void *)trace;
    struct trace_objects *objects = (void *)(trace + trace_file_step);
    const struct trace_object object = {.end = UINT64_MAX, .size = 48, .length = 8};
    size_t from = 2 * (size_t)changes;

    memset(trace, 0, sizeof trace);
    *header = (struct trace_file_header){.version = trace_file_version,
                                         .order = trace_file_order,
                                         .pointer_size = 8,
                                         .process = 1,
                                         .ring_size = trace_file_step,
                                         .ring_capacity = 64,
                                         .rings = 2,
                                         .began_ns = 1,
                                         .ended_ns = 1000,
                                         .program = "/bin/program"};
    memcpy(header->magic, trace_file_magic, sizeof header->magic);
    objects->size = object.size;
    memcpy(objects->records, &object, sizeof object);
    memcpy(objects->records + sizeof object, "/bin/prog", object.length);
    overlay(header, 96, &from);
    overlay(objects, 64, &from);
    make_stacks(&from);
    make_ring(0, &from);
    make_ring(1, &from);
}

static void export_trace(FILE *output)
{
    static char *files[] = {"trace"};
    struct traces traces = {0};
    struct story story;
    int result;

    copies = 0;
    if (traces_read(&traces, 1, files) == exit_success) {
        story_tell(&story, &traces, 250000000);
        CHECK(write_csv(&story, output) == exit_success);
        CHECK(write_perfetto(&story, output) == exit_success);
        CHECK(write_html(&story, output) == exit_success);
    }
    copies = 0;
    result = explain_traces(1, files, 10, input_size % 2 != 0);
    CHECK(result == exit_success || result == exit_found || result == exit_error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static FILE *output;
    static bool has_hooks;

    if (!output) {
        output = fopen("/dev/null", "w");
        CHECK(output && fputc(' ', output) == ' '); /* its buffer is made now */
        stdout = output; /* of why */
        has_hooks = __sanitizer_install_malloc_and_free_hooks(note_block, forget_block) > 0;
        CHECK(has_hooks);
    }
    input = bytes;
    input_size = size;
    make_trace();
    is_noting = true;
    export_trace(output);
    free_all();
    return 0;
}
