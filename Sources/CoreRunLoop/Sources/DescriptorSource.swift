// SPDX-License-Identifier: Apache-2.0
//
// A source on a descriptor of the program's: CFFileDescriptor, whose callbacks come once, enabled again after each.

public import CCoreRunLoop
import Synchronization

/// A source that tells when a descriptor can be read or written without blocking. It never reads or writes it.
///
/// ```swift
/// let source = try DescriptorSource(descriptor: socket, interest: .readable) { event in receive(event.descriptor) }
/// loop.add(source, forMode: .default)
/// ```
///
/// The closure is called again as long as the descriptor is ready. Close the descriptor only after ``invalidate()``.
public final class DescriptorSource: RunLoopSource {
    /// The kinds of readiness of a descriptor.
    public struct Readiness: OptionSet, Hashable, Sendable {
        /// The bits of `CFFileDescriptorEnableCallBacks`.
        public let rawValue: UInt
        /// Makes a set of the bits of `CFFileDescriptorEnableCallBacks`.
        public init(rawValue: UInt) { self.rawValue = rawValue }
        /// Reading will not block: there are bytes, a connection, the end, or an error.
        public static let readable = Readiness(rawValue: 1)
        /// Writing will not block: there is room, or an error.
        public static let writable = Readiness(rawValue: 2)
        /// There is something exceptional, such as a byte out of band of a TCP socket.
        public static let priority = Readiness(rawValue: 4)
    }

    /// One notice.
    public struct Event: Sendable {
        /// The kinds of readiness of the descriptor.
        public let readiness: Readiness
        fileprivate let object: CFFileDescriptor
        fileprivate let body: Body

        /// The descriptor; -1 once the source is invalid.
        public var descriptor: Int32 { CFFileDescriptorGetNativeDescriptor(object) }

        /// Clears the source's interest, so that it reports nothing more until `DescriptorSource.interest` is set again.
        func pause() { body.interest.withLock { $0 = [] } }

        /// Sets the source's interest again, from inside its closure, after ``pause()``.
        func goOn() { body.interest.withLock { $0 = readiness } }

        /// Invalidates the source, from inside its closure.
        public func invalidate() {
            CFFileDescriptorInvalidate(object)
            body.callback.drop()
        }
    }

    /// The C object of this source's descriptor.
    public let cfFileDescriptor: CFFileDescriptor
    /// The C object of this source.
    public let cfRunLoopSource: CFRunLoopSource
    private let body: Body

    fileprivate final class Body: Sendable {
        /// Changes are passed to the C object with the lock held, so that the two agree.
        let interest: Mutex<Readiness>
        let callback: Callback<Event>
        init(_ interest: Readiness, _ callback: @escaping @Sendable (Event) -> Void) {
            self.interest = Mutex(interest)
            self.callback = Callback(callback)
        }
    }

    /// Makes a source for an open descriptor; it is in no loop yet.
    ///
    /// - Parameters:
    ///   - descriptor: A socket, pipe, terminal, eventfd or anything else that can be polled; a regular file is always ready.
    ///   - interest: The events to report.
    ///   - closeOnInvalidate: Whether ``invalidate()`` closes the descriptor.
    ///   - order: Of several descriptors that are ready, lower ones are handled first.
    ///   - callback: Called on the loop's thread.
    /// - Throws: ``RunLoopError/invalidDescriptor(_:)`` when the descriptor is not open.
    ///
    /// The corresponding C functions are `CFFileDescriptorCreate` and `CFFileDescriptorCreateRunLoopSource`.
    public init(
        descriptor: Int32, interest: Readiness = .readable, closeOnInvalidate: Bool = false, order: Int = 0,
        callback: @escaping @isolated(any) @Sendable (Event) -> Void
    ) throws(RunLoopError) {
        body = Body(interest, onActorOf(callback))
        var context = unsafe CFFileDescriptorContext()
        unsafe context.info = retainedInfo(body)
        unsafe context.release = { info in unsafe releaseInfo(info) }
        let made = unsafe CFFileDescriptorCreate(
            nil, descriptor, closeOnInvalidate,
            { file, kinds, info in
                guard let file else { return }
                let body = unsafe object(Body.self, from: info)
                withExtendedLifetime(body) {
                    body.callback(Event(readiness: Readiness(rawValue: UInt(kinds)), object: file, body: body))
                    body.interest.withLock { interest in
                        let again = interest.intersection(Readiness(rawValue: UInt(kinds)))
                        CFFileDescriptorEnableCallBacks(file, CFOptionFlags(again.rawValue))
                    }
                }
            }, &context)
        guard let made else {
            unsafe releaseInfo(context.info)
            throw .invalidDescriptor(descriptor)
        }
        // Without a source the info is given back by the descriptor's own end.
        guard let source: CFRunLoopSource = CFFileDescriptorCreateRunLoopSource(nil, made, order) else {
            throw .invalidDescriptor(descriptor)
        }
        cfFileDescriptor = made
        cfRunLoopSource = source
        CFFileDescriptorEnableCallBacks(made, CFOptionFlags(interest.rawValue))
    }

    /// The kinds that the source reports. Any thread. After a change on the loop's thread, no call comes for a removed kind.
    public var interest: Readiness {
        get { body.interest.withLock { $0 } }
        set {
            body.interest.withLock { interest in
                CFFileDescriptorDisableCallBacks(cfFileDescriptor, CFOptionFlags(interest.subtracting(newValue).rawValue))
                CFFileDescriptorEnableCallBacks(cfFileDescriptor, CFOptionFlags(newValue.rawValue))
                interest = newValue
            }
        }
    }

    /// The descriptor; -1 once the source is invalid. Any thread.
    public var descriptor: Int32 { CFFileDescriptorGetNativeDescriptor(cfFileDescriptor) }

    /// Ends the source for good, drops its closure, and closes the descriptor if that was asked for. Any thread.
    ///
    /// The corresponding C function is `CFFileDescriptorInvalidate`.
    public func invalidate() {
        CFFileDescriptorInvalidate(cfFileDescriptor)
        body.callback.drop()
    }
}
