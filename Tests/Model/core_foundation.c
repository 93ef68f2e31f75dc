/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations as calls of a Core Foundation. Each program is executed on a thread of its own, which has a fresh loop.
 *
 * Ours runs under the fake kernel: a sleep does first what the program wants done meanwhile, as another thread would, and then lets the
 * clock go on to the deadline. Each context counts its references, so that use after release and leaks show up in the trace.
 */
#include "core_foundation.h"

#ifdef MODEL_TOOLCHAIN
#include <dispatch/dispatch.h>
#endif
#include <CoreFoundation/CoreFoundation.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifndef MODEL_TOOLCHAIN
#include <errno.h>
#include <poll.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Runtime/Value/wall_clock.h"
#include "fake_kernel.h"
#endif

struct context {
    enum item_class class;
    int item;
    int references;
};

static const CFOptionFlags activity_bits[activity_choices] = {kCFRunLoopEntry,         kCFRunLoopBeforeTimers, kCFRunLoopBeforeSources,
                                                              kCFRunLoopBeforeWaiting, kCFRunLoopAfterWaiting, kCFRunLoopExit};

static const struct program *program;
static void (*program_body)(void);
#ifndef MODEL_TOOLCHAIN
static struct context contexts[class_choices][item_count];
#endif
static CFRunLoopSourceRef sources[item_count];
static CFRunLoopObserverRef observers[item_count];
static CFRunLoopTimerRef timers[item_count];

/* ---- modes ---- */

static CFStringRef mode_name(int mode)
{
    switch (mode) {
    case mode_x:
        return CFSTR("X");
    case mode_y:
        return CFSTR("Y");
    case mode_common:
        return kCFRunLoopCommonModes;
    default:
        return kCFRunLoopDefaultMode;
    }
}

/* A string of its own each time: modes are told apart by value (12). The caller releases it. */
static CFStringRef copy_mode(int mode)
{
    CFStringRef name = mode_name(mode);

    return mode == mode_y ? CFStringCreateWithCString(NULL, "Y", kCFStringEncodingUTF8) : CFRetain(name);
}

static int mode_of(CFStringRef name)
{
    for (int mode = 0; mode < mode_count; mode++) {
        if (name && CFEqual(name, mode_name(mode))) {
            return mode;
        }
    }
    return name ? mode_common : -1;
}

/* ---- contexts and callbacks ---- */

static void use(const struct context *context)
{
#ifndef MODEL_TOOLCHAIN
    if (context->references < 1) {
        interpreter_wrong(context->class, context->item);
    }
#else
    (void)context;
#endif
}

static const void *retain(const void *info)
{
    ((struct context *)(uintptr_t)info)->references++;
    return info;
}

static void release(const void *info)
{
    struct context *context = (struct context *)(uintptr_t)info;

    use(context);
    context->references--;
}

static void perform(void *info)
{
    use(info);
    interpreter_call(event_source, ((struct context *)info)->item, 0);
    use(info);
}

static void schedule(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)loop;
    use(info);
    interpreter_call(event_schedule, ((struct context *)info)->item, mode_of(mode));
}

static void cancel(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)loop;
    use(info);
    interpreter_call(event_cancel, ((struct context *)info)->item, mode_of(mode));
}

#ifndef MODEL_TOOLCHAIN
static int port = -1; /* the eventfd of source 3 */

static int get_port(void *info)
{
    use(info);
    return port;
}

static bool is_port(const struct op *op)
{
    return program->has_port && op->class == class_source && op->item == port_item;
}
#endif

static void observe(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    use(info);
    for (int i = 0; i < activity_choices; i++) {
        if (activity_bits[i] == activity) {
            interpreter_call(event_observer, ((struct context *)info)->item, i);
        }
    }
}

static void fire(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    use(info);
    interpreter_call(event_timer, ((struct context *)info)->item, 0);
    use(info);
}

/* ---- time ---- */

#ifdef MODEL_TOOLCHAIN
static int64_t ticks_now(void)
{
    return 0;
}

static CFAbsoluteTime date_in(int32_t ticks)
{
    return CFAbsoluteTimeGetCurrent() + (double)ticks / 512;
}

static int64_t ticks_of(CFAbsoluteTime date)
{
    (void)date;
    return 0;
}
#else
static int64_t begun_ns; /* when the program began, on the clock of timers */

static int64_t ticks_now(void)
{
    return (kernel.elapsed_ns() - begun_ns) / tick_ns;
}

/* The wall clock starts near the reference date, where doubles are exact, but not at it: 0.0 stands for no date. */
enum { start_s = 1000 };

static int64_t wall_near_reference(void)
{
    return (INT64_C(978307200) + start_s) * 1000000000 + kernel.elapsed_ns() - begun_ns;
}

