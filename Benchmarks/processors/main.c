/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processors CASE THREADS [MILLISECONDS]
 *
 * THREADS threads do the same for a while, as fast as they can, and the number of operations in a second is printed. The cases:
 *
 *   line         each waits until its turn has come, and gives the turn to the next: a cache line goes from one processor to another
 *   signal       each signals a source of its own in one loop, wakes the loop, and goes on when the source has been performed
 *   post         each posts functions to one loop, at most 64 ahead of it
 *   timer        each adds a timer to one loop that has 1,000, and invalidates it
 *   message      each sends requests to one port of the process, and waits for the replies
 *   post-pairs   as post, but each thread has a loop of its own, on a thread of its own
 *   timer-pairs  as timer, likewise
 *
 * The threads of the loops are not counted in THREADS. Each thread has a processor of its own, as long as there are enough.
 */
#define _GNU_SOURCE
#include <CoreFoundation/CoreFoundation.h>
#include <CRLRunLoop.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { threads_most = 512, ahead_most = 64, crowd_of_timers = 1000, pauses_most = 50, line_size = 64 };

/* A loop and its thread. */
struct server {
    pthread_t thread;
    CFRunLoopRef loop;
    pthread_barrier_t ready;
};

struct worker {
    _Alignas(2 * line_size) _Atomic long done; /* by this thread; written by it alone */
    _Alignas(2 * line_size) _Atomic long served; /* by the loop */
    _Alignas(2 * line_size) long begun;
    pthread_t thread;
    struct server *server;
    CFRunLoopSourceRef source;
    CFMessagePortRef port;
};

struct work {
    const char *name;
    void (*prepare)(struct worker *worker); /* on the worker's thread; may be NULL */
    void (*operate)(struct worker *worker);
    bool has_loop;
    bool has_pairs;
};

static struct worker workers[threads_most];
static struct server servers[threads_most];
static const struct work *work;
static pthread_barrier_t start;
static int worker_count;
static _Alignas(2 * line_size) _Atomic long turn;

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "processors: %s\n", what);
    exit(1);
}

/* Each call takes the next processor. */
static void take_processor(void)
{
    static atomic_int next;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)atomic_fetch_add(&next, 1) % (size_t)sysconf(_SC_NPROCESSORS_ONLN), &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

/* ---- loops ---- */

static void fire(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
}

static CFDataRef answer(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port, (void)message_id, (void)data, (void)info;
    return NULL;
}

static CFRunLoopTimerRef far_timer(void)
{
    static const CFTimeInterval far_s = 1e6;

    return CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + far_s, 0, 0, 0, fire, NULL);
}

static void add_far_timers(CFRunLoopRef loop)
{
    for (int i = 0; i < crowd_of_timers; i++) {
        CFRunLoopTimerRef timer = far_timer();

        CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode);
        CFRelease(timer);
    }
}

static void add_port(CFRunLoopRef loop)
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, CFSTR("processors"), answer, NULL, NULL);
    CFRunLoopSourceRef source = port ? CFMessagePortCreateRunLoopSource(NULL, port, 0) : NULL;

    if (!source) {
        give_up("the name processors is taken");
    }
    CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode);
}

static void *serve(void *info)
{
    struct server *server = info;

    take_processor();
    server->loop = CFRunLoopGetCurrent();
    add_far_timers(server->loop);
    if (strcmp(work->name, "message") == 0) {
        add_port(server->loop);
    }
    (void)pthread_barrier_wait(&server->ready);
    CFRunLoopRun();
    return NULL;
}

static void begin_server(struct server *server)
{
    (void)pthread_barrier_init(&server->ready, NULL, 2);
    if (pthread_create(&server->thread, NULL, serve, server) != 0) {
        give_up("no thread for a loop");
    }
    (void)pthread_barrier_wait(&server->ready);
}

/* ---- the cases ---- */

/* Looks now and then, for the loop writes the line that is looked at. */
static void await_served(struct worker *worker, long number)
{
    while (atomic_load_explicit(&worker->served, memory_order_acquire) < number) {
        for (int i = 0; i < pauses_most; i++) {
            __asm__ volatile("" ::: "memory");
        }
    }
}

static void count_served(void *info)
{
    struct worker *worker = info;

    atomic_store_explicit(&worker->served, worker->served + 1, memory_order_release);
}

