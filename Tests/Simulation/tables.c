/* SPDX-License-Identifier: Apache-2.0 */
/* Time, switches, faults and deaths at every call; see tables.h. */
#define _GNU_SOURCE
#include "tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "files.h"
#include "plan.h"
#include "scheduler.h"

enum fault_kind { fault_none, fault_transient, fault_resource };

enum { process_id_base = 100, call_text_size = 160, parting_s = 20, tick_length_ns = 4000000 };

static const int64_t call_cost_ns = 1000;
static const int64_t longest_delay_ns = 5000000;
static const int64_t longest_stop_ns = 200000000;
static const int64_t slow_close_ns = 1000000000;
static const int64_t wall_distance_ns = INT64_C(1767225600) * 1000000000;

static struct fault_plan fault_plan;
static int64_t wall_step_ns;
static int64_t suspended_ns;
static int64_t resumed_ns; /* on the clock that goes on in a suspension */
static uint64_t resource_faults;
static __thread int spared;
static __thread bool closes_slowly; /* a thread that the library started */

void tables_begin(const struct fault_plan *chosen)
{
    fault_plan = *chosen;
}

void tables_spare(bool is_spared)
{
    spared += is_spared ? 1 : -1;
}

bool tables_may_close_slowly(void)
{
    return closes_slowly || spared > 0;
}

uint64_t tables_resource_faults(void)
{
    return resource_faults;
}

/* ---- around every call ---- */

static bool strikes(uint64_t one_in)
{
    return one_in > 0 && spared == 0 && scheduler_chance(random_faults, one_in);
}

static void maybe_die(void)
{
    struct process *process = scheduler_process();

    if (process->dies_at_call > 0 && process->calls >= process->dies_at_call && !process->has_died) {
        scheduler_kill(process);
    }
}

void tables_suspend(int64_t ns)
{
    suspended_ns += ns;
    wall_step_ns += ns;
    resumed_ns = scheduler_now_ns() + suspended_ns;
    scheduler_trace("the system is suspended for %lld ms", (long long)(ns / 1000000));
    files_resume();
}

int64_t tables_resumed_ns(void)
{
    return resumed_ns;
}

static void step_wall(int64_t ns)
{
    wall_step_ns += ns;
    scheduler_trace("the wall clock is stepped by %lld ms", (long long)(ns / 1000000));
    files_resume();
}

/* The wall clock is set, or the system is suspended: the monotonic clock, on which everything here waits, knows nothing of either. */
static void part_clocks(void)
{
    int64_t ns = (int64_t)scheduler_random(random_faults, parting_s * (uint64_t)simulated_second_ns);

    if (scheduler_chance(random_faults, 2)) {
        tables_suspend(ns);
    } else {
        step_wall(ns - parting_s / 2 * simulated_second_ns);
    }
}

static void pass_time(void)
{
    scheduler_advance(call_cost_ns + (int64_t)scheduler_random(random_faults, call_cost_ns));
    if (strikes(fault_plan.delay_one_in)) {
        if (scheduler_chance(random_faults, 4)) {
            struct process *process = scheduler_process();

            process->stopped_until_ns = scheduler_now_ns() + (int64_t)scheduler_random(random_faults, (uint64_t)longest_stop_ns);
            scheduler_trace("process %d is stopped for a while", process->number);
        } else {
            scheduler_advance((int64_t)scheduler_random(random_faults, (uint64_t)longest_delay_ns));
        }
    }
    if (strikes(fault_plan.clock_one_in)) {
        part_clocks();
    }
}

/* 0, or the error that strikes this call. */
static int begin(enum fault_kind kind, int first, int second)
{
    uint64_t one_in = kind == fault_transient ? fault_plan.transient_one_in : kind == fault_resource ? fault_plan.resource_one_in : 0;
    int error = 0;

    scheduler_process()->calls++;
    scheduler_counts.calls++;
    if (scheduler_process()->stopped_until_ns > scheduler_now_ns()) {
        scheduler_yield();
    }
    scheduler_point();
    if (scheduler_chance(random_faults, 2)) {
        maybe_die();
    }
    pass_time();
    if (strikes(one_in)) {
        error = second != 0 && scheduler_chance(random_faults, 2) ? second : first;
        scheduler_counts.faults++;
        resource_faults += kind == fault_resource ? 1 : 0;
    }
    return error;
}

