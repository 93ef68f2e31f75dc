/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probes' log in the test runner: one trace for each test's process. What a test logs after its thread's end is still in it.
 */
#ifndef CRL_TESTS_LOOP_TRACE_H
#define CRL_TESTS_LOOP_TRACE_H

#include "harness.h"

#include "Loop/loop_probe.h"

extern struct trace probe_trace;

/* Compares the log with the expected one and forgets it. */
#define EXPECT_LOG(_expected)                     \
    do {                                          \
        EXPECT_TRACE(&probe_trace, _expected);    \
        trace_clear(&probe_trace);                \
    } while (0)

#endif
