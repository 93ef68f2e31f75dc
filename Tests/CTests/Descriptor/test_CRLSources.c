/* SPDX-License-Identifier: Apache-2.0 */
/* Signal sources and child sources: each promise that CRLRunLoop.h makes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Loop/loop_trace.h"

static int retains;
static int releases;
static int info_of_the_program;

static const void *retain_info(const void *info)
{
    EXPECT(info == &info_of_the_program);
    retains++;
    return &retains; /* the source keeps the returned info */
}

static void release_info(const void *info)
{
    EXPECT(info == &retains);
    releases++;
}

static CFStringRef describe_info(const void *info)
{
    EXPECT(info == &retains);
    return CFStringCreateWithCString(NULL, "watches the children", kCFStringEncodingUTF8);
}

static const CRLSourceContext counted = {
    .info = &info_of_the_program, .retain = retain_info, .release = release_info, .copyDescription = describe_info};

static CFRunLoopSourceRef expected_source;
static void (*action)(CFRunLoopSourceRef source);

static void got_signal(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info)
{
    EXPECT(source == expected_source);
    EXPECT(info == NULL || info == &retains);
    probe_note("signal%s:%d", signal->ssi_pid == (uint32_t)getpid() ? "" : "?", signal->ssi_signo == SIGUSR1 ? 1 : signal->ssi_int);
    if (action) {
        action(source);
    }
}

static void got_child(CFRunLoopSourceRef source, pid_t pid, int status, void *info)
{
    (void)pid;
    EXPECT(source == expected_source);
    EXPECT(info == NULL || info == &retains);
    if (status == -1) {
        probe_log("reaped");
    } else if (WIFEXITED(status)) {
        probe_note("exit:%d", WEXITSTATUS(status));
    } else if (WIFSIGNALED(status)) {
        probe_note("killed:%s", WTERMSIG(status) == SIGKILL ? "KILL" : "?");
    }
    if (action) {
        action(source);
    }
}

static CFRunLoopSourceRef add(CFRunLoopSourceRef source)
{
    REQUIRE(source != NULL);
    expected_source = source;
    CFRunLoopAddSource(LOOP, source, MODE);
    return source;
}

static CFRunLoopRunResult look(void)
{
    return CFRunLoopRunInMode(MODE, 0, true);
}

static CFRunLoopRunResult wait_for_one(void)
{
    return CFRunLoopRunInMode(MODE, test_patience_s(), true);
}

static void drop(CFRunLoopSourceRef source)
{
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
}

/* ---- signals ---- */

TEST(a_signal_calls_its_source_in_the_loop, "")
{
    CFRunLoopSourceRef source = add(CRLSignalSourceCreate(NULL, SIGUSR1, 0, got_signal, &counted));
    sigset_t blocked;

    sigprocmask(SIG_BLOCK, NULL, &blocked);
    EXPECT(sigismember(&blocked, SIGUSR1));
    EXPECT_EQ(retains, 1);
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    kill(getpid(), SIGUSR1);
    EXPECT_EQ(look(), kCFRunLoopRunHandledSource);
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    EXPECT_LOG("signal:1");
    CFRunLoopSourceInvalidate(source);
    EXPECT_EQ(releases, 0);
    CFRelease(source);
    EXPECT_EQ(releases, 1);
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    EXPECT(sigismember(&blocked, SIGUSR1)); /* stays blocked after the source has gone */
}

TEST(equal_signals_that_wait_are_one, "")
{
    CFRunLoopSourceRef source = add(CRLSignalSourceCreate(NULL, SIGUSR1, 0, got_signal, NULL));

    for (int i = 0; i < 5; i++) {
        kill(getpid(), SIGUSR1);
    }
    look();
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    EXPECT_LOG("signal:1");
    drop(source);
}

