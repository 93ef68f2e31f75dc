/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GMainContext that the run loop of the first thread serves: each case is a process of its own, `program CASE`. It ends with status 0, or
 * with a line that says what was not so.
 */
#include <CRLGLibSource.h>
#include <CRLRunLoop.h>
#include <CoreFoundation/CoreFoundation.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "failing_memory.h"

#define EXPECT(condition) expect((condition), #condition, __LINE__)

static GThread *first;
static CFRunLoopRef loop;
static CFRunLoopSourceRef source;
static unsigned calls, beats, wakes;

static void expect(bool holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "glib_source.c:%d: %s does not hold\n", line, what);
        exit(1);
    }
}

static void serve(void)
{
    source = CRLGLibSourceCreate(NULL);
    EXPECT(source != NULL);
    CFRunLoopAddSource(loop, source, kCFRunLoopCommonModes);
}

static gboolean call(gpointer limit)
{
    EXPECT(g_thread_self() == first);
    calls++;
    if (limit && calls >= GPOINTER_TO_UINT(limit)) {
        CFRunLoopStop(loop);
    }
    return G_SOURCE_CONTINUE;
}

static void beat(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    beats++;
}

static CFRunLoopTimerRef add_timer(double interval, void (*function)(CFRunLoopTimerRef timer, void *info))
{
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + interval, interval, 0, 0, function, NULL);

    CFRunLoopAddTimer(loop, timer, kCFRunLoopCommonModes);
    return timer;
}

/* ---- what a context has ---- */

static void timeouts_and_timers_fire(void)
{
    serve();
    (void)g_timeout_add(2, call, GUINT_TO_POINTER(30));
    (void)add_timer(0.001, beat);
    CFRunLoopRun();
    EXPECT(calls >= 30 && beats >= 1);
}

static void idle_functions_run_and_do_not_starve_timers(void)
{
    serve();
    (void)g_idle_add(call, GUINT_TO_POINTER(0));
    (void)add_timer(0.001, beat);
    while (beats < 10) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
    }
    EXPECT(calls >= 10);
}

/* A source of the loop that is always signalled leaves the context its turns. */
static CFRunLoopSourceRef busy;

static void be_busy(void *info)
{
    (void)info;
    CFRunLoopSourceSignal(busy);
}

static void a_busy_source_does_not_starve_the_context(void)
{
    CFRunLoopSourceContext context = {.perform = be_busy};

    serve();
    busy = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(loop, busy, kCFRunLoopDefaultMode);
    CFRunLoopSourceSignal(busy);
    (void)g_idle_add(call, GUINT_TO_POINTER(10));
    CFRunLoopRun();
}

/* An observer that adds something when the loop is about to sleep. */
static void add_late(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
    if (calls == 0) {
        (void)g_idle_add(call, GUINT_TO_POINTER(1));
    }
}

static void what_an_observer_adds_before_the_sleep_runs(void)
{
    serve();
    CFRunLoopAddObserver(loop, CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting, false, 0, add_late, NULL), kCFRunLoopCommonModes);
    CFRunLoopRun();
}

static gboolean call_once(gpointer limit)
{
    (void)call(limit);
    return G_SOURCE_REMOVE;
}

static gpointer invoke_once(gpointer limit)
{
    for (unsigned i = 0; i < GPOINTER_TO_UINT(limit); i++) {
        g_main_context_invoke(NULL, call_once, limit);
    }
    return NULL;
}

static void other_threads_invoke_on_the_first_one(void)
{
    GThread *thread;

    serve();
    thread = g_thread_new("invoke", invoke_once, GUINT_TO_POINTER(10000));
    CFRunLoopRun();
    (void)g_thread_join(thread);
    EXPECT(calls == 10000);
}

/* ---- descriptors ---- */

static gpointer echo(gpointer data)
{
    GSocket *socket = (GSocket *)data;
    char buffer[64];
    gssize count;

    while ((count = g_socket_receive(socket, buffer, sizeof buffer, NULL, NULL)) > 0) {
        EXPECT(g_socket_send(socket, buffer, (gsize)count, NULL, NULL) == count);
    }
    return NULL;
}

