/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stalls: loops that do not get to sleep. A loop that is watched has a `struct stall`, an alarm of its thread, and a thread of the process
 * that tells what was found (stall_report.h). Nothing of that is there before somebody asks for it.
 *
 * The first callout after a sleep sets the alarm, and the next sleep, or the end of the outermost run, silences it. So the alarm's signal
 * only ever interrupts a thread that is stuck. The signal's handler writes down what the thread is doing, and hands that over.
 *
 *   state of the report   set by                            who may touch the report
 *   none                  the telling thread, at the end    the handler
 *   stuck                 the handler                       the telling thread
 *   over                  the loop's thread, at its sleep   the telling thread
 *
 * While a report is not told to its end, the next stall of the loop is only counted.
 */
#ifndef CRL_LOOP_RUN_STALL_H
#define CRL_LOOP_RUN_STALL_H

#include "Loop/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "CRLRunLoop.h"
#include "Kernel/Trace/kernel_trace.h"
#include "Loop/Core/loop.h"
#include "Loop/Trace/trace.h"

enum { stall_callouts_most = 16, stall_frames_most = 64, stall_requests_most = 4 };

/* What the program wants; counted by references, of the loop and of the thread that tells. */
struct stall_setting {
    _Atomic uint32_t references;
    bool is_off; /* constant: the loop is not watched */
    CRLStallCallBack callback; /* constant; NULL: lines on standard error */
    void *info; /* constant */
    void (*release)(void *info); /* constant; may be NULL */
};

/* A callout that has begun, or the longest one that has ended. */
struct stall_callout {
    enum trace_callout kind;
    uint64_t item;
    uint64_t function;
    int64_t ns; /* the instant of its beginning; of one that has ended its duration */
};

/* A request that the thread has sent, and to which it waits for a reply in a nested run. */
struct stall_request {
    char port[132]; /* its name */
    int32_t message;
    int64_t since_ns;
};

struct stall_report {
    int64_t since_ns; /* the first callout after the last sleep */
    int64_t noticed_ns;
    struct stall_callout innermost; /* no function and no item: between callouts */
    struct stall_callout longest; /* that had ended by then */
    uint32_t callouts; /* that had begun */
    uint32_t frame_count;
    CFStringRef mode; /* borrowed from a mode of the loop; NULL: no run */
    int32_t thread;
    char thread_name[kernel_thread_name_size];
    const void *frames[stall_frames_most];
    struct stall_request request; /* the innermost; without a name there is none */
};

enum stall_state { stall_none, stall_stuck, stall_over };

/* Belongs to its loop, and is freed with it. */
struct stall {
    CFRunLoopRef loop; /* constant */
    _Atomic int64_t limit_ns; /* relaxed; 0: nobody wants to hear */
    struct stall_setting *setting; /* stall_lock; NULL: lines on standard error */
    bool has_ended; /* stall_lock: the loop's thread has; the setting goes with the last report */

    /* Of the loop's thread, whose signal handler reads what is volatile at any instruction. */
    int signal; /* the alarm's */
    timer_t alarm;
    bool has_alarm;
    bool is_refused; /* there was no room for an alarm */
    _Atomic int64_t awake_since_ns; /* relaxed; 0: no callout since the last sleep */
    volatile uint32_t depth; /* of callouts, also of those that have no place below */
    volatile uint32_t callouts;
    volatile struct stall_callout begun[stall_callouts_most];
    volatile struct stall_callout longest;
    _Atomic uint32_t request_count; /* of the thread; one in a callout of another's wait; also of those that have no place below */
    struct stall_request requests[stall_requests_most]; /* written with stall_lock, for others to read with it */

    struct stall_report report; /* see the table above */
    _Atomic uint32_t state; /* enum stall_state */
    int64_t over_ns; /* as the report */
    _Atomic uint32_t uncounted; /* relaxed: stalls while a report was not yet told to its end */
    atomic_bool is_queued; /* the telling thread has it in its list, with a reference to the loop */
    struct stall *next_queued;
    bool is_told; /* the telling thread's: its beginning */
};

/*
 * Watches the loop, or no longer with a `limit_ns` of 0. Takes over `info`: `release` is called once. Returns false, having done so, if
 * there is no memory, no thread or no signal.
 */
EXCLUDES(the_loop_lock)
bool stall_watch(CFRunLoopRef loop, int64_t limit_ns, CRLStallCallBack callback, void *info, void (*release)(void *info));

/* Watches every loop if the environment asks for it. What it says must be a number of seconds; if not, that is one line. */
void stalls_watch_from_environment(void);

/* The loop's thread ends. */
EXCLUDES(the_loop_lock) void stall_end(CFRunLoopRef loop);

/* In the child of a fork, which has neither alarms nor the thread that tells. */
void stalls_forget_parent(void);

#endif
