/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random program of several threads, each with a loop.
 *
 * An actor asks another something in one of many ways (a signal, a new source, a function, a timer that is moved, a descriptor ...), and
 * runs its own loop until it has been answered: a wake-up that gets lost leaves both asleep. In between, anybody does anything to the
 * *wild* sources, timers and observers, that nobody waits for. In the end all loops are run once more, and then no wild source may have a
 * signal that was not performed.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CoreFoundation.h"
#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Wire/packet.h"
#include "Loop/Signal/source.h"
#include "Loop/Timer/timer.h"
#include "image.h"
#include "plan.h"
#include "scheduler.h"
#include "tables.h"

#define PRIVATE_MODE CFSTR("private")

enum { actors_max = 4, waiting_max = 8, wild_max = 4, kept_max = 512, nesting_max = 3 };

static const CFTimeInterval for_ever = 1e10;
static const int64_t patience_ns = INT64_C(100) * 1000000000;
static const int64_t latest_ns = INT64_C(6) * 1000000000;

enum asking {
    ask_by_signal,
    ask_by_new_source,
    ask_by_marked_source,
    ask_by_functions,
    ask_by_moved_timer,
    ask_by_new_timer,
    ask_by_far_timer,
    ask_by_descriptor,
    ask_by_counter,
    askings
};
static const char *const asking_names[] = {
    "a signal",     "a new source", "a source that was signalled before it was added", "functions", "a timer that was moved", "a new timer",
    "a timer that is far away", "a descriptor", "a counter"};

struct question {
    enum asking asking;
    int asker;
    bool is_answered;
    int functions_called;
    int64_t due_ns; /* of a new timer, on the clock that goes on while the system is suspended */
    CFRunLoopSourceRef source; /* made for it, invalid once it is answered */
};

struct wild {
    CFRunLoopSourceRef source;
    uint32_t published, seen; /* how often it was signalled, and what of that a perform could see */
    uint32_t performed;
    bool is_invalid; /* CFRunLoopSourceInvalidate has returned */
};

struct actor {
    int number;
    CFRunLoopRef loop; /* NULL until its thread runs */
    CFRunLoopSourceRef questions, answers, counter_source;
    CFRunLoopTimerRef alarm, ticker;
    CFFileDescriptorRef descriptor;
    int pipe[2];
    int counter;
    int nesting;
    struct question *waiting[waiting_max];
};

static struct actor actors[actors_max];
static int ready_count, done_count, arrived_count, turn;
static bool is_quitting;

static struct wild *wild_sources[wild_max];
static struct wild *all_wild[kept_max];
static int wild_count;
static CFRunLoopTimerRef wild_timers[wild_max];
static CFTypeRef kept[kept_max];
static int kept_count;

static uint64_t any(uint64_t below)
{
    return scheduler_random(random_work, below);
}

static bool by_chance(uint64_t one_in)
{
    return any(one_in) == 0;
}

/* Until the end, because another actor may have just read it. */
static void keep(CFTypeRef object)
{
    if (kept_count == kept_max) {
        scheduler_fail("more than %d wild objects", kept_max);
    }
    kept[kept_count++] = object;
}

/* ---- answering ---- */

static void answer(struct question *question)
{
    struct actor *asker = &actors[question->asker];

    question->is_answered = true;
    CFRunLoopSourceSignal(asker->answers);
    CFRunLoopWakeUp(asker->loop);
}

/* Answers what was published before this began, by this way of asking. */
static void answer_all(struct actor *actor, enum asking asking)
{
    struct question *found[waiting_max];
    int count = 0;

    for (int i = 0; i < waiting_max; i++) {
        if (actor->waiting[i] && actor->waiting[i]->asking == asking) {
            found[count++] = actor->waiting[i];
            actor->waiting[i] = NULL;
        }
    }
    for (int i = 0; i < count; i++) {
        answer(found[i]);
    }
}

static bool is_answered(void *info)
{
    return ((const struct question *)info)->is_answered;
}

