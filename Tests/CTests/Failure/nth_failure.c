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
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Port/port_probe.h"
#include "Runtime/Object/object.h"

enum { calls_max = 16384, sites_max = 4096, bag_max = 256, stack_repeats = 2, hang_s = 20, site_frames = 4, bad_max = 8 };
enum { status_bad = 3, status_slow = 4 };
enum { failures_max = 2, consequences_max = 16 };

static double slow_s = 0.9;
static unsigned call_step = 1;
static unsigned call_first = 1;

/* A call that was made to fail. */
struct injected {
    const char *call;
    int error;
    int depth;
    void *frames[stack_depth];
};

struct shared {
    _Atomic unsigned calls; /* of the run */
    _Atomic unsigned failed; /* how many of its calls have failed */
    struct injected failures[failures_max];
    bool has_second_error;
    uint64_t consequences[consequences_max]; /* places that have not failed yet, and were reached after the failed call */
    _Atomic unsigned consequence_count;
    uint64_t stacks[calls_max]; /* of the run without failures */
    uint64_t sites[sites_max]; /* stacks that have failed, over all runs */
    int site_count, memory_site_count;
    struct memory_origins clean_origins;
    size_t clean_blocks;
};

/* Which calls of a run fail, and with which of its errors the first of them. */
struct targets {
    unsigned first; /* 0: none fails */
    uint64_t second; /* the place of the call after it that fails, too; 0: none does */
    int variant;
};

static struct shared *shared;
static struct targets targets;
static atomic_bool is_armed;
static unsigned steps_to_death; /* 0: it does not die */
static bool is_recording;
static bool is_replay;
static atomic_bool is_bad; /* of the run */
static bool is_slow; /* the run, on the one thread that judges it */
static bool (*prime_run)(void); /* NULL: nothing */

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

/* Of the runner, by the linker: addresses in it are the same in every process as distances from here. */
extern const char __executable_start[];
extern const char etext[];

/* The innermost frames name the place; the outer ones only say on which way it was reached. */
static uint64_t site_hash(void *const frames[stack_depth], int depth)
{
    uint64_t hash = 14695981039346656037u;

    for (int i = 0; i < depth && i < site_frames; i++) {
        uintptr_t address = (uintptr_t)frames[i];
        bool is_own = address >= (uintptr_t)__executable_start && address < (uintptr_t)etext;

        hash = (hash ^ (is_own ? address - (uintptr_t)__executable_start : 0)) * 1099511628211u;
    }
    return hash;
}

static bool has_site(uint64_t site)
{
    for (int i = 0; i < shared->site_count; i++) {
        if (shared->sites[i] == site) {
            return true;
        }
    }
    return false;
}

static int fail(const struct failing_call *call, void *const frames[stack_depth], int depth)
{
    unsigned place = atomic_load(&shared->failed);
    struct injected *injected = &shared->failures[place];

    shared->has_second_error = call->errors[1] != 0;
    injected->error = call->errors[place == 0 ? targets.variant : 0];
    injected->call = call->name;
    memcpy(injected->frames, frames, sizeof injected->frames);
    injected->depth = depth;
    atomic_fetch_add(&shared->failed, 1);
    return injected->error;
}

/* Places that are reached because of a failure can fail only in a run in which that fails too. */
static void note_consequence(uint64_t site)
{
    unsigned place;

    if (targets.second == 0 && !has_site(site)) {
        place = atomic_fetch_add(&shared->consequence_count, 1);
        if (place < consequences_max) {
            shared->consequences[place] = site;
        }
    }
}

