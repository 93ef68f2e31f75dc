/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that do not get to sleep: what is told, when, and what becomes of it when threads end, processes fork and callouts do not return.
 *
 * Most tests move the clock by hand and send the alarm's signal themselves. The others keep a thread stuck until its stall was told.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/Trace/kernel_stall.h"
#include "Kernel/kernel.h"
#include "Loop/Core/loop.h"
#include "Loop/Run/stall.h"
#include "Loop/Trace/trace.h"
#include "Loop/loop_trace.h"

/* ---- what is told ---- */

static struct told {
    _Atomic int beginnings;
    _Atomic int ends;
    _Atomic int releases;
    char text[16384]; /* of the last beginning; written before it is counted, as all that follows */
    char end_text[512];
    char mode[64];
    double duration;
    double function_duration;
    long callouts;
    const void *function;
    long frame_count;
    const void *frames[stall_frames_most];
    CFRunLoopRef loop;
} told;

static void note(const CRLStall *stall, void *info)
{
    EXPECT(info == &told);
    EXPECT_EQ(stall->version, 0);
    told.duration = stall->duration;
    told.loop = stall->loop;
    if (stall->isOver) {
        (void)strncpy(told.end_text, stall->text, sizeof told.end_text - 1);
        (void)atomic_fetch_add(&told.ends, 1);
        return;
    }
    (void)strncpy(told.text, stall->text, sizeof told.text - 1);
    told.mode[0] = '\0';
    EXPECT(stall->mode && CFStringGetCString(stall->mode, told.mode, sizeof told.mode, kCFStringEncodingUTF8));
    told.function_duration = stall->functionDuration;
    told.callouts = stall->callouts;
    told.function = stall->function;
    told.frame_count = stall->frameCount;
    memcpy(told.frames, stall->frames, (size_t)stall->frameCount * sizeof stall->frames[0]);
    (void)atomic_fetch_add(&told.beginnings, 1);
}

static void count_release(void *info)
{
    EXPECT(info == &told);
    (void)atomic_fetch_add(&told.releases, 1);
}

static bool watch(CFRunLoopRef loop, double seconds)
{
    return CRLRunLoopSetStallHandler(loop, seconds, note, &told, count_release);
}

/* ---- the alarm by hand ---- */

static struct trace words; /* what the library asked of the alarm */
static int alarm_signal;
static void *alarm_value;

static int alarm_create(int signal, void *value, timer_t *ret_alarm)
{
    alarm_signal = signal;
    alarm_value = value;
    memset(ret_alarm, 0, sizeof *ret_alarm);
    trace_add(&words, "alarm");
    return 0;
}

static int alarm_set(timer_t alarm, int64_t after_ns)
{
    (void)alarm;
    if (after_ns == 0) {
        trace_addf(&words, "silent@%ld", clock_ms());
    } else {
        trace_addf(&words, "set@%ld(%ld)", clock_ms(), (long)(after_ns / 1000000));
    }
    return 0;
}

static int alarm_delete(timer_t alarm)
{
    (void)alarm;
    trace_add(&words, "deleted");
    return 0;
}

static void start_by_hand(void)
{
    clock_start();
    kernel_stall.alarm_create = alarm_create;
    kernel_stall.alarm_set = alarm_set;
    kernel_stall.alarm_delete = alarm_delete;
}

/* As pthread_sigqueue to this thread, which musl has not. */
static void send_alarm(void)
{
    siginfo_t information = {.si_signo = alarm_signal, .si_code = SI_QUEUE};

    information.si_pid = getpid();
    information.si_value.sival_ptr = alarm_value;
    EXPECT_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), alarm_signal, &information), 0);
}

#define EXPECT_WORDS(expected_)          \
    do {                                 \
        EXPECT_TRACE(&words, expected_); \
        trace_clear(&words);             \
    } while (0)

