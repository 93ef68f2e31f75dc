/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what loops do; see statistics.h. The lock is for whoever makes the page or takes a place. Counting takes none: a place has one
 * writer, the thread whose `own` points to it.
 */
#include "Loop/Trace/statistics.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/Trace/kernel_trace.h"
#include "Kernel/kernel.h"
#include "Loop/Trace/statistics_file.h"
#include "Loop/Trace/trace.h"
#include "Support/error_text.h"
#include "Support/fault.h"
#include "Support/lock.h"

enum { callouts_most = 16, directory_size = 3500, path_size = 4096 };

static struct lock statistics_lock;
static struct statistics_page *page GUARDED_BY(&statistics_lock); /* NULL: none yet in this process */
static struct statistics_page own_page; /* what `page` is without a file. It takes no memory before */
static bool has_file; /* constant: the environment asks for one */
static int page_file GUARDED_BY(&statistics_lock); /* open as long as there is a page with a file: it holds the lock on that */
static bool is_refused GUARDED_BY(&statistics_lock); /* no page could be made */
static char page_path[path_size] GUARDED_BY(&statistics_lock);

/* What the page's readers do not see, of each place that is taken. */
static struct {
    pthread_t thread;
    int64_t told_busy_ns; /* the time that was told last: none that is told later is less */
} owners[statistics_loops_most] GUARDED_BY(&statistics_lock);

/* The thread's own. A handler that interrupts the thread only sends events that are not counted. */
static __thread struct {
    struct loop_statistics *place;
    bool is_refused; /* all places are taken */
    uint64_t outermost; /* run; 0: none, or it has not made a pass since the thread is counted */
    uint32_t depth; /* of callouts, also of those that have no room below */
    uint32_t requests; /* one in a callout of another's wait */
    struct {
        uint64_t item;
        struct callout_statistics *function;
        int64_t began_ns;
    } begun[callouts_most];
} own __attribute__((tls_model("initial-exec")));

/* ---- the page ---- */

static void log_refusal(const char *path, int error)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    char line[512];

    (void)snprintf(line, sizeof line, "statistics: %.300s: %.100s; nothing is counted (XDG_RUNTIME_DIR names the folder)", path,
                   error_text(-error));
    fault_log_once(&logged, line);
}

/*
 * Writes the path of the process's file, whose directory is there then: in the user's runtime directory or, without one, in a folder of the
 * user's own in that for temporary files. Returns 0 or a negative errno.
 */
static int make_path(char ret_path[path_size])
{
    const char *runtime = kernel_ports.environment("XDG_RUNTIME_DIR");
    const char *shared = kernel_ports.environment("TMPDIR");
    char directory[directory_size];
    int result;

    if (runtime && *runtime == '/') {
        (void)snprintf(directory, sizeof directory, "%s/" STATISTICS_DIRECTORY, runtime);
    } else {
        (void)snprintf(directory, sizeof directory, "/run/user/%u/" STATISTICS_DIRECTORY, (unsigned)kernel_ports.effective_uid());
    }
    (void)snprintf(ret_path, path_size, "%s", directory);
    result = kernel_trace.private_directory(directory);
    if (result == -ENOENT && !(runtime && *runtime == '/')) {
        (void)snprintf(directory, sizeof directory, "%.3000s/corerunloop-%u", shared && *shared == '/' ? shared : "/tmp",
                       (unsigned)kernel_ports.effective_uid());
        result = kernel_trace.private_directory(directory);
        (void)strcat(directory, "/" STATISTICS_DIRECTORY);
        result = result < 0 ? result : kernel_trace.private_directory(directory);
    }
    (void)snprintf(ret_path, path_size, "%s/%d", directory, (int)kernel_trace.process_id());
    return result;
}

/* Makes the file, locks it, and maps it. Returns 0 or a negative errno. */
REQUIRES(&statistics_lock) static int open_page(const char *path, void **ret_memory)
{
    struct kernel_file_identity identity;
    int file;
    int result;

    kernel_trace.file_remove(path); /* of an earlier process with that number */
    file = kernel_trace.file_create(path, &identity);
    if (file < 0) {
        return file;
    }
    result = kernel_trace.file_reserve(file, 0, statistics_file_size);
    result = result < 0 ? result : kernel_trace.file_lock(file);
    result = result < 0 ? result : kernel_trace.file_map(file, 0, statistics_file_size, ret_memory);
    if (result < 0) {
        kernel_trace.file_remove(path);
        (void)kernel.close(file);
        return result;
    }
    page_file = file;
    return 0;
}

