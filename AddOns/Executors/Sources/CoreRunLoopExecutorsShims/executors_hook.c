/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks by which the Swift runtime is given its executors when it first asks for one, for CoreRunLoopExecutors and for tests by seed.
 *
 * The constructor only stores pointers: in a program that contains the Swift library, that library is not set up yet when constructors run.
 * Once the executors are made the hooks are taken out again, unless others have put theirs in. From then on another library may set them.
 * The runtime reads a hook once for each call, so a thread that read one before it was taken out still comes here, and goes on.
 */
#include "executors_shims.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "main_hook.h"

#define SWIFT_CALL __attribute__((swiftcall))

/* As the runtime returns a serial executor: in two registers. */
struct executor_reference {
    void *identity;
    unsigned long implementation;
};

typedef SWIFT_CALL struct executor_reference (*get_main_function)(void);
typedef SWIFT_CALL struct executor_reference (*get_main_hook)(get_main_function by_runtime);
typedef SWIFT_CALL void (*enqueue_function)(void *job);
typedef SWIFT_CALL void (*enqueue_hook)(void *job, enqueue_function by_runtime);

/* Of libswift_Concurrency, where these names come from. Weak: a later runtime may be without them. */
extern get_main_hook swift_task_getMainExecutor_hook __attribute__((weak));
extern enqueue_hook swift_task_enqueueGlobal_hook __attribute__((weak));

/* In SwiftRuntime.swift. Weak: compilers for whose runtime the executors are not written leave it out. */
extern void corerunloop_create_executors(void) __attribute__((weak));
/* In LoopJobs.swift. Weak: only where CoreRunLoopExecutors is linked do loops run the jobs. */
extern void corerunloop_run_jobs_on_loops(void) __attribute__((weak));

/* Of libdispatch, which every Swift program on Linux has. */
extern struct dispatch_queue_s _dispatch_main_q;
extern void dispatch_async_f(struct dispatch_queue_s *queue, void *context, void (*function)(void *context));

static pthread_once_t are_created = PTHREAD_ONCE_INIT;
static atomic_bool have_been_asked;

static SWIFT_CALL struct executor_reference get_main(get_main_function by_runtime);
static SWIFT_CALL void enqueue(void *job, enqueue_function by_runtime);

static void create(void)
{
    have_been_asked = true;
    if (swift_task_getMainExecutor_hook == get_main) {
        swift_task_getMainExecutor_hook = NULL;
    }
    if (swift_task_enqueueGlobal_hook == enqueue) {
        swift_task_enqueueGlobal_hook = NULL;
    }
    corerunloop_create_executors(); /* asks for the main executor, and must not come back here */
}

static SWIFT_CALL struct executor_reference get_main(get_main_function by_runtime)
{
    (void)pthread_once(&are_created, create);
    return by_runtime();
}

static SWIFT_CALL void enqueue(void *job, enqueue_function by_runtime)
{
    (void)pthread_once(&are_created, create);
    by_runtime(job);
}

const char *executors_hook_owner(void)
{
    return &corerunloop_run_jobs_on_loops ? "CoreRunLoopExecutors" : "CoreRunLoopTesting";
}

/* The runtime has asked for an executor before it drains. */
static void report_taken_hooks(void)
{
    if (!have_been_asked) {
        main_hook_report(executors_hook_owner(), "another library has set its hooks since");
    }
}

void executors_set_job_runner(void)
{
    if (&corerunloop_run_jobs_on_loops) {
        corerunloop_run_jobs_on_loops();
    }
}

void executors_queue_on_main(void *context, void (*function)(void *context))
{
    dispatch_async_f(&_dispatch_main_q, context, function);
}

__attribute__((constructor)) static void set_hooks(void)
{
    if (main_hook_is_declined()) {
        main_hook_report(executors_hook_owner(), "CORERUNLOOP_MAIN is 0");
    } else if (!&swift_task_getMainExecutor_hook || !&swift_task_enqueueGlobal_hook || !&corerunloop_create_executors) {
        main_hook_report(executors_hook_owner(), "this Swift runtime is not known");
    } else if (swift_task_getMainExecutor_hook || swift_task_enqueueGlobal_hook) {
        main_hook_report(executors_hook_owner(), "another library has set its hooks");
    } else {
        swift_task_getMainExecutor_hook = get_main;
        swift_task_enqueueGlobal_hook = enqueue;
        main_hook_will_drain = report_taken_hooks;
    }
}