static long end(int error, long result, const char *format, ...) __attribute__((format(printf, 3, 4)));
static long end(int error, long result, const char *format, ...)
{
    char text[call_text_size];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    result = error ? -error : result;
    resource_faults += !error && result == -EMFILE ? 1 : 0; /* the process's own limit */
    scheduler_trace("%s = %ld%s", text, result, error ? " (fault)" : "");
    maybe_die();
    return result;
}

#define END(_result, ...) end(error, error ? 0 : (long)(_result), __VA_ARGS__)

/* ---- time ---- */

static int64_t monotonic_ns(void)
{
    scheduler_advance((int64_t)scheduler_random(random_faults, 100));
    return scheduler_now_ns();
}

static int64_t elapsed_ns(void)
{
    return monotonic_ns() + suspended_ns;
}

static int64_t wall_ns(void)
{
    return scheduler_now_ns() + wall_distance_ns + wall_step_ns;
}

static int64_t tick_ns(int64_t *ret_wall_ns)
{
    int64_t tick = scheduler_now_ns() / tick_length_ns * tick_length_ns;

    *ret_wall_ns = tick + wall_distance_ns + wall_step_ns;
    return tick;
}

static const int64_t slack_ns = 50000;

static int64_t timer_slack_ns(void)
{
    return slack_ns;
}

static bool is_niced(void)
{
    return false;
}

/* When a wait really ends that is asked to end at `deadline_ns`. */
static int64_t end_of_wait(int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - scheduler_now_ns();

    if (deadline_ns == kernel_never || left_ns <= 0) {
        return deadline_ns;
    }
    if (strikes(fault_plan.transient_one_in)) {
        return scheduler_now_ns() + (int64_t)scheduler_random(random_faults, (uint64_t)left_ns);
    }
    if (strikes(fault_plan.delay_one_in)) {
        return deadline_ns + (int64_t)scheduler_random(random_faults, (uint64_t)longest_delay_ns);
    }
    return deadline_ns + (int64_t)scheduler_random(random_faults, (uint64_t)slack_ns);
}

/* As end_of_wait, but a wait whose deadline has passed lasts until the kernel looks, which is as late as the slack lets it be. */
static int64_t end_of_futex_wait(int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns + slack_ns - scheduler_now_ns();

    if (deadline_ns > scheduler_now_ns() || left_ns <= 0) {
        return end_of_wait(deadline_ns);
    }
    return scheduler_now_ns() + (int64_t)scheduler_random(random_faults, (uint64_t)left_ns) + 1;
}

/* ---- futexes ---- */

struct sleeper {
    struct sleeper *next;
    _Atomic uint32_t *word;
    bool is_woken;
};
static struct sleeper *sleepers;

static bool is_woken(void *info)
{
    return ((const struct sleeper *)info)->is_woken;
}

int simulated_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    struct sleeper sleeper = {.next = sleepers, .word = word};
    int error = begin(fault_transient, EINTR, EAGAIN);
    struct sleeper **place;

    if (error || atomic_load(word) != expected) {
        return (int)END(-EAGAIN, "futex_wait");
    }
    sleeper.next = sleepers;
    sleepers = &sleeper;
    (void)scheduler_wait(is_woken, &sleeper, end_of_futex_wait(deadline_ns));
    for (place = &sleepers; *place != &sleeper; place = &(*place)->next) {
    }
    *place = sleeper.next;
    return (int)END(sleeper.is_woken ? 0 : -ETIMEDOUT, "futex_wait");
}

int simulated_futex_wake(_Atomic uint32_t *word)
{
    int error = begin(fault_none, 0, 0);
    uint64_t count = 0;
    uint64_t chosen;

    for (const struct sleeper *sleeper = sleepers; sleeper; sleeper = sleeper->next) {
        count += sleeper->word == word && !sleeper->is_woken ? 1 : 0;
    }
    chosen = count > 0 ? scheduler_random(random_schedule, count) : 0;
    for (struct sleeper *sleeper = sleepers; count > 0 && sleeper; sleeper = sleeper->next) {
        if (sleeper->word == word && !sleeper->is_woken && chosen-- == 0) {
            sleeper->is_woken = true;
            break;
        }
    }
    return (int)END(count > 0 ? 1 : 0, "futex_wake");
}

/* ---- counters, alarms, wait sets ---- */

static int event_create(void)
{
    int error = begin(fault_resource, EMFILE, ENOMEM);

    return (int)END(counter_create(), "event_create");
}

static int event_post(int event)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(counter_add(event), "event_post(%d)", event);
}

static int event_renew(int event)
{
    int error = begin(fault_resource, EMFILE, 0);

    return (int)END(counter_renew(event), "event_renew(%d)", event);
}

