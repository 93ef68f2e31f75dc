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
        typealias Theirs = @convention(c) () -> CoreFoundation::CFRunLoop?
        typealias Ours = @convention(c) () -> CCoreRunLoop::CFRunLoop?
        #expect(isFoundations(unsafeBitCast(CoreFoundation::CFRunLoopGetCurrent as Theirs, to: UnsafeRawPointer.self)))
        #expect(!isFoundations(unsafeBitCast(CCoreRunLoop::CFRunLoopGetCurrent as Ours, to: UnsafeRawPointer.self)))
        typealias StopTheirs = @convention(c) (CoreFoundation::CFRunLoop?) -> Void
        typealias StopOurs = @convention(c) (CCoreRunLoop::CFRunLoop?) -> Void
        #expect(isFoundations(unsafeBitCast(CoreFoundation::CFRunLoopStop as StopTheirs, to: UnsafeRawPointer.self)))
        #expect(!isFoundations(unsafeBitCast(CCoreRunLoop::CFRunLoopStop as StopOurs, to: UnsafeRawPointer.self)))
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
        #expect(CoreFoundation::CFRunLoopRunInMode(theirs, 0, false) == .finished)
        CCoreRunLoop::CFRunLoopSourceInvalidate(source)
        #expect(CCoreRunLoop::CFRunLoopRunInMode(mode, 0, false) == .finished)
    }
}
