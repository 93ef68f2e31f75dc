// SPDX-License-Identifier: Apache-2.0
//
// The toolchain's Core Foundation and this library imported in one file. The importer takes declarations of one name in two modules for
// one, and would then call one library for both (Headers/Swift/CRLSwiftNames.h).
//
// Case: P9

import CCoreRunLoop
import CoreFoundation
import Foundation
import Testing

private func isFoundations(_ function: UnsafeRawPointer) -> Bool { home(of: function)?.contains("libFoundation") == true }

@Suite struct `The toolchain's Core Foundation imported beside us` {
    @Test func `keeps its functions, and we ours`() {
        typealias Theirs = @convention(c) (CoreFoundation::CFRunLoop?) -> Bool
        typealias Ours = @convention(c) (CCoreRunLoop::CFRunLoop?) -> Bool
        #expect(isFoundations(unsafeBitCast(CoreFoundation::CFRunLoopIsWaiting as Theirs, to: UnsafeRawPointer.self)))
        #expect(!isFoundations(unsafeBitCast(CCoreRunLoop::CFRunLoopIsWaiting as Ours, to: UnsafeRawPointer.self)))
        typealias WakeTheirs = @convention(c) (CoreFoundation::CFRunLoop?) -> Void
        typealias WakeOurs = @convention(c) (CCoreRunLoop::CFRunLoop?) -> Void
        #expect(isFoundations(unsafeBitCast(CoreFoundation::CFRunLoopWakeUp as WakeTheirs, to: UnsafeRawPointer.self)))
        #expect(!isFoundations(unsafeBitCast(CCoreRunLoop::CFRunLoopWakeUp as WakeOurs, to: UnsafeRawPointer.self)))
    }

    @Test func `has types of its own`() {
        #expect(CoreFoundation::CFRunLoop.self != CCoreRunLoop::CFRunLoop.self)
        #expect(CoreFoundation::CFRunLoopTimerContext.self != CCoreRunLoop::CFRunLoopTimerContext.self)
        #expect(CoreFoundation::CFRunLoopActivity.self != CCoreRunLoop::CFRunLoopActivity.self)
        #expect(CoreFoundation::CFRunLoopRunResult.self != CCoreRunLoop::CFRunLoopRunResult.self)
        #expect(CoreFoundation::CFRange.self != CCoreRunLoop::CFRange.self)
    }

    @Test func `has a loop of its own on a thread`() {
        let mode = CCoreRunLoop::CFStringCreateWithCString(nil, "mode", CCoreRunLoop::CFStringBuiltInEncodings.UTF8.rawValue)
        var context = CCoreRunLoop::CFRunLoopSourceContext()
        context.perform = { _ in }
        let source: CCoreRunLoop::CFRunLoopSource = CCoreRunLoop::CFRunLoopSourceCreate(nil, 0, &context)
        CCoreRunLoop::CFRunLoopAddSource(CCoreRunLoop::CFRunLoopGetCurrent(), source, mode)
        #expect(CCoreRunLoop::CFRunLoopRunInMode(mode, 0, false) == .timedOut)
        let theirs = CoreFoundation::CFStringCreateWithCString(nil, "mode", CoreFoundation::CFStringBuiltInEncodings.UTF8.rawValue)
        // The tests' program has CoreRunLoopFoundation in it, so a run of their loop serves ours (rule 803).
        #expect(CoreFoundation::CFRunLoopRunInMode(theirs, 0, false) == .timedOut)
        CCoreRunLoop::CFRunLoopSourceInvalidate(source)
        #expect(CoreFoundation::CFRunLoopRunInMode(theirs, 0, false) == .finished)
        #expect(CCoreRunLoop::CFRunLoopRunInMode(mode, 0, false) == .finished)
    }
}