static int counter_drain(int descriptor)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(counter_take(descriptor), "counter_drain(%d)", descriptor);
}

static int take_counter(int descriptor)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(counter_take(descriptor), "counter_take(%d)", descriptor);
}

static int alarm_create(void)
{
    int error = begin(fault_resource, EMFILE, 0);

    return (int)END(alarm_make(), "alarm_create");
}

static int alarm_set(int alarm, int64_t deadline_ns)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(alarm_arm(alarm, deadline_ns), "alarm_set(%d)", alarm);
}

static int resume_open(void)
{
    int error = begin(fault_resource, EMFILE, EINVAL);

    return (int)END(resume_make(), "resume_open");
}

static bool alarm_is_own(int alarm)
{
    int error = begin(fault_none, 0, 0);
    const struct file *file = file_of(alarm);

    return END(file && file->kind == file_alarm, "alarm_is_own(%d)", alarm) == 1;
}

static int set_create(void)
{
    int error = begin(fault_resource, EMFILE, ENOMEM);

    return (int)END(set_make(), "set_create");
}

static int set_add(int set, int descriptor, uint32_t interest, uint64_t token)
{
    int error = begin(fault_resource, ENOSPC, ENOMEM);

    return (int)END(set_insert(set, descriptor, interest, token, interest & kernel_edge), "set_add(%d, %d, %u)", set, descriptor, interest);
}

static int set_add_edge(int set, int descriptor, uint64_t token)
{
    int error = begin(fault_resource, ENOSPC, ENOMEM);

    return (int)END(set_insert(set, descriptor, kernel_readable, token, true), "set_add_edge(%d, %d)", set, descriptor);
}

static int set_change(int set, int descriptor, uint32_t interest, uint64_t token)
{
    int error = begin(fault_resource, ENOMEM, 0);

    return (int)END(set_alter(set, descriptor, interest, token), "set_change(%d, %d, %u)", set, descriptor, interest);
}

static int set_remove(int set, int descriptor)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(set_delete(set, descriptor), "set_remove(%d, %d)", set, descriptor);
}

static bool set_holds(int set, int descriptor)
{
    int error = begin(fault_none, 0, 0);
    int result = set_insert(set, descriptor, 0, 0, true);

    if (result == 0) {
        (void)set_delete(set, descriptor);
    }
    return END(result == -EEXIST, "set_holds(%d, %d)", set, descriptor) == 1;
}

static bool set_is_ready(void *info)
{
    return set_has_ready(info);
}

/* A signal ends a wait, and no look at what is there. */
static int set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    int error = begin(fault_none, 0, 0);
    struct file *file = file_of(set);
    int count;

    if (!file || file->kind != file_set) {
        return (int)END(-EBADF, "set_wait(%d)", set);
    }
    count = set_collect(file, events, capacity);
    if (count == 0 && deadline_ns > scheduler_now_ns()) {
        file_retain(file);
        error = begin(fault_transient, EINTR, 0);
        if (!error) {
            (void)scheduler_wait(set_is_ready, file, end_of_wait(deadline_ns));
            count = set_collect(file, events, capacity);
        }
        file_release(file);
    }
    return (int)END(count, "set_wait(%d)", set);
}

/* ---- descriptors ---- */

static uint32_t descriptor_ready(int descriptor, uint32_t interest)
{
    int error = begin(fault_none, 0, 0);
    const struct file *file = file_of(descriptor);

    return (uint32_t)END(file ? file_ready(file, interest) : kernel_failed, "descriptor_ready(%d)", descriptor);
}

static bool descriptor_is_open(int descriptor)
{
    int error = begin(fault_none, 0, 0);

    return END(file_of(descriptor) != NULL, "descriptor_is_open(%d)", descriptor) == 1;
}

static enum kernel_descriptor_kind descriptor_kind(int descriptor)
{
    const struct file *file = file_of(descriptor);

    return file && (file->kind == file_counter || file->kind == file_alarm) ? kernel_descriptor_counter : kernel_descriptor_other;
}

static int descriptor_name(int descriptor, char *ret_name, size_t size)
{
    return snprintf(ret_name, size, "simulated:[%d]", descriptor);
}

static int close_descriptor(int descriptor)
{
    int error = begin(fault_none, 0, 0);
    int result = file_close(descriptor);
    int slow = slow_take_closes();

    if (slow > 0) {
        (void)scheduler_wait(NULL, NULL, scheduler_now_ns() + slow * slow_close_ns);
    }
    return (int)END(result, "close(%d)", descriptor);
}

