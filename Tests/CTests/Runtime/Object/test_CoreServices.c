/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: their numbers, stacks, ends and refusals.
 */
#define _GNU_SOURCE /* pthread_getattr_np */

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "CoreServices/CoreServices.h"
#include "harness.h"

enum { task_count = 8 };

struct meeting {
    sem_t done;
    void *parameter_seen;
    MPTaskID number_seen[task_count];
    MPTaskID number_given[task_count];
    atomic_int next;
    size_t stack_bytes;
    int detach_state;
};

static void meeting_open(struct meeting *meeting)
{
    memset(meeting, 0, sizeof *meeting);
    sem_init(&meeting->done, 0, 0);
}

static OSStatus look_around(void *parameter)
{
    struct meeting *meeting = parameter;
    pthread_attr_t attributes;
    meeting->parameter_seen = parameter;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &meeting->stack_bytes);
        pthread_attr_getdetachstate(&attributes, &meeting->detach_state);
        pthread_attr_destroy(&attributes);
    }
    sem_post(&meeting->done);
    return noErr;
}

TEST(a_task_gets_its_parameter_on_a_detached_thread, "")
{
    struct meeting meeting;
    meeting_open(&meeting);
    MPTaskID task = NULL;
    EXPECT_EQ(MPCreateTask(look_around, &meeting, 8 * 4096, NULL, NULL, NULL, 0, &task), noErr);
    sem_wait(&meeting.done);
    EXPECT(meeting.parameter_seen == &meeting);
    EXPECT_EQ(meeting.detach_state, PTHREAD_CREATE_DETACHED);
    EXPECT(task != NULL);
}

TEST(a_small_stack_is_raised_to_64_KiB, "439")
{
    struct meeting meeting;
    meeting_open(&meeting);
    EXPECT_EQ(MPCreateTask(look_around, &meeting, 1, NULL, NULL, NULL, 0, NULL), noErr);
    sem_wait(&meeting.done);
    EXPECT(meeting.stack_bytes >= 64 * 1024);
    EXPECT(meeting.stack_bytes < 8 * 1024 * 1024);
}

TEST(an_odd_stack_size_is_rounded_up, "")
{
    struct meeting meeting;
    meeting_open(&meeting);
    EXPECT_EQ(MPCreateTask(look_around, &meeting, 1024 * 1024 + 1, NULL, NULL, NULL, 0, NULL), noErr);
    sem_wait(&meeting.done);
    EXPECT(meeting.stack_bytes > 1024 * 1024);
}

static OSStatus say_number(void *parameter)
{
    struct meeting *meeting = parameter;
    meeting->number_seen[atomic_fetch_add(&meeting->next, 1)] = MPCurrentTaskID();
    sem_post(&meeting->done);
    return noErr;
}

static bool contains(const MPTaskID *numbers, MPTaskID number)
{
    for (int i = 0; i < task_count; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

TEST(task_numbers_are_small_and_unique_and_known_to_both_sides, "439")
{
    struct meeting meeting;
    meeting_open(&meeting);
    for (int i = 0; i < task_count; i++)
        EXPECT_EQ(MPCreateTask(say_number, &meeting, 0, NULL, NULL, NULL, 0, &meeting.number_given[i]), noErr);
    for (int i = 0; i < task_count; i++)
        sem_wait(&meeting.done);
    for (int i = 0; i < task_count; i++) {
        uintptr_t number = (uintptr_t)meeting.number_given[i];
        EXPECT(number > 0 && number < INT_MAX);
        EXPECT(contains(meeting.number_seen, meeting.number_given[i]));
        for (int k = 0; k < i; k++)
            EXPECT(meeting.number_given[k] != meeting.number_given[i]);
    }
}

TEST(a_thread_that_is_no_task_has_a_number_too, "")
{
    struct meeting meeting;
    meeting_open(&meeting);
    MPTaskID own = MPCurrentTaskID();
    EXPECT(own != NULL && (uintptr_t)own < INT_MAX);
    EXPECT(MPCurrentTaskID() == own);
    MPTaskID task = NULL;
    EXPECT_EQ(MPCreateTask(say_number, &meeting, 0, NULL, NULL, NULL, 0, &task), noErr);
    sem_wait(&meeting.done);
    EXPECT(task != own);
}

struct early_reader {
    sem_t done;
    MPTaskID task;
    MPTaskID seen;
};

static OSStatus read_early(void *parameter)
{
    struct early_reader *reader = parameter;
    reader->seen = reader->task;
    sem_post(&reader->done);
    return noErr;
}

TEST(the_number_is_stored_before_the_task_starts, "")
{
    for (int i = 0; i < 50; i++) {
        struct early_reader reader = {.task = NULL};
        sem_init(&reader.done, 0, 0);
        EXPECT_EQ(MPCreateTask(read_early, &reader, 0, NULL, NULL, NULL, 0, &reader.task), noErr);
        sem_wait(&reader.done);
        EXPECT(reader.seen != NULL && reader.seen == reader.task);
    }
}

TEST(refusals_leave_the_task_variable_alone, "439")
{
    MPTaskID task = (MPTaskID)(uintptr_t)7;
    EXPECT_EQ(MPCreateTask(NULL, NULL, 0, NULL, NULL, NULL, 0, &task), paramErr);
    EXPECT_EQ(MPCreateTask(say_number, NULL, 0, (MPQueueID)(uintptr_t)1, NULL, NULL, 0, &task), paramErr);
    EXPECT_EQ(MPCreateTask(say_number, NULL, ULONG_MAX, NULL, NULL, NULL, 0, &task), kMPInsufficientResourcesErr);
    EXPECT_EQ(MPCreateTask(say_number, NULL, ULONG_MAX / 16 * 15, NULL, NULL, NULL, 0, &task), kMPInsufficientResourcesErr);
    EXPECT((uintptr_t)task == 7);
}

static pthread_key_t thread_key;

static void thread_ends(void *value)
{
    sem_post(value);
}

static OSStatus leave_in_the_middle(void *parameter)
{
    pthread_setspecific(thread_key, parameter);
    MPExit(0);
}

TEST(MPExit_ends_the_thread_with_its_destructors, "")
{
    sem_t ended;
    sem_init(&ended, 0, 0);
    pthread_key_create(&thread_key, thread_ends);
    EXPECT_EQ(MPCreateTask(leave_in_the_middle, &ended, 8 * 4096, NULL, NULL, NULL, 0, NULL), noErr);
    sem_wait(&ended);
}
