/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each entry of the kernel table, as Linux fills it: values, negative errors, errno left alone. Calls of sockets are
 * in test_kernel_sockets.c.
 * Deadlines are absolute, so that tests use ones in the past or a moment away and never sleep for long.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Support/barrier.h"
#include "Support/lock.h"
#include "harness.h"
#include "older_glibc.h"

enum { closed_number = 987 }; /* of no descriptor */

static const int64_t second_ns = 1000000000;

/* Every entry keeps errno: the tests set it to this and look at the end. */
enum { untouched = 12345 };
#define BEGIN() (errno = untouched)
#define EXPECT_ERRNO_KEPT() EXPECT_EQ(errno, untouched)

static int64_t clock_now(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * second_ns + now.tv_nsec;
}

TEST(clocks_are_those_of_the_system, "110 143")
{
    int64_t before = clock_now(CLOCK_MONOTONIC);
    int64_t now = kernel.monotonic_ns();

    EXPECT(before <= now && now <= clock_now(CLOCK_MONOTONIC));
    before = clock_now(CLOCK_REALTIME);
    now = kernel.wall_ns();
    EXPECT(before <= now && now <= clock_now(CLOCK_REALTIME));
}

TEST(clocks_of_ticks_are_as_far_apart_as_the_clocks, "110 134")
{
    enum { readings = 1000 };
    int64_t least = INT64_MAX;
    int64_t most = INT64_MIN;

    for (int i = 0; i < readings; i++) {
        int64_t wall;
        int64_t tick = kernel.tick_ns(&wall);
        int64_t before = clock_now(CLOCK_MONOTONIC);
        int64_t real = clock_now(CLOCK_REALTIME);
        int64_t after = clock_now(CLOCK_MONOTONIC);
        int64_t unused;

        EXPECT(tick <= before);
        if (kernel.tick_ns(&unused) == tick) { /* no tick, and no step, came meanwhile */
            EXPECT(real - after <= wall - tick && wall - tick <= real - before);
            least = wall - tick < least ? wall - tick : least;
            most = wall - tick > most ? wall - tick : most;
        }
    }
    EXPECT_EQ(least, most);
}

TEST(timer_slack_is_the_threads, "114")
{
    BEGIN();
    prctl(PR_SET_TIMERSLACK, 123456ul);
    EXPECT_EQ(kernel.timer_slack_ns(), 123456);
    prctl(PR_SET_TIMERSLACK, 1ul);
    EXPECT_EQ(kernel.timer_slack_ns(), 1);
    EXPECT_ERRNO_KEPT();
}

TEST(a_niced_thread_is_known, "114")
{
    BEGIN();
    if (getpriority(PRIO_PROCESS, 0) > 0) {
        SKIP("the tests are niced themselves");
    }
    EXPECT(!kernel.is_niced());
    EXPECT_EQ(setpriority(PRIO_PROCESS, 0, 3), 0);
    EXPECT(kernel.is_niced());
    EXPECT_ERRNO_KEPT();
}

TEST(a_thread_of_real_time_has_no_timer_slack, "114")
{
    const int policies[] = {SCHED_FIFO, SCHED_RR, SCHED_FIFO | SCHED_RESET_ON_FORK};
    struct sched_param priority = {.sched_priority = 1};

    BEGIN();
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        if (sched_setscheduler(0, policies[i], &priority) < 0) {
            SKIP("needs the right to a real-time policy");
        }
        EXPECT_EQ(kernel.timer_slack_ns(), 0);
    }
    EXPECT_ERRNO_KEPT();
}

TEST(a_futex_waits_for_its_word_or_its_deadline, "41 61")
{
    _Atomic uint32_t word = 7;
    int64_t deadline;

    BEGIN();
    EXPECT_EQ(kernel.futex_wait(&word, 8, kernel_never), -EAGAIN);
    EXPECT_EQ(kernel.futex_wait(&word, 7, kernel.monotonic_ns() - second_ns), -ETIMEDOUT);
    EXPECT_EQ(kernel.futex_wait(&word, 7, -1), -ETIMEDOUT);
    deadline = kernel.monotonic_ns() + 2000000;
    EXPECT_EQ(kernel.futex_wait(&word, 7, deadline), -ETIMEDOUT);
    EXPECT(kernel.monotonic_ns() >= deadline);
    EXPECT_EQ(kernel.futex_wake(&word), 0); /* nobody sleeps */
    EXPECT_ERRNO_KEPT();
}

