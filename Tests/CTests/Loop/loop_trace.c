/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives the probes of loop_probe.c the harness's trace to write to, and counts milliseconds of the virtual clock. Any thread.
 */
#define _GNU_SOURCE
#include "Loop/loop_trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_kernel.h"

struct trace probe_trace;

void probe_log(const char *token)
{
    trace_add(&probe_trace, token);
}

void clock_start(void)
{
    fake_kernel_install();
}

long clock_ms(void)
{
    return (long)((fake_kernel_elapsed_ns() + 500000) / 1000000);
}

void clock_spend_ms(long milliseconds)
{
    fake_kernel_advance((int64_t)milliseconds * 1000000);
}

void probe_notes_ms(struct probe *probe)
{
    probe_note("%s@%ld", probe->name, clock_ms());
}

int logged_lines(const char *fragment, void (*function)(void))
{
    int file = memfd_create("stderr", MFD_CLOEXEC);
    int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (file < 0 || saved < 0 || dup2(file, STDERR_FILENO) < 0) {
        FAIL("standard error cannot be redirected");
    }
    function();
    dup2(saved, STDERR_FILENO);
    close(saved);
    char text[8192];
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    int count = 0;
    for (const char *at = text; (at = strstr(at, fragment)); at += strlen(fragment)) {
        count++;
    }
    return count;
}

double long_enough_s(void)
{
    return test_is_instrumented() ? 3 : 0.3;
}

static _Atomic double done_s; /* 0: not yet */

void note_done(void)
{
    done_s = probe_seconds();
}

bool run_beside(struct probe_thread *other, CFTimeInterval seconds, double due_s)
{
    do {
        probe_run(MODE, seconds, false);
    } while (done_s == 0);
    probe_thread_join(other);
    return done_s < due_s;
}

struct attempt {
    bool (*make)(void);
    bool was_in_time;
};

static void make_attempt(void *context)
{
    struct attempt *attempt = context;
    attempt->was_in_time = attempt->make();
}

void try_until_in_time(bool (*make)(void))
{
    struct attempt attempt = {.make = make};
    while (!attempt.was_in_time) {
        trace_clear(&probe_trace);
        done_s = 0;
        probe_on_thread(make_attempt, &attempt);
    }
}