TEST(queued_signals_come_one_in_a_pass, "102")
{
    CFRunLoopSourceRef source = add(CRLSignalSourceCreate(NULL, SIGRTMIN + 1, 0, got_signal, NULL));

    for (int i = 10; i < 13; i++) {
        sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i});
    }
    EXPECT_EQ(look(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("signal:10");
    look();
    look();
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    EXPECT_LOG("signal:11 signal:12");
    drop(source);
}

static void invalidates_it(CFRunLoopSourceRef source)
{
    CFRunLoopSourceInvalidate(source);
    CFRelease(source); /* the last reference of the program */
}

TEST(a_signal_source_may_end_in_its_callback, "88 L17")
{
    add(CRLSignalSourceCreate(NULL, SIGRTMIN + 1, 0, got_signal, &counted));
    action = invalidates_it;
    sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 10});
    sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 11});
    look();
    EXPECT_EQ(look(), kCFRunLoopRunFinished);
    EXPECT_LOG("signal:10");
    EXPECT_EQ(releases, 1);
}

static void sends_a_signal(void *context)
{
    (void)context;
    kill(getpid(), SIGUSR1);
}

TEST(a_signal_wakes_a_sleeping_loop, "")
{
    CFRunLoopSourceRef source = add(CRLSignalSourceCreate(NULL, SIGUSR1, 0, got_signal, NULL));
    struct probe_thread thread;

    probe_thread_when_waiting(&thread, LOOP, sends_a_signal, NULL); /* started after the source: it inherits the mask */
    EXPECT_EQ(wait_for_one(), kCFRunLoopRunHandledSource);
    probe_thread_join(&thread);
    EXPECT_LOG("signal:1");
    drop(source);
}

TEST(two_sources_of_one_signal_share_it, "")
{
    CFRunLoopSourceRef one = add(CRLSignalSourceCreate(NULL, SIGUSR1, 0, got_signal, NULL));
    CFRunLoopSourceRef two = CRLSignalSourceCreate(NULL, SIGUSR1, 0, got_signal, NULL);

    CFRunLoopAddSource(LOOP, two, CFSTR("another mode"));
    kill(getpid(), SIGUSR1);
    look();
    EXPECT_LOG("signal:1"); /* read by one of them */
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("another mode"), 0, true), kCFRunLoopRunTimedOut);
    EXPECT(!CFEqual(one, two));
    drop(one);
    drop(two);
}

TEST(what_is_no_signal_gives_no_source, "")
{
    static const int none[] = {0, -1, 65, 1000, SIGKILL, SIGSTOP};
    CRLSourceContext wrong = counted;

    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        EXPECT(CRLSignalSourceCreate(NULL, none[i], 0, got_signal, &counted) == NULL);
    }
    wrong.version = 1;
    EXPECT(CRLSignalSourceCreate(NULL, SIGUSR1, 0, got_signal, &wrong) == NULL);
    EXPECT(CRLSignalSourceCreate(NULL, SIGUSR1, 0, NULL, &counted) == NULL);
    EXPECT_EQ(retains + releases, 0);
}

/* ---- threads that do not block the signal ---- */

enum { unaware_count = 3 };

static _Atomic pid_t unaware_started[unaware_count];
static sem_t unaware_may_end;

/* A thread that was there before the source. */
static void *wait_unaware(void *info)
{
    *(_Atomic pid_t *)info = gettid();
    while (sem_wait(&unaware_may_end) != 0) {
        EXPECT_EQ(errno, EINTR);
    }
    return NULL;
}

/* Returns when the threads sleep: ThreadSanitizer hands a signal to a running thread later, and forgets that the handler blocked it. */
static void start_unaware(pthread_t threads[unaware_count])
{
    EXPECT_EQ(sem_init(&unaware_may_end, 0, 0), 0);
    for (int i = 0; i < unaware_count; i++) {
        EXPECT_EQ(pthread_create(&threads[i], NULL, wait_unaware, &unaware_started[i]), 0);
    }
    for (int i = 0; i < unaware_count; i++) {
        while (!unaware_started[i] || test_thread_state(unaware_started[i]) != 'S') {
            sched_yield();
        }
    }
}

