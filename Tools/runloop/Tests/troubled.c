/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs with one trouble each, for `runloop why`. The argument says which:
 *
 *   well       a timer that does little: nothing is wrong
 *   spin       a descriptor that is readable, and that nobody reads
 *   signal     a source that signals itself again
 *   limit      runs of no time, again and again
 *   deadlock   two threads that ask each other's port
 *   unanswered a request to a port whose loop is in a long callout
 *   late       a timer behind a callout that sleeps
 *   lock       a callout that waits for a lock, and one that works as long
 *   never      a timer in a mode that never runs, and a source that is signalled and not woken
 *   wakes      a timer a hundred times a second
 *   hang       a callout that does not end; the process is killed
 *
 * A second argument is for how long, in seconds.
 */
#define _GNU_SOURCE /* pthread_setname_np */
#include <CoreFoundation/CoreFoundation.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double length_s = 1;
static pthread_barrier_t ready;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CFRunLoopSourceRef again;

static void pause_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&left, &left) != 0) {
    }
}

static void stop(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static void tick(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
}

static void add_timer(double after_s, double interval_s, CFRunLoopTimerCallBack callout, CFStringRef mode)
{
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + after_s, interval_s, 0, 0, callout, NULL);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, mode);
    CFRelease(timer);
}

static void forget_to_read(CFFileDescriptorRef file, CFOptionFlags types, void *info)
{
    (void)info;
    CFFileDescriptorEnableCallBacks(file, types);
}

static void spin(void)
{
    int ends[2];
    CFFileDescriptorRef file;

    if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1) {
        exit(1);
    }
    file = CFFileDescriptorCreate(NULL, ends[0], true, forget_to_read, NULL);
    CFFileDescriptorEnableCallBacks(file, kCFFileDescriptorReadCallBack);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), CFFileDescriptorCreateRunLoopSource(NULL, file, 0), kCFRunLoopDefaultMode);
    printf("%d\n", ends[0]);
}

static void signal_again(void *info)
{
    (void)info;
    CFRunLoopSourceSignal(again);
}

static void add_source(void (*perform)(void *info))
{
    CFRunLoopSourceContext context = {.perform = perform};

    again = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), again, kCFRunLoopDefaultMode);
}

/* ---- ports ---- */

static CFStringRef name_of(const char *name)
{
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("troubled.%s.%d"), name, (int)getpid());
}

static void ask(const char *name, int number)
{
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, name_of(name));
    CFDataRef reply = NULL;

    (void)CFMessagePortSendRequest(remote, number, NULL, 10, length_s, CFSTR("private"), &reply);
}

static CFDataRef ask_back(CFMessagePortRef port, SInt32 number, CFDataRef data, void *info)
{
    (void)port;
    (void)number;
    (void)data;
    (void)info;
    ask("first", 2);
    return NULL;
}

static CFDataRef answer_late(CFMessagePortRef port, SInt32 number, CFDataRef data, void *info)
{
    (void)port;
    (void)number;
    (void)data;
    (void)info;
    pause_for(length_s * 2);
    return NULL;
}

static void open_port(const char *name, CFMessagePortCallBack callout)
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name_of(name), callout, NULL, NULL);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(NULL, port, 0), kCFRunLoopDefaultMode);
}

static void *serve(void *callout)
{
    open_port("second", (CFMessagePortCallBack)callout);
    (void)pthread_barrier_wait(&ready);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, length_s * 3, false);
    return NULL;
}

static void ask_thread(CFMessagePortCallBack callout)
{
    pthread_t thread;

    (void)pthread_barrier_init(&ready, NULL, 2);
    (void)pthread_create(&thread, NULL, serve, (void *)callout);
    (void)pthread_setname_np(thread, "server");
    open_port("first", answer_late);
    (void)pthread_barrier_wait(&ready);
    ask("second", 1);
}

/* ---- callouts that take long ---- */

static void sleep_long(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
    pause_for(0.4);
}

static void *hold_lock(void *info)
{
    (void)info;
    (void)pthread_mutex_lock(&mutex);
    (void)pthread_barrier_wait(&ready);
    pause_for(0.4);
    (void)pthread_mutex_unlock(&mutex);
    return NULL;
}

static void wait_for_lock(CFRunLoopTimerRef timer, void *info)
{
    pthread_t thread;

    (void)timer;
    (void)info;
    (void)pthread_barrier_init(&ready, NULL, 2);
    (void)pthread_create(&thread, NULL, hold_lock, NULL);
    (void)pthread_barrier_wait(&ready);
    (void)pthread_mutex_lock(&mutex);
    (void)pthread_mutex_unlock(&mutex);
    (void)pthread_join(thread, NULL);
}

static void work_long(CFRunLoopTimerRef timer, void *info)
{
    struct timespec now;

    (void)timer;
    (void)info;
    do {
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec == 0 && now.tv_nsec < 300000000);
}

static void hang(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
    pause_for(length_s);
    (void)raise(SIGKILL);
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "well";

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    length_s = count > 2 ? atof(words[2]) : length_s;
    if (strcmp(what, "deadlock") == 0 || strcmp(what, "unanswered") == 0) {
        ask_thread(strcmp(what, "deadlock") == 0 ? ask_back : answer_late);
        return 0;
    }
    add_timer(length_s, 0, stop, kCFRunLoopDefaultMode);
    if (strcmp(what, "well") == 0) {
        add_timer(0.1, 0.1, tick, kCFRunLoopDefaultMode);
    } else if (strcmp(what, "spin") == 0) {
        spin();
    } else if (strcmp(what, "signal") == 0) {
        add_source(signal_again);
        CFRunLoopSourceSignal(again);
    } else if (strcmp(what, "limit") == 0) {
        CFAbsoluteTime end = CFAbsoluteTimeGetCurrent() + length_s;

        while (CFAbsoluteTimeGetCurrent() < end) {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
        }
        return 0;
    } else if (strcmp(what, "late") == 0) {
        add_timer(0.1, 0.1, tick, kCFRunLoopDefaultMode);
        add_timer(0.35, 0, sleep_long, kCFRunLoopDefaultMode);
    } else if (strcmp(what, "lock") == 0) {
        add_timer(0.1, 0, wait_for_lock, kCFRunLoopDefaultMode);
        add_timer(0.6, 0, work_long, kCFRunLoopDefaultMode);
    } else if (strcmp(what, "never") == 0) {
        add_source(signal_again);
        add_timer(0.1, 0.1, tick, CFSTR("another mode"));
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    } else if (strcmp(what, "wakes") == 0) {
        add_timer(0.01, 0.01, tick, kCFRunLoopDefaultMode);
    } else if (strcmp(what, "hang") == 0) {
        add_timer(0.1, 0, hang, kCFRunLoopDefaultMode);
    }
    (void)CFRunLoopRun();
    return 0;
}
