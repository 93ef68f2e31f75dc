/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test runner: picks tests, runs each in a forked child with a time limit, and reports in TAP, failures with what the child printed.
 *
 * The parent is single-threaded and owns the slots, one for each child that runs. A child's failure count and skip reason lie in a shared
 * page, so that its own children count too. A child leads a process group of its own, which is killed when it ends: nothing outlives its
 * test.
 */
#define _GNU_SOURCE /* memfd_create */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "Support/link_names.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#if !defined(TEST_SANITIZED)
#define TEST_SANITIZED 0
#endif
#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

/* The library's count of live objects, if it is built with it. */
extern long object_live_count(void) __attribute__((weak));
/* Coverage is lost when a process ends by a signal; these write it first, where the compiler put them in. */
extern void __gcov_dump(void) __attribute__((weak));
extern int __llvm_profile_write_file(void) __attribute__((weak));

extern const struct test *const __start_crl_tests[];
extern const struct test *const __stop_crl_tests[];

enum { status_passed = 0, status_failed = 1, status_skipped = 77, status_survived = 78 };
enum { descriptors_max = 4096, jobs_max = 64, patterns_max = 32, soak_factor = 100 };

/* What a child and its own children tell the parent; in shared memory. */
struct report {
    atomic_int failures;
    atomic_int skipped;
    char reason[256]; /* written by the one that sets `skipped` */
};

struct slot {
    const struct test *test; /* NULL when free */
    pid_t pid;
    int output; /* memory file that is the child's stdout and stderr */
    bool is_late;
    int64_t started_ns, deadline_ns;
    struct report *report;
};

static struct {
    const char *include[patterns_max], *exclude[patterns_max];
    int include_count, exclude_count;
    int jobs, repeat;
    double time_factor;
    bool is_list, is_rules, is_verbose, is_in_process, is_soak;
} options = {.jobs = 1, .repeat = 1, .time_factor = TEST_SANITIZED ? 10 : 1};

static struct slot slots[jobs_max];
static int passed_count, failed_count, skipped_count, finished_count;

/* Of the running test, in its child. */
static struct report *current_report;
static int allowed_descriptors;
static long allowed_objects;
static struct {
    pid_t pid;
    int output;
} stops;

/* A soak has more to do in each test; what waits and measures in it is as patient as ever. */
static double limit_s(const struct test *test)
{
    return test->limit_s * options.time_factor * (options.is_soak ? soak_factor : 1);
}

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void write_coverage(void)
{
    if (__gcov_dump)
        __gcov_dump();
    if (__llvm_profile_write_file)
        __llvm_profile_write_file();
}

/* In coverage builds the linker sends calls of _exit here. */
void __real__exit(int status) __attribute__((noreturn, weak));
void __wrap__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status)
{
    write_coverage();
    __real__exit(status);
}

/* What tests call */

void test_failed(const char *file, int line, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    atomic_fetch_add(&current_report->failures, 1);
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
    fflush(stderr);
}

void test_end(void)
{
    exit(atomic_load(&current_report->failures) ? status_failed : status_passed);
}

void test_skip(const char *reason)
{
    snprintf(current_report->reason, sizeof current_report->reason, "%s", reason);
    atomic_store(&current_report->skipped, 1);
    exit(status_skipped);
}

void test_expect_equal(const char *file, int line, const char *what, long long actual, long long expected)
{
    if (actual != expected)
        test_failed(file, line, "%s is %lld (0x%llx), not %lld (0x%llx)", what, actual, (unsigned long long)actual, expected,
                    (unsigned long long)expected);
}

void test_expect_text(const char *file, int line, const char *what, const char *actual, const char *expected)
{
    if (!actual || !expected) {
        if (actual != expected)
            test_failed(file, line, "%s is %s%s%s, not %s%s%s", what, actual ? "\"" : "", actual ? actual : "NULL", actual ? "\"" : "",
                        expected ? "\"" : "", expected ? expected : "NULL", expected ? "\"" : "");
    } else if (strcmp(actual, expected) != 0) {
        test_failed(file, line, "%s is \"%s\",\n    not \"%s\"", what, actual, expected);
    }
}

