/* SPDX-License-Identifier: Apache-2.0 */
/* Handing over the baton; see scheduler.h. All state belongs to whoever has the baton. */
#define _GNU_SOURCE
#include "scheduler.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * How the next thread is chosen. By priorities, each thread keeps its own until a point that the seed picks, where it falls to the lowest:
 * that finds what needs few switches in the right places. At random, every n-th point is a switch.
 */
enum policy { policy_random, policy_priorities };

enum thread_state { thread_can_run, thread_waits, thread_has_ended };

enum {
    stack_size = 256 << 10,
    lines_size = 512,
    keys_max = 28, /* below 32 the C library needs no memory for a key's value, which a new thread would take beside whoever runs */
    patience = 20000, /* points without a wait, after which a thread loses its priority */
    points_max = 3000000,
};

static const int64_t start_ns = INT64_C(1000) * 1000000000;
static const int64_t longest_ns = INT64_C(3000) * 1000000000;
static const int64_t point_cost_ns = 20;

struct thread {
    int number;
    struct process *process;
    pthread_t handle;
    _Atomic uint32_t baton;
    enum thread_state state;
    bool (*is_ready)(void *info);
    void *info;
    int64_t deadline_ns;
    uint64_t priority;
    uint32_t points_in_a_row;
    const char *doing;
    void (*body)(void *info);
    void *body_info;
};

struct scheduler_counts scheduler_counts;
struct process scheduler_processes[processes_max];

static struct {
    bool is_running;
    bool prints;
    enum policy policy;
    uint64_t switch_one_in;
    uint64_t fall_one_in;
    uint64_t lowest_priority;
    uint64_t random[random_streams];
    int64_t now_ns;
    bool (*drain)(void);
    int64_t (*next_alarm_ns)(void);
    pthread_key_t end_key;
    _Atomic uint32_t is_over;
} scheduler;

static struct thread threads[threads_max];
static int thread_count;
static __thread struct thread *self;

/* ---- random numbers ---- */

/* splitmix64 */
static uint64_t mixed(uint64_t *state)
{
    uint64_t value = *state += UINT64_C(0x9E3779B97F4A7C15);

    value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
    return value ^ value >> 31;
}

uint64_t scheduler_random(enum random_stream stream, uint64_t below)
{
    return mixed(&scheduler.random[stream]) % below;
}

bool scheduler_chance(enum random_stream stream, uint64_t one_in)
{
    return scheduler_random(stream, one_in) == 0;
}

/* ---- the baton ---- */

