// SPDX-License-Identifier: Apache-2.0

import CCoreRunLoop

extension RunLoop {
    /// An item in a loop that is invalidated when its registration goes away.
    ///
    /// A registration cannot be copied. Its only holder decides how long the item lives.
    public struct Registration: ~Copyable, Sendable {
        private var end: (@Sendable () -> Void)?

        fileprivate init(_ end: @escaping @Sendable () -> Void) { self.end = end }

        /// Ends it now; the registration may stay where it is, as in a property. Once more has no effect. Any thread.
        public func cancel() { end?() }

        /// Leaves the item in the loop for good.
        public consuming func leave() { end = nil }

        deinit { end?() }
    }

    /// Adds `timer` to `mode` for as long as the registration lives. Any thread.
    public func register(_ timer: Timer, in mode: Mode = .common) -> Registration {
        add(timer, forMode: mode)
        return Registration { timer.invalidate() }
    }

    /// Adds `observer` to `mode` for as long as the registration lives. Any thread.
    public func register(_ observer: Observer, in mode: Mode = .common) -> Registration {
        add(observer, forMode: mode)
        return Registration { observer.invalidate() }
    }

    /// Adds `source` to `mode` for as long as the registration lives. Any thread.
    public func register(_ source: some RunLoopSource, in mode: Mode = .common) -> Registration {
        add(source, forMode: mode)
        return Registration { if source.isValid { source.invalidate() } }
    }
}
