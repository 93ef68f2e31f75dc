/* SPDX-License-Identifier: Apache-2.0 */
/* See stop_signal.h. */
#include "stop_signal.h"

#include "CRLRunLoop.h"
#include "CoreFoundation/CoreFoundation.h"

static void stop_run(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info)
{
    (void)source;
    (void)signal;
    CFRunLoopStop(info);
}

void stop_on(int signal)
{
    CRLSourceContext context = {0, CFRunLoopGetCurrent(), NULL, NULL, NULL};
    CFRunLoopSourceRef source = CRLSignalSourceCreate(NULL, signal, 0, stop_run, &context);

    if (source) {
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
        CFRelease(source);
    }
}
