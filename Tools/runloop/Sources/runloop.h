/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the command runloop share: traces as they are read, and the story that is made of them.
 *
 *   main.c      the words of the command line
 *   record.c    runloop trace: runs a program that is traced
 *   reading.c   trace files -> events of threads, in order of time; whatever the bytes are
 *   Stacks/     trace --stacks: samples of stacks and of who had a processor, their file, and what a story has of them
 *   Names/      addresses -> names of functions and places in sources, which a child process reads
 *   story.c     events -> spans (runs, passes, sleeps, callouts), arrows between them, and figures; lateness.c makes those of timers,
 *               usage.c those of the processor, requests.c tells who waits for whom
 *   Why/        runloop why: what is wrong in a story, or in a running process
 *   csv.c, perfetto.c, html.c   write the story down; words.c has the names that they give to what is in it
 *   top.c       runloop top: reads the statistics of running processes
 *   allocation.c, pair_table.c   memory, and a hash table
 *
 * One thread, and memory that the process's end gives back.
 */
#ifndef RUNLOOP_H
#define RUNLOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "Loop/Trace/trace_file.h"
#include "Support/invariant.h"
#include "allocation.h"
#include "Names/symbols.h"
#include "command_line.h"

enum { exit_found = 3, exit_not_run = 126, exit_not_found = 127 }; /* of why, if something is wrong; and of trace, as a shell has them */

/* ---- reading ---- */

static const uint32_t no_thread = UINT32_MAX;

struct object_map {
    uint64_t bias, begin, end;
    const char *path;
    bool is_unreadable; /* the child that reads symbols has died of it */
};

struct process {
    int32_t number;
    int32_t parent;
    const char *program; /* the last part of its path */
    const char *file;
    int64_t began_ns;
    int64_t began_s; /* since 1970 */
    int64_t ended_ns; /* 0: the process was killed, or still runs */
    uint64_t lost; /* events of threads without a ring */
    bool has_cut_objects;
    struct object_map *objects;
    size_t object_count;
};

struct thread {
    uint32_t process; /* its place among the processes */
    int32_t number;
    char name[17];
    uint64_t loop; /* 0: the thread has run no loop */
    uint64_t waker;
    uint64_t lost;
    int64_t first_ns; /* when its first event was, and its last */
    int64_t last_ns;
};

struct event {
    int64_t time_ns;
    uint64_t object;
    uint64_t value;
    uint32_t thread;
    uint16_t kind;
    uint16_t detail;
};

/* What a file of samples has told; see Stacks/stack_file.h. */
struct sampled {
    int64_t time_ns;
    int32_t process; /* their numbers in the system, */
    int32_t number;
    uint32_t thread; /* and the thread's place among the threads; no_thread: it has none */
    uint32_t kind; /* enum stack_record_kind */
    uint32_t count; /* addresses of a sample, from `first` on */
    size_t first;
};

struct traces {
    struct process *processes;
    size_t process_count, process_capacity;
    struct thread *threads;
    size_t thread_count, thread_capacity;
    struct event *events; /* by time; those of one thread as it wrote them */
    size_t event_count, event_capacity;
    struct sampled *samples; /* after traces_finish by thread, and then by time; without those of no thread */
    size_t sample_count, sample_capacity;
    uint64_t *addresses; /* of all samples */
    size_t address_count, address_capacity;
    uint64_t samples_lost;
    int64_t sample_step_ns; /* 0: there are none */
    uint64_t events_read; /* and those that were not whole */
    int64_t origin_ns; /* the beginning of the earliest trace; times are written as distances from it */
    int64_t end_ns; /* the latest instant in any trace */
};

/* The latest time in a trace; 73 years. */
static const int64_t time_most_ns = INT64_MAX / 4;

/* Adds a file's events. Returns an exit status after a line on standard error. */
int traces_add(struct traces *traces, const char *path);
/* A file of samples beside a trace is read with it. */
const char *path_of_stacks(const char *trace);
int traces_add_stacks(struct traces *traces, const char *trace);
/* Finds the threads of the samples, which may have run until after their last events, and puts the samples in order. */
void traces_finish_stacks(struct traces *traces);
/* Puts the events of all files in order. */
void traces_finish(struct traces *traces);
/* Adds all files, of which there is one, and finishes. Returns an exit status after a line on standard error. */
int traces_read(struct traces *traces, int count, char **files);

