/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that own or block the signal by which a stuck thread is interrupted: they live, and a line says why no stall is told. Each is a
 * process of its own, as the line is written once in one. From a program that resets or ignores all signals it is taken back.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/Run/stall.h"
#include "Loop/loop_trace.h"

static void give_all(void (*handler)(int signal))
{
    for (int number = 1; number <= SIGRTMAX; number++) {
        (void)signal(number, handler); /* some cannot be changed */
    }
}

static void take(int signal)
{
    (void)signal;
}

static void handle_all(void)
{
    give_all(take);
}

static void block_all(void)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void leave_alone(void)
{
}

static const struct taking {
    const char *name, *line;
    void (*function)(void);
} takings[] = {
    {"handles", "stalls are not told while the program has a handler of its own for SIG", handle_all},
    {"blocks", "stalls are not told while the program blocks SIG", block_all},
};

static void (*taken_in_callout)(void);

static void is_slow(struct probe *probe)
{
    int64_t end_ns = kernel.monotonic_ns() + 50000000;

    (void)probe;
    taken_in_callout();
    while (kernel.monotonic_ns() < end_ns) {
    }
}

static void run_slowly(void)
{
    static struct probe timer = {.name = "T", .action = is_slow, .logging = probe_is_silent};

    for (int i = 0; i < 2; i++) {
        probe_timer_add(&timer, 0, 0, LOOP, MODE);
        CFRunLoopRunInMode(MODE, 0, false);
    }
}

static bool child_succeeds(pid_t child)
{
    int status = -1;

    return waitpid(child, &status, 0) == child && status == 0;
}

/* Whether a program whose loop is watched by then, and which does that before its run or in its first callout, lives and hears of it. */
static bool lives_and_hears(const struct taking *taking, bool is_in_callout)
{
    pid_t child = fork();

    if (child == 0) {
        stalls_watch_from_environment();
        taken_in_callout = is_in_callout ? taking->function : leave_alone;
        if (!is_in_callout) {
            taking->function();
        }
        _exit(logged_lines(taking->line, run_slowly) == 1 ? 0 : 1);
    }
    return child_succeeds(child);
}

TEST(a_program_that_takes_the_signal_of_stalls_lives_and_is_told, "706")
{
    REQUIRE(setenv("CORERUNLOOP_STALL", "0.01", 1) == 0);
    for (size_t i = 0; i < sizeof takings / sizeof takings[0]; i++) {
        for (int is_in_callout = 0; is_in_callout < 2; is_in_callout++) {
            if (takings[i].function == block_all && !is_in_callout) {
                continue; /* a watched loop's thread gives way to the signal when its first callout begins */
            }
            if (!lives_and_hears(&takings[i], is_in_callout)) {
                test_failed(__FILE__, __LINE__, "a program %s all signals%s", takings[i].name, is_in_callout ? " in a callout" : "");
            }
        }
    }
}

static void watch_from_environment(void)
{
    stalls_watch_from_environment();
}

TEST(a_program_that_has_handlers_for_all_signals_is_told, "706")
{
    pid_t child;

    REQUIRE(setenv("CORERUNLOOP_STALL", "0.01", 1) == 0);
    child = fork();
    if (child == 0) {
        handle_all();
        _exit(logged_lines("cannot be watched: the program has a handler of its own for SIGURG", watch_from_environment) == 1 ? 0 : 1);
    }
    EXPECT(child_succeeds(child));
}

static _Atomic bool is_told;
static _Atomic bool has_control;

static void look_at_text(const CRLStall *stall, void *info)
{
    (void)info;
    for (const char *byte = stall->text; *byte; byte++) {
        has_control |= (*byte < ' ' && *byte != '\n') || *byte == '\x7f';
    }
    has_control |= strstr(stall->text, "(a?[31m?b?") == NULL;
    is_told = true;
}

static void stays_until_told(struct probe *probe)
{
    (void)probe;
    while (!is_told) {
    }
}

static void (*handler_to_come)(int signal);

static void takes_long(struct probe *probe)
{
    int64_t end_ns = kernel.monotonic_ns() + 2000000;

    (void)probe;
    if (handler_to_come != take) {
        give_all(handler_to_come);
        handler_to_come = take;
    }
    while (kernel.monotonic_ns() < end_ns) {
    }
}

static void note_told(const CRLStall *stall, void *info)
{
    (void)info;
    if (!stall->isOver) {
        is_told = true;
    }
}

/* Whether a program that resets all signals, before its run or in its first callout, is told a later stall. It ends when it is. */
static bool is_told_its_stalls(void (*handler)(int signal), bool is_in_callout)
{
    static struct probe timer = {.name = "T", .action = takes_long, .logging = probe_is_silent};
    pid_t child = fork();

    if (child == 0) {
        if (!CRLRunLoopSetStallHandler(LOOP, 0.001, note_told, NULL, NULL)) {
            _exit(1);
        }
        handler_to_come = is_in_callout ? handler : take;
        if (!is_in_callout) {
            give_all(handler);
        }
        while (!is_told) { /* a stall that comes while another is being told is only counted */
            probe_timer_add(&timer, 0, 0, LOOP, MODE);
            CFRunLoopRunInMode(MODE, 0, false);
        }
        _exit(0);
    }
    return child_succeeds(child);
}

TEST(a_program_that_resets_all_signals_is_told_its_stalls, "706")
{
    void (*const handlers[])(int signal) = {SIG_DFL, SIG_IGN};

    for (size_t i = 0; i < sizeof handlers / sizeof handlers[0]; i++) {
        EXPECT(is_told_its_stalls(handlers[i], false));
        EXPECT(is_told_its_stalls(handlers[i], true));
    }
}

TEST(the_name_of_a_stuck_thread_is_made_plain, "702")
{
    static struct probe timer = PROBE("T", stays_until_told);

    REQUIRE(pthread_setname_np(pthread_self(), "a\x1b[31m\nb\xC2\x9B") == 0);
    REQUIRE(CRLRunLoopSetStallHandler(LOOP, 0.001, look_at_text, NULL, NULL));
    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
    EXPECT(!has_control);
    EXPECT(CRLRunLoopSetStallHandler(LOOP, 0, NULL, NULL, NULL));
}
