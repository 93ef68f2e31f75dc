/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input, function by function: a missing or mistaken object stops with one sentence that names the function; a mode that is no name,
 * a date that is no number, a descriptor that is none and memory that is not there get what the header says. Nothing is lost and nothing
 * spins.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CFFileDescriptor.h"
#include "Loop/loop_trace.h"
#include "Runtime/Object/counting_allocator.h"
#include "fake_kernel.h"

/* ---- objects ---- */

TEST(a_missing_loop_stops_with_a_sentence_everywhere, "2")
{
    static struct probe a = PROBE("S0", NULL);
    static struct probe b = PROBE("T", NULL);
    static struct probe c = PROBE("o", NULL);
    CFRunLoopSourceRef source = probe_source(&a, 0);
    CFRunLoopTimerRef timer = probe_timer(&b, 1, 1);
    CFRunLoopObserverRef observer = probe_observer(&c, kCFRunLoopEntry, true, 0);
    const CFStringRef mode = MODE;

    EXPECT_STOPS("CFRunLoopCopyCurrentMode: the loop is NULL", { (void)CFRunLoopCopyCurrentMode(NULL); });
    EXPECT_STOPS("CFRunLoopCopyAllModes: the loop is NULL", { (void)CFRunLoopCopyAllModes(NULL); });
    EXPECT_STOPS("CFRunLoopAddCommonMode: the loop is NULL", { CFRunLoopAddCommonMode(NULL, mode); });
    EXPECT_STOPS("CFRunLoopGetNextTimerFireDate: the loop is NULL", { (void)CFRunLoopGetNextTimerFireDate(NULL, mode); });
    EXPECT_STOPS("CFRunLoopIsWaiting: the loop is NULL", { (void)CFRunLoopIsWaiting(NULL); });
    EXPECT_STOPS("CFRunLoopWakeUp: the loop is NULL", { CFRunLoopWakeUp(NULL); });
    EXPECT_STOPS("CFRunLoopStop: the loop is NULL", { CFRunLoopStop(NULL); });
    EXPECT_STOPS("CRLRunLoopSetBusyWait: the loop is NULL", { CRLRunLoopSetBusyWait(NULL, 1); });
    EXPECT_STOPS("CRLRunLoopGetBusyWait: the loop is NULL", { (void)CRLRunLoopGetBusyWait(NULL); });
    EXPECT_STOPS("CRLRunLoopSetStallHandler: the loop is NULL", { (void)CRLRunLoopSetStallHandler(NULL, 1, NULL, NULL, NULL); });
    EXPECT_STOPS("CRLRunLoopPerformFunction: the loop is NULL", { CRLRunLoopPerformFunction(NULL, mode, NULL, NULL, NULL); });
    EXPECT_STOPS("CFRunLoopAddSource: the loop is NULL", { CFRunLoopAddSource(NULL, source, mode); });
    EXPECT_STOPS("CFRunLoopRemoveSource: the loop is NULL", { CFRunLoopRemoveSource(NULL, source, mode); });
    EXPECT_STOPS("CFRunLoopContainsSource: the loop is NULL", { (void)CFRunLoopContainsSource(NULL, source, mode); });
    EXPECT_STOPS("CFRunLoopAddTimer: the loop is NULL", { CFRunLoopAddTimer(NULL, timer, mode); });
    EXPECT_STOPS("CFRunLoopRemoveTimer: the loop is NULL", { CFRunLoopRemoveTimer(NULL, timer, mode); });
    EXPECT_STOPS("CFRunLoopContainsTimer: the loop is NULL", { (void)CFRunLoopContainsTimer(NULL, timer, mode); });
    EXPECT_STOPS("CFRunLoopAddObserver: the loop is NULL", { CFRunLoopAddObserver(NULL, observer, mode); });
    EXPECT_STOPS("CFRunLoopRemoveObserver: the loop is NULL", { CFRunLoopRemoveObserver(NULL, observer, mode); });
    EXPECT_STOPS("CFRunLoopContainsObserver: the loop is NULL", { (void)CFRunLoopContainsObserver(NULL, observer, mode); });
    CFRelease(source);
    CFRelease(timer);
    CFRelease(observer);
}