/* Takes as many milliseconds as its context says, and then the alarm comes. */
static void is_stuck(struct probe *probe)
{
    clock_spend_ms((long)(intptr_t)probe->context);
    send_alarm();
}

static void takes_long(struct probe *probe)
{
    clock_spend_ms((long)(intptr_t)probe->context);
}

/* ---- the alarm of the kernel ---- */

static void spins_until_told(struct probe *probe)
{
    (void)probe;
    probe_await_count(&told.beginnings, 1);
    atomic_signal_fence(memory_order_seq_cst); /* or clang makes the last call a jump, which leaves no frame of this function */
}

TEST(a_callout_is_told_while_it_is_stuck_with_its_backtrace, "700 701 702")
{
    static struct probe timer = PROBE("T", spins_until_told);
    bool has_found = false;

    REQUIRE(watch(LOOP, 0.05)); /* long enough for a slow machine to be in the function */
    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
    probe_await_count(&told.ends, 1);
    EXPECT_EQ(told.beginnings, 1);
    EXPECT_STR(told.mode, "test");
    EXPECT(told.loop == LOOP);
    EXPECT(strstr(told.text, "in mode test\n  in callout for ") && strstr(told.text, ": timer 0x"));
    EXPECT(strstr(told.text, "1 callout since the sleep") != NULL);
    EXPECT(strstr(told.text, "\n  #0  ") != NULL && strstr(told.text, "(run-tests+0x") != NULL && strstr(told.text, "#0  0x") == NULL);
    EXPECT(strstr(told.end_text, " goes on after ") != NULL);
    EXPECT(told.duration >= 0.05);
    for (long i = 0; i < told.frame_count; i++) {
        uintptr_t distance = (uintptr_t)told.frames[i] - (uintptr_t)spins_until_told;

        has_found |= distance < 256;
    }
    EXPECT(has_found); /* the function that is stuck is in the backtrace */
    EXPECT(CRLRunLoopSetStallHandler(LOOP, 0, NULL, NULL, NULL));
    EXPECT_EQ(told.releases, 1);
}

/* ---- when ---- */

TEST(the_alarm_is_set_by_the_first_callout_and_silenced_by_the_sleep, "700 703")
{
    static struct probe timer = {.name = "T", .action = takes_long, .context = (void *)100, .logging = probe_is_silent};

    start_by_hand();
    EXPECT(!trace_is_on());
    REQUIRE(watch(LOOP, 0.25));
    probe_timer_add(&timer, 0.3, 0.3, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 1, false);
    EXPECT_WORDS("alarm set@300(250) silent@400 set@600(250) silent@700 set@900(250) silent@1000");
    EXPECT_EQ(told.beginnings, 0);
}

TEST(a_chain_of_callouts_without_a_sleep_is_a_stall, "700 702")
{
    static struct probe first = {.name = "1", .action = takes_long, .context = (void *)120, .logging = probe_is_silent};
    static struct probe second = {.name = "2", .action = takes_long, .context = (void *)100, .logging = probe_is_silent};
    static struct probe third = {.name = "3", .action = is_stuck, .context = (void *)50, .logging = probe_is_silent};

    start_by_hand();
    REQUIRE(watch(LOOP, 0.25));
    probe_timer_add(&first, 0.3, 0, LOOP, MODE);
    probe_timer_add(&second, 0.3, 0, LOOP, MODE);
    probe_timer_add(&third, 0.3, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 1, false);
    probe_await_count(&told.ends, 1);
    EXPECT_EQ(told.beginnings, 1);
    EXPECT_EQ(told.callouts, 3);
    EXPECT(strstr(told.text, "has not slept for 0.270 s, in mode test\n  in callout for 0.050 s: timer") != NULL);
    EXPECT(strstr(told.text, "3 callouts since the sleep\n  the longest that has ended took 0.120 s: timer") != NULL);
    EXPECT_NEAR(told.function_duration, 0.05, 1e-9);
    EXPECT(strstr(told.end_text, "goes on after 0.270 s\n") != NULL);
    EXPECT_NEAR(told.duration, 0.27, 1e-9);
}