static void end_unaware(const pthread_t threads[unaware_count])
{
    for (int i = 0; i < unaware_count; i++) {
        sem_post(&unaware_may_end);
    }
    for (int i = 0; i < unaware_count; i++) {
        EXPECT_EQ(pthread_join(threads[i], NULL), 0);
    }
}

static int handled_in_loop;

static void count_signal(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info)
{
    (void)source;
    (void)info;
    EXPECT_EQ(signal->ssi_pid, (uint32_t)getpid());
    handled_in_loop += signal->ssi_code == SI_QUEUE ? signal->ssi_int : 1;
}

/* Runs the loop until the signal has come: another thread may have it first, and sends it on. */
static void run_until_handled(int count)
{
    while (handled_in_loop < count) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1, true);
    }
}

TEST(a_signal_that_threads_leave_unblocked_reaches_its_source, "")
{
    pthread_t threads[unaware_count];
    CFRunLoopSourceRef source;
    int sent = 0;

    start_unaware(threads);
    source = CRLSignalSourceCreate(NULL, SIGTERM, 0, count_signal, NULL);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    for (int i = 0; i < 20; i++) {
        kill(getpid(), SIGTERM); /* would end the process */
        run_until_handled(++sent);
    }
    for (int i = 0; i < unaware_count; i++) {
        EXPECT_EQ(pthread_kill(threads[i], SIGTERM), 0); /* sent to the thread: it sends it on, unless it blocks it by now */
    }
    EXPECT_EQ(sigqueue(getpid(), SIGTERM, (union sigval){.sival_int = 7}), 0);
    run_until_handled(sent + 1);
    end_unaware(threads); /* first: without a source, a signal that is still on its way to one of them would end the process */
    drop(source);
}

TEST(an_ignored_signal_reaches_its_source_and_is_ignored_after_it, "")
{
    pthread_t threads[unaware_count];
    CFRunLoopSourceRef source;
    struct sigaction ignoring = {.sa_handler = SIG_IGN};

    EXPECT_EQ(sigaction(SIGHUP, &ignoring, NULL), 0); /* as nohup does */
    start_unaware(threads);
    source = CRLSignalSourceCreate(NULL, SIGHUP, 0, count_signal, NULL);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    for (int i = 1; i <= 5; i++) {
        kill(getpid(), SIGHUP);
        run_until_handled(i);
    }
    drop(source);
    for (int i = 0; i < unaware_count; i++) {
        EXPECT_EQ(pthread_kill(threads[i], SIGHUP), 0);
    }
    end_unaware(threads);
}

TEST(without_a_source_a_signal_does_again_what_it_did, "")
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        CFRunLoopSourceRef source = CRLSignalSourceCreate(NULL, SIGUSR2, 0, count_signal, NULL);
        sigset_t set;

        CFRunLoopSourceInvalidate(source);
        CFRelease(source);
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        raise(SIGUSR2);
        _exit(3);
    }
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGUSR2);
}

static atomic_int own_calls;

static void own_handler(int number)
{
    (void)number;
    atomic_fetch_add(&own_calls, 1);
}

TEST(a_handler_of_the_programs_own_stays, "")
{
    pthread_t threads[unaware_count];
    struct sigaction own = {.sa_handler = own_handler};
    struct sigaction found;
    struct sigaction before;
    CFRunLoopSourceRef source;

    EXPECT_EQ(sigaction(SIGUSR2, &own, NULL), 0);
    start_unaware(threads);
    source = CRLSignalSourceCreate(NULL, SIGUSR2, 0, count_signal, NULL);
    EXPECT_EQ(sigaction(SIGUSR2, NULL, &found), 0);
    EXPECT(found.sa_handler == own_handler);
    EXPECT_EQ(pthread_kill(threads[0], SIGUSR2), 0);
    end_unaware(threads);
    EXPECT_EQ(atomic_load(&own_calls), 1);
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
    EXPECT_EQ(sigaction(SIGSEGV, NULL, &before), 0);
    source = CRLSignalSourceCreate(NULL, SIGSEGV, 0, count_signal, NULL); /* what a thread has done wrong stays its own */
    EXPECT_EQ(sigaction(SIGSEGV, NULL, &found), 0);
    EXPECT(found.sa_handler == before.sa_handler);
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
}