static _Atomic uint32_t shared_word;

static void *changes_and_wakes(void *context)
{
    (void)context;
    shared_word = 1;
    kernel.futex_wake(&shared_word);
    return NULL;
}

TEST(a_futex_is_woken, "61")
{
    pthread_t thread;

    pthread_create(&thread, NULL, changes_and_wakes, NULL);
    while (shared_word == 0) {
        int result = kernel.futex_wait(&shared_word, 0, kernel_never);

        EXPECT(result == 0 || result == -EAGAIN || result == -EINTR);
    }
    pthread_join(thread, NULL);
}

TEST(an_event_is_posted_and_drained, "61 100 L10")
{
    int event;
    uint64_t most = UINT64_MAX - 1;

    BEGIN();
    event = kernel.event_create();
    REQUIRE(event >= 0);
    EXPECT(fcntl(event, F_GETFD) & FD_CLOEXEC);
    EXPECT(fcntl(event, F_GETFL) & O_NONBLOCK);
    EXPECT_EQ(kernel.descriptor_ready(event, kernel_readable), 0);
    EXPECT_EQ(kernel.event_post(event), 0);
    EXPECT_EQ(kernel.event_post(event), 0);
    EXPECT_EQ(kernel.descriptor_ready(event, kernel_readable), kernel_readable);
    kernel.counter_drain(event);
    EXPECT_EQ(kernel.descriptor_ready(event, kernel_readable), 0);
    kernel.counter_drain(event); /* nothing is there: does not block */
    EXPECT_EQ(write(event, &most, sizeof most), sizeof most);
    EXPECT_EQ(kernel.event_post(event), 0); /* saturated: readable already */
    EXPECT_EQ(kernel.close(event), 0);
    EXPECT_EQ(kernel.event_post(event), -EBADF);
    EXPECT_EQ(kernel.close(event), -EBADF);
    EXPECT_ERRNO_KEPT();
}

/* A timer whose date has passed is readable when its interrupt has come, which an emulated machine may put off. */
static void expect_due(int timer)
{
    struct pollfd entry = {.fd = timer, .events = POLLIN};

    EXPECT_EQ(poll(&entry, 1, (int)(test_patience_s() * 1000)), 1);
}

static void expect_drains(void)
{
    int event = eventfd(5, EFD_CLOEXEC); /* blocking */
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

    BEGIN();
    EXPECT_EQ(kernel.counter_drain(event), 0);
    EXPECT_EQ(kernel.descriptor_ready(event, kernel_readable), 0);
    EXPECT_EQ(kernel.counter_drain(event), -EAGAIN);
    EXPECT_EQ(kernel.counter_drain(timer), -EAGAIN);
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &(struct itimerspec){.it_value = {0, 1}}, NULL);
    expect_due(timer);
    EXPECT_EQ(kernel.counter_drain(timer), 0);
    EXPECT_EQ(kernel.counter_drain(timer), -EAGAIN);
    EXPECT_EQ(kernel.counter_drain(closed_number), -EBADF);
    EXPECT_ERRNO_KEPT();
    close(event);
    close(timer);
}

TEST(a_blocking_counter_is_drained_without_blocking, "99 F14")
{
    expect_drains();
}

TEST(an_alarm_is_due_when_it_should_be, "T14")
{
    int alarm;

    BEGIN();
    alarm = kernel.alarm_create();
    REQUIRE(alarm >= 0);
    EXPECT(fcntl(alarm, F_GETFD) & FD_CLOEXEC);
    EXPECT_EQ(kernel.alarm_set(alarm, kernel.monotonic_ns() + 1000 * second_ns), 0);
    EXPECT_EQ(kernel.descriptor_ready(alarm, kernel_readable), 0);
    static const int64_t past[] = {0, 1, -1, INT64_MIN};
    for (size_t i = 0; i < sizeof past / sizeof past[0]; i++) {
        EXPECT_EQ(kernel.alarm_set(alarm, past[i]), 0);
        expect_due(alarm);
        EXPECT_EQ(kernel.descriptor_ready(alarm, kernel_readable), kernel_readable);
        EXPECT_EQ(kernel.alarm_set(alarm, kernel_never), 0);
        EXPECT_EQ(kernel.descriptor_ready(alarm, kernel_readable), 0);
    }
    EXPECT_EQ(kernel.alarm_set(alarm, kernel_never - 1), 0); /* the farthest */
    EXPECT_EQ(kernel.descriptor_ready(alarm, kernel_readable), 0);
    EXPECT_EQ(kernel.alarm_set(closed_number, 1), -EBADF);
    EXPECT_EQ(kernel.close(alarm), 0);
    EXPECT_ERRNO_KEPT();
}