TEST(a_signal_that_comes_too_late_or_too_early_tells_nothing, "700")
{
    static struct probe timer = {.name = "T", .action = is_stuck, .context = (void *)100, .logging = probe_is_silent};
    static struct probe asleep = {.name = "A", .action = takes_long, .context = (void *)0, .logging = probe_is_silent};

    start_by_hand();
    REQUIRE(watch(LOOP, 0.25));
    probe_timer_add(&timer, 0.1, 0, LOOP, MODE);
    probe_timer_add(&asleep, 0.5, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 1, false);
    clock_spend_ms(500);
    send_alarm(); /* outside of a run */
    EXPECT_WORDS("alarm set@100(250) set@200(150) silent@200 set@500(250) silent@500");
    EXPECT_EQ(told.beginnings, 0);
}

static void runs_inside(struct probe *probe)
{
    clock_spend_ms(200);
    CFRunLoopRunInMode(CFSTR("inner"), 0.1, false);
    clock_spend_ms(100);
    is_stuck(probe);
}

TEST(a_sleep_inside_a_callout_ends_a_stall, "700")
{
    static struct probe timer = {.name = "T", .action = runs_inside, .context = (void *)200, .logging = probe_is_silent};
    static struct probe inner = {.name = "I", .action = takes_long, .context = (void *)10, .logging = probe_is_silent};

    start_by_hand();
    REQUIRE(watch(LOOP, 0.25));
    probe_timer_add(&timer, 0.1, 0, LOOP, MODE);
    probe_timer_add(&inner, 0.35, 0, LOOP, CFSTR("inner"));
    CFRunLoopRunInMode(MODE, 1, false);
    probe_await_count(&told.ends, 1);
    EXPECT_WORDS("alarm set@100(250) silent@300 set@350(250) silent@660");
    EXPECT_EQ(told.beginnings, 1);
}

static void jumps(struct probe *probe)
{
    (void)probe;
    longjmp(probe_way_out, 1);
}

TEST(a_callout_that_does_not_return_is_no_part_of_later_stalls, "700")
{
    static struct probe source = {.name = "S", .action = jumps, .logging = probe_is_silent};
    static struct probe timer = {.name = "T", .action = is_stuck, .context = (void *)300, .logging = probe_is_silent};

    start_by_hand();
    REQUIRE(watch(LOOP, 0.25));
    probe_source_add(&source, 0, LOOP, CFSTR("inner"));
    CFRunLoopSourceSignal(probe_source_of(&source));
    EXPECT(probe_run_is_left(CFSTR("inner")));
    probe_timer_add(&timer, 0.1, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 1, false);
    probe_await_count(&told.ends, 1);
    EXPECT_EQ(told.callouts, 1);
    EXPECT(strstr(told.text, "in callout for 0.300 s: timer") != NULL);
}

static void nests(struct probe *probe)
{
    int *left = probe->context;

    if (--*left > 0) {
        CFRunLoopSourceSignal(probe_source_of(probe));
        CFRunLoopRunInMode(MODE, 0, false);
    } else {
        clock_spend_ms(300);
        send_alarm();
    }
}

TEST(callouts_deeper_than_the_report_has_room_for_are_counted, "700 702")
{
    static int left = stall_callouts_most + 4;
    static struct probe source = {.name = "S", .action = nests, .context = &left, .logging = probe_is_silent};

    start_by_hand();
    REQUIRE(watch(LOOP, 0.25));
    probe_source_add(&source, 0, LOOP, MODE);
    CFRunLoopSourceSignal(probe_source_of(&source));
    CFRunLoopRunInMode(MODE, 0, false);
    probe_await_count(&told.ends, 1);
    EXPECT(told.callouts <= stall_callouts_most + 4 && told.callouts >= 1);
    EXPECT(strstr(told.text, ": source 0x") != NULL);
}