REQUIRES(&statistics_lock) static void fill_page(struct statistics_page *made)
{
    char program[path_size];

    made->version = statistics_version;
    made->order = statistics_order;
    made->process = kernel_trace.process_id();
    made->loops = statistics_loops_most;
    made->began_ns = kernel.monotonic_ns();
    kernel_trace.program(program, sizeof program);
    (void)snprintf(made->program, sizeof made->program, "%.*s", (int)sizeof made->program - 1, program);
    atomic_thread_fence(memory_order_release);
    memcpy(made->magic, statistics_magic, sizeof made->magic);
}

REQUIRES(&statistics_lock) static bool has_page(void)
{
    void *memory = NULL;
    int result;

    page = page || has_file ? page : &own_page;
    if (page || is_refused) {
        return page != NULL;
    }
    result = make_path(page_path);
    result = result < 0 ? result : open_page(page_path, &memory);
    if (result < 0) {
        is_refused = true;
        log_refusal(page_path, result);
        return false;
    }
    page = memory;
    fill_page(page);
    return true;
}

/* Takes a free place of the page for the thread, which is refused one if there is none. */
static void find_place(void)
{
    lock_take(&statistics_lock);
    own.is_refused = true;
    for (uint32_t i = 0; i < statistics_loops_most && own.is_refused && has_page(); i++) {
        struct loop_statistics *place = &page->places[i];

        if (atomic_load_explicit(&place->thread, memory_order_relaxed) == 0) {
            memset(place, 0, sizeof *place);
            owners[i].thread = pthread_self();
            owners[i].told_busy_ns = 0;
            kernel_trace.thread_name(place->name);
            atomic_store_explicit(&place->thread, kernel_trace.thread_id(), memory_order_release);
            own.place = place;
            own.is_refused = false;
        }
    }
    lock_drop(&statistics_lock);
}

/* The process ends by itself. One that is killed leaves its file, which the next reader removes. */
NOT_CHECKED __attribute__((destructor)) static void remove_page(void)
{
    if (page && page->process == kernel_trace.process_id()) { /* it has a file, and this is no child without handlers */
        kernel_trace.file_remove(page_path);
    }
}

/* ---- counting ---- */

static void add(_Atomic uint64_t *total)
{
    atomic_store_explicit(total, atomic_load_explicit(total, memory_order_relaxed) + 1, memory_order_relaxed);
}

static void add_ns(_Atomic int64_t *total, int64_t ns)
{
    atomic_store_explicit(total, atomic_load_explicit(total, memory_order_relaxed) + ns, memory_order_release);
}

static void wake(struct loop_statistics *place)
{
    if (atomic_load_explicit(&place->awake_since_ns, memory_order_relaxed) == 0) {
        atomic_store_explicit(&place->awake_since_ns, kernel.monotonic_ns(), memory_order_relaxed);
    }
}

/* Returns false if it slept already: a wait may sleep several times. */
static bool fall_asleep(struct loop_statistics *place)
{
    int64_t since_ns = atomic_load_explicit(&place->awake_since_ns, memory_order_relaxed);

    if (since_ns == 0) {
        return false;
    }
    atomic_store_explicit(&place->awake_since_ns, 0, memory_order_relaxed); /* first, or a reader might count the time twice */
    add_ns(&place->busy_ns, kernel.monotonic_ns() - since_ns);
    return true;
}

/* The run begins, or a pass of one that began before the thread was counted. */
static void enter_run(struct loop_statistics *place, uint64_t run)
{
    if (own.outermost == 0) {
        own.outermost = run;
        wake(place);
    }
}

static void end_run(struct loop_statistics *place, uint64_t run)
{
    if (run == own.outermost) {
        own.outermost = 0;
        own.depth = 0;
        own.requests = 0;
        atomic_store_explicit(&place->asked_ns, 0, memory_order_relaxed);
        (void)fall_asleep(place);
    }
}

/* The place of a function's figures, which is taken if there is none. */
static struct callout_statistics *find_function(struct loop_statistics *place, uint32_t kind, uint64_t function, int32_t descriptor)
{
    uint32_t count = atomic_load_explicit(&place->callout_count, memory_order_relaxed);
    struct callout_statistics *found = place->functions;

