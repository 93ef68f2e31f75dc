/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop over n: a process for each run, and what must hold at its end.
 *
 * The runs share a page with the test: the count of calls, and what failed. Where one stack makes many calls, `make check` fails the first
 * few of them, and `make soak` all.
 */
#define _GNU_SOURCE
#include "Failure/nth_failure.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Port/port_probe.h"
#include "Runtime/object.h"

enum { calls_max = 16384, sites_max = 4096, bag_max = 256, stack_repeats = 2, hang_s = 5, status_bad = 3, site_frames = 4, bad_max = 8 };

static const double slow_s = 0.9;

struct shared {
    _Atomic unsigned calls; /* of the run */
    _Atomic bool has_failed;
    bool has_second_error;
    int error;
    const char *failed_call;
    int depth;
    void *frames[stack_depth];
    unsigned long stacks[calls_max]; /* of the run without failures */
    unsigned long sites[sites_max]; /* stacks that have failed, over all runs */
    int site_count, memory_site_count;
    struct memory_origins clean_origins;
    size_t clean_blocks;
};

static struct shared *shared;
static unsigned target; /* 0: none fails */
static int variant;
static atomic_bool is_armed;
static unsigned steps_to_death; /* 0: it does not die */
static bool is_recording;
static bool is_replay;
static atomic_bool is_bad; /* of the run */

static struct {
    CFTypeRef objects[bag_max];
    int object_count;
    int descriptors[bag_max];
    int descriptor_count;
} bag;

/* ---- in a run ---- */

void run_failed(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "%s:%d: %s\n", file, line, text);
    (void)fflush(stderr);
    atomic_store(&is_bad, true);
}

int nth_failure_take(const struct failing_call *call)
{
    void *frames[stack_depth];
    unsigned long hash;
    unsigned number;
    int depth;

    if (steps_to_death > 0 && --steps_to_death == 0) {
        (void)raise(SIGKILL);
    }
    if (!atomic_load(&is_armed)) {
        return 0;
    }
    number = atomic_fetch_add(&shared->calls, 1) + 1;
    if (!is_recording && number != target) {
        return 0;
    }
    depth = stack_take(frames, &hash);
    if (is_recording && number < calls_max) {
        shared->stacks[number] = hash;
    }
    if (number != target) {
        return 0;
    }
    shared->has_second_error = call->errors[1] != 0;
    shared->error = call->errors[variant];
    shared->failed_call = call->name;
    memcpy(shared->frames, frames, sizeof frames);
    shared->depth = depth;
    atomic_store(&shared->has_failed, true);
    return shared->error;
}

void nth_failure_die_at(unsigned n)
{
    steps_to_death = n;
    failing_calls_install();
}

void *bag_keep(const void *object)
{
    if (object) {
        REQUIRE(bag.object_count < bag_max);
        bag.objects[bag.object_count++] = object;
    }
    return (void *)(uintptr_t)object;
}

int bag_keep_descriptor(int descriptor)
{
    REQUIRE(bag.descriptor_count < bag_max);
    bag.descriptors[bag.descriptor_count++] = descriptor;
    return descriptor;
}

static void give_back(CFTypeRef object)
{
    CFTypeID type = CFGetTypeID(object);
    void *mutable_object = (void *)(uintptr_t)object;

    if (type == CFRunLoopSourceGetTypeID()) {
        CFRunLoopSourceInvalidate(mutable_object);
    } else if (type == CFRunLoopTimerGetTypeID()) {
        CFRunLoopTimerInvalidate(mutable_object);
    } else if (type == CFRunLoopObserverGetTypeID()) {
        CFRunLoopObserverInvalidate(mutable_object);
    } else if (type == CFFileDescriptorGetTypeID()) {
        CFFileDescriptorInvalidate(mutable_object);
    } else if (type == CFSocketGetTypeID()) {
        CFSocketInvalidate(mutable_object);
    } else if (type == CFMessagePortGetTypeID()) {
        CFMessagePortInvalidate(mutable_object);
    } else if (type == CFMachPortGetTypeID()) {
        CFMachPortInvalidate(mutable_object);
    }
    CFRelease(object);
}

static bool run_scenario(bool (*scenario)(void))
{
    bool is_complete = scenario();

    while (bag.object_count > 0) {
        give_back(bag.objects[--bag.object_count]);
    }
    while (bag.descriptor_count > 0) {
        (void)close(bag.descriptors[--bag.descriptor_count]);
    }
    return is_complete;
}