int nth_failure_take(const struct failing_call *call)
{
    void *frames[stack_depth];
    uint64_t hash;
    unsigned number;
    int depth;

    if (steps_to_death > 0 && --steps_to_death == 0) {
        (void)raise(SIGKILL);
    }
    if (!atomic_load(&is_armed)) {
        return 0;
    }
    number = atomic_fetch_add(&shared->calls, 1) + 1;
    if (!is_recording && number < targets.first) {
        return 0;
    }
    depth = stack_take(frames, &hash);
    if (is_recording && number < calls_max) {
        shared->stacks[number] = hash;
    }
    if (number == targets.first) {
        return fail(call, frames, depth);
    }
    if (!is_recording && atomic_load(&shared->failed) == 1) {
        uint64_t site = site_hash(frames, depth);

        if (site == targets.second) {
            return fail(call, frames, depth);
        }
        note_consequence(site);
    }
    return 0;
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

static bool says(int output, const char *sentence)
{
    char text[4096];
    ssize_t size = pread(output, text, sizeof text - 1, 0);

    text[size > 0 ? size : 0] = '\0';
    return strstr(text, sentence) != NULL;
}

static bool says_that_an_object_is_lost(int output)
{
    return says(output, "the object is never freed");
}

/* Threads that were joined may still be on their way out. For an object that is lost nobody waits. */
static void settle(int descriptors, long objects)
{
    struct timespec pause = {0, 1000000};
    double deadline_s = port_probe_now() + 0.3 * test_patience_s();

    while ((descriptors_open() > descriptors || object_live_count() > objects ||
            (!is_recording && failing_memory_count() > shared->clean_blocks)) &&
           port_probe_now() < deadline_s && !says_that_an_object_is_lost(STDERR_FILENO)) {
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

/* Then the queue is full, which is more than an interruption. */
static bool is_sending(const char *call)
{
    return strncmp(call, "kernel_ports.send", strlen("kernel_ports.send")) == 0;
}

static bool were_interruptions(void)
{
    bool are = true;

    for (unsigned i = 0; i < atomic_load(&shared->failed); i++) {
        const struct injected *injected = &shared->failures[i];

        are = are && (injected->error == EINTR || (injected->error == EAGAIN && !is_sending(injected->call)));
    }
    return are;
}

static void run_in_child(bool (*scenario)(void))
{
    int descriptors;
    long objects;
    double began_s;
    double took_s;
    bool is_complete;

    if (prime_run && !run_scenario(prime_run)) {
        run_failed(__FILE__, __LINE__, "it was refused something before anything failed");
    }
    descriptors = descriptors_open();
    objects = object_live_count();
    began_s = port_probe_own_time(); /* a wait that is too long is in it; what a busy machine keeps from the process is not */
    (void)alarm((unsigned)((double)hang_s * test_patience_s() / 5));
    failing_memory_begin();
    failing_calls_install();
    atomic_store(&is_armed, true);
    is_complete = run_scenario(scenario);
    atomic_store(&is_armed, false);
    took_s = port_probe_own_time() - began_s;
    if (took_s > slow_s * test_patience_s() / 5) {
        (void)fprintf(stderr, "it took %.1f s\n", took_s);
        is_slow = true;
    }
    if (!is_complete && atomic_load(&shared->failed) == 0) {
        run_failed(__FILE__, __LINE__, "it was refused something although nothing failed");
    }
    if (!is_complete && atomic_load(&shared->failed) > 0 && were_interruptions()) {
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

static bool is_of_memory(const struct injected *injected)
{
    return strchr(injected->call, '.') == NULL;
}

/* A loop without memory for it ends the process: that is what the header says. */
static bool is_documented_stop(int status, int output)
{
    bool lacked_memory = false;

    for (unsigned i = 0; i < atomic_load(&shared->failed); i++) {
        lacked_memory = lacked_memory || is_of_memory(&shared->failures[i]);
    }
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && lacked_memory && says(output, "there is no memory for a run loop");
}

/* So does its header say of CFAutorelease without memory. */
static bool is_documented_leak(int status, int output)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == status_bad && says_that_an_object_is_lost(output);
}

static void print_run(const char *name, int status)
{
    unsigned failed = atomic_load(&shared->failed);
    const struct injected *last = failed > 0 ? &shared->failures[failed - 1] : NULL;

    test_failed(__FILE__, __LINE__, "%s: NTH_FAILURE=%u.%d.%" PRIx64 ": %s fails with %s: %s %d", name, targets.first, targets.variant,
                targets.second, last ? last->call : "nothing", strerror(last ? last->error : 0),
                WIFEXITED(status)                                           ? "ends with status"
                : WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hangs: signal"
                                                                            : "ends by signal",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void begin_run(const struct targets *wanted)
{
    targets = *wanted;
    atomic_store(&shared->calls, 0);
    atomic_store(&shared->failed, 0);
    atomic_store(&shared->consequence_count, 0);
    shared->has_second_error = false;
}

/*
 * One run in a process of its own. False, and what it printed, if something was wrong with it. One that only took too long is tried again:
 * a wait that is in it is there each time, what a virtual machine's host has kept from it is not.
 */
static bool try_run(const char *name, bool (*scenario)(void), const struct targets *wanted, int tries_left)
{
    int output = memfd_create(name, MFD_CLOEXEC);
    int status = 0;
    bool is_good;
    pid_t pid;

    begin_run(wanted);
    (void)fflush(NULL);
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        (void)dup2(output, STDERR_FILENO);
        (void)close(output);
        run_in_child(scenario);
        _exit(atomic_load(&is_bad) ? status_bad : is_slow ? status_slow : 0);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (tries_left > 1 && WIFEXITED(status) && WEXITSTATUS(status) == status_slow) {
        (void)close(output);
        return try_run(name, scenario, wanted, tries_left - 1);
    }
    is_good = (WIFEXITED(status) && WEXITSTATUS(status) == 0) || is_documented_stop(status, output) || is_documented_leak(status, output);
    if (!is_good) {
        print_run(name, status);
    }
    if (!is_good || is_replay) {
        print_output(output);
    }
    for (unsigned i = 0; (!is_good || is_replay) && i < atomic_load(&shared->failed); i++) {
        stack_print(shared->failures[i].frames, shared->failures[i].depth);
    }
    (void)close(output);
    return is_good;
}

static bool run_once(const char *name, bool (*scenario)(void), const struct targets *wanted)
{
    return try_run(name, scenario, wanted, 3);
}

/* For failure-sites in this folder: which call failed, and where the two innermost frames are. */
static void write_site(const struct injected *injected)
{
    const char *path = getenv("NTH_FAILURE_SITES");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

    if (file >= 0) {
        (void)flock(file, LOCK_EX); /* other tests write at the same time, and a place is three lines */
        (void)dprintf(file, "%s\n", injected->call);
        backtrace_symbols_fd(injected->frames, injected->depth < 2 ? injected->depth : 2, file);
        (void)close(file);
    }
}

static void note_sites(void)
{
    for (unsigned i = 0; i < atomic_load(&shared->failed); i++) {
        const struct injected *injected = &shared->failures[i];
        uint64_t site = site_hash(injected->frames, injected->depth);

        if (!has_site(site) && shared->site_count < sites_max) {
            shared->sites[shared->site_count++] = site;
            shared->memory_site_count += is_of_memory(injected);
            write_site(injected);
        }
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
    struct targets wanted = {0};

    if (sscanf(which, "%u.%d.%" SCNx64, &wanted.first, &wanted.variant, &wanted.second) < 1 || wanted.first == 0 || wanted.variant < 0 ||
        wanted.variant > 1) {
        (void)fprintf(stderr, "NTH_FAILURE is n, n.v or n.v.p, with n from 1, v 0 or 1 and p a place as it was printed, not %s\n", which);
        exit(2);
    }
    is_replay = true;
    (void)run_once(name, scenario, &wanted);
}

struct tally {
    unsigned runs;
    int bad;
};

/* The run in which the call fails, and one for each place that this led to and that has not failed before. False: it did not come. */
static bool fail_call(const char *name, bool (*scenario)(void), const struct targets *wanted, struct tally *tally)
{
    uint64_t consequences[consequences_max];
    unsigned count;
    bool has_second_error;

    tally->bad += !run_once(name, scenario, wanted);
    if (atomic_load(&shared->failed) == 0) {
        return false; /* threads: this time there were fewer calls */
    }
    has_second_error = shared->has_second_error;
    count = atomic_load(&shared->consequence_count);
    memcpy(consequences, shared->consequences, sizeof consequences);
    note_sites();
    tally->runs++;
    for (unsigned i = 0; call_step == 1 && i < count && i < consequences_max && tally->bad < bad_max; i++) {
        const struct targets both = {wanted->first, consequences[i], wanted->variant};

        if (has_site(consequences[i])) {
            continue; /* the same place as an earlier one */
        }
        tally->bad += !run_once(name, scenario, &both);
        note_sites();
        tally->runs++;
    }
    shared->has_second_error = has_second_error;
    return true;
}

static void fail_all(const char *name, bool (*scenario)(void), unsigned calls, struct tally *tally)
{
    for (unsigned n = call_first; tally->bad < bad_max && n <= calls && n < calls_max; n += call_step) {
        struct targets wanted = {.first = n};

        if (!is_repeated(n) && fail_call(name, scenario, &wanted, tally) && shared->has_second_error) {
            wanted.variant = 1;
            (void)fail_call(name, scenario, &wanted, tally);
        }
    }
}

void nth_failure_be_patient(double seconds, unsigned step, unsigned first)
{
    slow_s = seconds;
    call_step = test_is_soak() ? 1 : step;
    call_first = test_is_soak() ? 1 : first;
}

void nth_failure_run(const char *name, bool (*scenario)(void))
{
    nth_failure_run_primed(name, scenario, NULL);
}

void nth_failure_run_primed(const char *name, bool (*scenario)(void), bool (*first_scenario)(void))
{
    const struct targets none = {0};
    const char *which = getenv("NTH_FAILURE");
    struct tally tally = {0};
    unsigned calls;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    prime_run = first_scenario;
    port_probe_begin(true);
    is_recording = true;
    tally.bad += !run_once(name, scenario, &none);
    is_recording = false;
    calls = shared->calls;
    if (tally.bad == 0 && which) {
        replay(name, scenario, which);
    } else {
        fail_all(name, scenario, calls, &tally);
        (void)fprintf(stderr, "nth_failure %s: %u calls, %u failures injected, %d sites (%d of memory, %d of the kernel)\n", name, calls,
                      tally.runs, shared->site_count, shared->memory_site_count, shared->site_count - shared->memory_site_count);
    }
    port_probe_end();
    (void)munmap(shared, sizeof *shared);
}
