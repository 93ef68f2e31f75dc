/* SPDX-License-Identifier: Apache-2.0 */
/* Children when memory, or a call of the kernel, fails at any place: a start is refused with nothing left, or the end is told. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "Child/child_kernel.h"
#include "Failure/nth_failure.h"
#include "child_probe.h"

static struct child_kernel linux_calls;

/* `_arguments` are those of the call. */
#define FAILING(_type, _name, _first, _second, _parameters, _arguments)               \
    static _type failing_##_name _parameters                                          \
    {                                                                                 \
        static const struct failing_call call = {"child." #_name, {_first, _second}}; \
        int error = nth_failure_take(&call);                                          \
        return error ? -error : linux_calls._name _arguments;                         \
    }

FAILING(int, pipe_create, EMFILE, ENFILE, (int ret_ends[2], int without_wait), (ret_ends, without_wait))
FAILING(int, null_open, EMFILE, ENOENT, (void), ())
FAILING(pid_t, start, ENOMEM, 0, (struct child_plan * plan), (plan))
FAILING(int, process_open, EMFILE, ENOSYS, (pid_t pid), (pid))
FAILING(int, event_create, EMFILE, 0, (bool is_posted), (is_posted))
FAILING(int, event_copy, EMFILE, 0, (int event), (event))

/* The thread's work is done at once: what it waits for ends by itself. */
static int failing_thread_start(void *(*function)(void *info), void *info)
{
    static const struct failing_call call = {"child.thread_start", {ENOMEM, 0}};
    int error = nth_failure_take(&call);

    if (!error) {
        (void)function(info);
    }
    return -error;
}

static void install(void)
{
    if (!linux_calls.start) {
        linux_calls = child_kernel;
    }
    child_kernel.pipe_create = failing_pipe_create;
    child_kernel.null_open = failing_null_open;
    child_kernel.start = failing_start;
    child_kernel.process_open = failing_process_open;
    child_kernel.event_create = failing_event_create;
    child_kernel.event_copy = failing_event_copy;
    child_kernel.thread_start = failing_thread_start;
}

static void count_end(CRLChildRef child, const CRLChildEnd *end, void *info)
{
    (void)child;
    MUST(end->waitStatus != -1); /* it is killed without memory for the timer, and finds nobody who reads without a stream */
    ++*(_Atomic int *)info;
}

static bool reads_all(CRLChildRef child)
{
    CFReadStreamRef output = CRLChildCopyReadStream(child, 1);
    UInt8 bytes[16];
    bool result;

    NEED(bag_keep(output));
    NEED(CFReadStreamOpen(output));
    result = CFReadStreamRead(output, bytes, sizeof bytes) == 3;
    CFReadStreamClose(output);
    return result;
}

static bool start_and_hear_of_the_end(const CRLChildSpecification *specification)
{
    _Atomic int ends = 0;
    CRLSourceContext context = {.info = (void *)&ends};
    CRLChildError error;
    CRLChildRef child = CRLChildCreate(NULL, specification, count_end, &context, &error);
    bool is_scheduled;
    bool is_read;

    if (!child) {
        MUST(error.error != 0);
        return false;
    }
    MUST(error.error == 0);
    is_scheduled = CRLChildScheduleWithRunLoop(child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    is_read = reads_all(child);
    (void)CRLChildTerminate(child, 1000, false); /* it has written all, and takes no notice */
    is_scheduled = is_scheduled && run_until(&ends, 1, kCFRunLoopDefaultMode);
    CRLChildUnscheduleFromRunLoop(child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    while (!CRLChildGetEnd(child, NULL)) {
    }
    CFRelease(child);
    return is_scheduled && is_read;
}

static bool start_a_shell(void)
{
    static const CRLChildDescriptor descriptors[] = {{1, kCRLChildWrites, 0}, {2, kCRLChildSame, 1}};
    static const char *const arguments[] = {"sh", "-c", "trap '' TERM; echo ok", NULL};
    const CRLChildSpecification specification = {.arguments = arguments, .descriptors = descriptors, .descriptorCount = 2};

    install();
    return start_and_hear_of_the_end(&specification);
}

/* Each run starts two shells: a sanitizer makes that slow. */
TEST_LIMIT(nth_failure_children, "", 600)
{
    nth_failure_run("children", start_a_shell);
}
