/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a file of samples, which stands beside its trace; docs/trace-format.md says what holds beyond the fields. `runloop trace
 * --stacks` writes it (sampling.c), and the other commands read it (stack_reading.c).
 *
 * A header, and then records until the end of the file. Numbers are in the byte order of the machine.
 */
#ifndef RUNLOOP_STACK_FILE_H
#define RUNLOOP_STACK_FILE_H

#include <stdint.h>

enum {
    stack_file_version = 1,
    stack_file_order = 0x01020304, /* other bytes: written on a machine of the other byte order */
    stack_frames_most = 127, /* of a sample: what the kernel gives unless it is told otherwise; outer ones are cut off */
    stack_file_most = 1 << 28, /* bytes; what comes then is counted as lost */
};

static const char stack_file_magic[8] = {'C', 'R', 'L', 's', 't', 'a', 'c', 'k'};

struct stack_file_header {
    char magic[8];
    uint32_t version;
    uint32_t order;
    int64_t step_ns; /* a sample stands for so much time on the processor */
    int32_t process; /* the program that was started */
    uint32_t spare[9];
};

enum stack_record_kind {
    stack_sample = 1, /* `count` addresses, the innermost first; the others are those to which functions return */
    stack_begins_to_run, /* the thread has a processor from now on */
    stack_is_displaced, /* another thread has its processor, for which it waits from now on */
    stack_begins_to_sleep, /* it waits for something else */
    stack_lost, /* one number: how many records there was no room for */
    stack_record_kind_count
};

/* `count` numbers of 8 bytes follow it, whatever the kind. */
struct stack_record {
    int64_t time_ns; /* monotonic, as in the trace */
    int32_t process;
    int32_t thread;
    uint32_t kind; /* a reader passes over those that it does not know */
    uint32_t count; /* at most stack_frames_most */
};

_Static_assert(sizeof(struct stack_file_header) == 64, "no holes");
_Static_assert(sizeof(struct stack_record) == 24, "no holes");

#endif