static int make_non_blocking(int descriptor, bool is_non_blocking)
{
    bool was_non_blocking = true;

    (void)stream_sets_blocking(descriptor, is_non_blocking, &was_non_blocking);
    return was_non_blocking;
}

/* ---- sockets of CFSocket ---- */

static int socket_create(int family, int type, int protocol)
{
    int error = begin(fault_resource, EMFILE, ENOBUFS);

    (void)family, (void)type, (void)protocol;
    return (int)END(stream_make(), "socket_create");
}

static int socket_type(int socket)
{
    return stream_is(socket) ? SOCK_STREAM : -ENOTSOCK;
}

static int socket_bind(int socket, const void *address, size_t length)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(stream_bind(socket, address, length), "socket_bind(%d)", socket);
}

static int socket_listen(int socket, int backlog)
{
    int error = begin(fault_none, 0, 0);

    (void)backlog;
    return (int)END(stream_listen(socket), "socket_listen(%d)", socket);
}

static bool has_settled(void *info)
{
    return stream_has_settled(info);
}

static long await_connection(int socket, int64_t deadline_ns)
{
    struct file *file = file_of(socket);
    int error;

    file_retain(file);
    (void)scheduler_wait(has_settled, file, deadline_ns == kernel_never ? never_ns : end_of_wait(deadline_ns));
    error = stream_has_settled(file) ? stream_take_error(file) : ETIMEDOUT;
    file_release(file);
    return -error;
}

static int socket_connect(int socket, const void *address, size_t length, int64_t deadline_ns)
{
    int error = begin(fault_resource, ENOBUFS, 0);
    long result = -error;

    if (!error) {
        result = stream_connect(socket, address, length, (int64_t)scheduler_random(random_faults, (uint64_t)longest_delay_ns));
    }
    if (result == -EINPROGRESS && deadline_ns != 0) {
        result = await_connection(socket, deadline_ns);
    }
    return (int)END(result, "socket_connect(%d)", socket);
}

static int socket_accept(int socket, struct kernel_address *ret_peer)
{
    int error = begin(fault_resource, EMFILE, ENFILE);

    error = !error ? begin(fault_transient, EAGAIN, 0) : error;
    return (int)END(stream_accept(socket, ret_peer), "socket_accept(%d)", socket);
}

static int socket_receive(int socket, void *bytes, size_t size, struct kernel_address *ret_peer)
{
    int error = begin(fault_transient, EAGAIN, 0);

    error = !error ? begin(fault_resource, ENOMEM, 0) : error;
    ret_peer->length = 0;
    return (int)END(stream_take(socket, bytes, size), "socket_receive(%d)", socket);
}

static int socket_peek(int socket)
{
    int error = begin(fault_transient, EAGAIN, 0);

    return (int)END(stream_look(socket), "socket_peek(%d)", socket);
}

struct sending {
    const struct file *file;
    const void *bytes;
    size_t size;
    bool takes_part;
    int result;
};

static bool is_sent(void *info)
{
    struct sending *sending = info;

    if (sending->result == -EAGAIN) {
        sending->result = stream_put(sending->file, sending->bytes, sending->size, sending->takes_part);
    }
    return sending->result != -EAGAIN;
}

static long send_whole(int socket, const void *bytes, size_t size, int64_t deadline_ns)
{
    struct file *file = file_of(socket);
    struct sending sending = {.file = file, .bytes = bytes, .size = size, .takes_part = deadline_ns == 0, .result = -EAGAIN};

    if (!file || !stream_is(socket)) {
        return -ENOTSOCK;
    }
    file_retain(file);
    if (!is_sent(&sending) && stream_is_blocking(file)) {
        (void)scheduler_wait(is_sent, &sending, deadline_ns == kernel_never ? never_ns : end_of_wait(deadline_ns));
    }
    file_release(file);
    return sending.result;
}

static int socket_send(int socket, const void *bytes, size_t size, const void *address, size_t length, int64_t deadline_ns)
{
    int error = begin(fault_transient, EINTR, 0);

    (void)address, (void)length;
    error = !error ? begin(fault_resource, ENOBUFS, 0) : error;
    return (int)END(send_whole(socket, bytes, size, deadline_ns), "socket_send(%d, %zu bytes)", socket, size);
}

static int socket_take_error(int socket)
{
    int error = begin(fault_none, 0, 0);
    const struct file *file = file_of(socket);

    return (int)END(file && stream_is(socket) ? stream_take_error(file) : 0, "socket_take_error(%d)", socket);
}

