/* SPDX-License-Identifier: Apache-2.0 */
/* How stalls are told; see stall_report.h. */
#include "Loop/Run/stall_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Kernel/Trace/kernel_stall.h"
#include "Kernel/kernel.h"
#include "Loop/Trace/code_place.h"
#include "Loop/Core/shown.h"
#include "Support/fault.h"
#include "Support/futex.h"
#include "Support/lock.h"

struct lock stall_lock;
static bool has_thread GUARDED_BY(&stall_lock);
static struct stall *_Atomic queued; /* the last one first */
static _Atomic uint32_t bell; /* counts what was queued; the thread sleeps on it */

void stall_setting_release(struct stall_setting *setting)
{
    if (setting && atomic_fetch_sub_explicit(&setting->references, 1, memory_order_acq_rel) == 1) {
        if (setting->release) {
            setting->release(setting->info);
        }
        free(setting);
    }
}

enum { text_size = 16384 };

/* A text that is cut where it does not fit. */
struct report_text {
    size_t length;
    char bytes[text_size];
};

__attribute__((format(printf, 2, 3))) static void append(struct report_text *text, const char *format, ...)
{
    size_t left = sizeof text->bytes - text->length;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text->bytes + text->length, left, format, arguments);
    va_end(arguments);
    if (length > 0) {
        text->length += (size_t)length < left ? (size_t)length : left - 1;
    }
}

/* Not by %f, whose point depends on the locale. */
static void append_seconds(struct report_text *text, int64_t ns)
{
    append(text, "%lld.%03d s", (long long)(ns / 1000000000), (int)(ns / 1000000 % 1000));
}

static void append_callout(struct report_text *text, const struct stall_callout *callout)
{
    static const char *const kinds[trace_callout_count] = {
        [trace_source] = "source",
        [trace_port_source] = "port source",
        [trace_timer] = "timer",
        [trace_observer] = "observer",
        [trace_block] = "block",
        [trace_main_queue] = "main queue",
        [trace_socket] = "socket",
        [trace_descriptor] = "file descriptor",
        [trace_signal_source] = "signal source",
        [trace_child_source] = "child source",
        [trace_message] = "message port",
        [trace_mach_message] = "mach port",
    };
    struct shown function;

    append(text, "%s", kinds[callout->kind]);
    if (callout->kind != trace_block && callout->kind != trace_main_queue) {
        append(text, " 0x%llx", (unsigned long long)callout->item);
    }
    if (callout->function != 0) {
        append(text, ", %s", shown_callout(&function, (void (*)(void))(uintptr_t)callout->function)); /* NOLINT */
    }
}

/* The function, and the place in its file, which addr2line takes. */
static void append_frame(struct report_text *text, uint32_t number, const void *address)
{
    struct code_place place;
    struct shown name;

    code_place_find(&place, address);
    append(text, "  #%-2u ", number);
    if (place.function[0] != '\0') {
        append(text, "%s+0x%lx ", shown_symbol(&name, place.function), (unsigned long)place.into);
    }
    if (place.file[0] == '\0') {
        append(text, "code without a file\n");
    } else {
        append(text, "(%s+0x%lx)\n", shown_text(&name, place.file), (unsigned long)place.at);
    }
}

static void append_thread(struct report_text *text, const struct stall_report *report)
{
    struct shown name;

    append(text, "thread %d (%s)", (int)report->thread, shown_text(&name, report->thread_name));
}

CFRunLoopRef (*stall_copy_server)(const char *port);

/* Follows who waits for whom, until somebody waits for no reply, is in another process, or is the first one again. */
static void append_request(struct report_text *text, const struct stall *stall)
{
    enum { steps_most = 8 };
    struct stall_request request = stall->report.request;
    bool is_circle = false;
    struct shown plain;

    append(text, "  waits for a reply from %s, message %d, since ", shown_text(&plain, request.port), (int)request.message);
    append_seconds(text, stall->report.noticed_ns - request.since_ns);
    for (int i = 0; i < steps_most && !is_circle; i++) {
        CFRunLoopRef server = stall_copy_server ? stall_copy_server(request.port) : NULL;
        struct stall *other = server ? atomic_load_explicit(&server->stall, memory_order_acquire) : NULL;
        uint32_t count;

        if (!other) {
            append(text, server ? "" : ", which is no port of this process with a loop");
            request.port[0] = '\0';
        } else if (other != stall) {
            lock_take(&stall_lock);
            count = atomic_load_explicit(&other->request_count, memory_order_acquire);
            request.port[0] = '\0';
            if (count > 0 && count <= stall_requests_most) {
                request = other->requests[count - 1];
            }
            lock_drop(&stall_lock);
        }
        is_circle = other == stall;
        object_release_if_any(server);
        if (is_circle || request.port[0] == '\0') {
            break;
        }
        append(text, ", which waits for %s", shown_text(&plain, request.port));
    }
    append(text, "%s\n", is_circle ? ": a deadlock" : "");
}

/* The instant from which the innermost callout counts. */
static int64_t callout_begin_ns(const struct stall_report *report)
{
    return report->innermost.ns > report->since_ns ? report->innermost.ns : report->since_ns;
}

