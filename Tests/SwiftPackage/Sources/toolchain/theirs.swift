// SPDX-License-Identifier: Apache-2.0
import CoreFoundation
import Foundation

nonisolated(unsafe) private var theirTicks = 0

func ticksOfTheToolchain() -> Int {
    let timer = CFRunLoopTimerCreate(kCFAllocatorDefault, CFAbsoluteTimeGetCurrent(), 0, 0, 0, { _, _ in theirTicks += 1 }, nil)
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode)
    while theirTicks < 1 { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false) }
    return theirTicks
}