static void publish(struct actor *actor, struct question *question)
{
    for (int i = 0; i < waiting_max; i++) {
        if (!actor->waiting[i]) {
            actor->waiting[i] = question;
            return;
        }
    }
    scheduler_fail("more than %d questions to one actor", waiting_max);
}

static void do_something(struct actor *actor);

/* A callback may do what it likes, on its own thread's loop. */
static void misbehave(struct actor *actor)
{
    if (actor->nesting < nesting_max && !is_quitting && by_chance(4)) {
        actor->nesting++;
        do_something(actor);
        actor->nesting--;
        /* An answer that came meanwhile ended only the run inside; the one that waits for it is around this. */
        CFRunLoopSourceSignal(actor->answers);
        CFRunLoopWakeUp(actor->loop);
        if (is_quitting) { /* as for a stop */
            CFRunLoopStop(actor->loop);
        }
    }
}

static void perform_questions(void *info)
{
    answer_all(info, ask_by_signal);
    misbehave(info);
}

static void perform_answers(void *info)
{
    (void)info;
}

static void fire_alarm(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    answer_all(info, ask_by_moved_timer);
    misbehave(info);
}

static void read_descriptor(CFFileDescriptorRef descriptor, CFOptionFlags types, void *info)
{
    struct actor *actor = info;

    (void)types;
    tables_spare(true);
    while (packet_skip(actor->pipe[0]) > 0) {
    }
    tables_spare(false);
    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
    answer_all(actor, ask_by_descriptor);
    misbehave(actor);
}

static int counter_of(void *info)
{
    return ((struct actor *)info)->counter;
}

static void perform_counter(void *info)
{
    answer_all(info, ask_by_counter);
    misbehave(info);
}

static void perform_one(void *info)
{
    answer(info);
}

/* No timer is early. A far one may be late by the rest of a sleep that was too short to notice a suspension, unless something failed. */
static void fire_one(CFRunLoopTimerRef timer, void *info)
{
    struct question *question = info;
    int64_t now_ns = kernel.elapsed_ns();
    int64_t possible_ns = question->due_ns > tables_resumed_ns() ? question->due_ns : tables_resumed_ns();

    (void)timer;
    if (now_ns < question->due_ns) {
        scheduler_fail("a timer fired %lld ns early", (long long)(question->due_ns - now_ns));
    }
    if (question->asking == ask_by_far_timer && now_ns - possible_ns > latest_ns && tables_resource_faults() == 0) {
        scheduler_fail("a timer fired %lld ms late", (long long)(now_ns - possible_ns) / 1000000);
    }
    answer(question);
}

enum { functions_of_a_question = 3 };

struct function_call {
    struct question *question;
    int number;
};

static void call_function(void *info)
{
    struct function_call *call = info;

    if (call->question->functions_called++ != call->number) {
        scheduler_fail("function %d of %d was called out of turn", call->number, functions_of_a_question);
    }
    if (call->number == functions_of_a_question - 1) {
        answer(call->question);
    }
}

/* ---- asking ---- */

static void ask_with_source(struct actor *asked, struct question *question, bool is_marked_first)
{
    CFRunLoopSourceContext context = {.info = question, .perform = perform_one};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, (CFIndex)any(3), &context);
    CFStringRef mode = by_chance(2) ? kCFRunLoopDefaultMode : kCFRunLoopCommonModes;

    if (is_marked_first) {
        CFRunLoopSourceSignal(source);
    }
    CFRunLoopAddSource(asked->loop, source, mode);
    if (!is_marked_first) {
        CFRunLoopSourceSignal(source);
    }
    CFRunLoopWakeUp(asked->loop);
    keep(source);
    question->source = source;
}

static void ask_with_functions(struct actor *asked, struct question *question, struct function_call calls[functions_of_a_question])
{
    for (int i = 0; i < functions_of_a_question; i++) {
        calls[i] = (struct function_call){question, i};
        CRLRunLoopPerformFunction(asked->loop, kCFRunLoopDefaultMode, call_function, &calls[i], NULL);
    }
    CFRunLoopWakeUp(asked->loop);
}

