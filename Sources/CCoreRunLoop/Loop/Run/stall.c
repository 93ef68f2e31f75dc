/* SPDX-License-Identifier: Apache-2.0 */
/* How stalls are noticed; see stall.h. */
#include "Loop/Run/stall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/Trace/kernel_stall.h"
#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Run/stall_report.h"
#include "Support/error_text.h"
#include "Support/fault.h"
#include "Support/lock.h"

static int claimed_signal GUARDED_BY(&stall_lock); /* 0: none yet; never given back */
static _Atomic int64_t limit_of_all_ns; /* relaxed: what the environment says; 0: nothing */

/* ---- on the loop's thread ---- */

static struct stall *own_stall(void)
{
    return thread_loop ? atomic_load_explicit(&thread_loop->stall, memory_order_acquire) : NULL;
}

static int64_t awake_since(struct stall *stall)
{
    return atomic_load_explicit(&stall->awake_since_ns, memory_order_relaxed);
}

static void log_refusal(int error)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    char line[160];

    (void)snprintf(line, sizeof line, "stalls: a thread cannot be watched: %s",
                   error == -EBUSY ? "the program has a handler of its own for SIGURG" : error_text(-error));
    fault_log_once(&logged, line);
}

static void handle_alarm(int signal, siginfo_t *info, void *context);

/* The program may take the signal at any time. Then no alarm is sent to it, and a line says so. */
static bool comes_alarm(const struct stall *stall)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    const char *loss = kernel_stall.signal_loss(stall->signal, handle_alarm);
    char line[160];

    if (loss) {
        (void)snprintf(line, sizeof line, "stalls are not told while the program %s SIGURG, which stuck threads are sent", loss);
        fault_log_once(&logged, line);
    }
    return !loss;
}

/* Makes the thread's alarm, and what it needs. Returns 0 or a negative errno. */
static int make_alarm(struct stall *stall)
{
    int result = stall_report_prepare();

    if (result < 0) {
        return result;
    }
    lock_take(&stall_lock);
    stall->signal = claimed_signal;
    lock_drop(&stall_lock);
    result = kernel_stall.signal_admit(stall->signal);
    return result < 0 ? result : kernel_stall.alarm_create(stall->signal, stall, &stall->alarm);
}

static bool has_alarm(struct stall *stall)
{
    int result;

    if (!stall->has_alarm && !stall->is_refused) {
        result = make_alarm(stall);
        stall->has_alarm = result == 0;
        stall->is_refused = result < 0;
        if (result < 0) {
            log_refusal(result);
        }
    }
    return stall->has_alarm;
}

static void wake(struct stall *stall, int64_t limit_ns)
{
    if (!has_alarm(stall)) {
        return;
    }
    stall->callouts = 0;
    stall->longest.ns = 0;
    atomic_store_explicit(&stall->awake_since_ns, kernel.monotonic_ns(), memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (comes_alarm(stall)) {
        (void)kernel_stall.alarm_set(stall->alarm, limit_ns);
    }
}

/* Whether the alarm has not come that was due by now. */
static bool misses_alarm(struct stall *stall)
{
    int64_t limit_ns = atomic_load_explicit(&stall->limit_ns, memory_order_relaxed);

    return limit_ns > 0 && atomic_load_explicit(&stall->state, memory_order_relaxed) == stall_none &&
           kernel.monotonic_ns() - awake_since(stall) >= limit_ns;
}

static void fall_asleep(struct stall *stall)
{
    if (awake_since(stall) == 0) {
        return;
    }
    (void)kernel_stall.alarm_set(stall->alarm, 0);
    if (misses_alarm(stall)) {
        (void)comes_alarm(stall); /* a callout may have taken the signal */
    }
    /* From here on the handler does nothing, should the signal be on its way. */
    atomic_store_explicit(&stall->awake_since_ns, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&stall->state, memory_order_relaxed) == stall_stuck) {
        stall->over_ns = kernel.monotonic_ns();
        atomic_store_explicit(&stall->state, stall_over, memory_order_seq_cst);
        stall_report(stall);
    }
}