    while (found < place->functions + count && (atomic_load_explicit(&found->function, memory_order_relaxed) != function ||
                                                found->kind != kind || found->descriptor != descriptor)) {
        found++;
    }
    if (found == place->functions + statistics_callouts_most) {
        found--;
        atomic_store_explicit(&found->function, 0, memory_order_relaxed);
        return found;
    }
    if (found == place->functions + count) {
        atomic_store_explicit(&found->function, function, memory_order_relaxed);
        atomic_store_explicit(&found->kind, kind, memory_order_relaxed);
        atomic_store_explicit(&found->descriptor, descriptor, memory_order_relaxed);
        atomic_store_explicit(&place->callout_count, count + 1, memory_order_release);
    }
    return found;
}

/* Inside the callout: its item has a descriptor, whose figures are for themselves. */
static void note_descriptor(struct loop_statistics *place, uint64_t item, int32_t descriptor)
{
    const struct callout_statistics *function;

    if (own.depth > 0 && own.depth <= callouts_most && own.begun[own.depth - 1].item == item) {
        function = own.begun[own.depth - 1].function;
        own.begun[own.depth - 1].function = find_function(place, function->kind, function->function, descriptor);
    }
}

static void begin_callout(struct loop_statistics *place, uint32_t kind, uint64_t item, uint64_t function)
{
    add(&place->callouts);
    if (own.depth < callouts_most) {
        own.begun[own.depth].item = item;
        own.begun[own.depth].function = find_function(place, kind, function, -1);
        own.begun[own.depth].began_ns = kernel.monotonic_ns();
    }
    own.depth++;
}

/* A callout that did not return leaves its entry behind, which goes when one around it ends. */
static void end_callout(struct loop_statistics *place, uint64_t item)
{
    uint32_t depth = own.depth;
    struct callout_statistics *function;
    int64_t duration_ns;

    if (depth > callouts_most) {
        own.depth--;
        return;
    }
    while (depth > 0 && own.begun[depth - 1].item != item) {
        depth--;
    }
    if (depth == 0) {
        return;
    }
    own.depth = depth - 1;
    duration_ns = kernel.monotonic_ns() - own.begun[depth - 1].began_ns;
    function = own.begun[depth - 1].function;
    add(&function->count);
    add_ns(&function->total_ns, duration_ns);
    if (duration_ns > atomic_load_explicit(&function->longest_ns, memory_order_relaxed)) {
        atomic_store_explicit(&function->longest_ns, duration_ns, memory_order_relaxed);
    }
    if (duration_ns > atomic_load_explicit(&place->longest_ns, memory_order_relaxed)) {
        atomic_store_explicit(&place->longest_function, function->function, memory_order_relaxed);
        atomic_store_explicit(&place->longest_ns, duration_ns, memory_order_relaxed);
    }
}

static void count_timer(struct loop_statistics *place, int64_t due_ns)
{
    int64_t late_ns = kernel.monotonic_ns() - due_ns;

    add(&place->timers);
    add_ns(&place->late_ns, late_ns > 0 ? late_ns : 0);
    if (late_ns > atomic_load_explicit(&place->latest_ns, memory_order_relaxed)) {
        atomic_store_explicit(&place->latest_ns, late_ns, memory_order_relaxed);
    }
}

static void begin_request(struct loop_statistics *place, uint32_t message, const char *port)
{
    if (own.requests++ == 0) {
        (void)snprintf(place->asked, sizeof place->asked, "%s", port);
        atomic_store_explicit(&place->message, message, memory_order_relaxed);
        atomic_store_explicit(&place->asked_ns, kernel.monotonic_ns(), memory_order_release);
    }
}

static void end_request(struct loop_statistics *place)
{
    own.requests -= own.requests > 0 ? 1 : 0;
    if (own.requests == 0) {
        atomic_store_explicit(&place->asked_ns, 0, memory_order_relaxed);
    }
}

/* A port that finds all rooms taken is left out. */
static void note_port(struct loop_statistics *place, const char *port)
{
    for (uint32_t i = 0; i < statistics_ports_most; i++) {
        if (place->ports[i][0] == '\0') {
            (void)snprintf(place->ports[i], sizeof place->ports[i], "%s", port);
        }
        if (strncmp(place->ports[i], port, sizeof place->ports[i] - 1) == 0) {
            return;
        }
    }
}