static void ask_with_timer(struct actor *asked, struct question *question, double seconds)
{
    CFRunLoopTimerContext context = {.info = question};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + seconds, 0, 0, 0, fire_one, &context);

    question->due_ns = timer->fire_ns; /* the clocks may have parted since the time was asked for */
    CFRunLoopAddTimer(asked->loop, timer, kCFRunLoopDefaultMode);
    keep(timer);
}

/* The system is suspended till just before the timer's date, or past it. The loop sleeps already, or is about to, or has not begun to. */
static void ask_with_far_timer(struct actor *asked, struct question *question)
{
    uint64_t seconds = 2 + any(30);

    ask_with_timer(asked, question, (double)seconds);
    if (by_chance(2)) {
        (void)scheduler_wait(is_answered, question, scheduler_now_ns() + (int64_t)any(20000000));
    }
    tables_suspend((int64_t)(seconds - 1 + any(60)) * 1000000000);
}

static void ask_with_descriptor(struct actor *asked)
{
    unsigned char byte = 1;

    if (by_chance(3)) { /* a change of interest that the sleeper need not notice */
        CFFileDescriptorDisableCallBacks(asked->descriptor, kCFFileDescriptorReadCallBack);
        CFFileDescriptorEnableCallBacks(asked->descriptor, kCFFileDescriptorReadCallBack);
    }
    tables_spare(true);
    (void)kernel_ports.send(asked->pipe[1], &byte, sizeof byte);
    tables_spare(false);
}

static void put(struct actor *asked, struct question *question, struct function_call calls[functions_of_a_question])
{
    switch (question->asking) {
    case ask_by_signal:
        publish(asked, question);
        CFRunLoopSourceSignal(asked->questions);
        CFRunLoopWakeUp(asked->loop);
        break;
    case ask_by_new_source:
    case ask_by_marked_source:
        ask_with_source(asked, question, question->asking == ask_by_marked_source);
        break;
    case ask_by_functions:
        ask_with_functions(asked, question, calls);
        break;
    case ask_by_moved_timer:
        publish(asked, question);
        CFRunLoopTimerSetNextFireDate(asked->alarm, CFAbsoluteTimeGetCurrent() + (double)any(20000) / 1e6);
        break;
    case ask_by_new_timer:
        ask_with_timer(asked, question, (double)any(20000) / 1e6);
        break;
    case ask_by_far_timer:
        ask_with_far_timer(asked, question);
        break;
    case ask_by_descriptor:
        publish(asked, question);
        ask_with_descriptor(asked);
        break;
    case ask_by_counter:
        publish(asked, question);
        tables_spare(true);
        (void)kernel.event_post(asked->counter);
        tables_spare(false);
        break;
    case askings:
        break;
    }
}

/* Runs the loop as a host does, which waits for its descriptor: once round, or until `limit_ns`. False: it cannot be hosted here. */
static bool run_hosted(const struct actor *actor, CFStringRef mode, int64_t limit_ns)
{
    int descriptor = CRLRunLoopGetDescriptor(actor->loop);
    int64_t end_ns = limit_ns < never_ns - scheduler_now_ns() ? scheduler_now_ns() + limit_ns : never_ns;
    bool is_hosted = descriptor >= 0 && CRLRunLoopPrepare(actor->loop, mode);

    if (is_hosted) {
        int64_t timeout_ns = CRLRunLoopGetTimeout(actor->loop);
        int64_t due_ns = timeout_ns < 0 ? never_ns : scheduler_now_ns() + timeout_ns;

        /* By the timeout, or by the descriptor alone, which is ready then, too. */
        (void)kernel_ports.wait(descriptor, kernel_readable, by_chance(2) && due_ns < end_ns ? due_ns : end_ns);
        (void)CRLRunLoopDispatch(actor->loop);
        CRLRunLoopLeave(actor->loop);
    }
    return is_hosted;
}

