// SPDX-License-Identifier: Apache-2.0
//
// `import CoreRunLoopFoundation` in the place of `import Foundation`: all of Foundation, with this package's loops. A name declared here
// hides the one of a module that is re-exported here, as long as the file imports neither module by itself.

// Foundation's classes with members in the types of CoreFoundation, NSLock among them, cannot be inherited from unless the compiler has
// loaded that module (Swift 6.3). A file that imports Foundation alone meets the same.
import CoreFoundation
@_exported public import CoreRunLoop
@_exported public import Foundation

extension CoreRunLoop::Thread {
    /// The main thread's object: `main` by its other name.
    public static var mainThread: CoreRunLoop::Thread { .main }
}

extension CoreRunLoop::RunLoop {
    /// Whether `object` is this loop.
    public func isEqual(_ object: Any?) -> Bool { object as? CoreRunLoop::RunLoop == self }
    /// The hash value, as objects of Foundation have it.
    public var hash: Int { hashValue }
}

extension CoreRunLoop::RunLoop {
    /// Says whose timer it is.
    @available(*, unavailable, message: "this timer is Foundation's: make a CoreRunLoop::Timer, or add it to a Foundation::RunLoop")
    public func add(_ timer: Foundation::Timer, forMode mode: Mode) {}
    /// Says whose port it is.
    @available(*, unavailable, message: "this port is Foundation's: make a CoreRunLoop::Port, or add it to a Foundation::RunLoop")
    public func add(_ port: Foundation::Port, forMode mode: Mode) {}
}

extension Foundation::RunLoop {
    /// Says whose timer it is.
    @available(*, unavailable, message: "this timer is CoreRunLoop's: make a Foundation::Timer, or add it to a CoreRunLoop::RunLoop")
    public func add(_ timer: CoreRunLoop::Timer, forMode mode: Mode) {}
    /// Says whose port it is.
    @available(*, unavailable, message: "this port is CoreRunLoop's: make a Foundation::Port, or add it to a CoreRunLoop::RunLoop")
    public func add(_ port: CoreRunLoop::Port, forMode mode: Mode) {}
}

extension CoreRunLoop::Timer {
    /// Whether `object` is this timer.
    public func isEqual(_ object: Any?) -> Bool { object as? CoreRunLoop::Timer == self }
    /// The hash value, as objects of Foundation have it.
    public var hash: Int { hashValue }
}

extension CoreRunLoop::Thread {
    /// Whether `object` is this thread.
    public func isEqual(_ object: Any?) -> Bool { object as? CoreRunLoop::Thread == self }
    /// The hash value, as objects of Foundation have it.
    public var hash: Int { hashValue }
}

extension CoreRunLoop::Port {
    /// Whether `object` is this port, or both are socket ports that send to the same address.
    public func isEqual(_ object: Any?) -> Bool { object as? CoreRunLoop::Port == self }
    /// The hash value, as objects of Foundation have it.
    public var hash: Int { hashValue }
}

extension CoreRunLoop::Port: NSCopying {
    /// The port itself, as in Foundation.
    public func copy(with zone: NSZone? = nil) -> Any { self }
}

extension CoreRunLoop::PortMessage: NSCopying {
    /// The message itself, as in Foundation.
    public func copy(with zone: NSZone? = nil) -> Any { self }
}