/* Its thread waits for a reply in a mode in which the loop does not do what it does otherwise. */
static bool is_withheld(const struct stall *stall)
{
    const struct run *run = stall->loop->innermost_run;
    uint32_t count = atomic_load_explicit(&stall->request_count, memory_order_relaxed);

    return count > 0 && run && run->mode != (run->outer ? run->outer->mode : stall->loop->default_mode);
}

static void begin_request(struct stall *stall, uint64_t message, const char *port)
{
    uint32_t count = atomic_load_explicit(&stall->request_count, memory_order_relaxed);

    if (count < stall_requests_most) {
        struct stall_request *request = &stall->requests[count];

        lock_take(&stall_lock);
        (void)snprintf(request->port, sizeof request->port, "%s", port);
        request->message = (int32_t)message;
        request->since_ns = kernel.monotonic_ns();
        lock_drop(&stall_lock);
    }
    atomic_store_explicit(&stall->request_count, count + 1, memory_order_release); /* the signal's handler sees no half of a name */
}

static void end_request(struct stall *stall)
{
    uint32_t count = atomic_load_explicit(&stall->request_count, memory_order_relaxed);

    atomic_store_explicit(&stall->request_count, count > 0 ? count - 1 : 0, memory_order_relaxed);
    if (count <= 1 && stall->depth == 0) {
        fall_asleep(stall);
    }
}

static void begin_sleep(struct stall *stall)
{
    int64_t limit_ns = atomic_load_explicit(&stall->limit_ns, memory_order_relaxed);

    if (!is_withheld(stall)) {
        fall_asleep(stall);
    } else if (awake_since(stall) == 0 && limit_ns > 0) {
        wake(stall, limit_ns);
    }
}

static void begin_callout(struct stall *stall, enum trace_callout kind, uint64_t item, uint64_t function)
{
    int64_t limit_ns = atomic_load_explicit(&stall->limit_ns, memory_order_relaxed);
    uint32_t depth = stall->depth;

    if (awake_since(stall) == 0 && limit_ns > 0) {
        wake(stall, limit_ns);
    }
    if (depth < stall_callouts_most) {
        stall->begun[depth].kind = kind;
        stall->begun[depth].item = item;
        stall->begun[depth].function = function;
        stall->begun[depth].ns = kernel.monotonic_ns();
    }
    atomic_signal_fence(memory_order_seq_cst);
    stall->depth = depth + 1;
    stall->callouts = stall->callouts + 1;
}

static int64_t later(int64_t one_ns, int64_t other_ns)
{
    return one_ns > other_ns ? one_ns : other_ns;
}

/* A callout that did not return leaves its place behind. It goes when one around it ends. */
static void end_callout(struct stall *stall, enum trace_callout kind, uint64_t item)
{
    uint32_t depth = stall->depth;
    uint32_t place = depth < stall_callouts_most ? depth : stall_callouts_most;
    int64_t duration_ns;

    if (depth > stall_callouts_most) {
        stall->depth = depth - 1;
        return;
    }
    while (place > 0 && (stall->begun[place - 1].kind != kind || stall->begun[place - 1].item != item)) {
        place--;
    }
    if (place == 0) {
        return; /* it began before the loop was watched */
    }
    place--;
    duration_ns = kernel.monotonic_ns() - later(stall->begun[place].ns, awake_since(stall));
    if (duration_ns > stall->longest.ns) {
        stall->longest = (struct stall_callout){kind, item, stall->begun[place].function, duration_ns};
    }
    stall->depth = place;
}

static struct stall *make_stall(CFRunLoopRef loop)
{
    struct stall *stall = atomic_load_explicit(&loop->stall, memory_order_acquire);
    struct stall *made;

    if (stall) {
        return stall;
    }
    made = calloc(1, sizeof *made);
    if (!made) {
        return NULL;
    }
    made->loop = loop;
    if (!atomic_compare_exchange_strong_explicit(&loop->stall, &stall, made, memory_order_acq_rel, memory_order_acquire)) {
        free(made);
        return stall;
    }
    return made;
}

/* A loop that the program has said nothing about is watched as the environment says. */
static struct stall *watch_as_all(CFRunLoopRef loop)
{
    int64_t limit_ns = atomic_load_explicit(&limit_of_all_ns, memory_order_relaxed);
    struct stall *stall = loop && limit_ns > 0 ? make_stall(loop) : NULL;