void test_expect_near(const char *file, int line, const char *what, double actual, double expected, double tolerance)
{
    if (!(fabs(actual - expected) <= tolerance))
        test_failed(file, line, "%s is %.9g, not %.9g within %.9g", what, actual, expected, tolerance);
}

static void trace_lock(struct trace *trace)
{
    while (atomic_flag_test_and_set_explicit(&trace->lock, memory_order_acquire))
        ;
}

static void trace_unlock(struct trace *trace)
{
    atomic_flag_clear_explicit(&trace->lock, memory_order_release);
}

void trace_add(struct trace *trace, const char *event)
{
    size_t size = strlen(event);
    trace_lock(trace);
    if (trace->length + size + 2 <= sizeof trace->text) {
        if (trace->length > 0)
            trace->text[trace->length++] = ' ';
        memcpy(trace->text + trace->length, event, size + 1);
        trace->length += size;
    } else if (!trace->is_full) {
        trace->is_full = true;
        test_failed(__FILE__, __LINE__, "the trace is full: %.80s ...", trace->text);
    }
    trace_unlock(trace);
}

void trace_addf(struct trace *trace, const char *format, ...)
{
    char event[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(event, sizeof event, format, arguments);
    va_end(arguments);
    trace_add(trace, event);
}

void trace_clear(struct trace *trace)
{
    trace_lock(trace);
    trace->is_full = false;
    trace->length = 0;
    trace->text[0] = 0;
    trace_unlock(trace);
}

void test_expect_trace(const char *file, int line, struct trace *trace, const char *expected)
{
    trace_lock(trace);
    char *text = strdup(trace->text);
    trace_unlock(trace);
    if (text && strcmp(text, expected) != 0)
        test_failed(file, line, "the trace is \"%s\",\n    not \"%s\"", text, expected);
    free(text);
}

void test_allow_left(int descriptors, long objects)
{
    allowed_descriptors = descriptors;
    allowed_objects = objects;
}

double test_patience_s(void)
{
    return 5 * options.time_factor;
}

bool test_is_instrumented(void)
{
    return options.time_factor > 1;
}

bool test_is_soak(void)
{
    return options.is_soak;
}

void test_need_descriptors(int count)
{
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < (rlim_t)count) {
        limit.rlim_cur = limit.rlim_max < (rlim_t)count ? limit.rlim_max : (rlim_t)count;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < (rlim_t)count)
        test_skip("this process may not have that many descriptors");
}

char test_thread_state(pid_t thread)
{
    char path[64];
    char state = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    file = fopen(path, "re");
    if (file) {
        (void)!fscanf(file, "%*d (%*[^)]) %c", &state);
        (void)fclose(file);
    }
    return state;
}

static void note_abort(int signal_number)
{
    write_coverage();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

bool test_stops_begin(void)
{
    fflush(NULL);
    stops.output = memfd_create("stops", MFD_CLOEXEC);
    stops.pid = fork();
    if (stops.pid != 0)
        return false;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(SIGABRT, note_abort);
    dup2(stops.output, STDERR_FILENO);
    return true;
}

void test_stops_survived(void)
{
    _exit(status_survived);
}

void test_stops_check(const char *file, int line, const char *fragment)
{
    int status = 0;
    char text[4096];
    while (waitpid(stops.pid, &status, 0) < 0 && errno == EINTR)
        ;
    ssize_t size = pread(stops.output, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = 0;
    close(stops.output);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        test_failed(file, line, "should have stopped with \"%s\" but ended with %s %d: %s", fragment,
                    WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), text);
    else if (!strstr(text, fragment))
        test_failed(file, line, "stopped with \"%s\", not with \"%s\"", text, fragment);
}

/* In the child */

/* Marks the open descriptors; the one that reads the list is not among them. */
static void descriptors_list(bool open[descriptors_max])
{
    memset(open, 0, descriptors_max * sizeof open[0]);
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        int descriptor = entry->d_name[0] == '.' ? -1 : atoi(entry->d_name);
        if (descriptor >= 0 && descriptor < descriptors_max && descriptor != dirfd(directory))
            open[descriptor] = true;
    }
    closedir(directory);
}

