// SPDX-License-Identifier: Apache-2.0

public import CCoreRunLoop

extension RunLoop {
    /// The name of a mode. A mode is a set of sources, timers and observers under one name; a loop runs one mode at a time.
    ///
    /// Any text names a mode. A mode exists in a loop once something has been added to it there.
    public struct Mode: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
        /// The name as text.
        public let rawValue: String
        /// The name as the C interface has it.
        public let name: CFRunLoopMode

        /// Names a mode.
        public init(rawValue: String) {
            self.rawValue = rawValue
            name = rawValue.cfString
        }

        /// Names a mode.
        public init(_ rawValue: String) { self.init(rawValue: rawValue) }

        /// Names a mode.
        public init(stringLiteral value: String) { self.init(rawValue: value) }

        /// Takes a name of the C interface.
        public init(_ name: CFRunLoopMode) {
            if address(of: name) == address(of: Self.default.name) {
                self = .default
            } else {
                self.name = name
                rawValue = String(name)
            }
        }

        private init(constant: CFRunLoopMode) {
            name = constant
            rawValue = String(constant)
        }

        /// The mode in which loops run unless another is named.
        public static let `default` = Mode(constant: kCFRunLoopDefaultMode)
        /// Stands for all of a loop's common modes when something is added; it cannot be run. At first only ``default`` is common.
        public static let common = Mode(constant: kCFRunLoopCommonModes)
        /// Cocoa's mode for waiting for a reply; nothing is in it unless the program adds it.
        public static let connectionReply = Mode(constant: NSConnectionReplyMode)
        /// Cocoa's mode for modal panels; nothing is in it unless the program adds it.
        public static let modalPanel = Mode(constant: NSModalPanelRunLoopMode)
        /// Cocoa's mode for tracking the mouse; nothing is in it unless the program adds it.
        public static let eventTracking = Mode(constant: NSEventTrackingRunLoopMode)

        /// The modes that a Cocoa application has as common ones: ``default``, ``modalPanel`` and ``eventTracking``.
        ///
        /// Call ``RunLoop/addCommonMode(_:)`` with each where a program expects them.
        public static let cocoaCommon: [Mode] = [.default, .modalPanel, .eventTracking]

        /// Whether the names are equal, character by character: the C interface knows no texts that only look alike as one.
        public static func == (first: Mode, second: Mode) -> Bool {
            address(of: first.name) == address(of: second.name) || first.rawValue.utf8.elementsEqual(second.rawValue.utf8)
        }
        /// Feeds the name.
        public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
        /// The name.
        public var description: String { rawValue }
    }

    /// The points of a pass at which observers are called: `CFRunLoopActivity`.
    public typealias Activity = CFRunLoopActivity
    /// Why a run ended: `CFRunLoopRunResult`.
    public typealias RunResult = CFRunLoopRunResult
}
