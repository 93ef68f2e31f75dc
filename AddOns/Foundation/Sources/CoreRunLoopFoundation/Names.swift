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
