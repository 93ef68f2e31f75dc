/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes: sources, timers and observers that write down when they are called, and helpers to run loops on threads.
 *
 * Shared by the behaviour tests and by the conformance programs, which are also built against another Core Foundation: so only public
 * API is used here, and the log itself belongs to the program that links this file: it defines `probe_log`.
 * Tokens are the specification's shorthand: E BT BS BW AW X for activities, a probe's name for its callback, `name+mode` and `name-mode`
 * for schedule and cancel, `retain(name)` and `release(name)` for its context, F S TO HS for the results of a run.
 */
#ifndef CRL_TESTS_LOOP_PROBE_H
#define CRL_TESTS_LOOP_PROBE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include <CoreFoundation/CoreFoundation.h>

/* Appends one token to the program's log. Any thread. */
void probe_log(const char *token);

/* Formats one token and appends it. */
void probe_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum probe_logging {
    probe_logs_callbacks = 0, /* the name, at each callback */
    probe_logs_membership = 1, /* schedule and cancel too */
    probe_logs_context = 2, /* retain and release of the context too */
    probe_is_silent = 4, /* nothing at all; calls are still counted */
    probe_has_no_context_calls = 8, /* the context's retain and release are NULL */
};

/* One item's recorder. It must outlive the item; start it with PROBE(). The action runs inside the callback, after the name is logged. */
struct probe {
    const char *name;
    void (*action)(struct probe *probe);
    void *context; /* the action's own */
    unsigned logging; /* enum probe_logging */
    _Atomic CFRunLoopActivity activity; /* of an observer: the one now delivered */
    CFTypeRef item; /* borrowed: the source, timer or observer made for this probe */
    int descriptor; /* of a version-1 source */
    _Atomic int calls;
    _Atomic int retains;
    _Atomic int releases;
    _Atomic int schedules;
    _Atomic int cancels;
};

#define PROBE(name_, action_) {.name = (name_), .action = (action_), .descriptor = -1}

/* The makers return an item that the caller owns, and note it in probe->item. */
CFRunLoopSourceRef probe_source(struct probe *probe, CFIndex order);
CFRunLoopSourceRef probe_port_source(struct probe *probe, CFIndex order, int descriptor);
CFRunLoopTimerRef probe_timer(struct probe *probe, CFTimeInterval from_now, CFTimeInterval interval);
CFRunLoopTimerRef probe_timer_at(struct probe *probe, CFAbsoluteTime fire_date, CFTimeInterval interval);
CFRunLoopObserverRef probe_observer(struct probe *probe, CFOptionFlags activities, bool repeats, CFIndex order);

/* The same, added to a mode of a loop and released: the loop holds them. */
CFRunLoopSourceRef probe_source_add(struct probe *probe, CFIndex order, CFRunLoopRef loop, CFStringRef mode);
CFRunLoopSourceRef probe_port_source_add(struct probe *probe, CFIndex order, int descriptor, CFRunLoopRef loop, CFStringRef mode);
CFRunLoopTimerRef probe_timer_add(struct probe *probe, CFTimeInterval from_now, CFTimeInterval interval, CFRunLoopRef loop,
                                  CFStringRef mode);
CFRunLoopObserverRef probe_observer_add(struct probe *probe, CFOptionFlags activities, CFIndex order, CFRunLoopRef loop, CFStringRef mode);

/* An observer of all activities that logs E BT BS BW AW X; its order is the highest, so that others come first. */
CFRunLoopObserverRef probe_activities_add(CFRunLoopRef loop, CFStringRef mode);

const char *probe_activity_name(CFRunLoopActivity activity);
const char *probe_result_name(CFRunLoopRunResult result);

/* Runs the calling thread's loop and logs the result. */
CFRunLoopRunResult probe_run(CFStringRef mode, CFTimeInterval seconds, bool return_after_source);

/*
 * Runs `mode` of the calling thread's loop inside a run of another mode, in a source's callback. Whether a callback of `mode` left its run
 * by longjmp(probe_way_out, 1), to that source's.
 */
bool probe_run_is_left(CFStringRef mode);
extern jmp_buf probe_way_out;

/* Logs `label=text` of a string or `label=NULL`, and `label=yes` or `label=no`. */
void probe_note_string(const char *label, CFStringRef string);
void probe_note_bool(const char *label, bool value);
void probe_note_current_mode(const char *label, CFRunLoopRef loop);
bool probe_mode_exists(CFRunLoopRef loop, CFStringRef mode);

/* An observer of all activities and a source that is never signalled, in `mode` of the calling thread's loop. */
void probe_stage(CFStringRef mode);

static inline CFRunLoopSourceRef probe_source_of(const struct probe *probe)
{
    return (CFRunLoopSourceRef)(uintptr_t)probe->item;
}

static inline CFRunLoopTimerRef probe_timer_of(const struct probe *probe)
{
    return (CFRunLoopTimerRef)(uintptr_t)probe->item;
}

static inline CFRunLoopObserverRef probe_observer_of(const struct probe *probe)
{
    return (CFRunLoopObserverRef)(uintptr_t)probe->item;
}

/* Whatever the item is. */
void probe_invalidate(struct probe *probe);
void probe_remove(struct probe *probe, CFRunLoopRef loop, CFStringRef mode);
bool probe_is_valid(struct probe *probe);

/* Common actions. "Its context" is another probe; "the loop" is the calling thread's, "the mode" the one that it runs. */
void probe_stops_loop(struct probe *probe);
void probe_wakes_loop(struct probe *probe);
void probe_signals_itself(struct probe *probe);
void probe_signals_itself_once(struct probe *probe); /* in the first call */
void probe_signals_its_context(struct probe *probe);
void probe_invalidates_itself(struct probe *probe);
void probe_invalidates_its_context(struct probe *probe);
void probe_removes_itself(struct probe *probe); /* from the mode */
void probe_removes_its_context(struct probe *probe);
void probe_notes_validity(struct probe *probe);
void probe_notes_activity(struct probe *probe); /* name:activity */
void probe_runs_nested(struct probe *probe); /* the mode, for 0 seconds, between { and } */

/* Threads. */
struct probe_thread {
    pthread_t thread;
    void (*function)(void *context);
    void *context;
    CFRunLoopRef loop; /* of probe_thread_when_waiting */
};
void probe_thread_start(struct probe_thread *thread, void (*function)(void *context), void *context);
void probe_thread_join(struct probe_thread *thread);
/* Calls the function on a new thread as soon as `loop` is asleep. */
void probe_thread_when_waiting(struct probe_thread *thread, CFRunLoopRef loop, void (*function)(void *context), void *context);
/* Runs the function on a new thread, to its end: a fresh loop that is gone afterwards. */
void probe_on_thread(void (*function)(void *context), void *context);

void probe_await_sleep(CFRunLoopRef loop); /* until CFRunLoopIsWaiting */
void probe_await_count(const _Atomic int *counter, int at_least);

/* Seconds of the monotonic clock, never a virtual one. */
double probe_seconds(void);

/* An eventfd with 0 in it, and one more event in one. */
int probe_event(void);
void probe_event_post(int event);

#endif
