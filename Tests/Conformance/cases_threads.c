/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when a thread with a loop ends: rules 170 to 175. */
#define CONFORMANCE_GROUP "threads"
#include "conformance.h"

#include <dirent.h>

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

static struct probe exiting_source = {.name = "A", .logging = probe_logs_membership | probe_logs_context};
static struct probe exiting_timer = {.name = "T", .logging = probe_is_silent};
static struct probe exiting_observer = {.name = "O", .logging = probe_is_silent};

static void leaves_items(void *context)
{
    (void)context;
    probe_source_add(&exiting_source, 0, LOOP, MODE);
    probe_timer_add(&exiting_timer, 100, 0, LOOP, MODE);
    probe_observer_add(&exiting_observer, kCFRunLoopEntry, 0, LOOP, MODE);
    probe_log("ends");
}

CASE(thread_exit_cancels_and_releases, "96 170", on_thread)
{
    probe_on_thread(leaves_items, NULL);
    probe_note("timer=%d observer=%d", exiting_timer.releases, exiting_observer.releases);
}

static void leaves_source_in_modes(void *context)
{
    CFRunLoopSourceRef a = context;
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, a, CFSTR("M"));
    CFRunLoopAddSource(LOOP, a, CFSTR("N"));
}

CASE(thread_exit_cancels_in_every_mode, "96 170", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    probe_on_thread(leaves_source_in_modes, a);
    probe_note("cancels=%d", source.cancels);
    probe_note_bool("valid", CFRunLoopSourceIsValid(a));
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    CFRelease(a);
}

static pthread_t exiting_thread;

static void cancelled(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    (void)loop;
    probe_note_bool("own-thread", pthread_equal(exiting_thread, pthread_self()) != 0);
    probe_note_string("mode", mode);
}

static void leaves_plain_source(void *context)
{
    (void)context;
    CFRunLoopSourceContext source = {.cancel = cancelled};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &source);
    exiting_thread = pthread_self();
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRelease(a);
}

CASE(cancel_comes_on_the_exiting_thread, "96 170", on_thread)
{
    probe_on_thread(leaves_plain_source, NULL);
}

static CFRunLoopRef kept_loop;

static void keeps_its_loop(void *context)
{
    static struct probe idle = PROBE("idle", NULL);
    (void)context;
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
    kept_loop = (CFRunLoopRef)(uintptr_t)CFRetain(LOOP);
}

CASE(loop_outlives_its_thread, "172", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    probe_on_thread(keeps_its_loop, NULL);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, kept_loop, MODE);
    (void)a;
    CFRunLoopWakeUp(kept_loop);
    CFRunLoopStop(kept_loop);
    probe_note_bool("waiting", CFRunLoopIsWaiting(kept_loop));
    CFStringRef mode = CFRunLoopCopyCurrentMode(kept_loop);
    probe_note_string("mode", mode);
    CFRelease(kept_loop);
}

static void runs_a_fresh_loop(void *context)
{
    (void)context;
    probe_run(MODE, 0, false); /* no source of an earlier thread */
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0, true);
}

CASE(next_thread_gets_a_fresh_loop, "173", on_thread)
{
    for (int i = 0; i < 4; i++) {
        probe_on_thread(runs_a_fresh_loop, NULL);
    }
}

static pthread_key_t late_key;

static void uses_the_loop_late(void *value)
{
    static struct probe source = PROBE("A", NULL);
    (void)value;
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0, true);
}

static void has_a_late_destructor(void *context)
{
    static struct probe idle = PROBE("idle", NULL);
    pthread_setspecific(late_key, context);
    probe_source_add(&idle, 0, LOOP, MODE);
}

CASE(loop_is_usable_in_other_destructors, "171", on_thread)
{
    pthread_key_create(&late_key, uses_the_loop_late);
    probe_on_thread(has_a_late_destructor, &late_key);
}

static int open_descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    if (!directory) {
        conformance_skip("no /proc");
    }
    while (readdir(directory)) {
        count++;
    }
    closedir(directory);
    return count;
}

CASE(threads_leak_no_descriptors, "170", on_thread)
{
    exiting_source.logging = probe_is_silent;
    probe_on_thread(keeps_its_loop, NULL);
    CFRelease(kept_loop);
    int before = open_descriptors();
    for (int i = 0; i < 50; i++) {
        probe_on_thread(keeps_its_loop, NULL);
        CFRelease(kept_loop);
    }
    probe_note("leaked=%d", open_descriptors() - before);
}
