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