static void count(struct loop_statistics *place, enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value)
{
    switch (kind) {
    case trace_run_begins:
        enter_run(place, object);
        break;
    case trace_run_ends:
        if (detail) { /* a callout jumped out of it, and of the request that waited in it */
            end_request(place);
        }
        end_run(place, object);
        break;
    case trace_pass_begins:
        enter_run(place, object);
        add(&place->passes);
        atomic_store_explicit(&place->queued, (uint32_t)value, memory_order_relaxed);
        break;
    case trace_sleep_begins:
        if (fall_asleep(place)) {
            add(&place->sleeps);
        }
        break;
    case trace_sleep_ends:
        wake(place);
        break;
    case trace_callout_begins:
        begin_callout(place, detail & 0xff, object, value);
        break;
    case trace_callout_ends:
        end_callout(place, object);
        break;
    case trace_timer_is_due:
        count_timer(place, (int64_t)value);
        break;
    case trace_request_begins:
        begin_request(place, (uint32_t)object, (const char *)(uintptr_t)value); /* NOLINT(performance-no-int-to-ptr) */
        break;
    case trace_request_ends:
        end_request(place);
        break;
    case trace_port_is_served:
        note_port(place, (const char *)(uintptr_t)value); /* NOLINT(performance-no-int-to-ptr) */
        break;
    case trace_descriptor_is_ready:
        note_descriptor(place, object, (int32_t)value);
        break;
    default:
        break;
    }
}

static void hear(enum trace_kind kind, uint32_t detail, uint64_t object, uint64_t value)
{
    if (!own.place && (kind == trace_run_begins || kind == trace_pass_begins || kind == trace_port_is_served) && !own.is_refused) {
        find_place();
    }
    if (own.place) {
        count(own.place, kind, detail, object, value);
    }
}

/* ---- telling ---- */

/* While the thread falls asleep its place may have less than it had. Then what was told before is told again. */
REQUIRES(&statistics_lock) static double busy_seconds(uint32_t number)
{
    int64_t busy_ns = atomic_load_explicit(&page->places[number].busy_ns, memory_order_acquire);
    int64_t since_ns = atomic_load_explicit(&page->places[number].awake_since_ns, memory_order_relaxed);
    int64_t *told_ns = &owners[number].told_busy_ns;

    busy_ns += since_ns > 0 ? kernel.monotonic_ns() - since_ns : 0;
    *told_ns = busy_ns > *told_ns ? busy_ns : *told_ns;
    return (double)*told_ns / 1e9;
}

bool statistics_copy(pthread_t thread, CRLStatistics *ret_statistics)
{
    bool is_found = false;

    lock_take(&statistics_lock);
    for (uint32_t i = 0; i < statistics_loops_most && page && !is_found; i++) {
        const struct loop_statistics *place = &page->places[i];

        is_found = place->thread != 0 && pthread_equal(owners[i].thread, thread);
        if (is_found) {
            *ret_statistics =
                (CRLStatistics){.passes = place->passes,
                                .sleeps = place->sleeps,
                                .callouts = place->callouts,
                                .timers = place->timers,
                                .busy = busy_seconds(i),
                                .longest = (double)place->longest_ns / 1e9,
                                .longestFunction = (const void *)(uintptr_t)place->longest_function, /* NOLINT(performance-no-int-to-ptr) */
                                .late = (double)place->late_ns / 1e9,
                                .latest = (double)place->latest_ns / 1e9,
                                .queued = place->queued};
        }
    }
    lock_drop(&statistics_lock);
    return is_found;
}

/* ---- beginning and end ---- */

void statistics_start_from_environment(void)
{
    const char *text = kernel_ports.environment("CORERUNLOOP_STATISTICS");

    has_file = text && strcmp(text, "1") == 0;
    if (has_file) {
        statistics_start();
    }
}

void statistics_start(void)
{
    trace_let_hear(trace_statistics_hear, hear);
}

void statistics_thread_ends(void)
{
    struct loop_statistics *place = own.place;

    own.place = NULL;
    own.is_refused = true;
    if (place) {
        lock_take(&statistics_lock);
        atomic_store_explicit(&place->thread, 0, memory_order_release);
        lock_drop(&statistics_lock);
    }
}

/* The parent goes on with its page, which the child no longer maps. The lock on the file is the parent's alone. */
NOT_CHECKED void statistics_forget_parent(void)
{
    lock_reset(&statistics_lock);
    memset(&own_page, 0, page == &own_page ? sizeof own_page : 0);
    if (page && page != &own_page) {
        kernel_trace.file_unmap(page, statistics_file_size);
        (void)kernel.close(page_file);
    }
    page = NULL;
    is_refused = false;
    own.place = NULL;
    own.outermost = 0;
    own.depth = 0; /* the places of its callouts are the parent's */
}