static CFAbsoluteTime date_in(int32_t ticks)
{
    return start_s + (double)(ticks_now() + ticks) / 512;
}

static int64_t ticks_of(CFAbsoluteTime date)
{
    return date == 0.0 ? INT64_MIN : llround((date - start_s) * 512);
}

/* Sleeps on the virtual clock. */
static int sleep_until(int64_t deadline_ns)
{
    static bool was_early;
    int64_t left_ns;

    if (deadline_ns == kernel_never) {
        interpreter_sleeps_for_ever();
        return -EINTR;
    }
    left_ns = deadline_ns - kernel.monotonic_ns();
    was_early = program->wakes_early && !was_early;
    if (left_ns > 0) {
        fake_kernel_advance(was_early ? left_ns / tick_ns / 2 * tick_ns : left_ns);
    }
    return was_early ? -EINTR : -ETIMEDOUT;
}

static int futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    do {
        if (atomic_load(word) != expected) {
            return -EAGAIN;
        }
        if (deadline_ns <= kernel.monotonic_ns()) {
            return -ETIMEDOUT;
        }
    } while (interpreter_asleep());
    return sleep_until(deadline_ns);
}

static int set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    do {
        int count = kernel_linux.set_wait(set, events, capacity, 0);

        if (count != 0 || deadline_ns <= kernel.monotonic_ns()) {
            return count;
        }
    } while (interpreter_asleep());
    (void)sleep_until(deadline_ns);
    return kernel_linux.set_wait(set, events, capacity, 0);
}
#endif

#ifndef MODEL_TOOLCHAIN
static int no_alarm(int alarm, int64_t deadline_ns)
{
    (void)alarm;
    (void)deadline_ns;
    return 0; /* it would go by the real clock; the host goes by CRLRunLoopGetTimeout */
}

/* The host's wait, until its poll would return. */
static void wait_as_host(CFRunLoopRef loop)
{
    struct pollfd polled = {.fd = CRLRunLoopGetDescriptor(loop), .events = POLLIN};

    for (;;) {
        int64_t timeout_ns = CRLRunLoopGetTimeout(loop);

        if (timeout_ns == 0 || poll(&polled, 1, 0) > 0) {
            return;
        }
        if (interpreter_asleep()) {
            continue;
        }
        if (timeout_ns > 0) {
            fake_kernel_advance(timeout_ns);
            return;
        }
        interpreter_sleeps_for_ever();
    }
}

/* A run without a limit, with another loop doing the waiting. */
static CFRunLoopRunResult run_hosted(CFStringRef mode)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopRunResult result = (CFRunLoopRunResult)0;

    do {
        if (CRLRunLoopPrepare(loop, mode)) {
            wait_as_host(loop);
            result = CRLRunLoopDispatch(loop);
        } else {
            CFStringRef current = CFRunLoopCopyCurrentMode(loop);

            result = current ? kCFRunLoopRunStopped : kCFRunLoopRunFinished; /* in Entry, or before it */
            if (current) {
                CFRelease(current);
            }
        }
    } while (!result);
    CRLRunLoopLeave(loop);
    return result;
}
#endif

static CFTimeInterval seconds_of(int32_t ticks)
{
    return ticks < 0 ? 1e10 : (double)ticks / 512;
}

/* ---- operations ---- */

static struct context *context_of(enum item_class class, int item)
{
#ifdef MODEL_TOOLCHAIN
    struct context *context = malloc(sizeof *context); /* the toolchain releases some only with a later thread: never freed */

    if (!context) {
        abort();
    }
#else
    struct context *context = &contexts[class][item];
#endif

    *context = (struct context){class, item, 0};
    return context;
}

static void create(const struct op *op)
{
    int item = op->item;
    void *info = context_of((enum item_class)op->class, item);
    CFRunLoopSourceContext source = {
        .info = info, .retain = retain, .release = release, .schedule = schedule, .cancel = cancel, .perform = perform};
    CFRunLoopObserverContext observer = {.info = info, .retain = retain, .release = release};
    CFRunLoopTimerContext timer = {.info = info, .retain = retain, .release = release};
    CFOptionFlags activities = 0;

#ifndef MODEL_TOOLCHAIN
    if (is_port(op)) {
        CFRunLoopSourceContext1 context = {
            .version = 1, .info = info, .retain = retain, .release = release, .getPort = get_port, .perform = perform};

        sources[item] = CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context);
        return;
    }