TEST(an_alarm_is_told_from_other_timers, "F16")
{
    const struct itimerspec in_an_hour = {{1, 0}, {3600, 0}};
    int alarm;
    int timer;
    int counter;

    BEGIN();
    alarm = kernel.alarm_create();
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    counter = kernel.event_create();
    EXPECT(kernel.alarm_is_own(alarm));
    EXPECT_EQ(kernel.alarm_set(alarm, kernel.monotonic_ns() + 1000 * second_ns), 0);
    EXPECT(kernel.alarm_is_own(alarm));
    EXPECT_EQ(kernel.alarm_set(alarm, 1), 0);
    EXPECT(kernel.alarm_is_own(alarm)); /* though it has gone off */
    EXPECT_EQ(kernel.alarm_set(alarm, kernel_never), 0);
    EXPECT(kernel.alarm_is_own(alarm));
    EXPECT(!kernel.alarm_is_own(timer));
    EXPECT_EQ(timerfd_settime(timer, 0, &in_an_hour, NULL), 0);
    EXPECT(!kernel.alarm_is_own(timer));
    EXPECT(!kernel.alarm_is_own(counter));
    EXPECT(!kernel.alarm_is_own(closed_number));
    EXPECT_ERRNO_KEPT();
    close(alarm);
    close(timer);
    close(counter);
}

/* One report of a poll of the set. */
static int poll_set(int set, struct kernel_event *ret_event)
{
    memset(ret_event, 0xff, sizeof *ret_event);
    return kernel.set_wait(set, ret_event, 1, 0);
}

TEST(a_wait_set_reports_what_is_asked_for, "102 103")
{
    struct kernel_event event;
    int ends[2];
    int set;

    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    BEGIN();
    set = kernel.set_create();
    REQUIRE(set >= 0);
    EXPECT(fcntl(set, F_GETFD) & FD_CLOEXEC);
    EXPECT_EQ(poll_set(set, &event), 0);
    EXPECT_EQ(kernel.set_add(set, ends[0], kernel_readable, 0x100000001), 0);
    EXPECT_EQ(kernel.set_add(set, ends[0], kernel_readable, 2), -EEXIST);
    EXPECT_EQ(kernel.set_add(set, closed_number, kernel_readable, 2), -EBADF);
    EXPECT_EQ(poll_set(set, &event), 0);
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_EQ(poll_set(set, &event), 1);
    EXPECT_EQ(event.token, 0x100000001);
    EXPECT_EQ(event.ready, kernel_readable);
    EXPECT_EQ(poll_set(set, &event), 1); /* level-triggered */
    EXPECT_EQ(kernel.set_add(set, ends[1], kernel_readable | kernel_writable, 3), 0);
    EXPECT_EQ(kernel.set_change(set, ends[0], 0, 4), 0);
    EXPECT_EQ(poll_set(set, &event), 1);
    EXPECT_EQ(event.token, 3);
    EXPECT_EQ(event.ready, kernel_writable);
    EXPECT_EQ(kernel.set_remove(set, ends[1]), 0);
    EXPECT_EQ(kernel.set_remove(set, ends[1]), -ENOENT);
    EXPECT_EQ(kernel.set_change(set, ends[1], kernel_writable, 3), -ENOENT);
    EXPECT_EQ(poll_set(set, &event), 0);
    close(ends[1]);
    errno = untouched;
    EXPECT_EQ(poll_set(set, &event), 1); /* a hang-up is reported whatever was asked for */
    EXPECT_EQ(event.token, 4);
    EXPECT(event.ready & kernel_failed);
    EXPECT(!(event.ready & (kernel_readable | kernel_writable)));
    EXPECT_EQ(kernel.close(set), 0);
    EXPECT_EQ(kernel.set_wait(set, &event, 1, 0), -EBADF);
    EXPECT_ERRNO_KEPT();
    close(ends[0]);
}