/* ---- settings ---- */

TEST(another_handler_takes_the_place_of_the_first, "700 704")
{
    static struct probe timer = {.name = "T", .action = is_stuck, .context = (void *)300, .logging = probe_is_silent};

    start_by_hand();
    REQUIRE(watch(LOOP, 0.25));
    EXPECT(watch(LOOP, 0.5));
    EXPECT_EQ(told.releases, 1);
    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
    EXPECT(watch(LOOP, -1));
    EXPECT_EQ(told.releases, 2);
    EXPECT(watch(LOOP, 0.0 / 0.0));
    EXPECT_EQ(told.releases, 3);
    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
    EXPECT_WORDS("alarm set@0(500) set@300(200) silent@300");
    EXPECT_EQ(told.beginnings, 0);
}

static int no_signal(kernel_signal_handler *handler)
{
    (void)handler;
    return -EBUSY;
}

static int no_thread(void *(*function)(void *info), const char *name)
{
    (void)function;
    (void)name;
    return -EAGAIN;
}

static int no_alarm(int signal, void *value, timer_t *ret_alarm)
{
    (void)signal;
    (void)value;
    (void)ret_alarm;
    return -EAGAIN;
}

static void run_short(void)
{
    static struct probe timer = {.name = "T", .action = takes_long, .logging = probe_is_silent};

    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
}

TEST(a_handler_is_refused_without_a_thread_or_a_signal, "704")
{
    start_by_hand();
    kernel.thread_start = no_thread;
    EXPECT(!watch(LOOP, 1));
    EXPECT_EQ(told.releases, 1);
    kernel.thread_start = kernel_linux.thread_start;
    kernel_stall.signal_claim = no_signal;
    EXPECT(!watch(LOOP, 1));
    EXPECT_EQ(told.releases, 2);
    EXPECT(!trace_is_on()); /* nobody hears anything */
}

TEST(a_thread_without_room_for_an_alarm_says_so_once_and_goes_on, "704")
{
    static struct probe timer = {.name = "T", .action = takes_long, .logging = probe_is_silent};

    start_by_hand();
    kernel_stall.alarm_create = no_alarm;
    REQUIRE(watch(LOOP, 1));
    EXPECT_EQ(logged_lines("stalls: a thread cannot be watched: Resource temporarily unavailable", run_short), 1);
    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
    EXPECT_EQ(timer.calls, 1);
    EXPECT_WORDS("");
}

static void start_from_environment(void)
{
    stalls_watch_from_environment();
}

static void run_stuck_until_told(void)
{
    static struct probe timer = {.name = "T", .action = is_stuck, .context = (void *)300, .logging = probe_is_silent};

    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
    while (atomic_load(&atomic_load(&LOOP->stall)->state) != stall_none) {
        sched_yield();
    }
}

TEST(the_environment_watches_all_loops_and_prints, "705")
{
    static struct probe timer = {.name = "T", .action = is_stuck, .context = (void *)300, .logging = probe_is_silent};

    start_by_hand();
    REQUIRE(setenv("CORERUNLOOP_STALL", "0.25", 1) == 0);
    EXPECT_EQ(logged_lines("CoreRunLoop", start_from_environment), 0);
    EXPECT_EQ(logged_lines("CoreRunLoop: stall: thread ", run_stuck_until_told), 2); /* that it is stuck, and that it goes on */
    EXPECT_WORDS("alarm set@0(250) silent@300");
    EXPECT_EQ(logged_lines("has not slept for 0.300 s, in mode test", run_stuck_until_told), 1);
    trace_clear(&words);
    EXPECT(watch(LOOP, 0)); /* the program's word counts for its loop */
    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
    EXPECT_WORDS("");
}