static int socket_address(int socket, bool is_of_peer, struct kernel_address *ret_address)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(stream_address(socket, is_of_peer, ret_address), "socket_address(%d)", socket);
}

/* ---- the process ---- */

/* One thread runs at a time, and sees what all others have written. */
static int fence_threads(void)
{
    scheduler_advance(call_cost_ns);
    return 0;
}

/* No loop is the main one, which would be kept until the process ends: all are to be gone in the end. */
static bool is_main_thread(void)
{
    return false;
}

/*
 * It never fails: what it is to close would be closed by the caller, which is what no run that ends well does. One thread of each process
 * plays all that are started, one after the other.
 */
static struct helper {
    struct process *process;
    void *(*function)(void *info); /* NULL: nothing to do */
    bool is_there;
} helpers[processes_max];

static bool has_work_or_is_left_alone(void *info)
{
    const struct helper *helper = info;

    return helper->function || scheduler_is_alone(helper->process);
}

static void help(void *info)
{
    struct helper *helper = info;

    scheduler_note("does what the library started a thread for");
    closes_slowly = true;
    while (scheduler_wait(has_work_or_is_left_alone, helper, never_ns) && helper->function) {
        void *(*function)(void *info) = helper->function;

        helper->function = NULL;
        (void)function(NULL);
    }
}

static int thread_start(void *(*function)(void *info), const char *name)
{
    int error = begin(fault_none, 0, 0);
    struct helper *helper = &helpers[scheduler_process()->number];

    if (helper->function) {
        scheduler_fail("two threads are started at once");
    }
    helper->process = scheduler_process();
    helper->function = function;
    if (!helper->is_there) {
        helper->is_there = true;
        (void)scheduler_spawn(helper->process->number, help, helper);
    }
    return (int)END(0, "thread_start(%s)", name);
}

static void yield_thread(void)
{
    scheduler_advance(call_cost_ns);
    scheduler_yield();
}

static uid_t effective_uid(void)
{
    return user_id;
}

static pid_t process_id(void)
{
    return process_id_base + scheduler_process()->number;
}

static const char *environment(const char *name)
{
    if (strcmp(name, "CORERUNLOOP_MESSAGES") == 0) {
        return plan.by_socket ? "socket" : NULL;
    }
    return strcmp(name, "XDG_RUNTIME_DIR") == 0 ? "/run/simulated" : NULL;
}

static void random_bytes(void *ret_bytes, size_t size)
{
    unsigned char *bytes = ret_bytes;

    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)scheduler_random(random_work, 256);
    }
}

static size_t limit_on_descriptors(void)
{
    return (size_t)descriptor_limit();
}

static size_t page_size(void)
{
    return 4096;
}

static _Atomic uint32_t *fork_mark(void)
{
    static _Atomic uint32_t marks[processes_max];

    return &marks[scheduler_process()->number];
}

/* ---- names ---- */

static int directory_open(int directory, const char *path)
{
    int error = begin(fault_resource, EMFILE, 0);

    return (int)END(node_open(directory, path, false, false), "directory_open(%s)", path);
}

static int directory_make(int directory, const char *path)
{
    int error = begin(fault_resource, ENOSPC, 0);

    return (int)END(node_make_directory(directory, path), "directory_make(%s)", path);
}

static int directory_list(int directory, bool (*each)(void *info, const char *leaf), void *info)
{
    int error = begin(fault_resource, EMFILE, ENOMEM);

    return (int)END(node_list(directory, each, info), "directory_list");
}

static int file_open(int directory, const char *leaf, int flags)
{
    int error = begin(fault_resource, EMFILE, ENFILE);

    return (int)END(node_open(directory, leaf, false, flags & O_PATH), "file_open(%s)", leaf);
}

static int file_status(int descriptor, struct stat *ret_status)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(node_status(descriptor, ret_status), "file_status(%d)", descriptor);
}

static int path_status(int directory, const char *leaf, struct stat *ret_status)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(node_path_status(directory, leaf, ret_status), "path_status(%s)", leaf);
}

static int file_lock(int directory, const char *leaf)
{
    int error = begin(fault_resource, EMFILE, ENOSPC);

    return (int)END(node_lock(directory, leaf), "file_lock(%s)", leaf);
}

static long replace_contents(int descriptor, const void *bytes, size_t size)
{
    struct file *file = file_of(descriptor);

    if (!file || !file->node || size > sizeof file->node->contents) {
        return -EBADF;
    }
    memcpy(file->node->contents, bytes, size);
    file->node->size = size;
    return (long)size;
}