TEST(a_set_knows_what_is_in_it, "F16")
{
    struct kernel_event event;
    int set = kernel.set_create();
    int other = kernel.set_create();
    int counter = kernel.event_create();
    int file = memfd_create("x", MFD_CLOEXEC);

    BEGIN();
    EXPECT(!kernel.set_holds(set, counter));
    EXPECT_EQ(kernel.set_add_edge(set, counter, 1), 0);
    EXPECT_EQ(kernel.event_post(counter), 0);
    EXPECT(kernel.set_holds(set, counter));
    EXPECT_EQ(poll_set(set, &event), 1);
    EXPECT_EQ(event.token, 1);
    EXPECT_EQ(poll_set(set, &event), 0); /* still an edge */
    EXPECT(!kernel.set_holds(other, counter));
    EXPECT_EQ(poll_set(other, &event), 0);
    EXPECT(!kernel.set_holds(set, file));
    EXPECT(!kernel.set_holds(set, set));
    EXPECT(!kernel.set_holds(counter, counter));
    EXPECT(!kernel.set_holds(closed_number, counter));
    EXPECT(!kernel.set_holds(set, closed_number));
    EXPECT_ERRNO_KEPT();
    close(set);
    close(other);
    close(counter);
    close(file);
}

TEST(a_wait_set_refuses_files, "285 F3")
{
    struct kernel_event event;
    int set = kernel.set_create();
    int file = memfd_create("x", MFD_CLOEXEC);

    BEGIN();
    EXPECT_EQ(kernel.set_add(set, file, kernel_readable, 1), -EPERM);
    EXPECT_EQ(kernel.set_add(set, set, kernel_readable, 1), -EINVAL);
    EXPECT_EQ(poll_set(set, &event), 0);
    EXPECT_ERRNO_KEPT();
    close(file);
    close(set);
}

TEST(an_edge_is_reported_once, "61")
{
    struct kernel_event event;
    int set = kernel.set_create();
    int own = kernel.event_create();

    EXPECT_EQ(kernel.set_add_edge(set, own, 9), 0);
    kernel.event_post(own);
    EXPECT_EQ(poll_set(set, &event), 1);
    EXPECT_EQ(event.token, 9);
    EXPECT_EQ(poll_set(set, &event), 0); /* nobody has read it, and nobody needs to */
    kernel.event_post(own);
    EXPECT_EQ(poll_set(set, &event), 1);
    close(own);
    close(set);
}

TEST(many_reports_come_at_once, "102")
{
    enum { count = 300, capacity = 300 };
    static struct kernel_event reports[capacity];
    int events[count];
    int set;
    int first;

    test_need_descriptors(count + 100);
    set = kernel.set_create();
    for (int i = 0; i < count; i++) {
        events[i] = eventfd(1, EFD_CLOEXEC);
        EXPECT_EQ(kernel.set_add(set, events[i], kernel_readable, (uint64_t)i), 0);
    }
    first = kernel.set_wait(set, reports, capacity, 0);
    EXPECT(first >= 64 && first <= capacity); /* as many as there is room for inside */
    EXPECT_EQ(kernel.set_wait(set, reports, 10, 0), 10);
    for (int i = 0; i < count; i++) {
        close(events[i]);
    }
    close(set);
}

/* The waits of both ways of asking the kernel: nanoseconds, and milliseconds for kernels that have not the call. */
static void expect_waits(void)
{
    struct kernel_event event;
    int set = kernel.set_create();
    int own = kernel.event_create();
    int64_t start = kernel.monotonic_ns();

    EXPECT_EQ(kernel.set_add(set, own, kernel_readable, 1), 0);
    EXPECT_EQ(kernel.set_wait(set, &event, 1, 0), 0);
    EXPECT_EQ(kernel.set_wait(set, &event, 1, -5), 0);
    EXPECT_EQ(kernel.set_wait(set, &event, 1, start - second_ns), 0);
    for (int64_t wait_ns = 1; wait_ns < 4000000; wait_ns = wait_ns * 10 + 1) {
        int64_t deadline = kernel.monotonic_ns() + wait_ns;

        EXPECT_EQ(kernel.set_wait(set, &event, 1, deadline), 0);
        EXPECT(kernel.monotonic_ns() >= deadline); /* never early, whatever the unit (T8) */
    }
    kernel.event_post(own);
    EXPECT_EQ(kernel.set_wait(set, &event, 1, kernel_never), 1);
    EXPECT_EQ(kernel.set_wait(set, &event, 1, kernel_never - 1), 1);
    EXPECT_EQ(kernel.set_wait(set, &event, 1, start + 100 * 86400 * second_ns), 1);
    close(own);
    close(set);
}

