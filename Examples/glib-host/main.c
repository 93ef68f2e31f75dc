/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run loop inside GLib's main loop: GLib's timeouts and idle functions and Core Foundation's timers, sources and
 * queued functions, on one thread.
 *
 * Prints what happens and ends by itself; the exit status is 0 if everything came that should, in the order in which it should.
 */
#include <CRLHostGLib.h>
#include <CoreFoundation/CoreFoundation.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static GMainLoop *main_loop;
static unsigned beats;
static unsigned ticks;
static unsigned commands;
static unsigned functions;
static unsigned stops;
static char activities[1024]; /* what an observer has heard */

static void observe(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    static const char *const names[] = {"E", "BT", "BS", "?", "?", "BW", "AW", "X"};
    unsigned which = 0;

    (void)observer, (void)info;
    while ((activity >> which) > 1) {
        which++;
    }
    if (strlen(activities) < sizeof activities - 4) {
        (void)strcat(strcat(activities, names[which]), " ");
    }
}

static void beat(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    (void)printf("Core Foundation: beat %u\n", ++beats);
    if (beats == 5) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

static void obey(void *info)
{
    (void)info;
    (void)printf("Core Foundation: a command from another thread\n");
    commands++;
}

static void greet(void *info)
{
    (void)info;
    (void)printf("Core Foundation: a function that GLib's timeout has queued\n");
    functions++;
}

static gboolean tick(gpointer data)
{
    (void)data;
    (void)printf("GLib: tick %u\n", ++ticks);
    if (ticks == 2) {
        CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), kCFRunLoopDefaultMode, greet, NULL, NULL);
        CFRunLoopWakeUp(CFRunLoopGetCurrent());
    }
    return G_SOURCE_CONTINUE;
}

static void *command(void *info)
{
    g_usleep(60000); /* the loop is asleep in GLib's poll by then; it works as well if it is not */
    CFRunLoopSourceSignal((CFRunLoopSourceRef)info);
    CFRunLoopWakeUp(CFRunLoopGetMain());
    return NULL;
}

static void run_was_stopped(void *info)
{
    (void)info;
    stops++;
    g_main_loop_quit(main_loop);
}

/* Two runs, as the next one begins when one is stopped: E, then passes of BT BS [BW [AW]], then X. */
static gboolean is_a_run(const char *text)
{
    return g_regex_match_simple("^(E (BT BS (BW (AW )?)?)+X ){2}$", text, 0, 0);
}

static gboolean is_as_it_should(void)
{
    return stops == 1 && beats == 5 && ticks >= 3 && commands == 1 && functions == 1 && is_a_run(activities);
}

int main(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceContext context = {.perform = obey};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 0.04, 0.04, 0, 0, beat, NULL);
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, 0, observe, NULL);
    GSource *run_loop;
    pthread_t thread;
    guint timeout;

    CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode);
    CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode);
    CFRunLoopAddObserver(loop, observer, kCFRunLoopDefaultMode);
    main_loop = g_main_loop_new(NULL, FALSE);
    timeout = g_timeout_add(30, tick, NULL);
    run_loop = CRLHostGLibAttach(NULL, run_was_stopped, NULL);
    (void)pthread_create(&thread, NULL, command, source);
    g_main_loop_run(main_loop);
    (void)pthread_join(thread, NULL);
    g_source_destroy(run_loop);
    (void)printf("observed: %s\n", activities);
    (void)g_source_remove(timeout);
    g_main_loop_unref(main_loop);
    CFRunLoopTimerInvalidate(timer);
    CFRunLoopSourceInvalidate(source);
    CFRunLoopObserverInvalidate(observer);
    CFRelease(timer);
    CFRelease(source);
    CFRelease(observer);
    return is_as_it_should() ? 0 : 1;
}