bool run_until(const _Atomic int *counter, int wanted, CFStringRef mode)
{
    enum { turns_max = 5000 };

    for (int turn = 0; turn < turns_max && *counter < wanted; turn++) {
        CFRunLoopRunResult result = CFRunLoopRunInMode(mode, test_patience_s(), true);

        if (result != kCFRunLoopRunHandledSource && result != kCFRunLoopRunStopped) {
            break;
        }
    }
    return *counter >= wanted;
}

static int descriptors_open(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;

    while (directory && readdir(directory)) {
        count++;
    }
    (void)closedir(directory);
    return count;
}

/* Threads that were joined may still be on their way out. */
static void settle(int descriptors, long objects)
{
    struct timespec pause = {0, 1000000};

    for (int i = 0; i < 300 && (descriptors_open() > descriptors || object_live_count() > objects); i++) {
        (void)nanosleep(&pause, NULL);
    }
}

static void check_balance(int descriptors, long objects)
{
    settle(descriptors, objects);
    if (descriptors_open() != descriptors) {
        run_failed(__FILE__, __LINE__, "%d descriptors are open, not %d", descriptors_open(), descriptors);
    }
    if (object_live_count() != objects) {
        run_failed(__FILE__, __LINE__, "%ld objects are alive, not %ld", object_live_count(), objects);
    }
    failing_memory_end();
    if (object_live_count() != objects) {
        failing_memory_print_beyond(&shared->clean_origins); /* nothing yet, in the run without failures */
    }
    if (is_recording) {
        shared->clean_blocks = failing_memory_count();
        failing_memory_origins(&shared->clean_origins);
    } else if (failing_memory_count() > shared->clean_blocks) {
        run_failed(__FILE__, __LINE__, "%zu blocks of memory are left, not %zu", failing_memory_count(), shared->clean_blocks);
        failing_memory_print_beyond(&shared->clean_origins);
    }
}

static double now_s(void)
{
    return (double)kernel_linux.monotonic_ns() / 1e9;
}

/* Then the queue is full, which is more than an interruption. */
static bool is_sending(const char *call)
{
    return strncmp(call, "kernel_ports.send", strlen("kernel_ports.send")) == 0;
}

static void run_in_child(bool (*scenario)(void))
{
    int descriptors = descriptors_open();
    long objects = object_live_count();
    double began_s = now_s();
    bool is_complete;

    (void)alarm((unsigned)((double)hang_s * test_patience_s() / 5));
    failing_memory_begin();
    failing_calls_install();
    atomic_store(&is_armed, true);
    is_complete = run_scenario(scenario);
    atomic_store(&is_armed, false);
    if (now_s() - began_s > slow_s * test_patience_s() / 5) {
        run_failed(__FILE__, __LINE__, "it took %.1f s", now_s() - began_s);
    }
    if (!is_complete && !atomic_load(&shared->has_failed)) {
        run_failed(__FILE__, __LINE__, "it was refused something although nothing failed");
    }
    if (!is_complete && (shared->error == EINTR || (shared->error == EAGAIN && !is_sending(shared->failed_call)))) {
        run_failed(__FILE__, __LINE__, "it was refused something because of an interruption");
    }
    if (!run_scenario(scenario)) {
        run_failed(__FILE__, __LINE__, "it was refused something when it was run again");
    }
    testing_give_back();
    check_balance(descriptors, objects);
}

/* ---- the test ---- */

static void print_output(int output)
{
    char text[4096];
    off_t offset = 0;

    for (ssize_t size; (size = pread(output, text, sizeof text, offset)) > 0; offset += size) {
        (void)!write(STDERR_FILENO, text, (size_t)size);
    }
}

static bool says(int output, const char *sentence)
{
    char text[4096];
    ssize_t size = pread(output, text, sizeof text - 1, 0);

    text[size > 0 ? size : 0] = '\0';
    return strstr(text, sentence) != NULL;
}

/* A loop without memory for it ends the process: that is what the header says. */
static bool is_documented_stop(int status, int output)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && shared->error == ENOMEM && strchr(shared->failed_call, '.') == NULL &&
           says(output, "there is no memory for a run loop");
}