TEST(waits_end_at_their_deadline, "41 114 143 T8")
{
    expect_waits();
}

/* From here on the kernel answers the call with `error`; cannot be taken back, so in a child. */
static bool forbid(long call, int error)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = 4, .filter = program};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(waits_work_without_nanoseconds, "143 T8")
{
    if (!forbid(441, ENOSYS)) { /* epoll_pwait2 */
        SKIP("system calls cannot be filtered here");
    }
    expect_waits();
    expect_waits();
}

TEST(counters_are_drained_without_the_newest_call, "99")
{
    if (!forbid(SYS_preadv2, EOPNOTSUPP)) {
        SKIP("system calls cannot be filtered here");
    }
    expect_drains();
}

TEST(waits_work_where_nanoseconds_are_forbidden, "143 T8")
{
    if (!forbid(441, EPERM)) { /* as some containers answer calls that they do not know */
        SKIP("system calls cannot be filtered here");
    }
    expect_waits();
}

static void on_signal(int number)
{
    (void)number;
}

TEST(an_interrupted_wait_says_so, "44 F12")
{
    struct kernel_event event;
    struct sigaction action = {.sa_handler = on_signal};
    struct itimerval every = {.it_interval = {0, 1000}, .it_value = {0, 1000}};
    int set = kernel.set_create();
    _Atomic uint32_t word = 0;

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    BEGIN();
    EXPECT_EQ(kernel.set_wait(set, &event, 1, kernel_never), -EINTR);
    EXPECT_EQ(kernel.futex_wait(&word, 0, kernel_never), -EINTR);
    EXPECT_ERRNO_KEPT();
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 0}}, NULL);
    close(set);
}

TEST(a_descriptors_readiness_can_be_asked_for, "106 F13")
{
    int ends[2];

    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    BEGIN();
    EXPECT_EQ(kernel.descriptor_ready(ends[0], kernel_readable), 0);
    EXPECT_EQ(kernel.descriptor_ready(ends[1], kernel_readable | kernel_writable), kernel_writable);
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_EQ(kernel.descriptor_ready(ends[0], kernel_readable | kernel_writable), kernel_readable);
    EXPECT_EQ(kernel.descriptor_ready(ends[0], 0), 0);
    close(ends[1]);
    EXPECT_EQ(kernel.descriptor_ready(ends[0], kernel_readable) & (kernel_readable | kernel_failed), kernel_readable | kernel_failed);
    EXPECT_EQ(kernel.descriptor_ready(closed_number, kernel_readable) & (kernel_readable | kernel_failed), kernel_failed);
    EXPECT(kernel.descriptor_is_open(ends[0]));
    EXPECT(!kernel.descriptor_is_open(closed_number));
    EXPECT(!kernel.descriptor_is_open(-1));
    EXPECT_ERRNO_KEPT();
    close(ends[0]);
}

