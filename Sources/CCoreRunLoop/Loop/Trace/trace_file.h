/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a trace file; docs/trace-format.md says what holds beyond the fields. The library writes them, and the command runloop reads
 * them.
 *
 * The file is mapped into the memory of the process that it tells of, so a process that is killed leaves it readable. Numbers are in the
 * byte order of the machine. Only the thread of a ring writes its events; atomic fields are the ones that several threads write, or whose
 * store says that what was stored before is whole.
 */
#ifndef CRL_LOOP_TRACE_TRACE_FILE_H
#define CRL_LOOP_TRACE_TRACE_FILE_H

#include "Loop/link_names.h"

#include <stdatomic.h>
#include <stdint.h>

enum trace_file_limits {
    trace_file_version = 1,
    trace_file_order = 0x01020304, /* other bytes: written on a machine of the other byte order */
    trace_file_step = 65536, /* regions begin at multiples of this, the largest page of any machine */
    trace_file_areas = 2, /* tables of loaded objects */
    trace_file_rings_at = (1 + trace_file_areas) * trace_file_step,
    trace_ring_most = 1024,
    trace_ring_events_at = 4096,
    trace_path_size = 4096,
    trace_name_most = 64, /* bytes of a name; the rest is cut off */
};

static const char trace_file_magic[8] = {'C', 'R', 'L', 't', 'r', 'a', 'c', 'e'};

enum trace_file_state { trace_is_running = 1, trace_was_stopped = 2, trace_has_exited = 3 };

/* At 0. */
struct trace_file_header {
    char magic[8];
    uint32_t version;
    uint32_t order;
    uint32_t pointer_size;
    int32_t process;
    uint64_t ring_size; /* bytes from one ring to the next */
    uint32_t ring_capacity; /* events of a ring, a power of two */
    _Atomic uint32_t rings; /* that threads have asked for; those beyond the file, or the most, were not made */
    int64_t began_ns; /* on the monotonic clock */
    int64_t began_wall_ns; /* the same instant, since 1970 */
    _Atomic int64_t ended_ns; /* 0: the process was killed, or goes on */
    _Atomic uint32_t state; /* enum trace_file_state */
    _Atomic uint32_t objects; /* which table of loaded objects counts: 0 or 1 */
    _Atomic uint64_t lost; /* events of threads that have no ring */
    int32_t parent; /* the process that this one was forked from while traced; 0: none */
    uint32_t spare;
    char program[trace_path_size]; /* terminated */
};

/* A table of loaded objects: a count of bytes, and then records. */
struct trace_object {
    uint64_t bias; /* to be taken off an address for the number in the object's symbols */
    uint64_t begin; /* of its code */
    uint64_t end;
    uint32_t size; /* of the record: a multiple of 8 */
    uint32_t length; /* of the path */
    char path[];
};

struct trace_objects {
    uint32_t size; /* bytes of the records */
    uint32_t is_cut; /* there was no room for all */
    unsigned char records[trace_file_step - 8];
};

/* At the beginning of a ring. */
struct trace_ring {
    _Atomic uint32_t is_made; /* 1: the fields before `next` are whole */
    int32_t thread;
    char name[16]; /* of the thread, when it wrote its first event */
    _Atomic uint64_t loop; /* the thread's; 0: it has run none */
    _Atomic uint64_t waker; /* what a wake-up of that loop names */
    _Atomic uint64_t next; /* events written: the latest `ring_capacity` of them are in the ring */
};

/* At (next mod capacity) of a ring's events. */
struct trace_event {
    int64_t time_ns; /* monotonic */
    _Atomic uint32_t stamp; /* the lower half of the event's number in the ring plus 1, stored last; otherwise the event is not whole */
    uint16_t kind; /* enum trace_kind */
    uint16_t detail;
    uint64_t object;
    uint64_t value;
};

_Static_assert(sizeof(struct trace_event) == 32, "two in a line of the cache");
_Static_assert(sizeof(struct trace_file_header) <= trace_file_step, "before the objects");
_Static_assert(sizeof(struct trace_objects) == trace_file_step, "a table fills its region");
_Static_assert(sizeof(struct trace_ring) <= trace_ring_events_at, "before the events");

/* What an event says. In brackets: detail; object; value. */
enum trace_kind {
    trace_run_begins = 1, /* [0; the run; its mode] */
    trace_run_ends, /* [1 if a callout left it without returning; the run; 0] */
    trace_pass_begins, /* [0; the run; how many blocks are queued] */
    trace_sleep_begins, /* [0; the run; the instant of the deadline, or the largest number for none] */
    trace_sleep_ends, /* [enum trace_cause; the run; the source that ended it, or 0] */
    trace_callout_begins, /* [enum trace_callout, and for observers the activity from bit 8 on; the item; the function's address] */
    trace_callout_ends, /* [enum trace_callout; the item; 0] */
    trace_signal, /* [0; the source; 0] a source that was not signalled yet */
    trace_wake, /* [0; the waker; 0] a wake-up that was not there yet */
    trace_timer_is_due, /* [0; the timer; the instant of its date] before its callout */
    trace_post, /* [0; the loop; the block's number in it, which is the item of its callout] */
    trace_message_is_sent, /* [enum trace_way; the message; the port] */
    trace_message_comes, /* [enum trace_way; the message; the port] inside its callout */
    trace_reply_is_sent, /* [enum trace_way; the message; the port] */
    trace_reply_comes, /* [enum trace_way; the message; the port] */
    trace_name, /* [the place of the 8 bytes in the name; what has the name; the bytes, zeros after the last] */
    trace_usage, /* [0; how often the thread has waited; its processor time] a tenth of a millisecond apart or more */
    trace_request_begins, /* [0; the message's number in the program; the name of the port] the thread waits until it ends */
    trace_request_ends, /* [the result with its sign changed; as above; as above] */
    trace_port_is_served, /* [0; the local port; its name] by this thread's loop */
    trace_descriptor_is_ready, /* [1 readable, 2 writable, 4 priority, 0 not known; the item; the descriptor] inside its callout */
    trace_item_joins, /* [enum trace_callout; the function; the mode] not the common modes */
    trace_kind_count
};

enum trace_cause {
    trace_cause_limit, /* of the run, or the port's end */
    trace_cause_wake_up,
    trace_cause_timer,
    trace_cause_source,
    trace_cause_main_queue,
    trace_cause_stop,
    trace_cause_reply,
    trace_cause_count
};

enum trace_callout {
    trace_source, /* version 0 */
    trace_port_source, /* version 1 */
    trace_timer,
    trace_observer,
    trace_block,
    trace_main_queue,
    trace_socket,
    trace_descriptor,
    trace_signal_source,
    trace_child_source,
    trace_message,
    trace_mach_message,
    trace_callout_count
};

enum trace_way { trace_within_process, trace_by_socket };

#endif