    if (stall) {
        atomic_store_explicit(&stall->limit_ns, limit_ns, memory_order_relaxed);
    }
    return stall;
}

/* The run's end: what it called has ended too, one way or another. */
static void leave_run(struct stall *stall, const struct run *run)
{
    if (!run->outer) {
        fall_asleep(stall);
        stall->depth = 0;
        atomic_store_explicit(&stall->request_count, 0, memory_order_relaxed);
    }
}

static void hear(enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value)
{
    struct stall *stall = own_stall();

    if (!stall && (kind == trace_run_begins || kind == trace_request_begins)) {
        stall = watch_as_all(thread_loop);
    }
    if (!stall) {
        return;
    }
    switch (kind) {
    case trace_callout_begins:
        begin_callout(stall, (enum trace_callout)(detail & 0xff), object, value);
        break;
    case trace_callout_ends:
        end_callout(stall, (enum trace_callout)(detail & 0xff), object);
        break;
    case trace_sleep_begins:
        begin_sleep(stall);
        break;
    case trace_request_begins:
        begin_request(stall, object, (const char *)(uintptr_t)value); /* NOLINT(performance-no-int-to-ptr) */
        break;
    case trace_request_ends:
        end_request(stall);
        break;
    case trace_run_ends:
        if (detail) { /* a callout jumped out of it, and of the request that waited in it */
            end_request(stall);
        }
        leave_run(stall, (const struct run *)(uintptr_t)object); /* NOLINT(performance-no-int-to-ptr) */
        break;
    default:
        break;
    }
}

/* ---- in the signal's handler, on the loop's thread ---- */

static void write_report(struct stall *stall, int64_t now_ns, const void *context)
{
    struct stall_report *report = &stall->report;
    const struct run *run = stall->loop->innermost_run;
    uint32_t depth = stall->depth < stall_callouts_most ? stall->depth : stall_callouts_most;
    int count = kernel_stall.backtrace(context, report->frames, stall_frames_most);
    uint32_t requests = atomic_load_explicit(&stall->request_count, memory_order_relaxed);

    report->since_ns = awake_since(stall);
    report->noticed_ns = now_ns;
    report->innermost = (struct stall_callout){.kind = trace_source};
    if (depth > 0) {
        report->innermost = stall->begun[depth - 1];
    }
    report->longest = stall->longest;
    report->request.port[0] = '\0';
    if (requests > 0 && requests <= stall_requests_most) {
        report->request = stall->requests[requests - 1];
    }
    report->callouts = stall->callouts;
    report->frame_count = count > 0 ? (uint32_t)count : 0;
    report->mode = run && run->mode ? run->mode->name : NULL;
    report->thread = kernel_trace.thread_id();
    kernel_trace.thread_name(report->thread_name);
}

static void handle_alarm(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    struct stall *stall = own_stall();
    int64_t limit_ns;
    int64_t now_ns;

    (void)signal;
    if (!stall || info->si_value.sival_ptr != stall || awake_since(stall) == 0) {
        return;
    }
    limit_ns = atomic_load_explicit(&stall->limit_ns, memory_order_relaxed);
    now_ns = kernel.monotonic_ns();
    if (limit_ns == 0) {
        return;
    }
    if (now_ns - awake_since(stall) < limit_ns) { /* it was on its way since before a sleep, or the limit is another now */
        (void)kernel_stall.alarm_set(stall->alarm, awake_since(stall) + limit_ns - now_ns);
    } else if (atomic_load_explicit(&stall->state, memory_order_acquire) != stall_none) {
        (void)atomic_fetch_add_explicit(&stall->uncounted, 1, memory_order_relaxed);
    } else {
        write_report(stall, now_ns, context);
        atomic_store_explicit(&stall->state, stall_stuck, memory_order_seq_cst);
        stall_report(stall);
    }
    errno = saved;
}

/* ---- settings ---- */

/* Claims the signal and begins to hear what loops do, once. Returns false if it cannot. */
static bool begin_hearing(void)
{
    int result = stall_report_prepare();

    lock_take(&stall_lock);
    if (result == 0 && claimed_signal == 0) {
        result = kernel_stall.signal_claim(handle_alarm);
        claimed_signal = result > 0 ? result : 0;
    }
    lock_drop(&stall_lock);
    if (result < 0) {
        log_refusal(result);
        return false;
    }
    trace_let_hear(trace_stalls_hear, hear);
    return true;
}