/* Asks, and runs the own loop until there is an answer. */
static void ask(struct actor *actor)
{
    struct actor *asked = &actors[any((uint64_t)plan.threads)];
    struct question question = {.asking = (enum asking)any(askings), .asker = actor->number};
    struct function_call calls[functions_of_a_question];
    int64_t begin_ns = scheduler_now_ns();
    bool is_hosted = by_chance(4);

    if (!asked->loop) {
        return;
    }
    scheduler_trace("actor %d asks %d by %s", actor->number, asked->number, asking_names[question.asking]);
    put(asked, &question, calls);
    while (!question.is_answered) {
        scheduler_note(asking_names[question.asking]);
        if (!is_hosted || !run_hosted(actor, kCFRunLoopDefaultMode, never_ns)) {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, for_ever, true);
        }
        if (!question.is_answered && scheduler_now_ns() - begin_ns > patience_ns) {
            scheduler_fail("actor %d was asked by %s and did not answer in 100 s", asked->number, asking_names[question.asking]);
        }
    }
    if (question.source) {
        CFRunLoopSourceInvalidate(question.source);
    }
    scheduler_note("between questions");
}

/* ---- wild things ---- */

static void perform_wild(void *info)
{
    struct wild *wild = info;

    wild->seen = wild->published;
    if (++wild->performed > wild->published) {
        scheduler_fail("a source was performed %u times for %u signals", wild->performed, wild->published);
    }
}

/* Called by the library in the place of source_take_mark (its link name), by the linker's --wrap. */
enum source_taken __real_crl_source_take_mark(CFRunLoopSourceRef source);
enum source_taken __wrap_crl_source_take_mark(CFRunLoopSourceRef source);
enum source_taken __wrap_crl_source_take_mark(CFRunLoopSourceRef source)
{
    enum source_taken taken = __real_crl_source_take_mark(source);

    for (int i = 0; taken != source_taken_nothing && taken != source_taken_no_signal && i < wild_count; i++) {
        if (all_wild[i]->source == source && all_wild[i]->is_invalid) {
            scheduler_fail("a source is performed after its invalidation");
        }
    }
    return taken;
}

static CFStringRef some_mode(void)
{
    switch (any(3)) {
    case 0:
        return kCFRunLoopCommonModes;
    case 1:
        return PRIVATE_MODE;
    default:
        return kCFRunLoopDefaultMode;
    }
}

static struct actor *some_actor(void)
{
    struct actor *actor = &actors[any((uint64_t)plan.threads)];

    return actor->loop ? actor : NULL;
}

static void make_wild_source(int place)
{
    struct wild *wild = calloc(1, sizeof *wild);
    CFRunLoopSourceContext context = {.info = wild, .perform = perform_wild};

    if (!wild) {
        scheduler_fail("the simulation has no memory");
    }
    wild->source = CFRunLoopSourceCreate(NULL, (CFIndex)any(3), &context);
    keep(wild->source);
    all_wild[wild_count++] = wild;
    wild_sources[place] = wild;
}

static void treat_wild_source(const struct actor *other)
{
    int place = (int)any(wild_max);
    struct wild *wild = wild_sources[place];

    if (!wild) {
        make_wild_source(place);
        return;
    }
    switch (any(8)) {
    case 0:
        CFRunLoopRemoveSource(other->loop, wild->source, some_mode());
        break;
    case 1:
        CFRunLoopSourceInvalidate(wild->source);
        wild->is_invalid = true;
        if (wild_sources[place] == wild) {
            wild_sources[place] = NULL;
        }
        break;
    case 2:
    case 3:
        CFRunLoopAddSource(other->loop, wild->source, some_mode());
        break;
    default:
        wild->published++;
        CFRunLoopSourceSignal(wild->source);
        CFRunLoopWakeUp(other->loop);
    }
}

static void fire_wild(CFRunLoopTimerRef timer, void *info)
{
    (void)info;
    if (by_chance(8)) {
        CFRunLoopTimerInvalidate(timer);
    }
}

