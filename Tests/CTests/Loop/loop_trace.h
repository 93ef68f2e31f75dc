/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probes' log in the test runner, and the virtual clock that most tests of times run on.
 *
 * One log for each test's process; what a test's threads log when they end is in it, too. With the virtual clock a wait in which nothing
 * else is ready ends at its deadline at once, so that a test says exactly when something fires. It is for tests with one thread.
 */
#ifndef CRL_TESTS_LOOP_TRACE_H
#define CRL_TESTS_LOOP_TRACE_H

#include "harness.h"

#include "CRLRunLoop.h"
#include "Loop/loop_probe.h"

/* The usual mode: not a common one, so that a main loop that serves a dispatch queue behaves like any other. */
#define MODE CFSTR("test")
#define LOOP CFRunLoopGetCurrent()

extern struct trace probe_trace;

/* Compares the log with the expected one and forgets it. */
#define EXPECT_LOG(_expected)                  \
    do {                                       \
        EXPECT_TRACE(&probe_trace, _expected); \
        trace_clear(&probe_trace);             \
    } while (0)

/* Installs the virtual clock at 0. First statement of a test. */
void clock_start(void);
/* Milliseconds since clock_start, to the nearest. */
long clock_ms(void);
/* As if the calling code took that long. */
void clock_spend_ms(long milliseconds);
/* Action of a probe: logs name@milliseconds. Use with probe_is_silent. */
void probe_notes_ms(struct probe *probe);

/* Seconds for another thread to do something first. */
double long_enough_s(void);
/*
 * For what another thread does while a loop sleeps, which a busy machine may hold up. The thread says when it has done it; the run says
 * whether that was before `due_s`, and if it was not even in this run, waits for it with others. The attempt returns that, and is made
 * again until it was in time, each time with an empty log and the loop of a new thread.
 */
void try_until_in_time(bool (*attempt)(void));
void note_done(void);
bool run_beside(struct probe_thread *other, CFTimeInterval seconds, double due_s);

/* How often `function` has `fragment` written to standard error: what the library logs goes there, and much of it only once. */
int logged_lines(const char *fragment, void (*function)(void));

#endif