static void descriptors_compare(const bool before[descriptors_max], const bool after[descriptors_max])
{
    int left = 0;
    for (int i = 0; i < descriptors_max; i++) {
        if (after[i] == before[i])
            continue;
        char path[32], target[PATH_MAX];
        snprintf(path, sizeof path, "/proc/self/fd/%d", i);
        ssize_t size = readlink(path, target, sizeof target - 1);
        target[size > 0 ? size : 0] = 0;
        if (before[i])
            test_failed(__FILE__, __LINE__, "descriptor %d was closed and was not the test's", i);
        else if (++left > allowed_descriptors)
            test_failed(__FILE__, __LINE__, "descriptor %d is left open: %s", i, target);
    }
}

static long objects_now(void)
{
    return object_live_count ? object_live_count() : 0;
}

/* A detached thread takes its loop down after the test has seen the thread's end: what is left is given some time to go. */
static void wait_for_threads(const bool before[descriptors_max], bool after[descriptors_max], long objects)
{
    int64_t deadline_ns = now_ns() + (int64_t)(1e9 * test_patience_s());
    struct timespec pause = {0, 1000000};
    descriptors_list(after);
    while ((objects_now() > objects + allowed_objects || memcmp(before, after, descriptors_max * sizeof after[0]) != 0) &&
           allowed_descriptors == 0 && now_ns() < deadline_ns) {
        nanosleep(&pause, NULL);
        descriptors_list(after);
    }
}

/* Only a test's own process is searched for leaks: what other threads held in hand at a fork is nobody's in the child. */
static void forgo_leaks_in_children(void)
{
#ifdef VALGRIND_CLO_CHANGE
    VALGRIND_CLO_CHANGE("--leak-check=no");
#endif
}

static void run_here(const struct test *test)
{
    static bool before[descriptors_max], after[descriptors_max];
    pthread_atfork(NULL, NULL, forgo_leaks_in_children);
    if (testing_prepare)
        testing_prepare();
    long objects = objects_now();
    allowed_descriptors = 0;
    allowed_objects = 0;
    descriptors_list(before);
    test->run();
    if (testing_give_back)
        testing_give_back();
    wait_for_threads(before, after, objects);
    descriptors_compare(before, after);
    long left = objects_now() - objects;
    if (left > allowed_objects || left < 0)
        test_failed(test->file, test->line, "%ld objects are left, not %ld", left, allowed_objects);
}

static void become_child(const struct slot *slot)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(slot->output, STDOUT_FILENO);
    dup2(slot->output, STDERR_FILENO);
    for (int i = 0; i < options.jobs; i++)
        if (slots[i].test)
            close(slots[i].output);
    close(slot->output);
}

/* In the parent */