/* ---- symbols ---- */

/* The object that has the address; NULL: none, as for code made at run time, or what is no address. */
struct object_map *object_at(const struct process *process, uint64_t address);
/* The name of what has no object. */
extern const char symbol_without_file[];
/* The name of the function at an address. The texts are never freed. */
struct code_name symbol_name(struct process *process, uint64_t address);

/* ---- the story ---- */

enum span_kind {
    span_run,
    span_pass,
    span_sleep,
    span_callout, /* the first of the callouts, see span_of_callout */
    span_kind_count = (int)span_callout + (int)trace_callout_count
};

/* The kind of a callout's span. */
static inline enum span_kind span_of_callout(enum trace_callout callout)
{
    return (enum span_kind)((unsigned)span_callout + (unsigned)callout);
}

enum span_flag {
    span_is_unfinished = 1, /* still under way when the trace ended */
    span_is_left = 2, /* a callout that did not return, or the pass and the run around it */
    span_began_before = 4, /* the event of its beginning is lost */
    span_is_futile = 8, /* a sleep that returned at once: the thread has not waited */
};

struct span {
    int64_t begin_ns;
    int64_t end_ns;
    int64_t due_ns; /* of a timer's callout; INT64_MIN: none */
    int64_t off_ns; /* of a long callout: how long it was off the processor, apart from sleeps of the loop */
    uint64_t object;
    uint32_t thread;
    uint32_t name; /* in `names`: a function, a mode */
    int32_t descriptor; /* of a callout's item; -1: none is known */
    uint8_t kind;
    uint8_t depth;
    uint8_t flags;
    uint8_t cause; /* of a sleep's end; of an observer's callout the number of the activity's bit */
    uint8_t readiness; /* of the descriptor: 1 readable, 2 writable */
};

enum flow_kind { flow_signal, flow_wake, flow_post, flow_message, flow_reply, flow_kind_count };

struct flow {
    int64_t from_ns;
    int64_t to_ns;
    uint32_t from_thread;
    uint32_t to_thread;
    uint32_t to_span; /* the callout or the sleep; no_span: none */
    uint8_t kind;
};

static const uint32_t no_span = UINT32_MAX;

/* The callouts of one function. */
struct function_figures {
    uint32_t name;
    uint8_t kind;
    uint64_t count;
    int64_t total_ns;
    int64_t longest_ns;
};

struct loop_figures {
    uint64_t runs, passes, sleeps, callouts;
    uint64_t futile; /* sleeps that returned at once, which count as awake */
    int64_t running_ns; /* in outermost runs */
    int64_t asleep_ns;
    int64_t processor_ns; /* that the thread had while it was watched */
    int64_t watched_ns; /* 0: nothing is known of that */
    int64_t longest_awake_ns;
    uint64_t causes[trace_cause_count]; /* what ended its sleeps */
};

/* A time between two sleeps, or since a run began, in which a loop was awake for at least `stall_ns`. */
struct stall_interval {
    int64_t begin_ns;
    int64_t end_ns;
    uint32_t thread;
    uint32_t worst; /* the span of the longest callout in it, or no_span */
};

enum { lateness_buckets = 40 }; /* of powers of 2 of nanoseconds */

struct lateness {
    uint64_t count;
    int64_t p50_ns, p99_ns, most_ns;
    uint64_t buckets[lateness_buckets];
};

enum { request_result_count = 6, request_unfinished = 7 };

/* A request, whose thread waits for the reply. */
struct awaited_request {
    int64_t begin_ns;
    int64_t end_ns;
    uint32_t thread;
    uint32_t name; /* in `names`: the port */
    int32_t message;
    uint32_t server; /* the thread that answers for the port; no_thread: not known */
    uint32_t outer; /* the request in whose wait this one was sent, plus 1; 0: none */
    uint32_t depth; /* how many are around it */
    uint8_t result; /* the result with its sign changed, request_result_count for one that was left, or request_unfinished */
};

static const uint32_t no_request = UINT32_MAX;

