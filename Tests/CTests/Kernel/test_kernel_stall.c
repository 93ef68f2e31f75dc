/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of stalls: the signal, the alarm of a thread, the backtrace in its handler, and the thread that tells. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "Kernel/Trace/kernel_stall.h"
#include "harness.h"

static _Atomic(void *) received;
static _Atomic int receiver;
static const void *frames[64];
static _Atomic int frame_count;

static void handle(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    atomic_store(&frame_count, kernel_stall.backtrace(context, frames, 64));
    atomic_store(&receiver, (int)syscall(SYS_gettid));
    atomic_store(&received, info->si_value.sival_ptr);
}

static __attribute__((noinline)) void spin_until_received(const void *value)
{
    while (atomic_load(&received) != value) {
        sched_yield();
    }
}

static void *receive(void *context)
{
    int signal = *(int *)context;
    int value;
    timer_t alarm;

    REQUIRE(kernel_stall.signal_admit(signal) == 0);
    REQUIRE(kernel_stall.alarm_create(signal, &value, &alarm) == 0);
    EXPECT_EQ(kernel_stall.alarm_set(alarm, 1000000), 0);
    spin_until_received(&value);
    EXPECT_EQ(receiver, syscall(SYS_gettid));
    EXPECT_EQ(kernel_stall.alarm_set(alarm, 0), 0);
    EXPECT_EQ(kernel_stall.alarm_delete(alarm), 0);
    return NULL;
}

TEST(an_alarm_interrupts_the_thread_that_made_it_and_shows_where_it_is, "700 701")
{
    int signal = kernel_stall.signal_claim(handle);
    bool has_found = false;
    pthread_t thread;

    REQUIRE(signal > 0);
    REQUIRE(pthread_create(&thread, NULL, receive, &signal) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    for (int i = 0; i < frame_count; i++) {
        has_found |= (uintptr_t)frames[i] - (uintptr_t)spin_until_received < 256;
    }
    EXPECT(has_found);
}

static void other_handler(int signal)
{
    (void)signal;
}

TEST(a_signal_is_claimed_only_if_the_program_does_not_use_it, "706")
{
    struct sigaction action;

    REQUIRE(signal(SIGURG, SIG_IGN) != SIG_ERR);
    EXPECT_EQ(kernel_stall.signal_claim(handle), SIGURG); /* it is ignored by default */
    EXPECT(kernel_stall.signal_loss(SIGURG, handle) == NULL);
    for (int i = 0; i < 2; i++) {
        REQUIRE(signal(SIGURG, i == 0 ? SIG_DFL : SIG_IGN) != SIG_ERR);
        EXPECT(kernel_stall.signal_loss(SIGURG, handle) == NULL);
        EXPECT_EQ(sigaction(SIGURG, NULL, &action), 0);
        EXPECT(action.sa_sigaction == handle); /* taken back */
    }
    REQUIRE(signal(SIGURG, other_handler) != SIG_ERR);
    EXPECT_STR(kernel_stall.signal_loss(SIGURG, handle), "has a handler of its own for");
    EXPECT_EQ(kernel_stall.signal_claim(handle), -EBUSY);
    EXPECT_EQ(sigaction(SIGURG, NULL, &action), 0);
    EXPECT(action.sa_handler == other_handler);
}