static void slot_start(struct slot *slot, const struct test *test)
{
    slot->report = mmap(NULL, sizeof *slot->report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    slot->output = memfd_create(test->name, MFD_CLOEXEC);
    if (slot->report == MAP_FAILED || slot->output < 0) {
        perror("the runner cannot start a test");
        exit(2);
    }
    fflush(NULL);
    slot->is_late = false;
    slot->started_ns = now_ns();
    slot->deadline_ns = slot->started_ns + (int64_t)(limit_s(test) * 1e9);
    slot->pid = fork();
    if (slot->pid == 0) {
        current_report = slot->report;
        become_child(slot);
        run_here(test);
        test_end();
    }
    if (slot->pid < 0) {
        perror("fork");
        exit(2);
    }
    setpgid(slot->pid, slot->pid);
    slot->test = test;
}

/* Prints what the child printed, each line marked as a comment. */
static void print_output(int output)
{
    char buffer[4096];
    off_t offset = 0;
    bool is_start = true;
    for (ssize_t size; (size = pread(output, buffer, sizeof buffer, offset)) > 0; offset += size) {
        for (ssize_t i = 0; i < size; i++) {
            if (is_start)
                fputs("#   ", stdout);
            putchar(buffer[i]);
            is_start = buffer[i] == '\n';
        }
    }
    if (!is_start)
        putchar('\n');
}

static void slot_finish(struct slot *slot, int status)
{
    const struct test *test = slot->test;
    int failures = atomic_load(&slot->report->failures);
    bool is_skipped = atomic_load(&slot->report->skipped) && failures == 0;
    bool is_clean = WIFEXITED(status) && WEXITSTATUS(status) == (is_skipped ? status_skipped : status_passed);
    bool is_passed = is_clean && failures == 0;
    double seconds = (double)(now_ns() - slot->started_ns) / 1e9;

    kill(-slot->pid, SIGKILL);
    finished_count++;
    if (is_passed && is_skipped) {
        skipped_count++;
        printf("ok %d - %s # SKIP %s\n", finished_count, test->name, slot->report->reason);
    } else if (is_passed) {
        passed_count++;
        printf("ok %d - %s # %.3f s\n", finished_count, test->name, seconds);
    } else {
        failed_count++;
        printf("not ok %d - %s # %s:%d, %.3f s\n", finished_count, test->name, test->file, test->line, seconds);
        if (slot->is_late)
            printf("#   stopped after its time limit of %g s\n", limit_s(test));
        else if (WIFSIGNALED(status))
            printf("#   ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
        else if (failures == 0)
            printf("#   ended with status %d\n", WEXITSTATUS(status));
    }
    if (!is_passed || options.is_verbose)
        print_output(slot->output);
    fflush(stdout);
    close(slot->output);
    munmap(slot->report, sizeof *slot->report);
    slot->test = NULL;
}

/* Ends the children that have had their time; returns how long until the next one has. */
static int64_t stop_late(void)
{
    int64_t now = now_ns(), next = now + 1000000000;
    for (int i = 0; i < options.jobs; i++) {
        struct slot *slot = &slots[i];
        if (!slot->test || slot->is_late)
            continue;
        if (slot->deadline_ns <= now) {
            slot->is_late = true;
            kill(-slot->pid, SIGKILL);
            kill(slot->pid, SIGKILL);
        } else if (slot->deadline_ns < next) {
            next = slot->deadline_ns;
        }
    }
    return next - now;
}

/* Waits until a child has ended, and reports it. SIGCHLD is blocked, so none is missed between the look and the wait. */
static void wait_for_one(void)
{
    sigset_t child_ended;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        for (int i = 0; pid > 0 && i < options.jobs; i++) {
            if (slots[i].test && slots[i].pid == pid) {
                slot_finish(&slots[i], status);
                return;
            }
        }
        if (pid > 0)
            continue;
        int64_t pause_ns = stop_late();
        struct timespec pause = {(time_t)(pause_ns / 1000000000), (long)(pause_ns % 1000000000)};
        sigtimedwait(&child_ended, NULL, &pause);
    }
}

static struct slot *slot_free(void)
{
    for (int i = 0; i < options.jobs; i++)
        if (!slots[i].test)
            return &slots[i];
    return NULL;
}

static bool is_any_running(void)
{
    for (int i = 0; i < options.jobs; i++)
        if (slots[i].test)
            return true;
    return false;
}

static void run_all(const struct test *const *tests, size_t count)
{
    sigset_t child_ended;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ended, NULL);
    printf("1..%zu\n", count * (size_t)options.repeat);
    for (size_t i = 0; i < count * (size_t)options.repeat; i++) {
        while (!slot_free())
            wait_for_one();
        slot_start(slot_free(), tests[i % count]);
    }
    while (is_any_running())
        wait_for_one();
}

/* For a debugger: no fork, no time limit, no report but the messages. */
static int run_in_process(const struct test *const *tests, size_t count)
{
    static struct report report;
    current_report = &report;
    for (size_t i = 0; i < count; i++) {
        printf("# %s\n", tests[i]->name);
        run_here(tests[i]);
    }
    return atomic_load(&report.failures) ? 1 : 0;
}

static bool matches(const struct test *test, const char *const *patterns, int count)
{
    for (int i = 0; i < count; i++)
        if (strstr(test->name, patterns[i]) || strstr(test->file, patterns[i]))
            return true;
    return false;
}

static int compare_places(const void *one, const void *other)
{
    const struct test *a = *(const struct test *const *)one, *b = *(const struct test *const *)other;
    int files = strcmp(a->file, b->file);
    return files ? files : a->line - b->line;
}

