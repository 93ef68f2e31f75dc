/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events as static probes, for bpftrace, perf, SystemTap and gdb: provider corerunloop, one probe for each kind of event. A probe is an
 * instruction that does nothing, and a note in the file that says where it is and where its arguments are. It needs a header of
 * systemtap-sdt-dev when the library is built, and nothing at run time.
 *
 * A tracer has the kernel count it in the probe's semaphore. All semaphores are the one half-word of trace_hearers that is looked at for
 * every event anyway. It stands in a section of data, because the kernel counts in the pages of the file.
 */
#include "Loop/Trace/trace.h"

#include "Kernel/kernel.h"
#include "Support/lock.h"

#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpedantic" /* the macros leave out the last argument of a macro that takes any number of them */
#endif

_Alignas(cache_line) __attribute__((section(".probes"))) union trace_hearers trace_hearers = {.any = 0};

/* The name by which the probe finds its semaphore. It is not static, as link-time optimization may put the probe into another file. */
#define PROBE(name) \
    extern _Atomic uint16_t corerunloop_##name##_semaphore __attribute__((alias("crl_trace_hearers"), used, visibility("hidden")))

PROBE(run__begin);
PROBE(run__end);
PROBE(pass);
PROBE(sleep__begin);
PROBE(sleep__end);
PROBE(callout__begin);
PROBE(callout__end);
PROBE(signal);
PROBE(wake);
PROBE(timer__due);
PROBE(post);
PROBE(message__sent);
PROBE(message__received);
PROBE(reply__sent);
PROBE(reply__received);

void trace_probe(enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value)
{
    switch (kind) {
    case trace_run_begins:
        STAP_PROBE2(corerunloop, run__begin, object, value);
        break;
    case trace_run_ends:
        STAP_PROBE2(corerunloop, run__end, object, detail);
        break;
    case trace_pass_begins:
        STAP_PROBE1(corerunloop, pass, object);
        break;
    case trace_sleep_begins:
        STAP_PROBE2(corerunloop, sleep__begin, object, value);
        break;
    case trace_sleep_ends:
        STAP_PROBE3(corerunloop, sleep__end, object, detail, value);
        break;
    case trace_callout_begins:
        STAP_PROBE4(corerunloop, callout__begin, detail & 0xff, object, value, detail >> 8);
        break;
    case trace_callout_ends:
        STAP_PROBE2(corerunloop, callout__end, detail & 0xff, object);
        break;
    case trace_signal:
        STAP_PROBE1(corerunloop, signal, object);
        break;
    case trace_wake:
        STAP_PROBE1(corerunloop, wake, object);
        break;
    case trace_timer_is_due:
        STAP_PROBE3(corerunloop, timer__due, object, value, kernel.monotonic_ns() - (int64_t)value);
        break;
    case trace_post:
        STAP_PROBE2(corerunloop, post, object, value);
        break;
    case trace_message_is_sent:
        STAP_PROBE3(corerunloop, message__sent, object, value, detail);
        break;
    case trace_message_comes:
        STAP_PROBE3(corerunloop, message__received, object, value, detail);
        break;
    case trace_reply_is_sent:
        STAP_PROBE3(corerunloop, reply__sent, object, value, detail);
        break;
    case trace_reply_comes:
        STAP_PROBE3(corerunloop, reply__received, object, value, detail);
        break;
    default: /* these are for the file and the hearers in the process */
        break;
    }
}

#else

_Alignas(cache_line) union trace_hearers trace_hearers = {.any = 0};

void trace_probe(enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value)
{
    (void)kind;
    (void)detail;
    (void)object;
    (void)value;
}

#endif