#endif
    switch ((enum item_class)op->class) {
    case class_source:
        sources[item] = CFRunLoopSourceCreate(NULL, program->source_order[item], &source);
        break;
    case class_observer:
        for (int i = 0; i < activity_choices; i++) {
            activities |= program->observer_activities[item] & (1 << i) ? activity_bits[i] : 0;
        }
        observers[item] =
            CFRunLoopObserverCreate(NULL, activities, program->observer_repeats[item], program->observer_order[item], observe, &observer);
        break;
    case class_timer:
        timers[item] = CFRunLoopTimerCreate(NULL, date_in(op->value), (double)program->timer_interval[item] / 512, 0, 0, fire, &timer);
        break;
    default:
        break;
    }
}

static void release_item(const struct op *op)
{
    switch ((enum item_class)op->class) {
    case class_source:
        CFRelease(sources[op->item]);
        break;
    case class_observer:
        CFRelease(observers[op->item]);
        break;
    case class_timer:
        CFRelease(timers[op->item]);
        break;
    default:
        break;
    }
}

static void add(const struct op *op, CFStringRef mode)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    switch ((enum item_class)op->class) {
    case class_source:
        CFRunLoopAddSource(loop, sources[op->item], mode);
        break;
    case class_observer:
        CFRunLoopAddObserver(loop, observers[op->item], mode);
        break;
    default:
        CFRunLoopAddTimer(loop, timers[op->item], mode);
        break;
    }
}

static void remove_item(const struct op *op, CFStringRef mode)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    switch ((enum item_class)op->class) {
    case class_source:
        CFRunLoopRemoveSource(loop, sources[op->item], mode);
        break;
    case class_observer:
        CFRunLoopRemoveObserver(loop, observers[op->item], mode);
        break;
    default:
        CFRunLoopRemoveTimer(loop, timers[op->item], mode);
        break;
    }
}

static bool contains(const struct op *op, CFStringRef mode)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    switch ((enum item_class)op->class) {
    case class_source:
        return CFRunLoopContainsSource(loop, sources[op->item], mode);
    case class_observer:
        return CFRunLoopContainsObserver(loop, observers[op->item], mode);
    default:
        return CFRunLoopContainsTimer(loop, timers[op->item], mode);
    }
}

static void invalidate(const struct op *op)
{
    switch ((enum item_class)op->class) {
    case class_source:
        CFRunLoopSourceInvalidate(sources[op->item]);
        break;
    case class_observer:
        CFRunLoopObserverInvalidate(observers[op->item]);
        break;
    default:
        CFRunLoopTimerInvalidate(timers[op->item]);
        break;
    }
}

static bool is_valid(const struct op *op)
{
    switch ((enum item_class)op->class) {
    case class_source:
        return CFRunLoopSourceIsValid(sources[op->item]);
    case class_observer:
        return CFRunLoopObserverIsValid(observers[op->item]);
    default:
        return CFRunLoopTimerIsValid(timers[op->item]);
    }
}

#ifdef MODEL_TOOLCHAIN
static void perform_block(int block, CFTypeRef mode)
{
    CFRunLoopPerformBlock(CFRunLoopGetCurrent(), mode, ^{
        interpreter_call(event_block, block, 0);
    });
}
#else
static void block_function(void *info)
{
    use(info);
    interpreter_call(event_block, ((struct context *)info)->item, 0);
    use(info);
}

static void block_release(void *info)
{
    release(info);
    free(info);
}

static _Atomic int blocks_alive;

static void block_released(void *info)
{
    blocks_alive--;
    block_release(info);
}

static void perform_block(int block, CFTypeRef mode)
{
    struct context *context = malloc(sizeof *context);

    if (context) {
        *context = (struct context){class_block, block, 1};
        blocks_alive++;
        CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), mode, block_function, context, block_released);
    }
}
#endif

static void perform_in(int block, int mode)
{
    if (mode <= mode_common) {
        CFStringRef name = copy_mode(mode);

        perform_block(block, name);
        CFRelease(name);
    } else {
        CFStringRef names[2] = {copy_mode(mode_x), copy_mode(mode == mode_list_xy ? mode_y : mode_common)};
        CFArrayRef list = CFArrayCreate(NULL, (const void **)names, 2, &kCFTypeArrayCallBacks);

        perform_block(block, list);
        CFRelease(list);
        CFRelease(names[0]);
        CFRelease(names[1]);
    }
}

static int64_t all_modes(void)
{
    CFArrayRef names = CFRunLoopCopyAllModes(CFRunLoopGetCurrent());
    int64_t modes = 0;

    for (CFIndex i = 0; i < CFArrayGetCount(names); i++) {
        modes |= 1 << mode_of(CFArrayGetValueAtIndex(names, i));
    }
    CFRelease(names);
#ifdef MODEL_TOOLCHAIN
    modes &= (1 << mode_count) - 1; /* there a block for the common modes makes a mode of that name (10) */
#endif
    return modes;
}

