/* SPDX-License-Identifier: Apache-2.0 */
/* Queued blocks: rules 26 and 161 to 169. All of them need a compiler with blocks. */
#define CONFORMANCE_GROUP "blocks"
#include "conformance.h"

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

#if defined(__BLOCKS__)

static void queue(CFTypeRef mode, const char *token)
{
    CFRunLoopPerformBlock(LOOP, mode, ^{
        probe_log(token);
    });
}

CASE(block_is_copied, "161", on_thread)
{
    int value = 1;
    probe_stage(MODE);
    CFRunLoopPerformBlock(LOOP, MODE, ^{
        probe_note("B%d", value);
    });
    value = 2;
    probe_run(MODE, 0, false);
}

CASE(block_for_an_array_of_modes_runs_once, "161 164 26", on_thread)
{
    const void *names[] = {MODE, CFSTR("M")};
    CFArrayRef modes = CFArrayCreate(NULL, names, 2, &kCFTypeArrayCallBacks);
    queue(modes, "B");
    CFRelease(modes);
    probe_run(CFSTR("M"), 0, false);
    probe_run(MODE, 0, false);
}

CASE(block_for_a_set_of_modes, "161 26", on_thread)
{
    const void *names[] = {CFSTR("M"), CFSTR("N")};
    CFSetRef modes = CFSetCreate(NULL, names, 2, &kCFTypeSetCallBacks);
    queue(modes, "B");
    CFRelease(modes);
    probe_run(MODE, 0, false);
    probe_run(CFSTR("N"), 0, false);
    probe_run(CFSTR("M"), 0, false);
}

CASE(block_for_something_else_is_ignored, "161", on_thread)
{
    int number = 5;
    CFNumberRef five = CFNumberCreate(NULL, kCFNumberIntType, &number);
    queue(five, "B");
    CFRelease(five);
    CFRunLoopPerformBlock(LOOP, MODE, NULL);
    probe_run(MODE, 0, false);
}

CASE(blocks_run_in_order_among_the_runnable, "163", on_thread)
{
    queue(CFSTR("M"), "M1");
    queue(MODE, "D1");
    queue(kCFRunLoopCommonModes, "C1");
    queue(CFSTR("M"), "M2");
    queue(MODE, "D2");
    probe_run(MODE, 0, false);
    queue(CFSTR("M"), "M3");
    probe_run(CFSTR("M"), 0, false);
}

CASE(common_modes_of_a_block_are_those_at_run_time, "165 26", on_thread)
{
    queue(kCFRunLoopCommonModes, "C");
    queue(CFSTR("M"), "M");
    probe_run(CFSTR("M"), 0, false);
    queue(CFSTR("M"), "M");
    CFRunLoopAddCommonMode(LOOP, CFSTR("M"));
    probe_run(CFSTR("M"), 0, false);
    probe_run(MODE, 0, false);
}

CASE(block_for_common_modes_in_an_array, "165 161", on_thread)
{
    const void *names[] = {kCFRunLoopCommonModes};
    CFArrayRef modes = CFArrayCreate(NULL, names, 1, &kCFTypeArrayCallBacks);
    queue(modes, "C");
    CFRelease(modes);
    probe_run(MODE, 0, false);
}

CASE(block_queued_by_a_block_waits_for_the_next_slot, "166", on_thread)
{
    probe_stage(MODE);
    CFRunLoopPerformBlock(LOOP, MODE, ^{
        probe_log("B1");
        queue(MODE, "B2");
    });
    queue(MODE, "B1'");
    probe_run(MODE, 0.02, false);
    CFRunLoopPerformBlock(LOOP, MODE, ^{
        probe_log("B3");
        queue(MODE, "B4");
    });
    probe_run(MODE, 0, false);
}

static void queues_for(void *context)
{
    CFRunLoopRef loop = context;
    CFRunLoopPerformBlock(loop, MODE, ^{
        probe_note_bool("B", CFRunLoopGetCurrent() == loop);
    });
    CFRunLoopWakeUp(loop);
}

CASE(block_from_another_thread, "167 162", on_thread)
{
    struct probe_thread other;
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, queues_for, LOOP);
    probe_run(MODE, 0.3, false);
    probe_thread_join(&other);
}

static void never_runs_its_loop(void *context)
{
    (void)context;
    queue(MODE, "never");
    probe_log("queued");
}

CASE(block_of_a_loop_that_never_runs, "167", on_thread)
{
    probe_on_thread(never_runs_its_loop, NULL);
    probe_log("ended");
}

CASE(queueing_makes_the_mode, "169", on_thread)
{
    queue(CFSTR("M"), "B");
    CFArrayRef modes = CFRunLoopCopyAllModes(LOOP);
    probe_note("modes=%ld", (long)CFArrayGetCount(modes));
    CFRelease(modes);
    probe_run(CFSTR("M"), 0, false);
}

CASE(blocks_do_not_count_as_handled, "51", on_thread)
{
    probe_stage(MODE);
    queue(MODE, "B");
    probe_run(MODE, 0.02, true);
}

CASE(nested_run_takes_the_later_blocks, "163 166", on_thread)
{
    probe_stage(MODE);
    CFRunLoopPerformBlock(LOOP, MODE, ^{
        probe_log("B1{");
        probe_run(MODE, 0, false);
        probe_log("}");
    });
    queue(MODE, "B2");
    probe_run(MODE, 0, false);
}

CASE(stop_in_a_block, "30 59", on_thread)
{
    probe_stage(MODE);
    CFRunLoopPerformBlock(LOOP, MODE, ^{
        probe_log("stop");
        CFRunLoopStop(CFRunLoopGetCurrent());
    });
    queue(MODE, "B2");
    probe_run(MODE, 100, false);
}

#endif