TEST(a_missing_item_stops_with_a_sentence_everywhere, "2")
{
    CFRunLoopRef loop = LOOP;
    const CFStringRef mode = MODE;

    EXPECT_STOPS("CFRunLoopAddSource: the source is NULL", { CFRunLoopAddSource(loop, NULL, mode); });
    EXPECT_STOPS("CFRunLoopRemoveSource: the source is NULL", { CFRunLoopRemoveSource(loop, NULL, mode); });
    EXPECT_STOPS("CFRunLoopContainsSource: the source is NULL", { (void)CFRunLoopContainsSource(loop, NULL, mode); });
    EXPECT_STOPS("CFRunLoopAddTimer: the timer is NULL", { CFRunLoopAddTimer(loop, NULL, mode); });
    EXPECT_STOPS("CFRunLoopRemoveTimer: the timer is NULL", { CFRunLoopRemoveTimer(loop, NULL, mode); });
    EXPECT_STOPS("CFRunLoopContainsTimer: the timer is NULL", { (void)CFRunLoopContainsTimer(loop, NULL, mode); });
    EXPECT_STOPS("CFRunLoopAddObserver: the observer is NULL", { CFRunLoopAddObserver(loop, NULL, mode); });
    EXPECT_STOPS("CFRunLoopRemoveObserver: the observer is NULL", { CFRunLoopRemoveObserver(loop, NULL, mode); });
    EXPECT_STOPS("CFRunLoopContainsObserver: the observer is NULL", { (void)CFRunLoopContainsObserver(loop, NULL, mode); });
    EXPECT_STOPS("CFRunLoopSourceSignal: ", { CFRunLoopSourceSignal(NULL); });
    EXPECT_STOPS("CFRunLoopSourceInvalidate: ", { CFRunLoopSourceInvalidate(NULL); });
    EXPECT_STOPS("CFRunLoopSourceIsValid: ", { (void)CFRunLoopSourceIsValid(NULL); });
    EXPECT_STOPS("CFRunLoopSourceGetOrder: ", { (void)CFRunLoopSourceGetOrder(NULL); });
    EXPECT_STOPS("CFRunLoopSourceIsSignalled: ", { (void)CFRunLoopSourceIsSignalled(NULL); });
    EXPECT_STOPS("CFRunLoopTimerInvalidate: ", { CFRunLoopTimerInvalidate(NULL); });
    EXPECT_STOPS("CFRunLoopTimerIsValid: ", { (void)CFRunLoopTimerIsValid(NULL); });
    EXPECT_STOPS("CFRunLoopTimerGetNextFireDate: ", { (void)CFRunLoopTimerGetNextFireDate(NULL); });
    EXPECT_STOPS("CFRunLoopTimerSetNextFireDate: ", { CFRunLoopTimerSetNextFireDate(NULL, 0); });
    EXPECT_STOPS("CFRunLoopTimerGetInterval: ", { (void)CFRunLoopTimerGetInterval(NULL); });
    EXPECT_STOPS("CFRunLoopTimerDoesRepeat: ", { (void)CFRunLoopTimerDoesRepeat(NULL); });
    EXPECT_STOPS("CFRunLoopTimerGetOrder: ", { (void)CFRunLoopTimerGetOrder(NULL); });
    EXPECT_STOPS("CFRunLoopTimerGetTolerance: ", { (void)CFRunLoopTimerGetTolerance(NULL); });
    EXPECT_STOPS("CFRunLoopTimerSetTolerance: ", { CFRunLoopTimerSetTolerance(NULL, 0); });
    EXPECT_STOPS("CFRunLoopObserverInvalidate: ", { CFRunLoopObserverInvalidate(NULL); });
    EXPECT_STOPS("CFRunLoopObserverIsValid: ", { (void)CFRunLoopObserverIsValid(NULL); });
    EXPECT_STOPS("CFRunLoopObserverGetActivities: ", { (void)CFRunLoopObserverGetActivities(NULL); });
    EXPECT_STOPS("CFRunLoopObserverDoesRepeat: ", { (void)CFRunLoopObserverDoesRepeat(NULL); });
    EXPECT_STOPS("CFRunLoopObserverGetOrder: ", { (void)CFRunLoopObserverGetOrder(NULL); });
}