static void give_turn(struct worker *worker)
{
    while (&workers[atomic_load_explicit(&turn, memory_order_acquire)] != worker) {
    }
    atomic_store_explicit(&turn, (worker - workers + 1) % worker_count, memory_order_release);
}

static void make_source(struct worker *worker)
{
    CFRunLoopSourceContext context = {.info = worker, .perform = count_served};

    worker->source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(worker->server->loop, worker->source, kCFRunLoopDefaultMode);
}

static void signal_once(struct worker *worker)
{
    CFRunLoopSourceSignal(worker->source);
    CFRunLoopWakeUp(worker->server->loop);
    await_served(worker, ++worker->begun);
}

static void post(struct worker *worker)
{
    CRLRunLoopPerformFunction(worker->server->loop, kCFRunLoopDefaultMode, count_served, worker, NULL);
    CFRunLoopWakeUp(worker->server->loop);
    worker->begun++;
    await_served(worker, worker->begun - ahead_most);
}

static void add_timer(struct worker *worker)
{
    CFRunLoopTimerRef timer = far_timer();

    CFRunLoopAddTimer(worker->server->loop, timer, kCFRunLoopDefaultMode);
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
}

static void find_port(struct worker *worker)
{
    worker->port = CFMessagePortCreateRemote(NULL, CFSTR("processors"));
    if (!worker->port) {
        give_up("the port is not found");
    }
}

static void request(struct worker *worker)
{
    static const CFTimeInterval limit_s = 10;
    CFDataRef reply = NULL;

    if (CFMessagePortSendRequest(worker->port, 1, NULL, limit_s, limit_s, kCFRunLoopDefaultMode, &reply) != kCFMessagePortSuccess) {
        give_up("a request has failed");
    }
    if (reply) {
        CFRelease(reply);
    }
}

static const struct work works[] = {
    {"line", NULL, give_turn, false, false},
    {"signal", make_source, signal_once, true, false},  {"post", NULL, post, true, false},
    {"timer", NULL, add_timer, true, false},            {"message", find_port, request, true, false},
    {"post-pairs", NULL, post, true, true},             {"timer-pairs", NULL, add_timer, true, true},
};

/* ---- the run ---- */

static _Noreturn void *labour(void *info)
{
    struct worker *worker = info;
    long done = 0;

    take_processor();
    if (work->prepare) {
        work->prepare(worker);
    }
    (void)pthread_barrier_wait(&start);
    for (;;) {
        work->operate(worker);
        atomic_store_explicit(&worker->done, ++done, memory_order_relaxed);
    }
}

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static long total(int threads)
{
    long sum = 0;

    for (int i = 0; i < threads; i++) {
        sum += atomic_load(&workers[i].done);
    }
    return sum;
}

static double operations_a_second(int threads, double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    double begin;
    long before;

    worker_count = threads;
    (void)pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        workers[i].server = &servers[work->has_pairs ? i : 0];
        if (work->has_loop && (i == 0 || work->has_pairs)) {
            begin_server(workers[i].server);
        }
        if (pthread_create(&workers[i].thread, NULL, labour, &workers[i]) != 0) {
            give_up("no thread");
        }
    }
    (void)pthread_barrier_wait(&start);
    begin = now_s();
    before = total(threads);
    (void)nanosleep(&pause, NULL);
    return (double)(total(threads) - before) / (now_s() - begin);
}

int main(int count, char **arguments)
{
    long threads = count > 2 ? strtol(arguments[2], NULL, 10) : 0;
    double seconds = count > 3 ? strtod(arguments[3], NULL) / 1e3 : 0.5;

    for (size_t i = 0; count > 2 && i < sizeof works / sizeof works[0]; i++) {
        work = strcmp(works[i].name, arguments[1]) == 0 ? &works[i] : work;
    }
    if (!work || threads < 1 || threads > threads_most || seconds <= 0) {
        (void)fprintf(stderr, "usage: processors CASE THREADS [MILLISECONDS], with at most %d threads; the cases:\n", threads_most);
        for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
            (void)fprintf(stderr, "  %s\n", works[i].name);
        }
        return 2;
    }
    (void)printf("%.0f\n", operations_a_second((int)threads, seconds));
    (void)fflush(stdout);
    _Exit(0); /* the threads go on until the process ends */
}