static void expect_refused(const char *text)
{
    pid_t child;
    int status = 0;

    REQUIRE(setenv("CORERUNLOOP_STALL", text, 1) == 0);
    child = fork(); /* the line is written once in a process */
    if (child == 0) {
        bool is_refused = logged_lines("CORERUNLOOP_STALL is no number of seconds above 0", start_from_environment) == 1;

        _exit(is_refused && !trace_is_on() ? 0 : 1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
}

TEST(a_wrong_number_in_the_environment_is_one_line, "705")
{
    expect_refused("soon");
    expect_refused("0");
    expect_refused("-1");
    expect_refused("0,5");
    expect_refused("1s");
    expect_refused(".");
    REQUIRE(setenv("CORERUNLOOP_STALL", "", 1) == 0);
    EXPECT_EQ(logged_lines("CoreRunLoop", start_from_environment), 0);
    EXPECT(!trace_is_on());
}

/* ---- who waits for whom ---- */

static void ask(CFStringRef port)
{
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, port);

    REQUIRE(remote);
    EXPECT_EQ(CFMessagePortSendRequest(remote, 7, NULL, 5, 1, CFSTR("reply"), NULL), kCFMessagePortReceiveTimeout);
    CFRelease(remote);
}

static void asks(struct probe *probe)
{
    ask(probe->context);
}

static CFDataRef ask_instead_of_answering(CFMessagePortRef local, SInt32 message, CFDataRef data, void *info)
{
    (void)local, (void)message, (void)data;
    ask(info);
    return NULL;
}

/* A port of this thread's loop, whose callout asks the other one. Ends with close_port. */
static CFMessagePortRef open_port(CFStringRef name, CFStringRef other, CFRunLoopSourceRef *ret_source)
{
    CFMessagePortContext context = {.info = (void *)other};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name, ask_instead_of_answering, &context, NULL);

    REQUIRE(port);
    *ret_source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(LOOP, *ret_source, MODE);
    return port;
}

static void close_port(CFMessagePortRef port, CFRunLoopSourceRef source)
{
    CFMessagePortInvalidate(port);
    CFRelease(source);
    CFRelease(port);
}

static void run_asking(CFStringRef port)
{
    static struct probe timer = {.name = "T", .action = asks, .logging = probe_is_silent};

    timer.context = (void *)port;
    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
    probe_await_count(&told.ends, 1);
}

TEST(a_loop_that_waits_for_its_own_port_is_told_as_a_deadlock, "702")
{
    CFRunLoopSourceRef source;
    CFMessagePortRef own = open_port(CFSTR("stall.own"), NULL, &source);

    REQUIRE(watch(LOOP, 0.5)); /* by then a busy machine, too, has come to the wait */
    run_asking(CFSTR("stall.own"));
    EXPECT(strstr(told.text, "\n  waits for a reply from stall.own, message 7, since ") != NULL);
    EXPECT(strstr(told.text, " s: a deadlock\n") != NULL);
    close_port(own, source);
}

TEST(a_wait_for_a_port_that_no_loop_serves_is_told_as_that, "702")
{
    CFMessagePortRef own = CFMessagePortCreateLocal(NULL, CFSTR("stall.none"), ask_instead_of_answering, NULL, NULL);

    REQUIRE(watch(LOOP, 0.05));
    run_asking(CFSTR("stall.none"));
    EXPECT(strstr(told.text, " s, which is no port of this process with a loop\n") != NULL);
    CFMessagePortInvalidate(own);
    CFRelease(own);
}

static void own_second_and_ask_first(void *context)
{
    CFRunLoopSourceRef source;
    CFMessagePortRef second = open_port(CFSTR("stall.second"), NULL, &source);
    CFMessagePortRef first = CFMessagePortCreateRemote(NULL, CFSTR("stall.first"));

    (void)context;
    REQUIRE(first && watch(LOOP, 3600)); /* who is watched has what it waits for in others' reports */
    EXPECT_EQ(CFMessagePortSendRequest(first, 8, NULL, 5, test_patience_s(), CFSTR("reply"), NULL), kCFMessagePortSuccess);
    CFRelease(first);
    close_port(second, source);
}

