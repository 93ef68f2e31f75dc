/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks of CoreServices.h: detached threads with numbers.
 *
 * A task's number is the thread's own and is given before the thread starts; a thread that is no task gets one when it first asks. Numbers
 * count up and are never used twice. Nothing here knows run loops: a thread's loop is taken down by the thread's end, however it ends.
 */
#include "CoreServices/CoreServices.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { smallest_stack_bytes = 64 * 1024 };

struct task_start {
    TaskProc entry_point;
    void *parameter;
    uintptr_t number;
};

static _Atomic uintptr_t last_number;
static _Thread_local uintptr_t own_number; /* 0: none yet */

static uintptr_t take_number(void)
{
    return atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
}

/* The size to ask for when the caller wants `wanted` bytes; 0 when there is no such size. */
static size_t stack_size(size_t wanted)
{
    size_t least = smallest_stack_bytes;
#if defined(_SC_THREAD_STACK_MIN)
    /* asked at run time, as it grows with the thread-local storage of the loaded libraries */
    long system_least = sysconf(_SC_THREAD_STACK_MIN);
#else
    long system_least = PTHREAD_STACK_MIN;
#endif

    if (system_least > 0 && (size_t)system_least > least) {
        least = (size_t)system_least;
    }
    if (wanted < least) {
        wanted = least;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return wanted > SIZE_MAX - page ? 0 : (wanted + page - 1) / page * page;
}

static void *run_task(void *argument)
{
    struct task_start start = *(struct task_start *)argument;

    free(argument);
    own_number = start.number;
    (void)start.entry_point(start.parameter);
    return NULL;
}

static int start_thread(struct task_start *start, size_t wanted_stack)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);

    if (error != 0) {
        return error;
    }
    error = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (error == 0 && wanted_stack != 0) {
        error = pthread_attr_setstacksize(&attributes, stack_size(wanted_stack));
    }
    pthread_t thread;
    if (error == 0) {
        error = pthread_create(&thread, &attributes, run_task, start);
    }
    pthread_attr_destroy(&attributes);
    return error;
}

OSStatus MPCreateTask(TaskProc entryPoint, void *parameter, ByteCount stackSize, MPQueueID notifyQueue, void *terminationParameter1,
                      void *terminationParameter2, MPTaskOptions options, MPTaskID *task)
{
    (void)terminationParameter1;
    (void)terminationParameter2;
    (void)options;
    if (entryPoint == NULL || notifyQueue != NULL) {
        return paramErr;
    }
    struct task_start *start = malloc(sizeof *start);
    if (start == NULL) {
        return kMPInsufficientResourcesErr;
    }
    uintptr_t number = take_number();
    *start = (struct task_start){.entry_point = entryPoint, .parameter = parameter, .number = number};
    /* the task may read the variable as soon as it runs */
    MPTaskID before = NULL;
    if (task != NULL) {
        before = *task;
        *task = (MPTaskID)number;
    }
    if (start_thread(start, stackSize) == 0) {
        return noErr;
    }
    if (task != NULL) {
        *task = before;
    }
    free(start);
    return kMPInsufficientResourcesErr;
}

void MPExit(OSStatus status)
{
    (void)status;
    pthread_exit(NULL);
}

MPTaskID MPCurrentTaskID(void)
{
    if (own_number == 0) {
        own_number = take_number();
    }
    return (MPTaskID)own_number;
}