static void word_wait(_Atomic uint32_t *word)
{
    while (atomic_load(word) == 0) {
        (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    }
}

static void word_set(_Atomic uint32_t *word)
{
    atomic_store(word, 1);
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void take_baton(struct thread *thread)
{
    word_wait(&thread->baton);
    atomic_store(&thread->baton, 0);
    thread->points_in_a_row = 0;
}

static bool can_run(const struct thread *thread)
{
    if (thread->state == thread_has_ended || thread->process->has_died || thread->process->stopped_until_ns > scheduler.now_ns) {
        return false;
    }
    return thread->state == thread_can_run || thread->deadline_ns <= scheduler.now_ns ||
           (thread->is_ready && thread->is_ready(thread->info));
}

static bool is_over(void)
{
    for (int i = 0; i < thread_count; i++) {
        if (threads[i].state != thread_has_ended && !threads[i].process->has_died) {
            return false;
        }
    }
    return true;
}

static struct thread *pick(void)
{
    struct thread *found[threads_max];
    uint64_t count = 0;

    for (int i = 0; i < thread_count; i++) {
        if (can_run(&threads[i])) {
            found[count++] = &threads[i];
        }
    }
    if (count == 0) {
        return NULL;
    }
    if (scheduler.policy == policy_priorities) {
        struct thread *best = found[0];

        for (uint64_t i = 1; i < count; i++) {
            best = found[i]->priority > best->priority ? found[i] : best;
        }
        return best;
    }
    return found[scheduler_random(random_schedule, count)];
}

static int64_t earlier(int64_t one_ns, int64_t other_ns)
{
    return one_ns < other_ns ? one_ns : other_ns;
}

/* Nobody can run: on to the first that will. */
static void let_time_pass(void)
{
    int64_t next_ns = scheduler.next_alarm_ns();

    for (int i = 0; i < thread_count; i++) {
        const struct thread *thread = &threads[i];

        if (thread->state == thread_has_ended || thread->process->has_died) {
            continue;
        }
        if (thread->process->stopped_until_ns > scheduler.now_ns) {
            next_ns = earlier(next_ns, thread->process->stopped_until_ns);
        } else if (thread->state == thread_waits) {
            next_ns = earlier(next_ns, thread->deadline_ns);
        }
    }
    if (next_ns == never_ns) {
        scheduler_fail("it hangs: every thread waits, and for ever");
    }
    if (next_ns > scheduler.now_ns) {
        scheduler.now_ns = next_ns;
    }
    if (scheduler.now_ns - start_ns > longest_ns) {
        scheduler_fail("it does not end: %lld simulated seconds have passed", (long long)(longest_ns / simulated_second_ns));
    }
}

/* The next to run; NULL: all have ended. */
static struct thread *choose(void)
{
    for (;;) {
        struct thread *next;

        if (scheduler_chance(random_schedule, 4)) {
            (void)scheduler.drain();
        }
        next = pick();
        if (next) {
            return next;
        }
        if (is_over()) {
            return NULL;
        }
        if (!scheduler.drain()) {
            let_time_pass();
        }
    }
}

static void pass_to(struct thread *next)
{
    if (!next) {
        word_set(&scheduler.is_over);
        return;
    }
    scheduler_counts.switches++;
    if (scheduler.prints) {
        scheduler_trace("-> %d", next->number);
    }
    word_set(&next->baton);
}

/* Another may go on; returns when this one may. */
static void hand_over(void)
{
    struct thread *next = choose();

    if (next == self) {
        self->points_in_a_row = 0;
        return;
    }
    pass_to(next);
    take_baton(self);
}

static void fall(struct thread *thread)
{
    thread->priority = --scheduler.lowest_priority;
}

void scheduler_yield(void)
{
    if (self) {
        fall(self);
        hand_over();
    }
}

void scheduler_point(void)
{
    int saved = errno;
    bool switches;

    if (!self || !scheduler.is_running) {
        return;
    }
    scheduler.now_ns += point_cost_ns;
    if (++scheduler_counts.points > points_max) {
        scheduler_fail("it does not end: %d schedule points were passed", points_max);
    }
    if (++self->points_in_a_row > patience) {
        fall(self);
        switches = true;
    } else if (scheduler.policy == policy_priorities) {
        switches = scheduler_chance(random_schedule, scheduler.fall_one_in);
        if (switches) {
            fall(self);
        }
    } else {
        switches = scheduler_chance(random_schedule, scheduler.switch_one_in);
    }
    if (switches) {
        hand_over();
    }
    errno = saved;
}

bool scheduler_wait(bool (*is_ready)(void *info), void *info, int64_t deadline_ns)
{
    int saved = errno;

    self->is_ready = is_ready;
    self->info = info;
    self->deadline_ns = deadline_ns;
    self->state = thread_waits;
    hand_over();
    self->state = thread_can_run;
    errno = saved;
    return is_ready && is_ready(info);
}

/* Until the process ends. What the C library frees for a thread that really ends would come between the allocations of others. */
static void stand_still(void)
{
    for (;;) {
        (void)pause();
    }
}

void scheduler_kill(struct process *process)
{
    process->has_died = true;
    scheduler_counts.deaths++;
    scheduler_trace("process %d dies", process->number);
    if (self && self->process == process) {
        pass_to(choose());
        stand_still();
    }
}

/* ---- threads ---- */

/*
 * A thread's end, after the destructors of all other keys: the library's take a loop down in the last round but one, and this key is behind
 * all others.
 */
static void end_of_thread(void *rounds)
{
    uintptr_t left = (uintptr_t)rounds - 1;

    if (left > 0) {
        (void)pthread_setspecific(scheduler.end_key, (void *)left); /* NOLINT(performance-no-int-to-ptr) */
        return;
    }
    scheduler_trace("thread %d ends", self->number);
    self->state = thread_has_ended;
    pass_to(choose());
    stand_still();
}

static void make_last_key(void)
{
    pthread_key_t keys[keys_max];

    for (int i = 0; i < keys_max; i++) {
        if (pthread_key_create(&keys[i], end_of_thread) != 0) {
            abort();
        }
    }
    for (int i = 0; i < keys_max - 1; i++) {
        (void)pthread_key_delete(keys[i]);
    }
    scheduler.end_key = keys[keys_max - 1];
}

static void *start_thread(void *info)
{
    self = info;
    (void)pthread_setspecific(scheduler.end_key, (void *)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS); /* NOLINT(performance-no-int-to-ptr) */
    take_baton(self);
    self->body(self->body_info);
    return NULL;
}

int scheduler_spawn(int process, void (*body)(void *info), void *info)
{
    struct thread *thread = &threads[thread_count];
    pthread_attr_t attributes;

    if (thread_count == threads_max) {
        scheduler_fail("more than %d threads", threads_max);
    }
    *thread = (struct thread){.number = thread_count, .process = &scheduler_processes[process], .body = body, .body_info = info};
    thread->priority = scheduler.lowest_priority + scheduler_random(random_schedule, 1 << 20);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, stack_size);
    if (pthread_create(&thread->handle, &attributes, start_thread, thread) != 0) {
        scheduler_fail("no thread could be made");
    }
    (void)pthread_attr_destroy(&attributes);
    return thread_count++;
}

/* Not the calling thread, which may be any: a thread that waits asks from where another runs. */
bool scheduler_is_alone(const struct process *process)
{
    int count = 0;

    for (int i = 0; i < thread_count; i++) {
        count += threads[i].process == process && threads[i].state != thread_has_ended ? 1 : 0;
    }
    return count <= 1;
}

/* ---- the whole ---- */

void scheduler_begin(uint64_t seed, bool prints, bool (*drain)(void), int64_t (*next_alarm_ns)(void))
{
    uint64_t state = seed;

    for (int i = 0; i < random_streams; i++) {
        scheduler.random[i] = mixed(&state);
    }
    for (int i = 0; i < processes_max; i++) {
        scheduler_processes[i].number = i;
    }
    scheduler.prints = prints;
    scheduler.drain = drain;
    scheduler.next_alarm_ns = next_alarm_ns;
    scheduler.now_ns = start_ns;
    scheduler.lowest_priority = UINT64_C(1) << 62;
    scheduler.policy = scheduler_chance(random_schedule, 3) ? policy_priorities : policy_random;
    scheduler.switch_one_in = UINT64_C(2) << 2 * scheduler_random(random_schedule, 5); /* 2 to 512 */
    scheduler.fall_one_in = UINT64_C(16) << 2 * scheduler_random(random_schedule, 5); /* 16 to 4096 */
    scheduler_counts.hash = UINT64_C(14695981039346656037);
    make_last_key();
}

void scheduler_run(void)
{
    scheduler.is_running = true;
    pass_to(choose());
    word_wait(&scheduler.is_over);
    scheduler.is_running = false;
    scheduler_counts.elapsed_ns = scheduler.now_ns - start_ns;
}

int scheduler_self(void)
{
    return self ? self->number : -1;
}

struct process *scheduler_process(void)
{
    return self->process;
}

int64_t scheduler_now_ns(void)
{
    return scheduler.now_ns;
}

void scheduler_advance(int64_t ns)
{
    scheduler.now_ns += ns;
}

/* ---- words ---- */

void scheduler_trace(const char *format, ...)
{
    char line[lines_size];
    int begin = snprintf(line, sizeof line, "%lld.%09lld %d ", (long long)((scheduler.now_ns - start_ns) / simulated_second_ns),
                         (long long)((scheduler.now_ns - start_ns) % simulated_second_ns), scheduler_self());
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line + begin, sizeof line - (size_t)begin, format, arguments);
    va_end(arguments);
    /* Who gets the baton is in the lines that follow, whether or not it is printed. */
    if (strncmp(line + begin, "->", 2) != 0) {
        for (const char *next = line; *next; next++) {
            scheduler_counts.hash = (scheduler_counts.hash ^ (unsigned char)*next) * UINT64_C(1099511628211);
        }
    }
    if (scheduler.prints) {
        (void)fprintf(stdout, "%s\n", line);
    }
}

void scheduler_note(const char *doing)
{
    self->doing = doing;
}

void scheduler_fail(const char *format, ...)
{
    char text[lines_size];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)fflush(stdout);
    (void)fprintf(stderr, "  %s\n", text);
    for (int i = 0; i < thread_count; i++) {
        const struct thread *thread = &threads[i];
        static const char *const states[] = {"can run", "waits", "has ended"};

        (void)fprintf(stderr, "    thread %d of process %d%s %s, %s%s\n", i, thread->process->number,
                      thread->process->has_died ? " (dead)" : "", states[thread->state], thread->doing ? thread->doing : "without a note",
                      thread == self ? " <- here" : "");
    }
    (void)fflush(stderr);
    _exit(1);
}