static void treat_wild_timer(const struct actor *other)
{
    int place = (int)any(wild_max);
    CFRunLoopTimerRef timer = wild_timers[place];
    double now = CFAbsoluteTimeGetCurrent();

    if (!timer) {
        timer = CFRunLoopTimerCreate(NULL, now + (double)any(10000) / 1e6, (double)any(10000) / 1e6, 0, 0, fire_wild, NULL);
        keep(timer);
        wild_timers[place] = timer;
    }
    switch (any(6)) {
    case 0:
        CFRunLoopRemoveTimer(other->loop, timer, some_mode());
        break;
    case 1:
        CFRunLoopTimerInvalidate(timer);
        wild_timers[place] = NULL;
        break;
    case 2:
        CFRunLoopTimerSetNextFireDate(timer, now + (double)any(20000) / 1e6);
        break;
    case 3:
        CFRunLoopTimerSetTolerance(timer, (double)any(10000) / 1e6);
        break;
    default:
        CFRunLoopAddTimer(other->loop, timer, some_mode());
    }
}

static void observe(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)activity;
    if (by_chance(8)) {
        CFRunLoopObserverInvalidate(observer);
    } else if (((struct actor *)info)->loop == CFRunLoopGetCurrent()) {
        misbehave(info);
    }
}

static void add_observer(struct actor *other)
{
    CFRunLoopObserverContext context = {.info = other};
    CFRunLoopObserverRef observer =
        CFRunLoopObserverCreate(NULL, (CFOptionFlags)1 << any(8), by_chance(2), (CFIndex)any(3), observe, &context);

    CFRunLoopAddObserver(other->loop, observer, some_mode());
    keep(observer);
}

/* ---- an actor ---- */

static void run_for_a_while(const struct actor *actor)
{
    switch (any(4)) {
    case 3:
        (void)run_hosted(actor, by_chance(2) ? kCFRunLoopDefaultMode : PRIVATE_MODE, (int64_t)any(10000) * 1000);
        break;
    case 0:
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, by_chance(2));
        break;
    case 1:
        (void)CFRunLoopRunInMode(PRIVATE_MODE, (double)any(10000) / 1e6, by_chance(2));
        break;
    default:
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, (double)any(10000) / 1e6, by_chance(2));
    }
}

static void do_something(struct actor *actor)
{
    struct actor *other = some_actor();

    if (!other) {
        return;
    }
    switch (any(11)) {
    case 10:
        CFRunLoopSourceSignal(other->questions); /* in silence: who signals it at the same time must not rely on this one */
        break;
    case 0:
        run_for_a_while(actor);
        break;
    case 1:
        CFRunLoopWakeUp(other->loop);
        break;
    case 2:
        CFRunLoopStop(other->loop);
        break;
    case 3:
        treat_wild_timer(other);
        break;
    case 4:
        add_observer(other);
        break;
    case 5:
    case 6:
        if (actor->nesting == 0) {
            ask(actor);
            break;
        }
        treat_wild_source(other);
        break;
    default:
        treat_wild_source(other);
    }
}

static void quit(void *info)
{
    (void)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static void quit_all(void)
{
    is_quitting = true;
    for (int i = 0; i < plan.threads; i++) {
        CRLRunLoopPerformFunction(actors[i].loop, kCFRunLoopDefaultMode, quit, NULL, NULL);
        CFRunLoopWakeUp(actors[i].loop);
    }
}

static CFRunLoopSourceRef add_source(struct actor *actor, void (*perform)(void *info))
{
    CFRunLoopSourceContext context = {.info = actor, .perform = perform};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 1, &context);

    CFRunLoopAddSource(actor->loop, source, kCFRunLoopDefaultMode);
    return source;
}

static void add_descriptor(struct actor *actor)
{
    CFFileDescriptorContext context = {.info = actor};
    CFRunLoopSourceRef source;

    actor->descriptor = CFFileDescriptorCreate(NULL, actor->pipe[0], false, read_descriptor, &context);
    CFFileDescriptorEnableCallBacks(actor->descriptor, kCFFileDescriptorReadCallBack);
    source = CFFileDescriptorCreateRunLoopSource(NULL, actor->descriptor, 0);
    CFRunLoopAddSource(actor->loop, source, kCFRunLoopDefaultMode);
    CFRelease(source);
}

static void add_counter(struct actor *actor)
{
    CFRunLoopSourceContext1 context = {.version = 1, .info = actor, .getPort = counter_of, .perform = perform_counter};

    actor->counter_source = CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)&context);
    CFRunLoopAddSource(actor->loop, actor->counter_source, kCFRunLoopDefaultMode);
}