/* A literal, an object of another class of this library, and each class in the place of another. */
TEST(an_object_of_another_type_stops_with_a_sentence, "2")
{
    static struct probe a = PROBE("S0", NULL);
    static struct probe b = PROBE("T", NULL);
    CFRunLoopRef loop = LOOP;
    const CFStringRef mode = MODE;
    CFRunLoopSourceRef source = probe_source(&a, 0);
    CFRunLoopTimerRef timer = probe_timer(&b, 1, 1);
    void *of_source = source;
    void *of_timer = timer;
    void *of_string = (void *)(uintptr_t)CFSTR("text");

    EXPECT_STOPS("CFRunLoopWakeUp: the loop", { CFRunLoopWakeUp(of_string); });
    EXPECT_STOPS("CFRunLoopStop: the loop", { CFRunLoopStop(of_source); });
    EXPECT_STOPS("CFRunLoopAddSource: the source", { CFRunLoopAddSource(loop, of_timer, mode); });
    EXPECT_STOPS("CFRunLoopAddTimer: the timer", { CFRunLoopAddTimer(loop, of_source, mode); });
    EXPECT_STOPS("CFRunLoopAddObserver: the observer", { CFRunLoopAddObserver(loop, of_timer, mode); });
    EXPECT_STOPS("CFRunLoopSourceSignal: ", { CFRunLoopSourceSignal(of_timer); });
    EXPECT_STOPS("CFRunLoopTimerInvalidate: ", { CFRunLoopTimerInvalidate(of_string); });
    EXPECT_STOPS("CFRunLoopObserverInvalidate: ", { CFRunLoopObserverInvalidate(of_source); });
    CFRelease(source);
    CFRelease(timer);
}

/* ---- modes ---- */

static CFTypeRef no_mode;
static int released;

static void counts_release(void *info)
{
    (void)info;
    released++;
}

static void fails(void *info)
{
    (void)info;
    FAIL("called");
}

static void use_what_is_no_mode(void)
{
    CFStringRef mode = no_mode;
    static struct probe a = {.name = "S0", .logging = probe_logs_membership};
    static struct probe b = PROBE("T", NULL);
    static struct probe c = PROBE("o", NULL);
    CFRunLoopSourceRef source = probe_source(&a, 0);
    CFRunLoopTimerRef timer = probe_timer(&b, 0, 1);
    CFRunLoopObserverRef observer = probe_observer(&c, kCFRunLoopAllActivities, true, 0);

    CFRunLoopAddSource(LOOP, source, mode);
    CFRunLoopRemoveSource(LOOP, source, mode);
    EXPECT(!CFRunLoopContainsSource(LOOP, source, mode));
    CFRunLoopAddTimer(LOOP, timer, mode);
    CFRunLoopRemoveTimer(LOOP, timer, mode);
    EXPECT(!CFRunLoopContainsTimer(LOOP, timer, mode));
    CFRunLoopAddObserver(LOOP, observer, mode);
    CFRunLoopRemoveObserver(LOOP, observer, mode);
    EXPECT(!CFRunLoopContainsObserver(LOOP, observer, mode));
    CFRunLoopAddCommonMode(LOOP, mode);
    EXPECT(CFRunLoopGetNextTimerFireDate(LOOP, mode) == 0.0);
    EXPECT_EQ(CFRunLoopRunInMode(mode, 1000, false), kCFRunLoopRunFinished);
    EXPECT(!CRLRunLoopPrepare(LOOP, mode));
    released = 0;
    CRLRunLoopPerformFunction(LOOP, mode, fails, NULL, counts_release);
    EXPECT_EQ(released, 1);
    CFRelease(source);
    CFRelease(timer);
    CFRelease(observer);
}

static void use_it_twice(void)
{
    use_what_is_no_mode();
    use_what_is_no_mode();
}