static int file_replace(int descriptor, const void *bytes, size_t size)
{
    int error = begin(fault_resource, ENOSPC, EIO);

    return (int)END(replace_contents(descriptor, bytes, size), "file_replace(%d)", descriptor);
}

static long read_contents(int descriptor, void *bytes, size_t size, off_t offset)
{
    const struct file *file = file_of(descriptor);
    const void *from = !file ? NULL : file->node ? (const void *)file->node->contents : file->bytes;
    size_t length = !file ? 0 : file->node ? file->node->size : (size_t)file->size;

    if (!from) {
        return -EBADF;
    }
    length = (size_t)offset < length ? length - (size_t)offset : 0;
    length = length < size ? length : size;
    memcpy(bytes, (const char *)from + offset, length);
    return (long)length;
}

static ssize_t file_read(int descriptor, void *bytes, size_t size, off_t offset)
{
    int error = begin(fault_none, 0, 0);

    return END(read_contents(descriptor, bytes, size, offset), "file_read(%d)", descriptor);
}

static int file_rename(int directory, const char *from, const char *to)
{
    int error = begin(fault_resource, ENOSPC, EIO);

    return (int)END(node_rename(directory, from, to), "file_rename(%s, %s)", from, to);
}

static int file_unlink(int directory, const char *leaf)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(node_unlink(directory, leaf), "file_unlink(%s)", leaf);
}

/* ---- sockets of ports ---- */

static int datagram_create(bool takes_credentials)
{
    int error = begin(fault_resource, EMFILE, ENOBUFS);

    return (int)END(datagram_make(takes_credentials), "datagram_create");
}

static int datagram_bind(int socket, const char *path)
{
    int error = begin(fault_resource, ENOSPC, 0);

    return (int)END(datagram_name(socket, path), "datagram_bind(%d, %s)", socket, path);
}

static int datagram_connect(int socket, const char *path)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(datagram_join(socket, path), "datagram_connect(%d, %s)", socket, path);
}

static int channel_create(int ret_ends[2])
{
    int error = begin(fault_resource, EMFILE, ENOMEM);
    long result = END(channel_make(ret_ends), "channel_create");

    return (int)result;
}

/* A datagram may meet a queue that others have filled; a channel is its two ends' own. */
static enum fault_kind kind_of_send(int socket, int *ret_error)
{
    *ret_error = channel_is(socket) || scheduler_chance(random_faults, 2) ? EINTR : EAGAIN;
    return channel_is(socket) ? fault_none : fault_transient;
}

static ssize_t send_bytes(int socket, const void *bytes, size_t size)
{
    struct iovec piece = {(void *)(uintptr_t)bytes, size};
    const struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    int transient;
    enum fault_kind kind = kind_of_send(socket, &transient);
    int error = begin(kind, transient, 0);

    error = !error ? begin(fault_resource, ENOBUFS, 0) : error;
    return END(socket_put(socket, &message), "send(%d, %zu bytes)", socket, size);
}

static ssize_t send_message(int socket, const struct msghdr *message)
{
    int transient;
    enum fault_kind kind = kind_of_send(socket, &transient);
    int error = begin(kind, transient, 0);

    error = !error ? begin(fault_resource, ENOBUFS, ETOOMANYREFS) : error;
    return END(socket_put(socket, message), "send_message(%d)", socket);
}

/* The count of datagrams bounds what is under way here, not their size. */
static int send_room(int socket, int wanted)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(wanted, "send_room(%d)", socket);
}

static ssize_t receive_message(int socket, struct msghdr *message)
{
    size_t room = message->msg_iov[0].iov_len;
    int error = begin(fault_transient, EINTR, 0);
    ssize_t result = END(socket_take(socket, message), "receive_message(%d)", socket);

    resource_faults += result >= 0 && (message->msg_flags & MSG_CTRUNC) ? 1 : 0; /* no number left for what came with it */
    return result > (ssize_t)room ? (ssize_t)room : result;
}

static bool is_channel(int descriptor)
{
    return channel_is(descriptor);
}

/* As a kernel before Linux 6.5. */
static int identify_senders(int socket)
{
    scheduler_advance(call_cost_ns);
    return channel_is(socket) ? -EINVAL : -ENOPROTOOPT;
}

static uint64_t process_number(int pidfd)
{
    (void)pidfd;
    return 0;
}

static int hang_up(int socket)
{
    int error = begin(fault_none, 0, 0);

    return (int)END(socket_shut(socket), "hang_up(%d)", socket);
}

