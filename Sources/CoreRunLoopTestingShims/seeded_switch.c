/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each change of executor on the thread of a seeded run is a place where another job may go first.
 *
 * The runtime lets a task go on at once where the new executor is free, and on one thread it always is: a task would enter and leave actors
 * without any other task in between. So the switch stands here before that of the runtime, and sends the task to the run's own executor
 * first, which queues it; from there the runtime's switch takes it where it was to go, and queues it again. Weak, because a program that
 * contains the Swift library has the runtime's own; there, tasks change places at fewer points.
 *
 * A list of the thread's own has what the tasks on their way were to do. Nothing else touches it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "CoreRunLoopTestingShims.h"

#define ASYNC_CALL __attribute__((swiftasynccall))
#define ASYNC_CONTEXT __attribute__((swift_async_context))
#define SWIFT_CALL __attribute__((swiftcall))

typedef ASYNC_CALL void (*resume_function)(ASYNC_CONTEXT void *context);
typedef ASYNC_CALL void (*switch_function)(ASYNC_CONTEXT void *context, resume_function resume, uintptr_t identity,
                                           uintptr_t implementation);

struct executor_words {
    uintptr_t identity;
    uintptr_t implementation;
};

/* Of libswift_Concurrency, where these names come from. */
extern SWIFT_CALL struct executor_words swift_task_getCurrentExecutor(void) __attribute__((weak));
extern SWIFT_CALL void *swift_task_getCurrent(void) __attribute__((weak));
extern SWIFT_CALL uint64_t swift_task_getJobTaskId(void *job) __attribute__((weak));

/* A task that is queued on the run's executor, and what its switch was. */
struct hop {
    void *task;
    resume_function resume;
    struct executor_words to;
    struct hop *next;
};

static _Thread_local const void *thread_run;
static _Thread_local const void *claimed_run;
static _Thread_local struct executor_words hop_executor;
static _Thread_local struct hop *hops;
static void *_Atomic runtime_switch;

static switch_function switch_by_runtime(void)
{
    void *found = atomic_load_explicit(&runtime_switch, memory_order_acquire);

    if (!found) {
        found = dlsym(RTLD_NEXT, "swift_task_switch");
        if (!found) {
            abort(); /* the program has a function with which no task could go on */
        }
        atomic_store_explicit(&runtime_switch, found, memory_order_release);
    }
    return (switch_function)found;
}

static struct hop take_hop(const void *task)
{
    struct hop **place = &hops;
    struct hop *found, hop;

    while (*place && (*place)->task != task) {
        place = &(*place)->next;
    }
    found = *place;
    if (!found) {
        abort(); /* the run's executor has only tasks that were sent here */
    }
    hop = *found;
    *place = found->next;
    free(found);
    return hop;
}

static ASYNC_CALL void go_on(ASYNC_CONTEXT void *context)
{
    struct hop hop = take_hop(swift_task_getCurrent());

    return switch_by_runtime()(context, hop.resume, hop.to.identity, hop.to.implementation);
}

/* Notes the switch of the calling task. False if it is none of a seeded run, stays where it is, or there is no memory. */
static bool note_hop(resume_function resume, uintptr_t identity, uintptr_t implementation)
{
    struct hop *hop;

    if (!thread_run || !&swift_task_getCurrentExecutor || swift_task_getCurrentExecutor().identity == identity) {
        return false;
    }
    hop = malloc(sizeof *hop);
    if (!hop) {
        return false;
    }
    *hop = (struct hop){.task = swift_task_getCurrent(), .resume = resume, .to = {identity, implementation}, .next = hops};
    hops = hop;
    return true;
}

__attribute__((weak)) ASYNC_CALL void swift_task_switch(ASYNC_CONTEXT void *context, resume_function resume, uintptr_t identity,
                                                        uintptr_t implementation)
{
    if (__builtin_expect(thread_run != NULL, 0) && note_hop(resume, identity, implementation)) {
        return switch_by_runtime()(context, go_on, hop_executor.identity, hop_executor.implementation);
    }
    return switch_by_runtime()(context, resume, identity, implementation);
}

void seeded_thread_begin(const void *run, uintptr_t hops_identity, uintptr_t hops_implementation)
{
    hop_executor = (struct executor_words){hops_identity, hops_implementation};
    thread_run = run;
}

void seeded_thread_end(void)
{
    thread_run = NULL;
    while (hops) {
        struct hop *hop = hops;

        hops = hop->next;
        free(hop);
    }
}

const void *seeded_thread_run(void)
{
    return thread_run;
}

void seeded_claim(const void *run)
{
    claimed_run = run;
}

const void *seeded_claimed(void)
{
    return claimed_run;
}

uint64_t seeded_job_task(void *job)
{
    return &swift_task_getJobTaskId ? swift_task_getJobTaskId(job) : 0;
}
