/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demonstration: one run loop that follows its input, beats with two timers, and obeys a second thread; an
 * observer writes down every pass.
 *
 *     demo             lines typed or piped into it; without either, a file that a child process appends to
 *     demo FILE        a file that others append to
 *     demo --seconds N ends after that time; 10 where nobody is at a terminal
 *
 * In a pipe it ends by itself: at the end of its input, but not before everything has been seen once, or when the time is up.
 */
#define _GNU_SOURCE
#include <CRLRunLoop.h>
#include <CoreFoundation/CoreFoundation.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "input.h"
#include "timeline.h"

static const double shortest_run_s = 2.5; /* so that every part has had its turn */

/* ---- two timers ---- */

struct beat {
    const char *name;
    double interval;
    unsigned count;
    CFRunLoopTimerRef timer;
};

static struct beat tick = {.name = "tick", .interval = 0.5};
static struct beat tock = {.name = "tock", .interval = 0.8};

static void beats(CFRunLoopTimerRef timer, void *info)
{
    struct beat *beat = info;

    (void)timer;
    timeline_event(event_timer, "%s %u", beat->name, ++beat->count);
}

static void start(struct beat *beat)
{
    CFRunLoopTimerContext context = {.info = beat};

    beat->timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + beat->interval, beat->interval, 0, 0, beats, &context);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), beat->timer, kCFRunLoopDefaultMode);
}

static void stop(struct beat *beat)
{
    CFRunLoopTimerInvalidate(beat->timer);
    CFRelease(beat->timer);
}

/* A timer's interval is what it was created with: another one takes its place. */
static void change(struct beat *beat, double factor)
{
    stop(beat);
    beat->interval *= factor;
    start(beat);
}

/* ---- commands from a second thread ---- */

static void obey(const char *command, void *info)
{
    (void)info;
    timeline_event(event_command, "%s", command);
    if (strcmp(command, "tick faster") == 0) {
        change(&tick, 0.5);
    } else if (strcmp(command, "tick slower") == 0) {
        change(&tick, 2);
    } else if (strcmp(command, "count") == 0) {
        timeline_event(event_note, "%u + %u beats", tick.count, tock.count);
    }
}

/* The worker sends commands at moments of its own until it is told to end. */
struct worker {
    pthread_t thread;
    struct command_source *commands;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_to_end; /* lock */
};

/* False when it is time to end. */
static bool pause_for(struct worker *worker, long milliseconds)
{
    struct timespec until;
    bool goes_on;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += milliseconds % 1000 * 1000000;
    until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_mutex_lock(&worker->lock);
    while (!worker->is_to_end && pthread_cond_timedwait(&worker->changed, &worker->lock, &until) != ETIMEDOUT) {
    }
    goes_on = !worker->is_to_end;
    (void)pthread_mutex_unlock(&worker->lock);
    return goes_on;
}

static void *work(void *info)
{
    static const char *const commands[] = {"hello", "tick faster", "count", "tick slower"};
    struct worker *worker = info;

    for (unsigned i = 0; pause_for(worker, i == 0 ? 200 : 730); i++) {
        command_source_send(worker->commands, commands[i % (sizeof commands / sizeof commands[0])]);
    }
    return NULL;
}

static void worker_start(struct worker *worker)
{
    worker->commands = command_source_create(CFRunLoopGetCurrent(), kCFRunLoopDefaultMode, obey, NULL);
    (void)pthread_mutex_init(&worker->lock, NULL);
    (void)pthread_cond_init(&worker->changed, NULL);
    if (pthread_create(&worker->thread, NULL, work, worker) != 0) {
        perror("demo: no second thread");
        exit(1);
    }
}

static void worker_end(struct worker *worker)
{
    (void)pthread_mutex_lock(&worker->lock);
    worker->is_to_end = true;
    (void)pthread_cond_signal(&worker->changed);
    (void)pthread_mutex_unlock(&worker->lock);
    (void)pthread_join(worker->thread, NULL);
    command_source_free(worker->commands);
}

/* ---- the end ---- */

static void stops(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    timeline_event(event_note, "stop");
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static void interrupted(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info)
{
    (void)source, (void)signal, (void)info;
    timeline_event(event_note, "Ctrl-C");
    CFRunLoopStop(CFRunLoopGetCurrent());
}

/* Ctrl-C is one more thing that the loop waits for. */
static void watch_interrupts(void)
{
    CFRunLoopSourceRef source = CRLSignalSourceCreate(NULL, SIGINT, 0, interrupted, NULL);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRelease(source);
}

/* There will be no more input: the run ends, after its shortest time. */
static void input_has_ended(void)
{
    double left = shortest_run_s - timeline_seconds();
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + (left > 0 ? left : 0), 0, 0, 0, stops, NULL);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    CFRelease(timer);
}

