/* SPDX-License-Identifier: Apache-2.0 */
/* A timer that fires once, after which the loop is empty and its run ends. */
#include <CoreFoundation/CoreFoundation.h>
#include <stdio.h>

static void beat(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    puts((const char *)info);
}

int main(void)
{
    CFRunLoopTimerContext context = {0, "beat", NULL, NULL, NULL};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0, 0, 0, beat, &context);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    CFRelease(timer);
    return CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, false) == kCFRunLoopRunFinished ? 0 : 1;
}
