// SPDX-License-Identifier: Apache-2.0

public import CCoreRunLoop

/// An input source: something whose events a loop handles. The overlay's sources are of this kind, and a program's own wrapper of a C
/// source can be.
public protocol RunLoopSource: AnyObject, Sendable {
    /// The C object of this source.
    var cfRunLoopSource: CFRunLoopSource { get }
    /// Ends the source for good. Any thread.
    func invalidate()
}

extension RunLoopSource {
    /// Whether the source has not been invalidated. Any thread.
    public var isValid: Bool { CFRunLoopSourceIsValid(cfRunLoopSource) }

    /// Ends the source for good: `CFRunLoopSourceInvalidate`. Any thread.
    public func invalidate() { CFRunLoopSourceInvalidate(cfRunLoopSource) }

    /// The source's place among those that are ready in one pass: sources with a lower order are handled first. Any thread.
    public var order: Int { CFRunLoopSourceGetOrder(cfRunLoopSource) }
}

extension RunLoop {
    /// Adds `source` to `mode`. Nothing happens when it is there or invalid. Any thread.
    ///
    /// The loop keeps the source until it is removed or invalidated.
    ///
    /// The corresponding C function is `CFRunLoopAddSource`.
    public func add(_ source: some RunLoopSource, forMode mode: Mode) { CFRunLoopAddSource(loop, source.cfRunLoopSource, mode.name) }

    /// Takes `source` out of `mode`; it stays valid. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopRemoveSource`.
    public func remove(_ source: some RunLoopSource, forMode mode: Mode) { CFRunLoopRemoveSource(loop, source.cfRunLoopSource, mode.name) }

    /// Whether `source` is in `mode`. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopContainsSource`.
    public func contains(_ source: some RunLoopSource, in mode: Mode) -> Bool {
        CFRunLoopContainsSource(loop, source.cfRunLoopSource, mode.name)
    }
}
