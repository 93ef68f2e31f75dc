/* SPDX-License-Identifier: Apache-2.0 */
/* Pressure sources when memory, or a call of the kernel, fails: they are refused, or tell what they can. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "CRLMemoryPressure.h"
#include "Failure/nth_failure.h"
#include "File/notify_kernel.h"
#include "Pressure/pressure_kernel.h"
#include "scratch_folder.h"

static int counter;

static int take(const char *name, int first, int second)
{
    const struct failing_call call = {name, {first, second}};

    return -nth_failure_take(&call);
}

static int failing_set_create(void)
{
    int error = take("notify.set_create", EMFILE, ENOMEM);

    return error ? error : notify_kernel_linux.set_create();
}

static int failing_set_add(int set, int descriptor)
{
    int error = take("notify.set_add", ENOSPC, ENOMEM);

    return error ? error : notify_kernel_linux.set_add(set, descriptor);
}

static int failing_alarm_create(void)
{
    int error = take("notify.alarm_create", EMFILE, 0);

    return error ? error : notify_kernel_linux.alarm_create();
}

static int failing_notify_create(void)
{
    int error = take("notify.notify_create", EMFILE, ENOMEM);

    return error ? error : notify_kernel_linux.notify_create();
}

static int failing_watch_add(int notify, const char *path, uint32_t mask)
{
    int error = take("notify.watch_add", ENOSPC, EACCES);

    (void)path;
    return error ? error : notify_kernel_linux.watch_add(notify, "events", mask);
}

/* A counter stands for the pressure file. */
static int failing_open(const char *path, bool *ret_is_file)
{
    int error = take("pressure.watch_open", EACCES, EMFILE);

    (void)path;
    *ret_is_file = true;
    return error ? error : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static ssize_t failing_write(int watch, const void *bytes, size_t size)
{
    int error = take("pressure.watch_write", EPERM, ENOMEM);

    (void)watch;
    (void)bytes;
    return error ? error : (ssize_t)size;
}

static ssize_t failing_read(const char *path, char *text, size_t size)
{
    int error = take("pressure.text_read", EMFILE, ENOENT);

    text[0] = '\0';
    if (error) {
        return error;
    }
    if (strcmp(path, "/proc/self/cgroup") == 0) {
        return snprintf(text, size, "0::/app\n");
    }
    return pressure_kernel_linux.text_read("events", text, size);
}

static int failing_begin(struct pressure_poll *poll, int file)
{
    int error = take("pressure.poll_begin", ENOMEM, ENOSYS);

    counter = poll->counter = error ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 0);
    return error;
}

static int failing_again(const struct pressure_poll *poll, int file)
{
    (void)poll;
    (void)file;
    return take("pressure.poll_again", ENOMEM, ENODEV);
}

static void poll_ended(const struct pressure_poll *poll)
{
    MUST(poll->counter == counter);
}

static void install(void)
{
    notify_kernel.set_create = failing_set_create;
    notify_kernel.set_add = failing_set_add;
    notify_kernel.alarm_create = failing_alarm_create;
    notify_kernel.notify_create = failing_notify_create;
    notify_kernel.watch_add = failing_watch_add;
    pressure_kernel = (struct pressure_kernel){failing_open, failing_write, failing_read, failing_begin, failing_again, poll_ended};
    (void)unsetenv("MEMORY_PRESSURE_WATCH");
}

static void note(CFRunLoopSourceRef source, CFOptionFlags level, void *info)
{
    (void)source;
    *(CFOptionFlags *)info |= level;
}

/* A call that is interrupted is made again in the next pass. */
static void run_some_passes(void)
{
    for (int i = 0; i < 4; i++) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    }
}

/* A sign of the kernel, and then a change of the counters. */
static void make_signs(CFRunLoopSourceRef source)
{
    int file = open("events", O_WRONLY | O_CLOEXEC);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    if (counter >= 0) {
        (void)eventfd_write(counter, 1);
    }
    run_some_passes();
    (void)!write(file, "oom 1\n", 6);
    (void)close(file);
    run_some_passes();
}

NTH_FAILURE(memory_pressure, "")
{
    char folder[scratch_size];
    CFOptionFlags told = 0;
    CRLSourceContext context = {.info = &told};
    CFRunLoopSourceRef source;

    install();
    counter = -1;
    scratch_enter(folder);
    scratch_make_file("events");
    source = CRLMemoryPressureSourceCreate(NULL, kCRLMemoryPressureWarning | kCRLMemoryPressureCritical, 0, note, &context);
    if (source) {
        make_signs(source);
        CFRunLoopSourceInvalidate(source);
        CFRelease(source);
    }
    scratch_leave(folder);
    return told == (kCRLMemoryPressureWarning | kCRLMemoryPressureCritical);
}