static gboolean receive(GSocket *socket, GIOCondition condition, gpointer data)
{
    char buffer[64];

    (void)condition, (void)data;
    EXPECT(g_socket_receive(socket, buffer, sizeof buffer, NULL, NULL) > 0);
    if (++calls == 100) {
        CFRunLoopStop(loop);
        return G_SOURCE_REMOVE;
    }
    EXPECT(g_socket_send(socket, "hello", 5, NULL, NULL) == 5);
    return G_SOURCE_CONTINUE;
}

static void sockets_are_served(void)
{
    int ends[2];
    GSocket *here, *there;
    GSource *watch;
    GThread *thread;

    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    here = g_socket_new_from_fd(ends[0], NULL);
    there = g_socket_new_from_fd(ends[1], NULL);
    serve();
    thread = g_thread_new("echo", echo, there);
    watch = g_socket_create_source(here, G_IO_IN, NULL);
    g_source_set_callback(watch, (GSourceFunc)(void (*)(void))receive, NULL, NULL);
    (void)g_source_attach(watch, NULL);
    EXPECT(g_socket_send(here, "hello", 5, NULL, NULL) == 5);
    CFRunLoopRun();
    EXPECT(calls == 100);
    (void)g_socket_close(here, NULL);
    (void)g_thread_join(thread);
}

/* Each end closes its pipe and opens another, which gets the same numbers. */
static gboolean open_next(gint descriptor, GIOCondition condition, gpointer data);

static void open_pipe(void)
{
    static int first_number = -1;
    int ends[2];

    EXPECT(pipe(ends) == 0);
    first_number = first_number < 0 ? ends[0] : first_number;
    EXPECT(ends[0] == first_number);
    EXPECT(write(ends[1], "x", 1) == 1);
    (void)g_unix_fd_add(ends[0], G_IO_IN, open_next, GINT_TO_POINTER(ends[1]));
}

static gboolean open_next(gint descriptor, GIOCondition condition, gpointer other)
{
    (void)condition;
    (void)close(descriptor);
    (void)close(GPOINTER_TO_INT(other));
    if (++calls == 100) {
        CFRunLoopStop(loop);
    } else {
        open_pipe();
    }
    return G_SOURCE_REMOVE;
}

static void numbers_of_closed_descriptors_are_used_again(void)
{
    serve();
    open_pipe();
    CFRunLoopRun();
    EXPECT(calls == 100);
}

enum { pipes = 200 };
static int writers[pipes];

static gboolean hear(gint descriptor, GIOCondition condition, gpointer limit)
{
    char byte;

    (void)condition;
    EXPECT(read(descriptor, &byte, 1) == 1);
    return call(limit);
}

static void many_descriptors_are_served(void)
{
    serve();
    for (unsigned i = 0; i < pipes; i++) {
        int ends[2];

        EXPECT(pipe(ends) == 0);
        writers[i] = ends[1];
        (void)g_unix_fd_add(ends[0], G_IO_IN, hear, GUINT_TO_POINTER(pipes));
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    for (unsigned i = 0; i < pipes; i++) {
        EXPECT(write(writers[i], "x", 1) == 1);
    }
    CFRunLoopRun();
    EXPECT(calls == pipes);
}

/* ---- runs within runs ---- */

static void iterate_in_timer(CFRunLoopTimerRef timer, void *info)
{
    unsigned before = calls;

    if (beats == 0) {
        while (calls < before + 5) {
            (void)g_main_context_iteration(NULL, TRUE);
        }
    }
    beat(timer, info);
    if (beats == 5) {
        CFRunLoopStop(loop);
    }
}

static void a_timer_iterates_the_context(void)
{
    serve();
    (void)g_timeout_add(1, call, NULL);
    (void)add_timer(0.001, iterate_in_timer);
    CFRunLoopRun();
    EXPECT(calls >= 5);
}

static gboolean iterate_in_timeout(gpointer data)
{
    static bool is_inside;
    unsigned before = calls;

    (void)data;
    if (!is_inside) {
        is_inside = true;
        while (calls < before + 5) {
            (void)g_main_context_iteration(NULL, TRUE);
        }
        while (beats < 5 || calls < before + 10) {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
        }
        CFRunLoopStop(loop);
    }
    return G_SOURCE_REMOVE;
}

static void a_timeout_iterates_the_context_and_runs_the_loop(void)
{
    serve();
    (void)g_timeout_add(1, call, NULL);
    (void)g_timeout_add(1, iterate_in_timeout, NULL);
    (void)add_timer(0.001, beat);
    CFRunLoopRun();
}

/* ---- ends ---- */

static gboolean invalidate(gpointer data)
{
    (void)data;
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
    source = NULL;
    return G_SOURCE_REMOVE;
}

static void the_source_ends_in_its_own_callback(void)
{
    CFRunLoopTimerRef timer = add_timer(0.001, beat);

    serve();
    (void)g_timeout_add(1, call, NULL);
    (void)g_timeout_add(5, invalidate, NULL);
    while (source) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
    }
    calls = beats = 0;
    while (beats < 10) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
    }
    EXPECT(calls == 0 && !g_main_context_is_owner(g_main_context_default()));
    CFRunLoopTimerInvalidate(timer);
    EXPECT(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false) == kCFRunLoopRunFinished);
    (void)g_timeout_add(0, call, GUINT_TO_POINTER(1));
    serve();
    CFRunLoopRun();
}

