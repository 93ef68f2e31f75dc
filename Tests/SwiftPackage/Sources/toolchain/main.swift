// SPDX-License-Identifier: Apache-2.0
import CCoreRunLoop

nonisolated(unsafe) var ticks = 0
let timer: CFRunLoopTimer = CFRunLoopTimerCreate(
    nil, CFAbsoluteTimeGetCurrent(), 0.001, 0, 0,
    { timer, _ in
        ticks += 1
        if ticks == 2 { CFRunLoopTimerInvalidate(timer) }
    }, nil)
CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, CFRunLoopMode.defaultMode)
while ticks < 2 { CFRunLoopRunInMode(CFRunLoopMode.defaultMode, 0.01, false) }
print("\(ticks + ticksOfTheToolchain()) ticks")