static void describe_beginning(struct report_text *text, const struct stall *stall)
{
    const struct stall_report *report = &stall->report;
    char mode[200] = "(none)";
    struct shown plain_mode;

    if (report->mode) {
        (void)CFStringGetCString(report->mode, mode, sizeof mode, kCFStringEncodingUTF8);
    }
    append(text, "stall: ");
    append_thread(text, report);
    append(text, " has not slept for ");
    append_seconds(text, report->noticed_ns - report->since_ns);
    append(text, ", in mode %s\n  ", shown_text(&plain_mode, mode));
    if (report->innermost.item != 0 || report->innermost.function != 0) {
        append(text, "in callout for ");
        append_seconds(text, report->noticed_ns - callout_begin_ns(report));
        append(text, ": ");
        append_callout(text, &report->innermost);
    } else {
        append(text, "between callouts");
    }
    append(text, "; %u callout%s since the sleep\n", (unsigned)report->callouts, report->callouts == 1 ? "" : "s");
    if (report->longest.ns > 0) {
        append(text, "  the longest that has ended took ");
        append_seconds(text, report->longest.ns);
        append(text, ": ");
        append_callout(text, &report->longest);
        append(text, "\n");
    }
    if (report->request.port[0] != '\0') {
        append_request(text, stall);
    }
    for (uint32_t i = 0; i < report->frame_count; i++) {
        append_frame(text, i, report->frames[i]);
    }
}

static void describe_end(struct report_text *text, const struct stall *stall)
{
    const struct stall_report *report = &stall->report;
    uint32_t uncounted = atomic_load_explicit(&stall->uncounted, memory_order_relaxed);

    append(text, "stall: ");
    append_thread(text, report);
    append(text, " goes on after ");
    append_seconds(text, stall->over_ns - report->since_ns);
    if (uncounted > 0) {
        append(text, "; stalls since then that were not told: %u", (unsigned)uncounted);
    }
    append(text, "\n");
}

static struct stall_setting *retain_setting(struct stall *stall)
{
    struct stall_setting *setting;

    lock_take(&stall_lock);
    setting = stall->setting;
    if (setting) {
        (void)atomic_fetch_add_explicit(&setting->references, 1, memory_order_relaxed);
    }
    lock_drop(&stall_lock);
    return setting;
}

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static void tell(struct stall *stall, bool is_over, struct report_text *text)
{
    const struct stall_report *report = &stall->report;
    struct stall_setting *setting = retain_setting(stall);
    CRLStall told = {
        .version = 0,
        .loop = stall->loop,
        .mode = report->mode,
        .isOver = is_over,
        .duration = seconds((is_over ? stall->over_ns : report->noticed_ns) - report->since_ns),
        .callouts = report->callouts,
        .function = (const void *)(uintptr_t)report->innermost.function, /* NOLINT(performance-no-int-to-ptr) */
        .functionDuration = report->innermost.function ? seconds(report->noticed_ns - callout_begin_ns(report)) : 0,
        .frameCount = report->frame_count,
        .frames = report->frames,
        .text = text->bytes,
    };

    text->length = 0;
    text->bytes[0] = '\0';
    if (is_over) {
        describe_end(text, stall);
    } else {
        describe_beginning(text, stall);
    }
    if (setting && setting->callback) {
        setting->callback(&told, setting->info);
    } else if (!setting || !setting->is_off) {
        fault_log_lines(text->bytes);
    }
    stall_setting_release(setting);
}

/* The stall was told to its end. */
static void close_report(struct stall *stall)
{
    struct stall_setting *setting = NULL;

    stall->is_told = false;
    atomic_store_explicit(&stall->uncounted, 0, memory_order_relaxed);
    lock_take(&stall_lock);
    atomic_store_explicit(&stall->state, stall_none, memory_order_release);
    if (stall->has_ended) {
        setting = stall->setting;
        stall->setting = NULL;
    }
    lock_drop(&stall_lock);
    stall_setting_release(setting);
}

/* Tells what there is to tell of one loop, whose reference it then drops. */
static void serve(struct stall *stall, struct report_text *text)
{
    CFRunLoopRef loop = stall->loop;
    uint32_t state;

    atomic_store_explicit(&stall->is_queued, false, memory_order_seq_cst); /* what changes from here on is handed over anew */
    state = atomic_load_explicit(&stall->state, memory_order_seq_cst);
    if (state != stall_none && !stall->is_told) {
        stall->is_told = true;
        tell(stall, false, text);
        state = atomic_load_explicit(&stall->state, memory_order_seq_cst);
    }
    if (state == stall_over) {
        tell(stall, true, text);
        close_report(stall);
    }
    object_release(loop);
}

static void *tell_for_ever(void *info)
{
    static struct report_text text;

    (void)info;
    for (;;) {
        uint32_t heard = atomic_load_explicit(&bell, memory_order_acquire);
        struct stall *stall = atomic_exchange_explicit(&queued, NULL, memory_order_acquire);

        if (!stall) {
            (void)futex_wait(&bell, heard, INT64_MAX);
        }
        while (stall) {
            struct stall *next = stall->next_queued;

            serve(stall, &text);
            stall = next;
        }
    }
    return NULL;
}

void stall_report(struct stall *stall)
{
    struct stall *next;

    if (atomic_exchange_explicit(&stall->is_queued, true, memory_order_seq_cst)) {
        return;
    }
    object_retain(stall->loop);
    next = atomic_load_explicit(&queued, memory_order_relaxed);
    do {
        stall->next_queued = next;
    } while (!atomic_compare_exchange_weak_explicit(&queued, &next, stall, memory_order_release, memory_order_relaxed));
    (void)atomic_fetch_add_explicit(&bell, 1, memory_order_release);
    (void)futex_wake(&bell);
}

int stall_report_prepare(void)
{
    int result = 0;

    lock_take(&stall_lock);
    if (!has_thread) {
        result = kernel.thread_start(tell_for_ever, "stalls");
        has_thread = result == 0;
    }
    lock_drop(&stall_lock);
    return result;
}

/* Only the thread that forked exists. What its parent was about to tell, the parent tells. */
NOT_CHECKED void stall_report_forget_parent(void)
{
    lock_reset(&stall_lock);
    has_thread = false;
    atomic_store_explicit(&queued, NULL, memory_order_relaxed);
}