TEST(counters_are_told_from_other_descriptors, "99")
{
    int ends[2];
    int event = eventfd(0, EFD_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    int file = memfd_create("anon_inode:[eventfd]", MFD_CLOEXEC);

    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    BEGIN();
    EXPECT_EQ(kernel.descriptor_kind(event), kernel_descriptor_counter);
    EXPECT_EQ(kernel.descriptor_kind(timer), kernel_descriptor_counter);
    EXPECT_EQ(kernel.descriptor_kind(ends[0]), kernel_descriptor_other);
    EXPECT_EQ(kernel.descriptor_kind(file), kernel_descriptor_other);
    EXPECT_EQ(kernel.descriptor_kind(closed_number), kernel_descriptor_other);
    EXPECT_ERRNO_KEPT();
    close(event);
    close(timer);
    close(file);
    close(ends[0]);
    close(ends[1]);
}

TEST(signals_are_opened_blocked_and_taken, "")
{
    struct signalfd_siginfo info;
    int descriptor;

    BEGIN();
    EXPECT_EQ(kernel.signal_open(0), -EINVAL);
    EXPECT_EQ(kernel.signal_open(1000), -EINVAL);
    EXPECT_EQ(kernel.signal_block(1000), -EINVAL);
    descriptor = kernel.signal_open(SIGUSR1);
    REQUIRE(descriptor >= 0);
    EXPECT(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    EXPECT_EQ(kernel.signal_block(SIGUSR1), 0);
    EXPECT_EQ(kernel.signal_take(descriptor, &info), -EAGAIN);
    raise(SIGUSR1);
    EXPECT_EQ(kernel.signal_take(descriptor, &info), 0);
    EXPECT_EQ(info.ssi_signo, SIGUSR1);
    EXPECT_EQ(kernel.signal_take(descriptor, &info), -EAGAIN);
    EXPECT_EQ(kernel.signal_take(closed_number, &info), -EBADF);
    EXPECT_ERRNO_KEPT();
    close(descriptor);
}

TEST(processes_are_opened_and_reaped, "")
{
    int status = 0;
    int hold[2];
    pid_t child;
    int descriptor;

    REQUIRE(pipe2(hold, O_CLOEXEC) == 0);
    child = fork();
    if (child == 0) {
        char byte;

        close(hold[1]);
        (void)!read(hold[0], &byte, 1);
        _exit(3);
    }
    BEGIN();
    EXPECT(kernel.process_is_child(child));
    EXPECT(!kernel.process_is_child(getpid()));
    EXPECT(!kernel.process_is_child(0));
    EXPECT(!kernel.process_is_child(-1));
    descriptor = kernel.process_open(child);
    if (descriptor < 0) {
        SKIP("no process descriptors here");
    }
    EXPECT(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    EXPECT_EQ(kernel.process_reap(child, &status), 0);
    EXPECT_EQ(kernel.descriptor_ready(descriptor, kernel_readable), 0);
    close(hold[1]);
    errno = untouched;
    while (kernel.descriptor_ready(descriptor, kernel_readable) == 0) {
        kernel.yield();
    }
    EXPECT(kernel.process_is_child(child)); /* asking reaps nobody */
    EXPECT_EQ(kernel.process_reap(child, &status), 1);
    EXPECT_EQ(WEXITSTATUS(status), 3);
    EXPECT_EQ(kernel.process_reap(child, &status), -ECHILD);
    EXPECT(!kernel.process_is_child(child));
    EXPECT_ERRNO_KEPT();
    close(descriptor);
    close(hold[0]);
}

/* From here on the kernel has no advice for the memory that begins at `start`; NULL: for none. */
static bool forbid_advice(const void *start)
{
    uint32_t low = (uint32_t)(uintptr_t)start;
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof low : 0)),
        BPF_JUMP(start ? BPF_JMP | BPF_JEQ | BPF_K : BPF_JMP | BPF_JGE | BPF_K, low, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof program / sizeof program[0], .filter = program};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static void expect_child_to_find(pid_t (*fork_function)(void), const _Atomic uint32_t *word, uint32_t value)
{
    int status = 0;
    pid_t child = fork_function();

    if (child == 0) {
        _exit(*word == value ? 0 : 1);
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool is_among_the_locks(const _Atomic uint32_t *word)
{
    return (uintptr_t)word - (uintptr_t)item_locks() < item_locks_bytes;
}

static void expect_mark(_Atomic uint32_t *word)
{
    EXPECT(kernel.fork_mark() == word);
    EXPECT(*word == 0);
    *word = 3;
    expect_child_to_find(fork, word, 0);
    expect_child_to_find(fork_without_handlers, word, 0);
    EXPECT(*word == 3);
}

TEST(a_fork_mark_is_wiped_in_a_child_and_has_no_page_of_its_own, "176 P1")
{
    _Atomic uint32_t *word;

    BEGIN();
    word = kernel.fork_mark();
    EXPECT_ERRNO_KEPT();
    if (!word) {
        SKIP("this kernel wipes nothing");
    }
    EXPECT_EQ(is_among_the_locks(word), sysconf(_SC_PAGESIZE) == item_locks_bytes);
    EXPECT((uintptr_t)word % (uintptr_t)sysconf(_SC_PAGESIZE) < cache_line);
    expect_mark(word);
}

/* As where a loader has put the program's variables into memory of another kind. */
TEST(a_fork_mark_has_its_own_page_where_that_of_the_locks_cannot_be_wiped, "176 P1")
{
    _Atomic uint32_t *word;

    if (!forbid_advice(item_locks())) {
        SKIP("system calls cannot be filtered here");
    }
    BEGIN();
    word = kernel.fork_mark();
    EXPECT_ERRNO_KEPT();
    if (!word) {
        SKIP("this kernel wipes nothing");
    }
    EXPECT(!is_among_the_locks(word));
    expect_mark(word);
}

TEST(a_kernel_that_wipes_nothing_gives_no_fork_mark, "176")
{
    if (!forbid_advice(NULL)) {
        SKIP("system calls cannot be filtered here");
    }
    BEGIN();
    EXPECT(!kernel.fork_mark());
    EXPECT_ERRNO_KEPT();
}

TEST(threads_pass_a_fence_where_that_is_allowed, "")
{
    BEGIN();
    EXPECT_EQ(kernel.fence_threads(), barrier_enable_everywhere() ? 0 : -EPERM);
    EXPECT_ERRNO_KEPT();
}

static bool was_main_thread;

static void *asks_whether_it_is_main(void *context)
{
    (void)context;
    was_main_thread = kernel.is_main_thread();
    return NULL;
}

TEST(the_main_thread_is_the_processes_first, "3")
{
    pthread_t thread;

    EXPECT(kernel.is_main_thread());
    was_main_thread = true;
    pthread_create(&thread, NULL, asks_whether_it_is_main, NULL);
    pthread_join(thread, NULL);
    EXPECT(!was_main_thread);
}

static void *asks_where_it_stands(void *outer)
{
    int here = 0;

    EXPECT(kernel.is_on_stack((uintptr_t)&here));
    EXPECT(!kernel.is_on_stack((uintptr_t)outer));
    return NULL;
}

TEST(a_thread_knows_its_stack, "")
{
    static int elsewhere;
    int here = 0;
    pthread_t thread;

    if (!test_is_instrumented()) { /* which may have variables stand elsewhere */
        EXPECT(kernel.is_on_stack((uintptr_t)&here));
        EXPECT(!kernel.is_on_stack((uintptr_t)&elsewhere));
        pthread_create(&thread, NULL, asks_where_it_stands, &here);
        pthread_join(thread, NULL);
    }
}

TEST(descriptors_that_run_out_are_an_error_number, "F7")
{
    struct rlimit rich;
    struct rlimit poor;
    int lowest = fcntl(0, F_DUPFD_CLOEXEC, 0);

    close(lowest);
    getrlimit(RLIMIT_NOFILE, &rich);
    poor = rich;
    poor.rlim_cur = (rlim_t)lowest;
    setrlimit(RLIMIT_NOFILE, &poor);
    BEGIN();
    EXPECT_EQ(kernel.event_create(), -EMFILE);
    EXPECT_EQ(kernel.alarm_create(), -EMFILE);
    EXPECT_EQ(kernel.set_create(), -EMFILE);
    EXPECT_EQ(kernel.signal_open(SIGUSR1), -EMFILE);
    int process = kernel.process_open(getpid());
    EXPECT(process == -EMFILE || process == -ENOSYS);
    EXPECT_ERRNO_KEPT();
    setrlimit(RLIMIT_NOFILE, &rich);
}

TEST(no_entry_of_the_table_is_missing, "")
{
    /* Function pointers are as large as words here, and the table holds nothing else. */
    _Static_assert(sizeof kernel_linux % sizeof(void *) == 0, "a table of pointers");
    const unsigned char *bytes = (const unsigned char *)&kernel_linux;
    void *entry;

    for (size_t i = 0; i < sizeof kernel_linux / sizeof entry; i++) {
        memcpy(&entry, bytes + i * sizeof entry, sizeof entry);
        EXPECT(entry != NULL);
    }
    EXPECT(memcmp(&kernel, &kernel_linux, sizeof kernel) == 0);
}

TEST(paths_that_are_too_long_for_an_address_are_refused, "M16")
{
    char path[200];
    int socket = kernel_ports_linux.datagram_create(false);

    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    EXPECT_EQ(kernel_ports_linux.datagram_bind(socket, path), -ENAMETOOLONG);
    EXPECT_EQ(kernel_ports_linux.datagram_connect(socket, path), -ENAMETOOLONG);
    close(socket);
}

/* Has enough after three. */
static bool count_entry(void *info, const char *leaf)
{
    (void)leaf;
    return ++*(int *)info < 3;
}

TEST(only_directories_are_listed, "")
{
    int file = open("/dev/null", O_RDONLY);
    int count = 0;

    EXPECT_EQ(kernel_ports_linux.directory_list(file, count_entry, &count), -ENOTDIR);
    EXPECT_EQ(kernel_ports_linux.directory_list(-1, count_entry, &count), -EBADF);
    EXPECT_EQ(count, 0);
    close(file);
    file = open("/proc/self", O_RDONLY | O_DIRECTORY);
    EXPECT_EQ(kernel_ports_linux.directory_list(file, count_entry, &count), 0);
    EXPECT_EQ(count, 3); /* it has more */
    close(file);
}

static atomic_bool has_begun;
static sigset_t mask;

static void *begin(void *info)
{
    (void)info;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    atomic_store(&has_begun, true);
    return NULL;
}

TEST(a_thread_of_the_library_takes_no_signal_of_the_program, "706")
{
    sigset_t before;
    sigset_t after;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    EXPECT_EQ(kernel.thread_start(begin, "name"), 0);
    while (!atomic_load(&has_begun)) {
        sched_yield();
    }
    EXPECT_EQ(sigismember(&mask, SIGTERM), 1);
    EXPECT_EQ(sigismember(&mask, SIGRTMAX), 1);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    EXPECT_EQ(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

static void *end_at_once(void *info)
{
    (void)info;
    return NULL;
}

/* It is named after it was made, and may have ended before. */
TEST(a_thread_of_the_library_may_end_at_once, "706")
{
    for (int i = 0; i < 300; i++) {
        EXPECT_EQ(kernel.thread_start(end_at_once, "name"), 0);
    }
}

/* ---- sockets that receive no more ---- */

static bool pass_one(int socket, int passed)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct msghdr message = {.msg_control = &control, .msg_controllen = sizeof control};

    memcpy(CMSG_DATA(&control.header), &passed, sizeof passed);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 0;
}

TEST(a_socket_can_refuse_descriptors, "241 H31")
{
    int ends[2];
    int result;

    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    result = kernel_ports.refuse_descriptors(ends[0]);
    EXPECT(result == 0 || result == -ENOPROTOOPT);
    EXPECT_EQ(pass_one(ends[1], ends[1]), result != 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

TEST(a_socket_that_receives_no_more_says_whether_something_is_queued, "H30")
{
    static const int kinds[] = {SOCK_SEQPACKET, SOCK_DGRAM};
    int ends[2];

    for (int i = 0; i < 8; i++) {
        bool is_channel = kinds[i % 2] == SOCK_SEQPACKET;
        bool has_packet = i & 2;
        bool peer_is_gone = i & 4;

        REQUIRE(socketpair(AF_UNIX, kinds[i % 2] | SOCK_CLOEXEC, 0, ends) == 0);
        EXPECT(!has_packet || pass_one(ends[1], ends[1])); /* without a byte of its own, as the end of a channel looks */
        if (peer_is_gone) {
            EXPECT(!is_channel || pass_one(ends[0], ends[0])); /* unread: the channel's other end finds an error first */
            (void)close(ends[1]);
        }
        EXPECT_EQ(kernel_ports.stop_receiving(ends[0]), !has_packet);
        if (!peer_is_gone) {
            EXPECT(send(ends[1], "x", 1, MSG_NOSIGNAL) < 0);
            (void)close(ends[1]);
        }
        (void)close(ends[0]);
    }
    EXPECT(!kernel_ports.stop_receiving(-1));
    REQUIRE(pipe(ends) == 0);
    EXPECT(kernel_ports.stop_receiving(ends[0])); /* has no queue of packets */
    (void)close(ends[0]);
    (void)close(ends[1]);
}
