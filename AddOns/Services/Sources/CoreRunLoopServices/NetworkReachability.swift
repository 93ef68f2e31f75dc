// SPDX-License-Identifier: Apache-2.0
//
// Reachability for tasks. Each iterator has a target of its own; of what the loop tells, the latest waits.

import CCoreRunLoop
public import CoreRunLoop

/// Whether this machine has a way to another one: as it is now, and each time that it changes.
///
/// ```swift
/// for try await way in NetworkReachability(of: "example.org", on: loop) {
///     print(way.contains(.reachable) ? "there is a way" : "there is none")
/// }
/// ```
///
/// What is asked is the kernel's routing: nothing is sent, and the other machine may be off. Listening begins with the iteration, and ends
/// when its iterator is gone or its task is cancelled. A task that does not keep up gets the latest flags. The loop has to run in its
/// common modes.
///
/// The corresponding C type is `SCNetworkReachabilityRef`.
public struct NetworkReachability: AsyncSequence, Sendable {
    /// What is known of the way; none, if there is no way.
    public struct Flags: OptionSet, Sendable, Hashable {
        /// The bits of `SCNetworkReachabilityFlags`.
        public let rawValue: UInt32
        /// Creates a set from the bits of `SCNetworkReachabilityFlags`.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// The way begins with a link of PPP.
        public static let transientConnection = Flags(rawValue: 0x1)
        /// There is a way.
        public static let reachable = Flags(rawValue: 0x2)
        /// The address is this machine's own.
        public static let localAddress = Flags(rawValue: 0x10000)
        /// There is no gateway on the way.
        public static let direct = Flags(rawValue: 0x20000)
    }

    /// The kernel cannot be listened to.
    public struct Refused: Error, Hashable, Sendable {
        /// Why, as `SCError`: 1003 in a sandbox that has no `AF_NETLINK`.
        public let code: Int32
    }

    let name: String
    let loop: RunLoop

    /// - Parameters:
    ///   - name: A host's name, or an address in digits. `0.0.0.0` stands for the way to the Internet, and `::` for that by IPv6.
    ///   - loop: The loop that serves it.
    public init(of name: String = "0.0.0.0", on loop: RunLoop) {
        self.name = name
        self.loop = loop
    }

    /// Begins to listen.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Tells flags in turn.
    public struct Iterator: AsyncIteratorProtocol {
        private let target: Result<ReachabilityTarget, Refused>
        private var flags: AsyncStream<Flags>.Iterator?

        init(_ reachability: NetworkReachability) {
            target = Result { () throws(Refused) in try ReachabilityTarget(reachability) }
            flags = (try? target.get())?.untold.flags.makeAsyncIterator()
        }

        /// Returns the next flags; `nil` when the task is cancelled.
        ///
        /// - Throws: ``Refused`` when listening could not begin.
        public mutating func next() async throws -> Flags? {
            _ = try target.get()
            return await flags?.next()
        }
    }
}

@available(*, unavailable)
extension NetworkReachability.Iterator: Sendable {}

/// The target of one iterator, which ends with it. Any thread may let go of it.
final class ReachabilityTarget: Sendable {
    let untold = UntoldReachability()
    private let target: SCNetworkReachability
    private let loop: RunLoop

    init(_ reachability: NetworkReachability) throws(NetworkReachability.Refused) {
        let made: SCNetworkReachability? = unsafe SCNetworkReachabilityCreateWithName(nil, reachability.name)
        guard let made else { throw NetworkReachability.Refused(code: SCError()) }
        target = made
        loop = reachability.loop
        var context = unsafe SCNetworkReachabilityContext()
        unsafe context.info = Unmanaged.passUnretained(untold).toOpaque()
        unsafe context.retain = { info in
            if let info = unsafe info { unsafe _ = Unmanaged<UntoldReachability>.fromOpaque(info).retain() }
            return unsafe info
        }
        unsafe context.release = { info in
            if let info = unsafe info { unsafe Unmanaged<UntoldReachability>.fromOpaque(info).release() }
        }
        let isSet = unsafe SCNetworkReachabilitySetCallback(
            made,
            { _, flags, info in
                guard let info = unsafe info else { return }
                unsafe Unmanaged<UntoldReachability>.fromOpaque(info).takeUnretainedValue().waker.yield(
                    NetworkReachability.Flags(rawValue: flags))
            }, &context)
        guard isSet, SCNetworkReachabilityScheduleWithRunLoop(made, loop.getCFRunLoop(), kCFRunLoopCommonModes) else {
            throw NetworkReachability.Refused(code: SCError())
        }
    }

    deinit { _ = SCNetworkReachabilityUnscheduleFromRunLoop(target, loop.getCFRunLoop(), kCFRunLoopCommonModes) }
}

/// The latest flags that were told and not taken yet.
final class UntoldReachability: Sendable {
    let flags: AsyncStream<NetworkReachability.Flags>
    let waker: AsyncStream<NetworkReachability.Flags>.Continuation

    init() { (flags, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }
}
