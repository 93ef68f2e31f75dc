// SPDX-License-Identifier: Apache-2.0
//
// How the C interface's values print, and the classes that wrap its objects. Otherwise the importer's own names of the enumerations would
// show. The enumerations have the conformance that printing falls back to. So a program can still add its own CustomStringConvertible, as
// it may on Darwin.

public import CCoreRunLoop

extension CFObject {
    /// The result of `CFCopyDescription`; for a string the string itself.
    public var debugDescription: String {
        CFCopyDescription(self).map { String($0) } ?? ""
    }
}

/// Returns the object's description: the C function of this name, whose parameter on Darwin takes every object.
public func CFCopyDescription<Object: CFObject>(_ object: Object?) -> CFString? {
    withExtendedLifetime(object) { object.flatMap { unsafe CCoreRunLoop.CFCopyDescription($0.address) } }
}

/// How many references there are to the object: the C function of this name, whose parameter on Darwin takes every object.
public func CFGetRetainCount<Object: CFObject>(_ object: Object?) -> CFIndex {
    withExtendedLifetime(object) { object.map { unsafe CCoreRunLoop.CFGetRetainCount($0.address) } ?? 0 }
}

extension CFString {
    /// The text.
    public var debugDescription: String { String(self) }
}

extension CFRunLoopRunResult: @retroactive CustomDebugStringConvertible {
    /// The name, as in Swift: `timedOut`.
    public var debugDescription: String {
        switch self {
        case .finished: "finished"
        case .stopped: "stopped"
        case .timedOut: "timedOut"
        case .handledSource: "handledSource"
        @unknown default: "CFRunLoopRunResult(rawValue: \(rawValue))"
        }
    }
}

extension CFRunLoopActivity: @retroactive CustomDebugStringConvertible {
    /// The name, as in Swift: `beforeWaiting`; of several `[entry, exit]`, and of all `allActivities`.
    public var debugDescription: String {
        if self == .allActivities { return "allActivities" }
        let known: [(CFRunLoopActivity, String)] = [
            (.entry, "entry"), (.beforeTimers, "beforeTimers"), (.beforeSources, "beforeSources"), (.beforeWaiting, "beforeWaiting"),
            (.afterWaiting, "afterWaiting"), (.exit, "exit"),
        ]
        let names = known.filter { contains($0.0) }.map(\.1)
        return names.count == 1 ? names[0] : "[\(names.joined(separator: ", "))]"
    }
}

extension CFSocketError: @retroactive CustomDebugStringConvertible {
    /// The name, as in Swift: `timeout`.
    public var debugDescription: String {
        switch self {
        case .success: "success"
        case .error: "error"
        case .timeout: "timeout"
        @unknown default: "CFSocketError(rawValue: \(rawValue))"
        }
    }
}

extension CFSocketCallBackType: @retroactive CustomDebugStringConvertible {
    /// The name, as in Swift: `dataCallBack`; of several `[dataCallBack, writeCallBack]`. Without any of them `[]`.
    public var debugDescription: String {
        let kind =
            switch rawValue & 3 {  // these two bits are one number
            case Self.readCallBack.rawValue: ["readCallBack"]
            case Self.acceptCallBack.rawValue: ["acceptCallBack"]
            case Self.dataCallBack.rawValue: ["dataCallBack"]
            default: [String]()
            }
        let flags = [(Self.connectCallBack, "connectCallBack"), (.writeCallBack, "writeCallBack")]
        let names = kind + flags.filter { contains($0.0) }.map(\.1)
        return names.count == 1 ? names[0] : "[\(names.joined(separator: ", "))]"
    }
}

extension RunLoop: CustomStringConvertible, CustomDebugStringConvertible {
    /// The text of ``dump()``. Any thread.
    public var description: String { dump() }

    /// The text of ``dump()``, which a debugger prints for `po RunLoop.current`. Any thread.
    public var debugDescription: String { dump() }

    /// Returns what is in the loop, for somebody who looks for a fault: why it does not wake up, or why it wakes too often.
    ///
    /// The first line is about the loop: its thread, its current modes, whether it waits and until when, its common modes. A line for each
    /// mode follows, and a line for each source, timer and observer in it: its order, whether it is valid and signalled, the distance of
    /// its date from now, its descriptor, its callout. The form of the text may change from release to release. It is empty without memory.
    ///
    /// Any thread, also while the loop runs. All items were in the loop at one moment.
    ///
    /// The corresponding C function is `CFCopyDescription`.
    public func dump() -> String { loop.debugDescription }
}

extension Timer: CustomStringConvertible {
    /// The C object's description: its dates, and whether it is valid. Any thread.
    public var description: String { cfRunLoopTimer.debugDescription }
}