static int no_descriptor(int signal)
{
    (void)signal;
    return -EMFILE;
}

static int refusal; /* of process descriptors: by an old kernel, or a filter of calls */

static int no_process_descriptor(pid_t pid)
{
    (void)pid;
    return -refusal;
}

TEST(a_kernel_without_room_gives_no_signal_source, "F7")
{
    sigset_t blocked;

    kernel.signal_open = no_descriptor;
    EXPECT(CRLSignalSourceCreate(NULL, SIGUSR2, 0, got_signal, &counted) == NULL);
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    EXPECT(!sigismember(&blocked, SIGUSR2)); /* a call that fails changes nothing */
    EXPECT_EQ(retains + releases, 0);
}

TEST(a_signal_source_is_a_version_1_source, "91 92 184")
{
    CFRunLoopSourceRef source = add(CRLSignalSourceCreate(NULL, SIGUSR1, 5, got_signal, &counted));
    CFStringRef text = CFCopyDescription(source);

    EXPECT_EQ(CFRunLoopSourceGetOrder(source), 5);
    EXPECT(CFStringFind(text, CFSTR("watches the children"), 0).location != kCFNotFound);
    EXPECT(CFStringFind(text, CFSTR("version = 1"), 0).location != kCFNotFound);
    CFRelease(text);
    CFRunLoopSourceSignal(source); /* has no effect on it */
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    drop(source);
}

/* ---- children ---- */

/* A child that ends when `hold` is closed, or at once when it is NULL. */
static pid_t start_child(int status, int hold[2])
{
    pid_t pid;

    if (hold) {
        REQUIRE(pipe2(hold, O_CLOEXEC) == 0);
    }
    pid = fork();
    if (pid == 0) {
        char byte;

        if (hold) {
            close(hold[1]);
            (void)!read(hold[0], &byte, 1);
        }
        _exit(status);
    }
    REQUIRE(pid > 0);
    if (hold) {
        close(hold[0]);
    }
    return pid;
}