TEST(what_is_no_mode_changes_nothing, "24 161")
{
    CFArrayRef modes;

    no_mode = NULL;
    EXPECT_EQ(logged_lines("a mode is NULL or not a string", use_it_twice), 1);
    no_mode = CFNumberCreate(NULL, kCFNumberIntType, &(int){7});
    use_what_is_no_mode();
    CFRelease(no_mode);
    no_mode = LOOP;
    use_what_is_no_mode();
    EXPECT_LOG("");
    modes = CFRunLoopCopyAllModes(LOOP);
    EXPECT_EQ(CFArrayGetCount(modes), 1);
    CFRelease(modes);
}

TEST(a_mode_may_have_any_name, "12")
{
    static struct probe probe = PROBE("S0", NULL);
    UniChar odd[] = {0, 0xd800, 'x', 0xffff}; /* a zero, half a pair */
    CFStringRef names[3] = {CFSTR(""), CFStringCreateWithCharacters(NULL, odd, 4), NULL};
    CFMutableStringRef longest = CFStringCreateMutable(NULL, 0);

    for (int i = 0; i < 10000; i++) {
        CFStringAppend(longest, CFSTR("0123456789"));
    }
    names[2] = longest;
    for (int i = 0; i < 3; i++) {
        if (!names[i]) {
            continue;
        }
        CFRunLoopSourceSignal(probe_source_add(&probe, 0, LOOP, names[i]));
        probe_run(names[i], 0, true);
        EXPECT_LOG("S0 HS");
        EXPECT(probe_mode_exists(LOOP, names[i]));
        CFRunLoopSourceInvalidate(probe_source_of(&probe));
    }
    if (names[1]) {
        CFRelease(names[1]);
    }
    CFRelease(longest);
}

/* ---- times ---- */

TEST(no_time_limit_spins_or_hangs, "43 L13 L14")
{
    static const double none[] = {0, -0.0, -1, -1e300, -INFINITY, NAN, 1e-12, 5e-324};
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};
    static struct probe stop = {.name = "T", .action = probe_stops_loop, .logging = probe_is_silent};
    static const double for_ever[] = {1e300, INFINITY, 504911232.5, 1e10, 1.7976931348623157e308};

    clock_start();
    probe_source_add(&idle, 0, LOOP, MODE);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, none[i], false), kCFRunLoopRunTimedOut);
    }
    EXPECT(fake_kernel_sleeps() <= 2);
    EXPECT(fake_kernel_elapsed_ns() <= 2);
    probe_timer_add(&stop, 1000, 1000, LOOP, MODE);
    for (size_t i = 0; i < sizeof for_ever / sizeof for_ever[0]; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, for_ever[i], false), kCFRunLoopRunStopped);
    }
    CFRunLoopTimerInvalidate(probe_timer_of(&stop));
}

TEST(no_date_or_interval_spins_or_hangs, "109 113 T1 T2 T3 T4 T5")
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 0, -1, 5e-324, 1e-300, -5e-324, 1e9, -0.0};
    enum { count = sizeof odd / sizeof odd[0] };
    static struct probe probes[count * count];
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};

    clock_start();
    probe_source_add(&idle, 0, LOOP, MODE);
    for (int i = 0; i < count * count; i++) {
        CFRunLoopTimerRef timer;

        probes[i] = (struct probe){.name = "T", .logging = probe_is_silent};
        timer = probe_timer_at(&probes[i], odd[i / count], odd[i % count]);
        REQUIRE(timer != NULL);
        CFRunLoopTimerSetTolerance(timer, odd[(i + 3) % count]);
        CFRunLoopTimerSetNextFireDate(timer, odd[i / count]);
        CFRunLoopAddTimer(LOOP, timer, MODE);
        (void)CFRunLoopGetNextTimerFireDate(LOOP, MODE);
    }
    for (int i = 0; i < 20; i++) {
        (void)CFRunLoopRunInMode(MODE, 0, false);
        fake_kernel_advance(1000000);
    }
    for (int i = 0; i < count * count; i++) {
        CFRunLoopTimerRef timer = probe_timer_of(&probes[i]);

        EXPECT(probes[i].calls <= 20);
        EXPECT(!(odd[i / count] != odd[i / count]) || probes[i].calls == 0); /* a date that is no number never comes */
        CFRunLoopTimerInvalidate(timer);
        CFRelease(timer);
    }
}