/* Threads in a circle, each of which waits for a reply from the next one. */
struct deadlock {
    int64_t begin_ns;
    int64_t end_ns;
    uint32_t request; /* the one that closed the circle */
    uint32_t members;
};

/* An item that has joined a mode: what it calls. */
struct joined_item {
    uint64_t mode; /* its address */
    uint32_t thread; /* that added it */
    uint32_t name; /* of the function */
    uint32_t mode_name;
    uint8_t kind; /* of its callouts */
};

/* A function that was called by its parent: the samples' stacks are paths in this tree. */
struct stack_node {
    uint32_t parent; /* its place plus 1; 0: the outermost */
    uint32_t name;
};

struct stack_sample_of_story {
    int64_t time_ns;
    uint32_t thread;
    uint32_t node; /* of the innermost function */
};

enum turn_kind { turn_runs, turn_waits }; /* has a processor, or waits for one; between turns it sleeps */

struct processor_turn {
    int64_t begin_ns;
    int64_t end_ns;
    uint32_t thread;
    uint32_t kind;
};

struct story {
    struct traces *traces;
    uint32_t *frames; /* the names of the traces' addresses */
    struct stack_node *nodes; /* each behind its parent */
    size_t node_count, node_capacity;
    struct stack_sample_of_story *samples; /* by thread, and then by time */
    size_t sample_count, sample_capacity;
    struct processor_turn *turns; /* by thread, and then by time */
    size_t turn_count, turn_capacity;
    struct span *spans; /* by beginning; an outer one before those in it */
    size_t span_count, span_capacity;
    struct flow *flows;
    size_t flow_count, flow_capacity;
    struct code_name *names; /* of functions, and of modes, which have no place */
    size_t name_count, name_capacity;
    struct loop_figures *loops; /* one for each thread */
    struct function_figures *functions; /* by the longest */
    size_t function_count, function_capacity;
    struct stall_interval *stalls;
    size_t stall_count, stall_capacity;
    struct lateness lateness;
    struct awaited_request *requests; /* by beginning */
    size_t request_count, request_capacity;
    struct deadlock *deadlocks;
    size_t deadlock_count, deadlock_capacity;
    struct joined_item *joined; /* items in modes that have not run */
    size_t joined_count, joined_capacity;
    int64_t stall_ns;
};

void story_tell(struct story *story, struct traces *traces, int64_t stall_ns);
/* Fills in how late the timers were. story_tell calls it. */
void story_tell_lateness(struct story *story);
/* Fills in what the threads had of the processor. story_tell calls it. */
void story_tell_usage(struct story *story);

/* Makes samples and turns of what was sampled. story_tell calls it, with the frames named. */
void story_tell_stacks(struct story *story);
/* For how long the thread was in turns of that kind between two times. */
int64_t turns_between(const struct story *story, uint32_t thread, enum turn_kind kind, int64_t from_ns, int64_t to_ns);
const char *turn_kind_name(int kind);

const char *span_kind_name(int kind);
const char *flow_kind_name(int kind);
const char *cause_name(int cause);
/* "" for a bit without an activity. */
const char *activity_name(int bit);
enum { activity_bits = 8 };
const char *request_result_name(int result);
/* What is written beside a span whose beginning or end is not known; "" for other spans. */
const char *span_state(const struct span *span);

/* ---- the formats: each returns an exit status ---- */

int write_csv(const struct story *story, FILE *file);
int write_perfetto(const struct story *story, FILE *file);
int write_html(const struct story *story, FILE *file);

/* ---- runloop trace ---- */

/* Runs the program with its trace in `file`, NULL: a name made of the program's, and samples beside it. Returns its exit status. */
int record_program(const char *file, const char *buffer, bool is_with_stacks, char **program);

/* ---- runloop why ---- */

/* Says what is wrong in the traces, or in a running process. */
int explain_traces(int count, char **files, int64_t stall_ns, bool is_json);
int explain_process(long process, double interval_s, int64_t stall_ns, bool is_json);

/* ---- statistics ---- */

/* Shows `count` tables, 0 for no end, one every `interval_s`. */
int show_top(double interval_s, long count, bool is_json);

#endif