static sem_t owned, seen;

static gpointer own(gpointer data)
{
    EXPECT(g_main_context_acquire(NULL));
    (void)sem_post(&owned);
    (void)sem_wait(&seen);
    return data;
}

static void a_context_of_another_thread_is_left_alone(void)
{
    GThread *thread;

    (void)sem_init(&owned, 0, 0);
    (void)sem_init(&seen, 0, 0);
    thread = g_thread_new("own", own, NULL);
    (void)sem_wait(&owned);
    serve();
    (void)g_idle_add(call, NULL);
    EXPECT(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false) == kCFRunLoopRunTimedOut);
    EXPECT(calls == 0);
    (void)sem_post(&seen);
    (void)g_thread_join(thread);
}

static void without_memory_none_is_made(void)
{
    for (unsigned n = 1; n == 1 || failing_memory_has_failed(); n++) {
        CFRunLoopSourceRef made;

        failing_memory_begin(n);
        made = CRLGLibSourceCreate(NULL);
        failing_memory_end();
        EXPECT((made != NULL) != failing_memory_has_failed());
        if (made) {
            CFRelease(made);
        }
        calls = n;
    }
    EXPECT(calls > 5);
    calls = 0;
    many_descriptors_are_served();
}

/* The array of descriptors cannot grow at first. */
static void without_memory_for_descriptors_it_asks_again(void)
{
    serve();
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    failing_memory_begin(1);
    for (unsigned i = 0; i < 20; i++) {
        int ends[2];

        EXPECT(pipe(ends) == 0);
        EXPECT(write(ends[1], "x", 1) == 1);
        (void)g_unix_fd_add(ends[0], G_IO_IN, hear, GUINT_TO_POINTER(20));
    }
    CFRunLoopRun();
    EXPECT(calls >= 20 && failing_memory_has_failed());
    failing_memory_end();
}

/* ---- nothing to do ---- */

static void count_wake(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
    wakes++;
}

static void an_idle_context_does_not_wake_the_loop(void)
{
    CFRunLoopAddObserver(loop, CFRunLoopObserverCreate(NULL, kCFRunLoopAfterWaiting, true, 0, count_wake, NULL), kCFRunLoopCommonModes);
    serve();
    (void)g_timeout_add(100000000, call, NULL);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.1, false);
    wakes = 0;
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.3, false);
    EXPECT(wakes <= 2);
}

static const struct {
    const char *name;
    void (*function)(void);
} cases[] = {
#define CASE(name) {#name, name}
    CASE(timeouts_and_timers_fire),
    CASE(idle_functions_run_and_do_not_starve_timers),
    CASE(a_busy_source_does_not_starve_the_context),
    CASE(what_an_observer_adds_before_the_sleep_runs),
    CASE(other_threads_invoke_on_the_first_one),
    CASE(sockets_are_served),
    CASE(numbers_of_closed_descriptors_are_used_again),
    CASE(many_descriptors_are_served),
    CASE(a_timer_iterates_the_context),
    CASE(a_timeout_iterates_the_context_and_runs_the_loop),
    CASE(the_source_ends_in_its_own_callback),
    CASE(a_context_of_another_thread_is_left_alone),
    CASE(without_memory_none_is_made),
    CASE(without_memory_for_descriptors_it_asks_again),
    CASE(an_idle_context_does_not_wake_the_loop),
};

int main(int argc, char *argv[])
{
    first = g_thread_self();
    loop = CFRunLoopGetMain();
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc < 2) {
            (void)puts(cases[i].name);
        } else if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].function();
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