static CFRunLoopTimerRef add_timer(struct actor *actor, double date, double interval, CFRunLoopTimerCallBack callback)
{
    CFRunLoopTimerContext context = {.info = actor};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, date, interval, 0, 0, callback, &context);

    CFRunLoopAddTimer(actor->loop, timer, kCFRunLoopDefaultMode);
    return timer;
}

static void tick(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
}

static void set_up(struct actor *actor)
{
    actor->loop = image_loop();
    tables_spare(true);
    (void)kernel_ports.channel_create(actor->pipe);
    actor->counter = kernel.event_create();
    tables_spare(false);
    actor->questions = add_source(actor, perform_questions);
    actor->answers = add_source(actor, perform_answers);
    actor->alarm = add_timer(actor, CFAbsoluteTimeGetCurrent() + 1e6, 1e6, fire_alarm);
    add_descriptor(actor);
    add_counter(actor);
    if (plan.has_ticker) {
        actor->ticker = add_timer(actor, CFAbsoluteTimeGetCurrent(), 0.002, tick);
    }
}

static bool all_are_ready(void *unused)
{
    (void)unused;
    return ready_count == plan.threads;
}

static bool is_turn(void *info)
{
    return arrived_count == plan.threads && turn == ((const struct actor *)info)->number;
}

/* Nobody else does anything any more: what was signalled must have been performed when this loop has run. */
static void check_wild_sources(const struct actor *actor)
{
    const CFStringRef modes[] = {kCFRunLoopDefaultMode, PRIVATE_MODE};

    for (int i = 0; i < 2; i++) {
        while (CFRunLoopRunInMode(modes[i], 0, true) == kCFRunLoopRunHandledSource) {
        }
        for (int k = 0; k < wild_count; k++) {
            const struct wild *wild = all_wild[k];

            if (!wild->is_invalid && wild->seen != wild->published && CFRunLoopContainsSource(actor->loop, wild->source, modes[i])) {
                scheduler_fail("a source was signalled %u times, and performed for %u of them", wild->published, wild->seen);
            }
        }
    }
}

static void tear_down(struct actor *actor)
{
    CFRunLoopSourceInvalidate(actor->questions);
    CFRelease(actor->questions);
    CFRunLoopSourceInvalidate(actor->answers);
    CFRelease(actor->answers);
    CFRunLoopSourceInvalidate(actor->counter_source);
    CFRelease(actor->counter_source);
    CFRunLoopTimerInvalidate(actor->alarm);
    CFRelease(actor->alarm);
    if (actor->ticker) {
        CFRunLoopTimerInvalidate(actor->ticker);
        CFRelease(actor->ticker);
    }
    CFFileDescriptorInvalidate(actor->descriptor);
    CFRelease(actor->descriptor);
    tables_spare(true);
    (void)kernel.close(actor->counter);
    (void)kernel.close(actor->pipe[0]);
    (void)kernel.close(actor->pipe[1]);
    tables_spare(false);
}

static void release_kept(void)
{
    for (int i = 0; i < kept_count; i++) {
        CFRelease(kept[i]);
    }
}

static void act(void *info)
{
    struct actor *actor = info;

    set_up(actor);
    ready_count++;
    (void)scheduler_wait(all_are_ready, NULL, never_ns);
    for (int i = 0; i < plan.steps; i++) {
        do_something(actor);
    }
    if (++done_count == plan.threads) {
        quit_all();
    }
    scheduler_note("done");
    while (!is_quitting) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, for_ever, false);
    }
    scheduler_note("waits for its turn to check");
    arrived_count++;
    (void)scheduler_wait(is_turn, actor, never_ns);
    check_wild_sources(actor);
    tear_down(actor);
    if (++turn == plan.threads) {
        release_kept();
    }
}

void loops_start(int process)
{
    for (int i = 0; i < plan.threads; i++) {
        actors[i].number = i;
        (void)scheduler_spawn(process, act, &actors[i]);
    }
}
