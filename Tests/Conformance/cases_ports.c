/* SPDX-License-Identifier: Apache-2.0 */
/* Version-1 sources on descriptors: rules 98 to 108. */
#define CONFORMANCE_GROUP "ports"
#include "conformance.h"

#include <fcntl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

CASE(port_writes_coalesce, "100", on_thread)
{
    static struct probe port = PROBE("P", NULL);
    int event = probe_event();
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_event_post(event);
    probe_event_post(event);
    probe_event_post(event);
    probe_run(MODE, 0, true);
    probe_run(MODE, 0.02, true);
}

CASE(loop_drains_eventfds, "99", on_thread)
{
    static struct probe port = PROBE("P", NULL);
    int event = probe_event();
    uint64_t count;
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_event_post(event);
    probe_run(MODE, 0, true);
    probe_note_bool("empty", read(event, &count, sizeof count) < 0);
}

CASE(loop_drains_timerfds, "99", on_thread)
{
    static struct probe port = PROBE("P", NULL);
    int alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct itimerspec soon = {.it_value = {.tv_nsec = 1000000}};
    uint64_t count;
    timerfd_settime(alarm, 0, &soon, NULL);
    probe_port_source_add(&port, 0, alarm, LOOP, MODE);
    probe_run(MODE, 100, true);
    probe_note_bool("empty", read(alarm, &count, sizeof count) < 0);
}

static void reads_pipe(struct probe *probe)
{
    char bytes[64];
    probe_note("got%ld", (long)read(probe->descriptor, bytes, sizeof bytes));
}

CASE(pipes_are_left_to_perform, "99 108", on_thread)
{
    static struct probe port = PROBE("P", reads_pipe);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0 || write(ends[1], "sixteen bytes...", 16) != 16) {
        conformance_skip("no pipe");
    }
    probe_port_source_add(&port, 0, ends[0], LOOP, MODE);
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, true);
}

CASE(signalling_a_port_is_nothing, "101", on_thread)
{
    static struct probe port = PROBE("P", NULL);
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, probe_event(), LOOP, MODE);
    CFRunLoopSourceSignal(p);
    probe_run(MODE, 0, true);
}

CASE(one_port_in_a_pass, "34 102", on_thread)
{
    static struct probe first = PROBE("P", NULL);
    static struct probe second = PROBE("P", NULL);
    int one = probe_event();
    int other = probe_event();
    probe_stage(MODE);
    probe_port_source_add(&first, 0, one, LOOP, MODE);
    probe_port_source_add(&second, 0, other, LOOP, MODE);
    probe_event_post(one);
    probe_event_post(other);
    probe_run(MODE, 0, false);
    probe_run(MODE, 0.05, false);
    probe_note("first=%d second=%d", first.calls, second.calls);
}

CASE(ready_before_adding_is_noticed, "103", on_thread)
{
    static struct probe port = PROBE("P", NULL);
    int event = probe_event();
    probe_event_post(event);
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_run(MODE, 0, true);
}

CASE(port_in_two_modes, "104", on_thread)
{
    static struct probe port = PROBE("P", NULL);
    int event = probe_event();
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    CFRunLoopAddSource(LOOP, p, CFSTR("M"));
    probe_event_post(event);
    probe_run(MODE, 0, true);
    probe_run(CFSTR("M"), 0.02, true);
    probe_event_post(event);
    probe_run(CFSTR("M"), 0.02, true);
    probe_run(MODE, 0.02, true);
}

CASE(two_ports_on_one_descriptor, "105", on_thread)
{
    static struct probe first = {.name = "P", .logging = probe_is_silent}; /* which of the two is not specified */
    static struct probe second = {.name = "Q", .logging = probe_is_silent};
    int event = probe_event();
    probe_port_source_add(&first, 0, event, LOOP, MODE);
    probe_port_source_add(&second, 1, event, LOOP, MODE);
    probe_event_post(event);
    probe_run(MODE, 0.05, false);
    probe_note_bool("somebody", first.calls + second.calls > 0);
}

CASE(removed_port_is_not_watched, "98", on_thread)
{
    static struct probe port = PROBE("P", NULL);
    static struct probe idle = PROBE("idle", NULL);
    int event = probe_event();
    CFRunLoopSourceRef p = probe_port_source(&port, 0, event);
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopAddSource(LOOP, p, MODE);
    CFRunLoopRemoveSource(LOOP, p, MODE);
    probe_event_post(event);
    probe_run(MODE, 0.02, true);
    CFRunLoopAddSource(LOOP, p, MODE);
    probe_run(MODE, 0.02, true);
    CFRunLoopSourceInvalidate(p);
    probe_event_post(event);
    probe_run(MODE, 0.02, true);
    CFRelease(p);
}

CASE(port_context_by_version, "91", on_thread)
{
    static struct probe port = PROBE("P", NULL);
    CFRunLoopSourceRef p = probe_port_source(&port, 3, 7);
    CFRunLoopSourceContext1 context = {.version = 1};
    CFRunLoopSourceGetContext(p, (CFRunLoopSourceContext *)(void *)&context);
    probe_note_bool("info", context.info == &port);
    probe_note("version=%ld port=%d order=%ld", (long)context.version, context.getPort(context.info), (long)CFRunLoopSourceGetOrder(p));
    CFRelease(p);
}

CASE(port_context_lives_as_long_as_the_source, "72 73", on_thread)
{
    static struct probe port = {.name = "P", .logging = probe_logs_context};
    CFRunLoopSourceRef p = probe_port_source(&port, 0, probe_event());
    CFRunLoopAddSource(LOOP, p, MODE);
    CFRunLoopSourceInvalidate(p);
    probe_log("invalid");
    CFRelease(p);
}