static int64_t current_mode(void)
{
    CFStringRef name = CFRunLoopCopyCurrentMode(CFRunLoopGetCurrent());
    int mode = mode_of(name);

    if (name) {
        CFRelease(name);
    }
    return mode;
}

/* How often a signal or a wake-up is made. */
static int times(void)
{
    return program->has_floods ? calls_of_a_flood : 1;
}

static int64_t apply_in_mode(const struct op *op, CFStringRef mode)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    switch ((enum op_kind)op->kind) {
    case op_create:
        create(op);
        break;
    case op_release:
        release_item(op);
        break;
    case op_add:
        add(op, mode);
        break;
    case op_remove:
        remove_item(op, mode);
        break;
    case op_contains:
        return contains(op, mode);
    case op_invalidate:
        invalidate(op);
        break;
    case op_is_valid:
        return is_valid(op);
    case op_signal:
#ifndef MODEL_TOOLCHAIN
        if (is_port(op)) {
            (void)kernel_linux.event_post(port);
            break;
        }
#endif
        for (int i = 0; i < times(); i++) {
            CFRunLoopSourceSignal(sources[op->item]);
        }
        break;
    case op_is_signalled:
#ifdef MODEL_TOOLCHAIN
        break;
#else
        return CFRunLoopSourceIsSignalled(sources[op->item]);
#endif
    case op_set_date:
        CFRunLoopTimerSetNextFireDate(timers[op->item], date_in(op->value));
        break;
    case op_get_date:
        return ticks_of(CFRunLoopTimerGetNextFireDate(timers[op->item]));
    case op_next_date:
        return ticks_of(CFRunLoopGetNextTimerFireDate(loop, mode));
    case op_add_common_mode:
        CFRunLoopAddCommonMode(loop, mode);
        break;
    case op_wake:
        for (int i = 0; i < times(); i++) {
            CFRunLoopWakeUp(loop);
        }
        break;
    case op_stop:
        CFRunLoopStop(loop);
        break;
    case op_perform:
        perform_in(op->item, op->mode);
        break;
    case op_run:
#ifndef MODEL_TOOLCHAIN
        if (program->is_hosted && op->place == place_main && op->value < 0 && !op->flag) {
            return run_hosted(mode);
        }
#endif
        return CFRunLoopRunInMode(mode, seconds_of(op->value), op->flag);
    case op_busy:
#ifndef MODEL_TOOLCHAIN
        fake_kernel_advance((int64_t)op->value * tick_ns);
#endif
        break;
    case op_suspend:
#ifndef MODEL_TOOLCHAIN
        fake_kernel_suspend((int64_t)op->value * tick_ns);
#endif
        break;
    case op_current_mode:
        return current_mode();
    case op_all_modes:
        return all_modes();
    case op_is_waiting:
        return CFRunLoopIsWaiting(loop);
    case op_asleep:
    case op_kinds:
        break;
    }
    return 0;
}

static int64_t apply(const struct op *op)
{
    CFStringRef mode = copy_mode(op->mode);
    int64_t answer = apply_in_mode(op, mode);

    CFRelease(mode);
    return answer;
}

/* ---- a thread for each program ---- */

static void *thread(void *unused)
{
    (void)unused;
    (void)CFRunLoopGetCurrent();
    program_body();
    return NULL;
}

/* When all is over nothing is left (the toolchain leaves some timers). */
static void check_references(void)
{
#ifndef MODEL_TOOLCHAIN
    for (int class = 0; class < class_choices; class++) {
        for (int item = 0; item < item_count; item++) {
            if (contexts[class][item].references != 0) {
                interpreter_wrong((enum item_class)class, item);
            }
        }
    }
    if (blocks_alive != 0) {
        interpreter_wrong(class_block, 0);
        blocks_alive = 0;
    }
    memset(contexts, 0, sizeof contexts);
#endif
}

static void execute(const struct program *executed, void (*body)(void))
{
    pthread_t id;

    program = executed;
    program_body = body;
#ifndef MODEL_TOOLCHAIN
    fake_kernel_install();
    begun_ns = kernel.elapsed_ns();
    kernel.wall_ns = wall_near_reference;
    runtime_wall_clock = wall_near_reference;
    kernel.futex_wait = futex_wait;
    kernel.set_wait = set_wait;
    kernel.alarm_set = no_alarm;
    port = program->has_port ? kernel_linux.event_create() : -1;
#endif
    if (pthread_create(&id, NULL, thread, NULL) != 0) {
        abort();
    }
    pthread_join(id, NULL);
#ifndef MODEL_TOOLCHAIN
    if (port >= 0) {
        (void)kernel_linux.close(port);
    }
#endif
    check_references();
}

const struct world core_foundation = {"library", execute, apply, ticks_now};