/* ---- a file of our own, for when there is no other input ---- */

static char own_file[] = "/tmp/run-loop-demo-XXXXXX";

static void child_has_ended(CFRunLoopSourceRef source, pid_t pid, int status, void *info)
{
    (void)source, (void)info;
    timeline_event(event_note, "process %d has ended with %d", (int)pid, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    input_has_ended();
}

static const char *start_writer(void)
{
    static const char script[] = "i=0; while [ $i -lt 8 ]; do i=$((i+1)); sleep 0.3; "
                                 "echo \"line $i, load $(cut -d' ' -f1 /proc/loadavg)\" >> \"$0\"; done";
    int file = mkostemp(own_file, O_CLOEXEC);
    CFRunLoopSourceRef source;
    pid_t pid;

    if (file < 0) {
        perror("demo: /tmp");
        exit(1);
    }
    (void)close(file);
    pid = fork();
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", script, own_file, (char *)NULL);
        _exit(127);
    }
    source = CRLChildSourceCreate(NULL, pid, 0, child_has_ended, NULL);
    if (source) {
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
        CFRelease(source);
    }
    return own_file;
}

/* Something may come from it: a terminal, a pipe, a file; not /dev/null and not a closed number. */
static bool has_standard_input(void)
{
    struct stat input;

    return isatty(STDIN_FILENO) ? isatty(STDOUT_FILENO) != 0 : fstat(STDIN_FILENO, &input) == 0 && !S_ISCHR(input.st_mode);
}

/* ---- all together ---- */

struct choice {
    const char *path; /* NULL: standard input */
    double seconds; /* 0: no limit */
    bool is_own_file;
};

static struct choice choose(int count, char **arguments)
{
    bool has_reader = isatty(STDOUT_FILENO) != 0;
    struct choice choice = {.path = NULL, .seconds = has_reader ? 0 : 10};

    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--seconds") == 0 && i + 1 < count) {
            choice.seconds = strtod(arguments[++i], NULL);
        } else if (arguments[i][0] != '-') {
            choice.path = arguments[i];
        } else {
            (void)fprintf(stderr, "usage: demo [--seconds N] [FILE]\n");
            exit(2);
        }
    }
    choice.is_own_file = !choice.path && !has_standard_input();
    return choice;
}

static void describe(const struct choice *choice, char *ret_input, char *ret_ending, size_t size)
{
    const char *kind = choice->is_own_file ? ", to which a child process appends" : "";

    if (choice->path) {
        (void)snprintf(ret_input, size, "what is appended to %s%s", choice->path, kind);
    } else {
        (void)snprintf(ret_input, size, "standard input%s", isatty(STDIN_FILENO) ? ": type lines" : "");
    }
    if (choice->is_own_file) {
        (void)snprintf(ret_ending, size, "when that process has ended");
    } else if (choice->path) {
        (void)snprintf(ret_ending, size, "with Ctrl-C");
    } else {
        (void)snprintf(ret_ending, size, "%s", isatty(STDIN_FILENO) ? "with Ctrl-D" : "at the end of input");
    }
    if (choice->seconds > 0) {
        (void)snprintf(ret_ending + strlen(ret_ending), size - strlen(ret_ending), ", or after %g s", choice->seconds);
    }
}

int main(int count, char **arguments)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    struct choice choice = choose(count, arguments);
    struct worker worker = {.is_to_end = false};
    struct input *input;
    char what[256];
    char ending[256];
    CFRunLoopRunResult result;

    if (choice.is_own_file) {
        choice.path = start_writer();
    }
    describe(&choice, what, ending, sizeof what);
    input = input_open(loop, kCFRunLoopDefaultMode, choice.path, input_has_ended);
    if (!input) {
        (void)fprintf(stderr, "demo: %s: %s\n", choice.path ? choice.path : "standard input", strerror(errno));
        return 1;
    }
    timeline_begin(loop, kCFRunLoopDefaultMode, what, ending);
    watch_interrupts(); /* before the second thread, which then leaves the signal to the loop, too */
    start(&tick);
    start(&tock);
    worker_start(&worker);
    result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, choice.seconds > 0 ? choice.seconds : 1e10, false);
    timeline_end(result);
    worker_end(&worker);
    stop(&tick);
    stop(&tock);
    input_close(input);
    if (choice.is_own_file) {
        (void)unlink(own_file);
    }
    return 0;
}