TEST(two_loops_that_wait_for_each_other_are_told_as_a_deadlock, "702")
{
    struct probe_thread other;
    CFRunLoopSourceRef source;
    CFMessagePortRef first = open_port(CFSTR("stall.first"), CFSTR("stall.second"), &source);

    REQUIRE(watch(LOOP, 0.05));
    probe_thread_start(&other, own_second_and_ask_first, NULL);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    probe_await_count(&told.ends, 1);
    EXPECT(strstr(told.text, " waits for a reply from stall.second, message 7, since ") != NULL);
    EXPECT(strstr(told.text, " s, which waits for stall.first: a deadlock\n") != NULL);
    probe_thread_join(&other);
    close_port(first, source);
}

/* ---- threads and processes ---- */

static void ends_its_thread(struct probe *probe)
{
    is_stuck(probe);
    pthread_exit(NULL);
}

static void thread_ends_in_callout(void *context)
{
    static struct probe timer = {.name = "T", .action = ends_its_thread, .context = (void *)300, .logging = probe_is_silent};
    CFRunLoopRef *ret_loop = context;

    *ret_loop = LOOP;
    CFRetain(*ret_loop);
    REQUIRE(watch(LOOP, 0.25));
    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
}

TEST(a_thread_that_ends_ends_its_stall_and_releases_the_handlers_info, "700 704")
{
    CFRunLoopRef loop = NULL;

    start_by_hand();
    probe_on_thread(thread_ends_in_callout, &loop);
    probe_await_count(&told.beginnings, 1);
    probe_await_count(&told.ends, 1);
    probe_await_count(&told.releases, 1);
    EXPECT_WORDS("alarm set@0(250) silent@300 deleted");
    EXPECT(watch(loop, 1)); /* of a thread that is gone */
    EXPECT_EQ(told.releases, 2);
    while (CFGetRetainCount(loop) > 1) { /* the thread that tells lets go of the loop after it has told */
        sched_yield();
    }
    CFRelease(loop);
}

TEST(the_child_of_a_fork_watches_its_loop_too, "706")
{
    static struct probe timer = {.name = "T", .action = is_stuck, .context = (void *)300, .logging = probe_is_silent};
    pid_t child;
    int status = 0;

    if (test_is_instrumented()) {
        SKIP("ThreadSanitizer lets the child of a process with threads begin none");
    }
    start_by_hand();
    REQUIRE(watch(LOOP, 0.25));
    probe_timer_add(&timer, 0, 0.5, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
    probe_await_count(&told.ends, 1);
    trace_clear(&words);
    child = fork();
    if (child == 0) {
        CFRunLoopRunInMode(MODE, 0.3, false);
        probe_await_count(&told.ends, 2);
        _exit(strcmp(words.text, "alarm set@500(250) silent@800") == 0 && told.beginnings == 2 ? 0 : 1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
}

/* ---- while the last stall is being told ---- */

static atomic_bool may_go_on;

static void note_slowly(const CRLStall *stall, void *info)
{
    while (!stall->isOver && !atomic_load(&may_go_on)) {
        sched_yield();
    }
    note(stall, info);
}

TEST(stalls_while_one_is_being_told_are_counted, "702")
{
    static struct probe timer = {.name = "T", .action = is_stuck, .context = (void *)300, .logging = probe_is_silent};

    start_by_hand();
    REQUIRE(CRLRunLoopSetStallHandler(LOOP, 0.25, note_slowly, &told, NULL));
    probe_timer_add(&timer, 0, 0.5, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 1.4, false);
    atomic_store(&may_go_on, true);
    probe_await_count(&told.ends, 1);
    EXPECT_EQ(told.beginnings, 1);
    EXPECT(strstr(told.end_text, "goes on after 0.300 s; stalls since then that were not told: 2\n") != NULL);
}
