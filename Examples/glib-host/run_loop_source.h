/* SPDX-License-Identifier: Apache-2.0 */
/* A run loop as a GSource: GLib's main loop waits, the run loop is served. Made and used on the run loop's own thread. */
#ifndef RUN_LOOP_SOURCE_H
#define RUN_LOOP_SOURCE_H

#include <CoreFoundation/CoreFoundation.h>
#include <glib.h>

/*
 * Runs `mode` of the calling thread's run loop for as long as the source lives; `ended` is called when that run is
 * over, and the source is gone then.
 */
GSource *run_loop_source_new(CFStringRef mode, void (*ended)(CFRunLoopRunResult result, gpointer data), gpointer data);

#endif
