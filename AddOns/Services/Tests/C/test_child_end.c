/* SPDX-License-Identifier: Apache-2.0 */
/* How children end, by themselves and by signals, and what moves through their pipes meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Child/child_kernel.h"
#include "Loop/loop_probe.h"
#include "Stream/stream_recorder.h"
#include "child_probe.h"

static int kernel_is_old(pid_t pid)
{
    (void)pid;
    return -ENOSYS;
}

/* Of a process that somebody else reaps. */
static void await_reaping(pid_t pid)
{
    siginfo_t info;

    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0 || errno == EINTR) {
        (void)sched_yield();
    }
}

/* ---- pipes ---- */

TEST(a_child_that_closes_its_output_lives_on, "")
{
    struct child_probe probe = {.specification = {.version = 0}};
    CFWriteStreamRef input;
    char text[16];

    probe_start_shell(&probe, "echo last; exec >&-; read line; exit 4");
    EXPECT_STR(probe_read(&probe, 1, text, sizeof text), "last\n");
    run_what_is_ready();
    EXPECT_EQ(probe.ends, 0);
    EXPECT(!CRLChildGetEnd(probe.child, NULL));
    input = CRLChildCopyWriteStream(probe.child, 0);
    EXPECT(CFWriteStreamOpen(input));
    CFWriteStreamClose(input);
    CFRelease(input);
    probe_run_to_end(&probe);
    EXPECT_EQ(WEXITSTATUS(probe.end.waitStatus), 4);
    probe_give_up(&probe);
}

TEST(a_child_ends_while_its_own_child_holds_the_pipe, "")
{
    struct child_probe probe = {.specification = {.version = 0}};
    CFReadStreamRef output;
    char text[16];

    probe_start_shell(&probe, "exec 3<&0; cat <&3 & echo $!"); /* a shell gives the background /dev/null to read, unless it is told */
    output = CRLChildCopyReadStream(probe.child, 1);
    EXPECT(CFReadStreamOpen(output));
    text[CFReadStreamRead(output, (UInt8 *)text, sizeof text - 1)] = '\0';
    probe_run_to_end(&probe);
    EXPECT_EQ(probe.end.waitStatus, 0);
    run_what_is_ready();
    EXPECT(!CFReadStreamHasBytesAvailable(output));
    EXPECT_EQ(CFReadStreamGetStatus(output), kCFStreamStatusOpen);
    EXPECT(atoi(text) > 0);
    close(CRLChildTakeDescriptor(probe.child, 0)); /* ends the child's child */
    EXPECT_EQ(CFReadStreamRead(output, (UInt8 *)text, sizeof text), 0);
    CFRelease(output);
    probe_give_up(&probe);
}

enum { much = 1 << 20 };

struct mover {
    size_t written;
    size_t seen;
    bool is_wrong;
    _Atomic int ends;
};

static UInt8 byte_at(size_t place)
{
    return (UInt8)(place * 7 + place / 251);
}

static void write_on(CFWriteStreamRef stream, CFStreamEventType type, void *info)
{
    struct mover *mover = info;
    UInt8 bytes[5000];
    size_t count = much - mover->written < sizeof bytes ? much - mover->written : sizeof bytes;
    CFIndex taken;

    if (type != kCFStreamEventCanAcceptBytes) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bytes[i] = byte_at(mover->written + i);
    }
    taken = count > 0 ? CFWriteStreamWrite(stream, bytes, (CFIndex)count) : 0;
    mover->written += taken > 0 ? (size_t)taken : 0;
    if (mover->written == much) {
        CFWriteStreamClose(stream);
    }
}

static void read_on(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    struct mover *mover = info;
    UInt8 bytes[3000];
    CFIndex got = type == kCFStreamEventHasBytesAvailable ? CFReadStreamRead(stream, bytes, sizeof bytes) : 0;

    for (CFIndex i = 0; i < got; i++) {
        mover->is_wrong |= bytes[i] != byte_at(mover->seen++);
    }
    if (type == kCFStreamEventEndEncountered) {
        mover->ends++;
    }
}