/* ---- descriptors ---- */

static struct rlimit free_memory;

/* A table as large as the largest number would need gigabytes, which then are not there. */
static void limit_memory(rlim_t bytes)
{
    struct rlimit limit;

    getrlimit(RLIMIT_AS, &free_memory);
    limit = free_memory;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_AS, &limit);
}

TEST(numbers_that_are_no_descriptors_never_fire, "98 101 106")
{
    static const int numbers[] = {-1, -2, INT_MIN, 999, 65536, INT_MAX};
    static struct probe probes[sizeof numbers / sizeof numbers[0]];
    static struct probe source = PROBE("S0", NULL);

    if (!test_is_instrumented()) {
        limit_memory((rlim_t)1 << 30);
    }
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i] > 65536 && test_is_instrumented()) {
            continue;
        }
        probes[i] = (struct probe)PROBE("S1", NULL);
        CFRunLoopAddSource(LOOP, probe_port_source(&probes[i], 0, numbers[i]), MODE); /* or not, for want of memory */
    }
    for (int i = 0; i < 5; i++) {
        (void)CFRunLoopRunInMode(MODE, 0.001, false);
    }
    EXPECT_LOG("S0");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (probes[i].item) {
            EXPECT(CFRunLoopSourceIsValid(probe_source_of(&probes[i])));
            probe_invalidate(&probes[i]);
            CFRelease(probe_source_of(&probes[i]));
        }
    }
}

/* ---- memory ---- */

static void timer_fails(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    FAIL("called");
}

static void observer_fails(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
    FAIL("called");
}

static void descriptor_fails(CFFileDescriptorRef descriptor, CFOptionFlags kinds, void *info)
{
    (void)descriptor, (void)kinds, (void)info;
    FAIL("called");
}

TEST(an_allocator_that_fails_gives_null, "74")
{
    struct counting counting;
    static struct probe probe = {.name = "x"};
    CFRunLoopSourceContext source = {.info = &probe};
    CFRunLoopTimerContext timer = {.info = &probe};
    CFRunLoopObserverContext observer = {.info = &probe};

    counting_open(&counting, 0, 0);
    EXPECT(CFRunLoopSourceCreate(counting.allocator, 0, &source) == NULL);
    EXPECT(CFRunLoopTimerCreate(counting.allocator, 0, 0, 0, 0, NULL, &timer) == NULL);
    EXPECT(CFRunLoopObserverCreate(counting.allocator, 0, false, 0, NULL, &observer) == NULL);
    released = 0;
    EXPECT(CRLRunLoopTimerCreateWithFunction(counting.allocator, 0, 0, 0, 0, timer_fails, NULL, counts_release) == NULL);
    EXPECT(CRLRunLoopObserverCreateWithFunction(counting.allocator, 0, false, 0, observer_fails, NULL, counts_release) == NULL);
    EXPECT_EQ(released, 0);
    EXPECT(CFFileDescriptorCreate(counting.allocator, 0, false, descriptor_fails, NULL) == NULL);
    counting_close(&counting);
}

enum { blocks_most = 1 << 20 };
static void *blocks[blocks_most];
static int block_count;

static void give_back_memory(void)
{
    setrlimit(RLIMIT_AS, &free_memory);
    while (block_count > 0) {
        free(blocks[--block_count]);
    }
}

/* Takes everything that malloc has, down to the smallest blocks. */
static void use_up_memory(void)
{
    limit_memory(1);
    /* The thread's cache keeps blocks of each small size, which no other size is served from. */
    for (size_t size = (size_t)1 << 20; size >= 16; size = size > 1024 ? size / 2 : size - 16) {
        void *block;

        while (block_count < blocks_most && (block = malloc(size)) != NULL) {
            blocks[block_count++] = block;
        }
    }
}

