/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives the probes of loop_probe.c the harness's trace to write to. Any thread; the trace has its own lock.
 */
#include "Loop/loop_trace.h"

struct trace probe_trace;

void probe_log(const char *token)
{
    trace_add(&probe_trace, token);
}