TEST(a_megabyte_goes_both_ways, "")
{
    struct child_probe probe = {.specification = {.version = 0}};
    struct mover mover = {0};
    CFStreamClientContext context = {.info = &mover};
    CFReadStreamRef output;
    CFWriteStreamRef input;

    probe_start_shell(&probe, "exec cat");
    output = CRLChildCopyReadStream(probe.child, 1);
    input = CRLChildCopyWriteStream(probe.child, 0);
    EXPECT(CFReadStreamSetClient(output, events_all, read_on, &context) && CFWriteStreamSetClient(input, events_all, write_on, &context));
    CFReadStreamScheduleWithRunLoop(output, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    CFWriteStreamScheduleWithRunLoop(input, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT(CFReadStreamOpen(output) && CFWriteStreamOpen(input));
    run_until_count(&mover.ends, 1);
    probe_run_to_end(&probe);
    EXPECT_EQ(mover.seen, much);
    EXPECT(!mover.is_wrong);
    EXPECT_EQ(probe.end.waitStatus, 0);
    CFReadStreamClose(output);
    CFRelease(output);
    CFRelease(input);
    probe_give_up(&probe);
}

/* ---- signals ---- */

TEST(a_signal_ends_a_child_and_finds_no_other, "")
{
    for (int is_old = 0; is_old < 2; is_old++) {
        struct child_probe probe = {.specification = {.version = 0}};

        child_kernel.process_open = is_old ? kernel_is_old : child_kernel.process_open;
        probe_start_shell(&probe, "exec cat");
        EXPECT(!CRLChildKill(probe.child, SIGTERM, true)); /* no group of its own */
        EXPECT(!CRLChildKill(probe.child, 999, false));
        EXPECT(CRLChildKill(probe.child, 0, false));
        EXPECT(CRLChildKill(probe.child, SIGUSR1, false));
        probe_run_to_end(&probe);
        EXPECT(WIFSIGNALED(probe.end.waitStatus) && WTERMSIG(probe.end.waitStatus) == SIGUSR1);
        EXPECT(!CRLChildKill(probe.child, SIGTERM, false));
        EXPECT(!CRLChildTerminate(probe.child, 1, false));
        probe_give_up(&probe);
    }
}

TEST(a_child_that_ignores_the_request_is_killed_later, "")
{
    struct child_probe probe = {.specification = {.version = 0}};
    char text[8];

    probe_start_shell(&probe, "trap '' TERM; echo ready; exec cat");
    EXPECT_STR(probe_read(&probe, 1, text, 7), "ready\n");
    EXPECT(CRLChildTerminate(probe.child, 1000, false));
    EXPECT(CRLChildTerminate(probe.child, 0.01, false)); /* sooner */
    EXPECT(CRLChildTerminate(probe.child, 1000, false)); /* not later */
    probe_run_to_end(&probe);
    EXPECT(WIFSIGNALED(probe.end.waitStatus) && WTERMSIG(probe.end.waitStatus) == SIGKILL);
    probe_give_up(&probe);
}

TEST(the_time_for_a_kill_is_kept_for_a_later_loop, "")
{
    struct child_probe probe = {.specification = {.version = 0}};
    char text[8];

    probe_start_shell(&probe, "trap '' TERM; echo ready; exec cat");
    EXPECT_STR(probe_read(&probe, 1, text, 7), "ready\n");
    CRLChildUnscheduleFromRunLoop(probe.child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT(CRLChildTerminate(probe.child, 0.001, false));
    EXPECT(CRLChildScheduleWithRunLoop(probe.child, CFRunLoopGetCurrent(), CFSTR("other")));
    EXPECT(CRLChildScheduleWithRunLoop(probe.child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    CRLChildUnscheduleFromRunLoop(probe.child, CFRunLoopGetCurrent(), CFSTR("other"));
    probe_run_to_end(&probe);
    EXPECT_EQ(WTERMSIG(probe.end.waitStatus), SIGKILL);
    probe_give_up(&probe);
}

static void schedule_elsewhere(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    EXPECT(CRLChildScheduleWithRunLoop(((struct child_probe *)info)->child, CFRunLoopGetCurrent(), CFSTR("other")));
}

/* Both timers are due in one pass, that of the kill first. */
TEST(a_child_that_was_just_killed_may_be_in_one_mode_more, "")
{
    struct child_probe probe = {.specification = {.version = 0}};
    CFRunLoopTimerContext context = {.info = &probe};
    CFRunLoopTimerRef timer;
    char text[8];

    probe_start_shell(&probe, "trap '' TERM; echo ready; exec cat");
    EXPECT_STR(probe_read(&probe, 1, text, 7), "ready\n");
    EXPECT(CRLChildTerminate(probe.child, 1e-9, false));
    timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0, 0, 1, schedule_elsewhere, &context);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    probe_run_to_end(&probe);
    EXPECT_EQ(WTERMSIG(probe.end.waitStatus), SIGKILL);
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    probe_give_up(&probe);
}

/* The shell ends at once, what it has started would not, and holds the pipe. */
TEST(what_is_left_of_a_group_ends_with_its_leader, "")
{
    struct child_probe probe = {.specification = {.group = -1}};
    char text[8];

    probe_start_shell(&probe, "exec 3<&0; (trap '' TERM; echo ready; exec cat <&3) & wait");
    EXPECT_STR(probe_read(&probe, 1, text, 7), "ready\n");
    EXPECT(CRLChildTerminate(probe.child, 1000, true));
    probe_run_to_end(&probe);
    EXPECT_EQ(WTERMSIG(probe.end.waitStatus), SIGTERM);
    EXPECT_STR(probe_read(&probe, 1, text, sizeof text), "");
    EXPECT(!CRLChildKill(probe.child, SIGTERM, true));
    probe_give_up(&probe);
}

TEST(without_time_a_whole_group_is_killed_at_once, "")
{
    struct child_probe probe = {.specification = {.startsSession = true}};
    char text[8];

    probe_start_shell(&probe, "exec 3<&0; (trap '' TERM; echo ready; exec cat <&3) & wait");
    EXPECT_STR(probe_read(&probe, 1, text, 7), "ready\n");
    EXPECT(CRLChildTerminate(probe.child, 0, true));
    EXPECT_STR(probe_read(&probe, 1, text, sizeof text), "");
    probe_run_to_end(&probe);
    EXPECT_EQ(WTERMSIG(probe.end.waitStatus), SIGKILL);
    probe_give_up(&probe);
}

/* ---- who knows of the end ---- */

TEST(a_program_that_ignores_sigchld_hears_of_an_end_without_a_status, "")
{
    struct child_probe probe = {.specification = {.version = 0}};

    signal(SIGCHLD, SIG_IGN);
    for (int is_old = 0; is_old < 2; is_old++) {
        child_kernel.process_open = is_old ? kernel_is_old : child_kernel.process_open;
        probe_start_shell(&probe, "exit 3");
        probe_run_to_end(&probe);
        EXPECT_EQ(probe.end.waitStatus, -1);
        EXPECT_EQ(probe.end.usage.ru_maxrss, 0);
        EXPECT(!CRLChildKill(probe.child, SIGTERM, false));
        probe_give_up(&probe);
    }
    probe.specification.arguments = (const char *const[]){"/nowhere", NULL};
    EXPECT(!probe_start(&probe) && probe.error.error == ENOENT);
    signal(SIGCHLD, SIG_DFL);
}

static int process_is_gone(pid_t pid)
{
    await_reaping(pid);
    return -ESRCH;
}

TEST(a_child_that_is_gone_before_it_is_looked_at_has_ended, "")
{
    struct child_probe probe = {.specification = {.version = 0}};

    signal(SIGCHLD, SIG_IGN);
    child_kernel.process_open = process_is_gone;
    probe_start_shell(&probe, "exit 3");
    probe_run_to_end(&probe);
    EXPECT_EQ(probe.end.waitStatus, -1);
    probe_give_up(&probe);
    signal(SIGCHLD, SIG_DFL);
}

TEST(a_program_that_reaps_a_child_itself_hears_of_its_end_without_a_status, "")
{
    struct child_probe probe = {.specification = {.version = 0}};

    probe_start_shell(&probe, "exit 3");
    EXPECT_EQ(waitpid(CRLChildGetProcessIdentifier(probe.child), NULL, 0), CRLChildGetProcessIdentifier(probe.child));
    probe_run_to_end(&probe);
    EXPECT_EQ(probe.end.waitStatus, -1);
    probe_give_up(&probe);
}

TEST(the_end_can_be_asked_for_without_a_loop, "")
{
    struct child_probe probe = {.specification = {.version = 0}};
    CRLChildEnd end;
    CFStringRef text;

    probe_start_shell(&probe, "kill -9 $$");
    while (!CRLChildGetEnd(probe.child, &end)) {
        (void)sched_yield();
    }
    EXPECT_EQ(WTERMSIG(end.waitStatus), SIGKILL);
    probe_run_to_end(&probe); /* and is told all the same */
    text = CFCopyDescription(probe.child);
    EXPECT(CFStringFind(text, CFSTR("ended = true, status = 9"), 0).length > 0);
    CFRelease(text);
    probe_give_up(&probe);
}

TEST(a_child_that_nobody_has_any_more_is_reaped, "")
{
    for (int is_old = 0; is_old < 2; is_old++) {
        struct child_probe probe = {.specification = {.version = 0}};
        pid_t pid;

        child_kernel.process_open = is_old ? kernel_is_old : child_kernel.process_open;
        probe_start_shell(&probe, "exec cat"); /* ends with its input, which goes with the object */
        pid = CRLChildGetProcessIdentifier(probe.child);
        CRLChildUnscheduleFromRunLoop(probe.child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
        probe_give_up(&probe);
        EXPECT_EQ(probe.releases, 1);
        await_reaping(pid);
        EXPECT_NO_CHILD();
    }
    test_allow_left(2, 0); /* a thread's own descriptor may be closed a little later */
}

/* ---- loops ---- */

static void schedule_here(void *context)
{
    struct child_probe *probe = context;

    EXPECT(CRLChildScheduleWithRunLoop(probe->child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    close(CRLChildTakeDescriptor(probe->child, 0));
    probe_run_to_end(probe);
}

static void be_refused_here(void *context)
{
    const struct child_probe *probe = context;

    EXPECT(!CRLChildScheduleWithRunLoop(probe->child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    CRLChildUnscheduleFromRunLoop(probe->child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
}

TEST(a_child_is_in_one_loop_and_can_change_it, "")
{
    struct child_probe probe = {.specification = {.version = 0}};

    probe_start_shell(&probe, "exec cat");
    probe_on_thread(be_refused_here, &probe);
    CRLChildUnscheduleFromRunLoop(probe.child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    CRLChildUnscheduleFromRunLoop(probe.child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
    probe_on_thread(schedule_here, &probe);
    EXPECT_EQ(probe.ends, 1);
    probe_give_up(&probe);
}

static void use_all_again(struct child_probe *probe)
{
    EXPECT(CRLChildScheduleWithRunLoop(probe->child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    run_what_is_ready();
    CRLChildUnscheduleFromRunLoop(probe->child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    probe_give_up(probe);
}

TEST(the_callback_may_unschedule_and_release_its_child, "")
{
    struct child_probe probe = {.specification = {.version = 0}, .action = use_all_again};

    probe_start_shell(&probe, "exit 0");
    probe_run_to_end(&probe);
    EXPECT_EQ(probe.ends, 1);
    EXPECT_EQ(probe.releases, 1);
}

/* ---- many ---- */

static void run_many(int count, int at_once)
{
    static const char *const arguments[] = {"/bin/echo", "complete", NULL};
    static const CRLChildDescriptor descriptors[] = {{1, kCRLChildWrites, 0}};
    struct child_probe probes[50];
    char text[32];

    for (int done = 0; done < count; done += at_once) {
        memset(probes, 0, sizeof probes);
        for (int i = 0; i < at_once; i++) {
            probes[i].specification = (CRLChildSpecification){.arguments = arguments, .descriptors = descriptors, .descriptorCount = 1};
            REQUIRE(probe_start(&probes[i]));
        }
        for (int i = 0; i < at_once; i++) {
            EXPECT_STR(probe_read(&probes[i], 1, text, sizeof text), "complete\n");
            probe_run_to_end(&probes[i]);
            EXPECT_EQ(probes[i].end.waitStatus, 0);
            probe_give_up(&probes[i]);
        }
    }
}

TEST(many_children_run_at_once_and_leave_nothing, "")
{
    run_many(100, 50);
    EXPECT_NO_CHILD();
}

TEST_LIMIT(stress_ten_thousand_children_leave_nothing, "", 600)
{
    run_many(test_is_soak() ? 10000 : 50, 50);
    EXPECT_NO_CHILD();
}

static _Atomic bool is_asked_enough;

static void ask_for_the_end(void *context)
{
    while (!is_asked_enough) {
        (void)CRLChildGetEnd(context, NULL);
    }
}

TEST(the_child_of_a_fork_may_ask_for_a_child_of_its_parent, "")
{
    struct child_probe probe = {0};
    struct probe_thread threads[2];

    if (test_is_instrumented()) {
        SKIP("the child would find the locks of the sanitizer taken");
    }
    probe_start_script(&probe, "exec sleep 1000");
    for (int i = 0; i < 2; i++) {
        probe_thread_start(&threads[i], ask_for_the_end, probe.child);
    }
    for (int i = 0; i < 100; i++) {
        pid_t copy = fork();

        if (copy == 0) {
            CRLChildEnd end = {0};
            bool has_ended = CRLChildGetEnd(probe.child, &end);

            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
            CRLChildUnscheduleFromRunLoop(probe.child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
            _exit(has_ended && end.waitStatus == -1 && !CRLChildKill(probe.child, SIGKILL, false) ? 0 : 1);
        }
        int status = -1;
        REQUIRE(copy > 0 && waitpid(copy, &status, 0) == copy);
        EXPECT_EQ(status, 0);
    }
    is_asked_enough = true;
    for (int i = 0; i < 2; i++) {
        probe_thread_join(&threads[i]);
    }
    EXPECT(CRLChildKill(probe.child, SIGKILL, false));
    probe_run_to_end(&probe);
    EXPECT(WIFSIGNALED(probe.end.waitStatus));
    probe_give_up(&probe);
}

static void start_children(void *context)
{
    (void)context;
    run_many(20, 10);
}

TEST(threads_start_children_at_once, "")
{
    struct probe_thread threads[4];

    for (int i = 0; i < 4; i++) {
        probe_thread_start(&threads[i], start_children, NULL);
    }
    for (int i = 0; i < 4; i++) {
        probe_thread_join(&threads[i]);
    }
    EXPECT_NO_CHILD();
}