static struct probe hungry_source = PROBE("S0", NULL);
static struct probe hungry_timer = PROBE("T", NULL);
static struct probe hungry_observer = PROBE("o", NULL);
static struct probe known_source = PROBE("A", NULL);
static int hungry_event;
static CFIndex known_modes;

static void starve(void)
{
    CFStringRef fresh = CFSTR("a mode that is not there yet");
    CFRunLoopSourceContext context = {.info = &context};

    use_up_memory();
    EXPECT(CFRunLoopSourceCreate(NULL, 0, &context) == NULL);
    EXPECT(CFFileDescriptorCreate(NULL, hungry_event, false, descriptor_fails, NULL) == NULL);
    CFRunLoopAddSource(LOOP, probe_source_of(&hungry_source), fresh);
    CFRunLoopAddTimer(LOOP, probe_timer_of(&hungry_timer), fresh);
    CFRunLoopAddObserver(LOOP, probe_observer_of(&hungry_observer), fresh);
    CFRunLoopAddObserver(LOOP, probe_observer_of(&hungry_observer), MODE);
    CFRunLoopAddCommonMode(LOOP, fresh);
    EXPECT(!CFRunLoopContainsSource(LOOP, probe_source_of(&hungry_source), fresh));
    EXPECT(!CFRunLoopContainsTimer(LOOP, probe_timer_of(&hungry_timer), fresh));
    EXPECT_EQ(CFRunLoopRunInMode(fresh, 1000, false), kCFRunLoopRunFinished);
    released = 0;
    for (int i = 0; i < 3; i++) {
        CRLRunLoopPerformFunction(LOOP, fresh, fails, NULL, counts_release);
    }
    EXPECT_EQ(released, 3); /* refused at once, and said so */
    CFArrayRef modes = CFRunLoopCopyAllModes(LOOP); /* what has been given back by now may be enough for it; then it is all */
    EXPECT(!modes || CFArrayGetCount(modes) >= known_modes);
    if (modes) {
        CFRelease(modes);
    }
    /* What is there goes on working. */
    CFRunLoopSourceSignal(probe_source_of(&known_source));
    CFRunLoopWakeUp(LOOP);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1000, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(known_source.calls, 1);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.001, false), kCFRunLoopRunTimedOut);
    give_back_memory();
}

TEST(memory_that_runs_out_refuses_and_breaks_nothing, "167 F7")
{
    if (test_is_instrumented()) {
        SKIP("the tool needs memory of its own");
    }
    clock_start();
    known_source.logging = probe_is_silent;
    hungry_event = probe_event();
    probe_source_add(&known_source, 0, LOOP, MODE);
    CFRunLoopSourceRef source = probe_source(&hungry_source, 0);
    CFRunLoopTimerRef timer = probe_timer(&hungry_timer, 1, 1);
    CFRunLoopObserverRef observer = probe_observer(&hungry_observer, kCFRunLoopAllActivities, true, 0);
    CFRunLoopSourceRef port;
    static struct probe poor_port = PROBE("S1", NULL);

    (void)CFRunLoopRunInMode(MODE, 0, false);
    CFArrayRef modes = CFRunLoopCopyAllModes(LOOP);
    known_modes = CFArrayGetCount(modes);
    CFRelease(modes);
    EXPECT(known_modes >= 1);
    EXPECT(logged_lines("there is no memory", starve) >= 1);
    /* With memory again, everything can be done that was refused. */
    CFRunLoopAddSource(LOOP, source, MODE);
    CFRunLoopAddTimer(LOOP, timer, MODE);
    CFRunLoopSourceSignal(source);
    port = probe_port_source_add(&poor_port, 0, hungry_event, LOOP, MODE);
    probe_event_post(hungry_event);
    (void)CFRunLoopRunInMode(MODE, 1.5, false);
    EXPECT_EQ(hungry_source.calls, 1);
    EXPECT_EQ(hungry_timer.calls, 1);
    EXPECT_EQ(poor_port.calls, 1);
    CFRunLoopSourceInvalidate(port);
    CFRunLoopTimerInvalidate(timer);
    CFRunLoopObserverInvalidate(observer);
    CFRelease(source);
    CFRelease(timer);
    CFRelease(observer);
    close(hungry_event);
}