/* The tests that the options choose, in the order of their files and lines. Stops when two tests have one name. */
static const struct test **choose(size_t *ret_count)
{
    size_t total = (size_t)(__stop_crl_tests - __start_crl_tests), count = 0;
    const struct test **chosen = calloc(total + 1, sizeof *chosen);
    if (!chosen)
        exit(2);
    for (size_t i = 0; i < total; i++) {
        const struct test *test = __start_crl_tests[i];
        for (size_t j = 0; j < i; j++) {
            if (strcmp(test->name, __start_crl_tests[j]->name) == 0) {
                fprintf(stderr, "two tests are named %s: %s and %s\n", test->name, test->file, __start_crl_tests[j]->file);
                exit(2);
            }
        }
        if ((options.include_count == 0 || matches(test, options.include, options.include_count)) &&
            !matches(test, options.exclude, options.exclude_count))
            chosen[count++] = test;
    }
    qsort(chosen, count, sizeof *chosen, compare_places);
    *ret_count = count;
    return chosen;
}

static void usage(FILE *stream)
{
    fputs("usage: runner [--list | --rules] [--filter SUBSTRING]... [--exclude SUBSTRING]... [--jobs N] [--repeat N]\n"
          "              [--time-factor X] [--soak] [--verbose] [--in-process]\n"
          "A substring is looked for in a test's name and in its file's name.\n",
          stream);
}

static const char *value_of(int *index, int count, char **arguments)
{
    if (*index + 1 >= count) {
        usage(stderr);
        exit(2);
    }
    return arguments[++*index];
}

static _Noreturn void refuse_number(const char *text)
{
    fprintf(stderr, "run-tests: '%s' is not a number that the option takes\n", text);
    exit(2);
}

static int number_between(const char *text, int least, int most)
{
    char *rest;
    errno = 0;
    long number = strtol(text, &rest, 10);
    if (rest == text || *rest || errno || number < least || number > most)
        refuse_number(text);
    return (int)number;
}

static double factor(const char *text)
{
    char *rest;
    double number = strtod(text, &rest);
    if (rest == text || *rest || !(number > 0 && number <= 1000))
        refuse_number(text);
    return number;
}

static void parse(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        const char *option = arguments[i];
        if (strcmp(option, "--list") == 0)
            options.is_list = true;
        else if (strcmp(option, "--rules") == 0)
            options.is_rules = true;
        else if (strcmp(option, "--verbose") == 0)
            options.is_verbose = true;
        else if (strcmp(option, "--in-process") == 0)
            options.is_in_process = true;
        else if (strcmp(option, "--soak") == 0)
            options.is_soak = true;
        else if (strcmp(option, "--filter") == 0 && options.include_count < patterns_max)
            options.include[options.include_count++] = value_of(&i, count, arguments);
        else if (strcmp(option, "--exclude") == 0 && options.exclude_count < patterns_max)
            options.exclude[options.exclude_count++] = value_of(&i, count, arguments);
        else if (strcmp(option, "--jobs") == 0)
            options.jobs = number_between(value_of(&i, count, arguments), 1, jobs_max);
        else if (strcmp(option, "--repeat") == 0)
            options.repeat = number_between(value_of(&i, count, arguments), 1, 1000000);
        else if (strcmp(option, "--time-factor") == 0)
            options.time_factor = factor(value_of(&i, count, arguments));
        else {
            usage(strcmp(option, "--help") == 0 ? stdout : stderr);
            exit(strcmp(option, "--help") == 0 ? 0 : 2);
        }
    }
}

int main(int count, char **arguments)
{
    size_t test_count;
    parse(count, arguments);
    static const struct test **tests; /* static: leak checkers in the forked tests still see it */
    tests = choose(&test_count);
    if (options.is_list || options.is_rules) {
        for (size_t i = 0; i < test_count; i++) {
            if (options.is_rules)
                printf("%s\t%s\t%s:%d\n", tests[i]->name, tests[i]->rules, tests[i]->file, tests[i]->line);
            else
                printf("%s\n", tests[i]->name);
        }
        return 0;
    }
    if (test_count == 0) {
        fputs("no test matches\n", stderr);
        return 1;
    }
    if (options.is_in_process)
        return run_in_process(tests, test_count);
    run_all(tests, test_count);
    printf("%d passed, %d failed, %d skipped\n", passed_count, failed_count, skipped_count);
    free(tests);
    return failed_count ? 1 : 0;
}