static int refuse_descriptors(int socket)
{
    int error = begin(fault_resource, ENOPROTOOPT, 0); /* an older kernel */

    return (int)END(socket_refuse_descriptors(socket), "refuse_descriptors(%d)", socket);
}

static bool stop_receiving(int socket)
{
    scheduler_advance(call_cost_ns);
    return socket_stop_receiving(socket);
}

static int stop_lingering(int descriptor)
{
    (void)descriptor;
    scheduler_advance(call_cost_ns);
    return 0;
}

static int duplicate(int descriptor)
{
    int error = begin(fault_resource, EMFILE, 0);

    return (int)END(file_duplicate(descriptor), "duplicate(%d)", descriptor);
}

static int replace(int from, int number)
{
    int error = begin(fault_resource, EMFILE, 0);

    return (int)END(file_replace_number(from, number), "replace(%d, %d)", from, number);
}

struct poll {
    struct file *file;
    uint32_t interest;
};

static uint32_t polled(const struct poll *poll)
{
    return file_ready(poll->file, poll->interest) & ~(uint32_t)kernel_details;
}

static bool is_polled(void *info)
{
    return polled(info) != 0;
}

static int wait_for(int socket, uint32_t interest, int64_t deadline_ns)
{
    int error = begin(fault_none, 0, 0);
    struct poll poll = {file_of(socket), interest};
    uint32_t ready;

    if (!poll.file) {
        return (int)END(kernel_failed, "wait(%d)", socket);
    }
    file_retain(poll.file);
    if (polled(&poll) == 0 && deadline_ns > scheduler_now_ns()) {
        error = begin(fault_transient, EINTR, 0);
        (void)(error || scheduler_wait(is_polled, &poll, end_of_wait(deadline_ns)));
    }
    ready = polled(&poll);
    file_release(poll.file);
    return (int)END(ready, "wait(%d)", socket);
}

static ssize_t send_in_turn(int socket, const struct msghdr *message, int64_t limit_ns, int64_t *socket_limit_ns)
{
    int error = begin(fault_transient, EINTR, 0);
    int64_t end_ns = end_of_wait(scheduler_now_ns() + limit_ns);
    ssize_t result = -EAGAIN;
    struct file *receiver;

    *socket_limit_ns = limit_ns;

    while (!error && (result = socket_put(socket, message)) == -EAGAIN && (receiver = datagram_full(socket)) != NULL &&
           turns_wait(receiver, end_ns)) {
        error = begin(fault_transient, EINTR, 0);
    }
    return END(result, "send_in_turn(%d)", socket);
}

static void pause_for(int64_t duration_ns)
{
    int error = begin(fault_none, 0, 0);

    (void)scheduler_wait(NULL, NULL, scheduler_now_ns() + duration_ns);
    (void)END(0, "pause");
}

/* ---- memory ---- */

static long make_memory(uint64_t size)
{
    struct file *file = file_create(file_memory);

    file->bytes = calloc(1, size);
    if (!file->bytes) {
        scheduler_fail("the simulation has no memory");
    }
    file->size = size;
    file->is_fixed = true;
    return file_install(file);
}

static int memory_create(uint64_t size, bool reserve)
{
    int error = begin(fault_resource, EMFILE, ENOSPC);

    (void)reserve;
    return (int)END(make_memory(size), "memory_create(%llu)", (unsigned long long)size);
}

static long fill_memory(int descriptor, const void *bytes, uint64_t size)
{
    struct file *file = file_of(descriptor);

    if (!file || file->kind != file_memory || file->is_unchangeable || size > file->size) {
        return -EPERM;
    }
    memcpy(file->bytes, bytes, size);
    file->is_unchangeable = true;
    return 0;
}

static int memory_write(int descriptor, const void *bytes, uint64_t size)
{
    int error = begin(fault_resource, ENOSPC, 0);

    return (int)END(fill_memory(descriptor, bytes, size), "memory_write(%d)", descriptor);
}

static bool memory_is_fixed(int descriptor, uint64_t size, bool unchangeable)
{
    const struct file *file = file_of(descriptor);

    return file && file->kind == file_memory && file->is_fixed && file->size == size && (!unchangeable || file->is_unchangeable);
}

static int memory_size(int descriptor, uint64_t *ret_size)
{
    const struct file *file = file_of(descriptor);

    *ret_size = file ? file->size : 0;
    return !file ? -EBADF : file->kind == file_memory ? 0 : -EINVAL;
}

/* Mappings keep the memory; all processes see the same bytes. */
struct mapping {
    struct mapping *next;
    struct file *file;
};
static struct mapping *mappings;

