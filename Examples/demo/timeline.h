/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time line: one line for each pass of the loop, written piece by piece as an observer hears of the pass's steps.
 *
 * Coloured on a terminal, plain ASCII elsewhere. All of it is used on the loop's thread only.
 */
#ifndef DEMO_TIMELINE_H
#define DEMO_TIMELINE_H

#include <CoreFoundation/CoreFoundation.h>
#include <stdbool.h>

enum event_kind { event_timer, event_input, event_command, event_note, event_kinds };

/* `input` and `ending` are told in the heading. */
void timeline_begin(CFRunLoopRef loop, CFStringRef mode, const char *input, const char *ending);

/* Something that the loop has called; it stands where the loop called it. */
void timeline_event(enum event_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Bytes of others, in quotes, without what would disturb a terminal. */
void timeline_text(enum event_kind kind, const char *label, const char *text, size_t length);

/* The last lines: what there was, and why the run has ended. */
void timeline_end(CFRunLoopRunResult result);

/* Seconds since timeline_begin. */
double timeline_seconds(void);

#endif
