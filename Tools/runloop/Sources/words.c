/* SPDX-License-Identifier: Apache-2.0 */
/* What people read for the kinds of spans, arrows, causes and activities. */
#include "runloop.h"

const char *span_kind_name(int kind)
{
    static const char *const names[span_kind_count] = {"run",        "pass",     "sleep",         "source",     "port",
                                                       "timer",      "observer", "block",         "main queue", "socket",
                                                       "descriptor", "signal",   "child process", "message",    "mach message"};

    invariant(kind >= 0 && kind < span_kind_count);
    return names[kind];
}

const char symbol_without_file[] = "code without a file";

const char *turn_kind_name(int kind)
{
    return kind == turn_runs ? "runs" : "waits for a processor";
}

const char *flow_kind_name(int kind)
{
    static const char *const names[flow_kind_count] = {"signal", "wake-up", "post", "message", "reply"};

    invariant(kind >= 0 && kind < flow_kind_count);
    return names[kind];
}

const char *cause_name(int cause)
{
    static const char *const names[trace_cause_count] = {"limit", "wake-up", "timer", "source", "main queue", "stop", "reply"};

    return cause < trace_cause_count ? names[cause] : "unknown";
}

const char *activity_name(int bit)
{
    static const char *const names[activity_bits] = {"Entry", "BeforeTimers",  "BeforeSources", "",
                                                     "",      "BeforeWaiting", "AfterWaiting",  "Exit"};

    return bit < activity_bits ? names[bit] : "";
}

const char *span_state(const struct span *span)
{
    if (span->flags & span_is_left) {
        return "did not return";
    }
    if (span->flags & span_is_unfinished) {
        return "unfinished";
    }
    if (span->flags & span_is_futile) {
        return "returned at once";
    }
    return span->flags & span_began_before ? "began before" : "";
}

const char *request_result_name(int result)
{
    static const char *const names[] = {"replied",         "send timeout",        "receive timeout", "port is invalid",
                                        "transport error", "port became invalid", "left by a jump",  "no reply yet"};

    invariant(result >= 0 && result <= request_unfinished);
    return names[result];
}