static struct stall_setting *make_setting(bool is_off, CRLStallCallBack callback, void *info, void (*release)(void *info))
{
    struct stall_setting *setting = malloc(sizeof *setting);

    if (setting) {
        *setting = (struct stall_setting){.references = 1, .is_off = is_off, .callback = callback, .info = info, .release = release};
    }
    return setting;
}

/* Takes over the setting, and returns the one to be released: the one before, or this one if the loop's thread has ended. */
static struct stall_setting *exchange_setting(CFRunLoopRef loop, struct stall *stall, int64_t limit_ns, struct stall_setting *setting)
{
    struct stall_setting *before = setting;

    loop_lock(loop);
    if (!loop->is_dead) {
        lock_take(&stall_lock);
        before = stall->setting;
        stall->setting = setting;
        lock_drop(&stall_lock);
        atomic_store_explicit(&stall->limit_ns, limit_ns, memory_order_relaxed);
    }
    loop_unlock(loop);
    return before;
}

bool stall_watch(CFRunLoopRef loop, int64_t limit_ns, CRLStallCallBack callback, void *info, void (*release)(void *info))
{
    struct stall_setting *setting = make_setting(limit_ns == 0, callback, info, release);
    struct stall *stall = setting && (limit_ns == 0 || begin_hearing()) ? make_stall(loop) : NULL;

    if (!setting && release) {
        release(info);
    }
    stall_setting_release(stall ? exchange_setting(loop, stall, limit_ns, setting) : setting);
    return stall != NULL;
}

/* Returns the limit, or 0 if the text is no number of seconds. Reads a point whatever the locale says. */
static int64_t limit_of_text(const char *text)
{
    double seconds = 0;
    double step = 1;
    bool is_number = false;

    for (; *text >= '0' && *text <= '9'; text++) {
        seconds = seconds * 10 + (*text - '0');
        is_number = true;
    }
    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9'; text++) {
            step /= 10;
            seconds += step * (*text - '0');
            is_number = true;
        }
    }
    return is_number && *text == '\0' && seconds > 0 ? instant_interval_ns(seconds) : 0;
}

void stalls_watch_from_environment(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    const char *text = kernel_ports.environment("CORERUNLOOP_STALL");
    int64_t limit_ns = text ? limit_of_text(text) : 0;

    if (!text || *text == '\0') {
        return;
    }
    if (limit_ns == 0) {
        fault_log_once(&logged, "CORERUNLOOP_STALL is no number of seconds above 0; no loop is watched for stalls");
    } else if (begin_hearing()) {
        atomic_store_explicit(&limit_of_all_ns, limit_ns, memory_order_relaxed);
    }
}

/* ---- the end of a thread, and fork ---- */

void stall_end(CFRunLoopRef loop)
{
    struct stall *stall = atomic_load_explicit(&loop->stall, memory_order_acquire);
    struct stall_setting *setting = NULL;

    if (!stall) {
        return;
    }
    fall_asleep(stall);
    stall->depth = 0;
    atomic_store_explicit(&stall->limit_ns, 0, memory_order_relaxed);
    if (stall->has_alarm) {
        stall->has_alarm = false;
        (void)kernel_stall.alarm_delete(stall->alarm);
    }
    lock_take(&stall_lock);
    stall->has_ended = true;
    if (atomic_load_explicit(&stall->state, memory_order_relaxed) == stall_none) {
        setting = stall->setting;
        stall->setting = NULL;
    }
    lock_drop(&stall_lock);
    stall_setting_release(setting);
}

NOT_CHECKED void stalls_forget_parent(void)
{
    struct stall *stall = own_stall();

    stall_report_forget_parent();
    if (stall) {
        stall->has_alarm = false;
        atomic_store_explicit(&stall->awake_since_ns, 0, memory_order_relaxed);
        stall->is_told = false;
        atomic_store_explicit(&stall->is_queued, false, memory_order_relaxed);
        atomic_store_explicit(&stall->state, stall_none, memory_order_relaxed);
    }
}
