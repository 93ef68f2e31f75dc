/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes, offsets and values that programs compiled elsewhere rely on; checked by the compiler, so that the tests below only say so.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <CoreServices/CoreServices.h>
#include <stddef.h>

#include "CRLRunLoop.h"
#include "harness.h"

#if defined(__LP64__)
_Static_assert(sizeof(CFRunLoopSourceContext) == 80, "version-0 context");
_Static_assert(sizeof(CFRunLoopSourceContext1) == 72, "version-1 context");
_Static_assert(sizeof(CFRunLoopObserverContext) == 40, "observer context");
_Static_assert(sizeof(CFRunLoopTimerContext) == 40, "timer context");
_Static_assert(sizeof(CFFileDescriptorContext) == 40, "file descriptor context");
_Static_assert(sizeof(CRLSourceContext) == 40, "signal and child source context");
_Static_assert(offsetof(CFRunLoopSourceContext, schedule) == 56, "after the seven members that both versions share");
_Static_assert(offsetof(CFRunLoopSourceContext1, getPort) == 56, "after the seven members that both versions share");
_Static_assert(sizeof(CFIndex) == 8 && sizeof(CFOptionFlags) == 8 && sizeof(CFTypeID) == 8 && sizeof(CFHashCode) == 8, "words");
#endif
_Static_assert(sizeof(CFRunLoopRunResult) == 4, "results are 32 bits wide");
_Static_assert(sizeof(CFRunLoopActivity) == sizeof(CFOptionFlags), "activities are flags");
_Static_assert(sizeof(Boolean) == 1 && (Boolean)2 == 1, "a Boolean is a bool");
_Static_assert(sizeof(CFAbsoluteTime) == 8 && sizeof(CFTimeInterval) == 8, "times are doubles");
_Static_assert(sizeof(OSStatus) == 4 && sizeof(MPTaskID) == sizeof(void *), "as in Apple's headers");

_Static_assert(kCFRunLoopRunFinished == 1 && kCFRunLoopRunStopped == 2, "results");
_Static_assert(kCFRunLoopRunTimedOut == 3 && kCFRunLoopRunHandledSource == 4, "results");
_Static_assert(kCFRunLoopEntry == 1 && kCFRunLoopBeforeTimers == 2 && kCFRunLoopBeforeSources == 4, "activities");
_Static_assert(kCFRunLoopBeforeWaiting == 32 && kCFRunLoopAfterWaiting == 64 && kCFRunLoopExit == 128, "activities");
_Static_assert(kCFRunLoopAllActivities == 0x0FFFFFFF, "activities");
_Static_assert(kCFFileDescriptorReadCallBack == 1 && kCFFileDescriptorWriteCallBack == 2, "kinds of callback");
_Static_assert(noErr == 0 && paramErr == -50 && kMPInsufficientResourcesErr == -29298, "results of tasks");

TEST(layouts_and_values_are_as_compiled_programs_expect_them, "47")
{
    EXPECT(kCFRunLoopRunHandledSource == 4);
}

TEST(the_mode_constants_spell_their_own_names, "")
{
    EXPECT(CFEqual(kCFRunLoopDefaultMode, CFSTR("kCFRunLoopDefaultMode")));
    EXPECT(CFEqual(kCFRunLoopCommonModes, CFSTR("kCFRunLoopCommonModes")));
    EXPECT(CFEqual(NSConnectionReplyMode, CFSTR("NSConnectionReplyMode")));
    EXPECT(CFEqual(NSModalPanelRunLoopMode, CFSTR("NSModalPanelRunLoopMode")));
    EXPECT(CFEqual(NSEventTrackingRunLoopMode, CFSTR("NSEventTrackingRunLoopMode")));
}