/* So does its header say of CFAutorelease without memory. */
static bool is_documented_leak(int status, int output)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == status_bad && shared->error == ENOMEM && says(output, "the object is never freed");
}

/* One run in a process of its own. False, and what it printed, if something was wrong with it. */
static bool run_once(const char *name, bool (*scenario)(void), unsigned n, int with_variant)
{
    int output = memfd_create(name, MFD_CLOEXEC);
    int status = 0;
    bool is_good;
    pid_t pid;

    target = n;
    variant = with_variant;
    atomic_store(&shared->calls, 0);
    atomic_store(&shared->has_failed, false);
    shared->error = 0;
    shared->failed_call = "";
    (void)fflush(NULL);
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        (void)dup2(output, STDERR_FILENO);
        (void)close(output);
        run_in_child(scenario);
        _exit(atomic_load(&is_bad) ? status_bad : 0);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    is_good = (WIFEXITED(status) && WEXITSTATUS(status) == 0) || is_documented_stop(status, output) ||
              is_documented_leak(status, output);
    if (!is_good) {
        test_failed(__FILE__, __LINE__, "%s: NTH_FAILURE=%u.%d: %s fails with %s: %s %d", name, n, with_variant,
                    atomic_load(&shared->has_failed) ? shared->failed_call : "nothing", strerror(shared->error),
                    WIFEXITED(status)                                           ? "ends with status"
                    : WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hangs: signal"
                                                                                : "ends by signal",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (!is_good || is_replay) {
        print_output(output);
        stack_print(shared->frames, shared->depth);
    }
    (void)close(output);
    return is_good;
}

static void note_site(void)
{
    unsigned long hash = 14695981039346656037ul;

    /* The innermost frames name the place; the outer ones only say on which way it was reached. */
    for (int i = 0; i < shared->depth && i < site_frames; i++) {
        hash = (hash ^ (unsigned long)(uintptr_t)shared->frames[i]) * 1099511628211ul;
    }
    for (int i = 0; i < shared->site_count; i++) {
        if (shared->sites[i] == hash) {
            return;
        }
    }
    if (shared->site_count < sites_max) {
        shared->sites[shared->site_count++] = hash;
        shared->memory_site_count += strchr(shared->failed_call, '.') == NULL;
    }
}

/* Whether the run without failures made this call from a stack from which enough calls have failed. */
static bool is_repeated(unsigned n)
{
    int repeats = 0;

    for (unsigned i = 1; i < n && !test_is_soak(); i++) {
        repeats += shared->stacks[i] == shared->stacks[n];
    }
    return repeats >= (test_is_instrumented() ? 1 : stack_repeats);
}

static void replay(const char *name, bool (*scenario)(void), const char *which)
{
    unsigned n = 0;
    int with_variant = 0;

    if (sscanf(which, "%u.%d", &n, &with_variant) < 1 || n == 0 || with_variant < 0 || with_variant > 1) {
        (void)fprintf(stderr, "NTH_FAILURE is n or n.v, with n from 1 and v 0 or 1, not %s\n", which);
        exit(2);
    }
    is_replay = true;
    (void)run_once(name, scenario, n, with_variant);
}

void nth_failure_run(const char *name, bool (*scenario)(void))
{
    const char *which = getenv("NTH_FAILURE");
    unsigned calls;
    unsigned runs = 0;
    int bad = 0;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    port_probe_begin(true);
    is_recording = true;
    if (!run_once(name, scenario, 0, 0)) {
        bad++;
    }
    is_recording = false;
    calls = shared->calls;
    if (bad == 0 && which) {
        replay(name, scenario, which);
    } else {
        for (unsigned n = 1; bad < bad_max && n <= calls && n < calls_max; n++) {
            if (is_repeated(n)) {
                continue;
            }
            for (int v = 0; v < 2 && (v == 0 || shared->has_second_error); v++) {
                shared->has_second_error = false;
                bad += !run_once(name, scenario, n, v);
                if (!atomic_load(&shared->has_failed)) {
                    break; /* threads: this time there were fewer calls */
                }
                note_site();
                runs++;
            }
        }
        (void)fprintf(stderr, "nth_failure %s: %u calls, %u failures injected, %d sites (%d of memory, %d of the kernel)\n", name,
                      calls, runs, shared->site_count, shared->memory_site_count, shared->site_count - shared->memory_site_count);
    }
    port_probe_end();
    (void)munmap(shared, sizeof *shared);
}
