/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model-check: executes random programs in the model and in a Core Foundation, and compares what they did.
 *
 * The first difference is shrunk and printed as a test case. A program that crashes or hangs is shrunk in processes of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core_foundation.h"
#include "model.h"
#include "print.h"

#ifdef MODEL_TOOLCHAIN
static const struct program_style style = {.real_clock = true};
static const char command[] = "model-check-toolchain";
#else
static const struct program_style style = {.real_clock = false};
static const char command[] = "model-check";
#endif

enum { limit_s = 20, text_size = 1 << 16 };

/* The child process of a batch tells how far it is. */
static int progress_fd = -1;

static _Noreturn void stop_with(const char *what, const char *value)
{
    fprintf(stderr, "%s: %s '%s' is not a number from 1 to 18446744073709551615\n", command, what, value);
    exit(2);
}

static uint64_t number(const char *what, const char *value)
{
    char *end;
    unsigned long long result;

    errno = 0;
    result = strtoull(value, &end, 10);
    if (errno || end == value || *end || value[0] < '0' || value[0] > '9' || result == 0) {
        stop_with(what, value);
    }
    return result;
}

/* ---- one program ---- */

enum verdict { same, different, passed_over };

static struct trace expected;
static struct trace actual;

static enum verdict compare(const struct program *program)
{
    interpret(program, &model, &expected);
    if (style.real_clock && model_has_slept) {
        return passed_over;
    }
    interpret(program, &core_foundation, &actual);
    return traces_equal(&expected, &actual) ? same : different;
}

/* In a process of its own: a difference, a crash or a hang. */
static bool fails(const struct program *program)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        (void)freopen("/dev/null", "w", stderr);
        alarm(limit_s);
        _exit(compare(program) == different ? 1 : 0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status != 0;
}

static void print_traces(void)
{
    static char text[text_size];

    trace_text(&expected, text, sizeof text);
    printf("  model:   %s\n", text);
    trace_text(&actual, text, sizeof text);
    printf("  library: %s\n", text);
    fflush(stdout);
}

static void print_failure(struct program *program, uint64_t seed, uint64_t index)
{
    char name[64];

    program_shrink(program, fails);
    interpret(program, &model, &expected);
    printf("%s: sequence %" PRIu64 " of seed %" PRIu64 " differs; shrunk to %d operations\n", command, index, seed, program->op_count);
    snprintf(name, sizeof name, "sequence_%" PRIu64 "_%" PRIu64, seed, index);
    program_print(stdout, program, name, &expected);
    fflush(stdout);
    alarm(limit_s);
    interpret(program, &core_foundation, &actual);
    print_traces();
}

static uint64_t seed_of(uint64_t seed, uint64_t index)
{
    return seed * UINT64_C(0xd1342543de82ef95) + index;
}

/* ---- batches ---- */

struct report {
    uint64_t done;
    uint64_t passed_over;
    uint64_t events;
    int failed; /* at sequence `done` */
};

static void batch(uint64_t seed, uint64_t first, uint64_t count)
{
    struct report report = {.done = first};

    for (uint64_t end = first + count; report.done < end; report.done++) {
        struct program program = program_random(seed_of(seed, report.done), style);
        enum verdict verdict;

        if (report.done % 64 == 0) {
            (void)!write(progress_fd, &report, sizeof report);
            alarm(limit_s);
        }
        verdict = compare(&program);
        if (verdict == different) {
            print_traces();
            report.failed = 1;
            break;
        }
        report.passed_over += verdict == passed_over;
    }
    (void)!write(progress_fd, &report, sizeof report);
}

/* Runs a batch in a child; true if all went well. A crash is at one of the 64 sequences after the last report. */
static bool run_batch(uint64_t seed, uint64_t first, uint64_t count, struct report *ret_report)
{
    int ends[2];
    pid_t child;
    int status = 0;
    struct report report = {.done = first};

    if (pipe(ends) != 0 || (child = fork()) < 0) {
        fprintf(stderr, "%s: no process can be made: %s\n", command, strerror(errno));
        exit(1);
    }
    if (child == 0) {
        progress_fd = ends[1];
        batch(seed, first, count);
        _exit(0);
    }
    close(ends[1]);
    while (read(ends[0], &report, sizeof report) == sizeof report) {
    }
    close(ends[0]);
    (void)waitpid(child, &status, 0);
    *ret_report = report;
    if (!report.failed && status == 0) {
        return true;
    }
    for (uint64_t index = report.done; index < report.done + 64; index++) {
        struct program program = program_random(seed_of(seed, index), style);

        if (fails(&program)) {
            print_failure(&program, seed, index);
            return false;
        }
    }
    printf("%s: the batch ended at sequence %" PRIu64 " of seed %" PRIu64 " with status %d, but no sequence fails alone\n", command,
           report.done, seed, status);
    return false;
}

int main(int argument_count, char **arguments)
{
    enum { batch_size = 20000 };
    uint64_t seed;
    uint64_t count;
    uint64_t passed = 0;
    struct timespec start;
    struct timespec end;

    if (argument_count != 3 && !(argument_count == 4 && strcmp(arguments[3], "one") == 0)) {
        fprintf(stderr, "usage: %s SEED SEQUENCES\n       %s SEED SEQUENCE one\n", command, command);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    seed = number("SEED", arguments[1]);
    count = number("SEQUENCES", arguments[2]);
#ifdef MODEL_TOOLCHAIN
    model_follows_toolchain = true;
#endif
    if (argument_count == 4) {
        struct program program = program_random(seed_of(seed, count), style);

        if (fails(&program)) {
            print_failure(&program, seed, count);
        }
        return 0;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint64_t done = 0; done < count;) {
        struct report report;
        uint64_t size = count - done < batch_size ? count - done : batch_size;

        if (!run_batch(seed, done, size, &report)) {
            return 1;
        }
        passed += report.passed_over;
        done += size;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%s: %" PRIu64 " sequences of seed %" PRIu64 " compared, %" PRIu64 " passed over, in %.1f s\n", command, count - passed, seed,
           passed, (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
    return 0;
}
