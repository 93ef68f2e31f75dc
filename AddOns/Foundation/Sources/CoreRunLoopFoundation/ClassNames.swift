// SPDX-License-Identifier: Apache-2.0
//
// Each of these names is in CoreRunLoopFoundation and, by a link to this file, in CoreRunLoopXCTest: what a module declares hides what it
// re-exports, and XCTest re-exports Foundation's names.

public import CoreRunLoop
public import Foundation

/// This package's loop, in the place of Foundation's.
public typealias RunLoop = CoreRunLoop::RunLoop
/// This package's timer, in the place of Foundation's.
public typealias Timer = CoreRunLoop::Timer
/// This package's thread, in the place of Foundation's.
public typealias Thread = CoreRunLoop::Thread
/// This package's port, in the place of Foundation's.
public typealias Port = CoreRunLoop::Port
/// This package's port of messages between processes, in the place of Foundation's.
public typealias MessagePort = CoreRunLoop::MessagePort
/// This package's socket port, in the place of Foundation's.
public typealias SocketPort = CoreRunLoop::SocketPort
/// This package's message, in the place of Foundation's.
public typealias PortMessage = CoreRunLoop::PortMessage
/// This package's delegate of ports, in the place of Foundation's.
public typealias PortDelegate = CoreRunLoop::PortDelegate
/// Foundation's quality of service, as operations and processes have it too, in the place of this package's.
public typealias QualityOfService = Foundation::QualityOfService
