// SPDX-License-Identifier: Apache-2.0
//
// Darwin's spellings, as far as the importer can give them. Most of this is proved by compiling.

import CCoreRunLoop
import Testing

@Test func `results are spelled as on Darwin`() {
    let result: CFRunLoopRunResult = CFRunLoopRunInMode(CFRunLoopMode.defaultMode, 0, false)
    switch result {
    case .finished: break
    case .stopped, .timedOut, .handledSource: Issue.record("an empty mode is finished")
    @unknown default: Issue.record("no such result: \(result.rawValue)")
    }
    #expect(CFRunLoopRunResult.handledSource.rawValue == 4)
}

@Test func `activities are an option set`() {
    let activities: CFRunLoopActivity = [.entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit]
    #expect(activities.rawValue == 0b1110_0111)
    #expect(CFRunLoopActivity.allActivities.isSuperset(of: activities))
    #expect(activities.contains(.beforeWaiting))
}

@Test func `modes are members and constants`() {
    #expect(CFStringCompare(kCFRunLoopDefaultMode, .defaultMode, []) == .compareEqualTo)
    #expect(CFStringCompare(kCFRunLoopCommonModes, .commonModes, []) == .compareEqualTo)
    #expect(CFStringCompare(.defaultMode, .commonModes, []) != .compareEqualTo)
}

@Test func `a Ref is its class by another name`() {
    #expect(CFRunLoopRef.self == CFRunLoop.self)
    #expect(CFStringRef.self == CFString.self)
    #expect(CFMutableStringRef.self == CFMutableString.self)
    #expect(CFFileDescriptorRef.self == CFFileDescriptor.self)
    #expect(CFSocketRef.self == CFSocket.self)
    #expect(CFMachPortRef.self == CFMachPort.self)
}

@Test func `names of the structures`() {
    let range = CFRange(location: 1, length: 2)
    #expect(range.location + range.length == 3)
    let time: CFAbsoluteTime = CFAbsoluteTimeGetCurrent()
    let interval: CFTimeInterval = 1
    #expect(time + interval > 0)
}

@Test func `constants without a type of their own have Darwin's types`() {
    let types: CFOptionFlags = kCFFileDescriptorReadCallBack | kCFFileDescriptorWriteCallBack
    let flags: CFOptionFlags = kCFSocketAutomaticallyReenableReadCallBack | kCFSocketCloseOnInvalidate
    let result: Int32 = kCFMessagePortTransportError
    #expect(types == 3)
    #expect(flags == 129)
    #expect(result < kCFMessagePortSuccess)
}