static long map_memory(int descriptor, void **ret_address)
{
    struct file *file = file_of(descriptor);
    struct mapping *mapping = malloc(sizeof *mapping);

    if (!file || !mapping || file->kind != file_memory) {
        free(mapping);
        return -EBADF;
    }
    file_retain(file);
    *mapping = (struct mapping){mappings, file};
    mappings = mapping;
    *ret_address = file->bytes;
    return 0;
}

static int memory_map(int descriptor, uint64_t size, bool touch, void **ret_address)
{
    int error = begin(fault_resource, ENOMEM, 0);

    (void)size, (void)touch;
    return (int)END(map_memory(descriptor, ret_address), "memory_map(%d)", descriptor);
}

static void memory_unmap(void *address, uint64_t size)
{
    (void)size;
    for (struct mapping **place = &mappings; *place; place = &(*place)->next) {
        struct mapping *mapping = *place;

        if (mapping->file->bytes == address) {
            *place = mapping->next;
            file_release(mapping->file);
            free(mapping);
            return;
        }
    }
    scheduler_fail("memory was unmapped that is not mapped");
}

/* ---- the tables ---- */

const struct kernel simulated_kernel = {
    .monotonic_ns = monotonic_ns,
    .elapsed_ns = elapsed_ns,
    .wall_ns = wall_ns,
    .tick_ns = tick_ns,
    .timer_slack_ns = timer_slack_ns,
    .is_niced = is_niced,
    .futex_wait = simulated_futex_wait,
    .futex_wake = simulated_futex_wake,
    .event_create = event_create,
    .event_post = event_post,
    .event_renew = event_renew,
    .counter_drain = counter_drain,
    .counter_take = take_counter,
    .alarm_create = alarm_create,
    .alarm_set = alarm_set,
    .alarm_is_own = alarm_is_own,
    .resume_open = resume_open,
    .set_create = set_create,
    .set_add = set_add,
    .set_add_edge = set_add_edge,
    .set_change = set_change,
    .set_remove = set_remove,
    .set_holds = set_holds,
    .set_wait = set_wait,
    .descriptor_ready = descriptor_ready,
    .descriptor_is_open = descriptor_is_open,
    .descriptor_kind = descriptor_kind,
    .descriptor_name = descriptor_name,
    .close = close_descriptor,
    .socket_create = socket_create,
    .socket_type = socket_type,
    .socket_bind = socket_bind,
    .socket_listen = socket_listen,
    .socket_connect = socket_connect,
    .socket_accept = socket_accept,
    .socket_receive = socket_receive,
    .socket_peek = socket_peek,
    .socket_send = socket_send,
    .socket_take_error = socket_take_error,
    .socket_address = socket_address,
    .socket_is_idle = stream_is_unused,
    .make_non_blocking = make_non_blocking,
    .fork_mark = fork_mark,
    .fence_threads = fence_threads,
    .thread_start = thread_start,
    .is_main_thread = is_main_thread,
    .yield = yield_thread,
};

const struct kernel_ports simulated_kernel_ports = {
    .effective_uid = effective_uid,
    .process_id = process_id,
    .environment = environment,
    .random_bytes = random_bytes,
    .descriptor_limit = limit_on_descriptors,
    .page_size = page_size,
    .directory_open = directory_open,
    .directory_make = directory_make,
    .directory_list = directory_list,
    .file_open = file_open,
    .file_status = file_status,
    .path_status = path_status,
    .file_lock = file_lock,
    .file_replace = file_replace,
    .file_read = file_read,
    .file_rename = file_rename,
    .file_unlink = file_unlink,
    .datagram_create = datagram_create,
    .datagram_bind = datagram_bind,
    .datagram_connect = datagram_connect,
    .send_room = send_room,
    .channel_create = channel_create,
    .send = send_bytes,
    .send_message = send_message,
    .send_in_turn = send_in_turn,
    .receive_message = receive_message,
    .identify_senders = identify_senders,
    .process_number = process_number,
    .is_channel = is_channel,
    .hang_up = hang_up,
    .refuse_descriptors = refuse_descriptors,
    .stop_receiving = stop_receiving,
    .stop_lingering = stop_lingering,
    .duplicate = duplicate,
    .replace = replace,
    .wait = wait_for,
    .pause = pause_for,
    .memory_create = memory_create,
    .memory_write = memory_write,
    .memory_is_fixed = memory_is_fixed,
    .memory_size = memory_size,
    .memory_map = memory_map,
    .memory_unmap = memory_unmap,
};
