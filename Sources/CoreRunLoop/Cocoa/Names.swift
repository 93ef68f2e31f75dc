// SPDX-License-Identifier: Apache-2.0
//
// Cocoa's names of the classes, and of what its programs write around them.

/// The older name of ``RunLoop``.
public typealias NSRunLoop = RunLoop
/// The older name of ``Timer``.
public typealias NSTimer = Timer
/// The older name of ``RunLoop/Mode``.
public typealias NSRunLoopMode = RunLoop.Mode
/// The older name of ``Thread``.
public typealias NSThread = Thread
/// The older name of ``Port``.
public typealias NSPort = Port
/// The older name of ``MachPort``.
public typealias NSMachPort = MachPort
/// The older name of ``MessagePort``.
public typealias NSMessagePort = MessagePort
/// The older name of ``SocketPort``.
public typealias NSSocketPort = SocketPort
/// The older name of ``MessagePortNameServer``.
public typealias NSMessagePortNameServer = MessagePortNameServer
/// The older name of ``PortMessage``.
public typealias NSPortMessage = PortMessage
/// The older name of ``PortDelegate``.
public typealias NSPortDelegate = PortDelegate

/// The delegate of a ``MachPort``, by Darwin's name: one that handles messages, as a delegate of any port does.
///
/// Darwin's `handleMachMessage(_:)`, which gets the bytes of a message, is not called.
public protocol NSMachPortDelegate: PortDelegate {}

/// Runs `body` and returns what it returns.
///
/// Darwin's function of this name drains the objects that Objective-C code left in a pool. Swift on Linux leaves none there, so that code
/// written for both systems only needs the name. A program that has brought its own function of this name calls that.
@_disfavoredOverload
public func autoreleasepool<Result, Failure: Error>(invoking body: () throws(Failure) -> Result) throws(Failure) -> Result {
    try body()
}