TEST(the_end_of_a_child_is_told_once_and_reaped, "")
{
    int hold[2];
    pid_t pid = start_child(7, hold);
    CFRunLoopSourceRef source = add(CRLChildSourceCreate(NULL, pid, 0, got_child, &counted));

    EXPECT_EQ(retains, 1);
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    close(hold[1]);
    EXPECT_EQ(wait_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("exit:7");
    EXPECT(!CFRunLoopSourceIsValid(source));
    EXPECT_EQ(look(), kCFRunLoopRunFinished);
    EXPECT_EQ(waitpid(pid, NULL, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
    EXPECT_EQ(releases, 0);
    CFRelease(source);
    EXPECT_EQ(releases, 1);
}

TEST(a_child_that_has_ended_already_counts, "")
{
    pid_t pid = start_child(3, NULL);
    siginfo_t info;
    CFRunLoopSourceRef source;

    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    source = add(CRLChildSourceCreate(NULL, pid, 0, got_child, NULL));
    EXPECT_EQ(look(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("exit:3");
    CFRelease(source);
}

TEST(a_killed_child_tells_its_signal, "")
{
    int hold[2];
    pid_t pid = start_child(0, hold);
    CFRunLoopSourceRef source = add(CRLChildSourceCreate(NULL, pid, 0, got_child, NULL));

    kill(pid, SIGKILL);
    EXPECT_EQ(wait_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("killed:KILL");
    CFRelease(source);
    close(hold[1]);
}

TEST(a_stopped_child_has_not_ended, "")
{
    int hold[2];
    pid_t pid = start_child(0, hold);
    CFRunLoopSourceRef source = add(CRLChildSourceCreate(NULL, pid, 0, got_child, NULL));
    siginfo_t info;

    kill(pid, SIGSTOP);
    waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT);
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    kill(pid, SIGCONT);
    close(hold[1]);
    EXPECT_EQ(wait_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("exit:0");
    CFRelease(source);
}

TEST(a_child_that_someone_else_has_reaped_gives_minus_1, "")
{
    int hold[2];
    pid_t pid = start_child(5, hold);
    CFRunLoopSourceRef source = add(CRLChildSourceCreate(NULL, pid, 0, got_child, NULL));

    close(hold[1]);
    EXPECT_EQ(waitpid(pid, NULL, 0), pid);
    EXPECT_EQ(wait_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("reaped");
    EXPECT(!CFRunLoopSourceIsValid(source));
    CFRelease(source);
}

static void runs_nested(CFRunLoopSourceRef source)
{
    (void)source;
    probe_note("nested:%s", probe_result_name(look()));
}

TEST(a_nested_run_in_a_child_callback_does_not_tell_it_again, "45")
{
    pid_t pid = start_child(1, NULL);
    CFRunLoopSourceRef source = add(CRLChildSourceCreate(NULL, pid, 0, got_child, NULL));

    action = runs_nested;
    EXPECT_EQ(wait_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("exit:1 nested:TO");
    CFRelease(source);
}

TEST(a_child_source_may_be_released_in_its_callback, "L17")
{
    pid_t pid = start_child(1, NULL);

    add(CRLChildSourceCreate(NULL, pid, 0, got_child, &counted));
    action = invalidates_it;
    wait_for_one();
    EXPECT_LOG("exit:1");
    EXPECT_EQ(releases, 1);
}

TEST(an_invalidated_child_source_leaves_the_child_to_the_program, "")
{
    pid_t pid = start_child(9, NULL);
    int status = 0;

    drop(add(CRLChildSourceCreate(NULL, pid, 0, got_child, &counted)));
    EXPECT_EQ(releases, 1);
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(WEXITSTATUS(status), 9);
    EXPECT_LOG("");
}

TEST(what_is_no_child_gives_no_source, "")
{
    pid_t pid = start_child(0, NULL);
    CRLSourceContext wrong = counted;

    wrong.version = 1;
    EXPECT(CRLChildSourceCreate(NULL, pid, 0, got_child, &wrong) == NULL);
    EXPECT(CRLChildSourceCreate(NULL, pid, 0, NULL, &counted) == NULL);
    waitpid(pid, NULL, 0);
    EXPECT(CRLChildSourceCreate(NULL, pid, 0, got_child, &counted) == NULL);
    EXPECT(CRLChildSourceCreate(NULL, getpid(), 0, got_child, &counted) == NULL);
    EXPECT(CRLChildSourceCreate(NULL, getppid(), 0, got_child, &counted) == NULL);
    EXPECT(CRLChildSourceCreate(NULL, 0, 0, got_child, &counted) == NULL);
    EXPECT(CRLChildSourceCreate(NULL, -1, 0, got_child, &counted) == NULL);
    EXPECT_EQ(retains + releases, 0);
}

static int no_room_for_process(pid_t pid)
{
    (void)pid;
    return -EMFILE;
}

TEST(a_kernel_without_room_gives_no_child_source, "F7")
{
    pid_t pid = start_child(0, NULL);

    kernel.process_open = no_room_for_process;
    EXPECT(CRLChildSourceCreate(NULL, pid, 0, got_child, &counted) == NULL);
    kernel.process_open = no_process_descriptor;
    kernel.process_await = no_room_for_process;
    refusal = ENOSYS;
    EXPECT(CRLChildSourceCreate(NULL, pid, 0, got_child, &counted) == NULL);
    EXPECT_EQ(retains + releases, 0);
    EXPECT_EQ(waitpid(pid, NULL, 0), pid);
}

static int ended;

static void counts_child(CFRunLoopSourceRef source, pid_t pid, int status, void *info)
{
    (void)source, (void)pid, (void)info;
    EXPECT(WIFEXITED(status));
    ended += WEXITSTATUS(status);
}

TEST(many_children_are_all_told_of, "102")
{
    enum { count = 50 };
    CFRunLoopSourceRef sources[count];

    for (int i = 0; i < count; i++) {
        sources[i] = CRLChildSourceCreate(NULL, start_child(i, NULL), 0, counts_child, NULL);
        CFRunLoopAddSource(LOOP, sources[i], MODE);
    }
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), false), kCFRunLoopRunFinished); /* each source goes when its child does */
    EXPECT_EQ(ended, count * (count - 1) / 2);
    for (int i = 0; i < count; i++) {
        CFRelease(sources[i]);
    }
}

/* ---- children without process descriptors ---- */

/* What happens to a child, and what its source then tells: the same as with process descriptors. */
static void expect_told_by_thread(void)
{
    int hold[2];
    siginfo_t info;
    pid_t pid = start_child(7, hold);
    CFRunLoopSourceRef source;

    kernel.process_open = no_process_descriptor;
    source = add(CRLChildSourceCreate(NULL, pid, 0, got_child, &counted));
    kill(pid, SIGSTOP);
    waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT);
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    kill(pid, SIGCONT);
    close(hold[1]);
    EXPECT_EQ(wait_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("exit:7");
    EXPECT_EQ(waitpid(pid, NULL, WNOHANG), -1);
    EXPECT_EQ(look(), kCFRunLoopRunFinished);
    CFRelease(source);

    pid = start_child(3, NULL);
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    source = add(CRLChildSourceCreate(NULL, pid, 0, got_child, NULL));
    EXPECT_EQ(wait_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("exit:3");
    CFRelease(source);

    pid = start_child(5, hold);
    source = add(CRLChildSourceCreate(NULL, pid, 0, got_child, NULL));
    close(hold[1]);
    EXPECT_EQ(waitpid(pid, NULL, 0), pid);
    EXPECT_EQ(wait_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("reaped");
    CFRelease(source);
}

TEST(without_process_descriptors_a_thread_tells_the_end_of_a_child, "")
{
    struct sigaction own = {.sa_handler = own_handler}; /* a handler of the program's own is not in the way */

    EXPECT_EQ(sigaction(SIGCHLD, &own, NULL), 0);
    refusal = ENOSYS;
    expect_told_by_thread();
    refusal = EPERM;
    expect_told_by_thread();
}

static int count_descriptors(void)
{
    int count = 0;

    for (int i = 0; i < 256; i++) {
        count += fcntl(i, F_GETFD) >= 0;
    }
    return count;
}

TEST(without_process_descriptors_an_invalidated_source_leaves_the_child_and_nothing_else, "")
{
    enum { count = 20 };
    int descriptors = count_descriptors();
    int status = 0;
    int hold[2];
    pid_t pid = start_child(9, hold);

    kernel.process_open = no_process_descriptor;
    refusal = ENOSYS;
    for (int i = 0; i < count; i++) {
        drop(add(CRLChildSourceCreate(NULL, pid, 0, got_child, &counted)));
    }
    EXPECT_EQ(releases, count);
    close(hold[1]);
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(WEXITSTATUS(status), 9);
    while (count_descriptors() > descriptors) {
        sched_yield(); /* each thread closes its end of the pipe, though nobody reads it any more */
    }
    EXPECT_LOG("");
}
