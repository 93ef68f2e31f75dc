// SPDX-License-Identifier: Apache-2.0

import CoreRunLoopShims

/// Why something could not be registered with a loop. Each case names the value that was refused.
public enum RunLoopError: Error, Hashable, Sendable {
    /// The number is not an open descriptor.
    case invalidDescriptor(Int32)
    /// The number is no signal, or one that cannot be blocked.
    case invalidSignal(Int32)
    /// The number is not that of a child process that is still to be waited for.
    case notAChild(Int32)
    /// The duration is negative, or zero where time must pass.
    case invalidDuration(Duration)
    /// The mode cannot be run. Either its name stands for all common modes, or nothing was ever added to a mode of this name.
    case invalidMode(RunLoop.Mode)
    /// The loop's thread has ended.
    case loopEnded
}

/// Stops the process with one sentence on the standard error output, however the program was compiled.
func fault(_ sentence: String) -> Never { fatalError("CoreRunLoop: \(sentence)") }

/// One line on the standard error output.
func report(_ text: String) {
    var line = "CoreRunLoop: \(text)\n"
    line.withUTF8 { bytes in
        if let base = bytes.baseAddress { unsafe shim_report(base, bytes.count) }
    }
}

/// Why a thread could not be made, started or changed.
public enum ThreadError: Error, Hashable, Sendable {
    /// The stack size is smaller than the system allows, or no multiple of 4096 bytes.
    case invalidStackSize(Int)
    /// The name has more than the 15 bytes that the kernel keeps, or holds a zero byte.
    case invalidName(String)
    /// The thread with this name has been started before.
    case alreadyStarted(String)
    /// The priority is outside 0...1.
    case invalidPriority(Double)
    /// The system does not allow this process to raise a thread's priority so far.
    case priorityDenied(Double)
    /// The system could not start a thread; the number is `errno`'s.
    case system(Int32)
    /// The thread ended by `Thread.exit()`, without a value.
    case exited
}

/// Why a request to another thread was not performed.
public enum PerformError: Error, Hashable, Sendable {
    /// The thread has ended, or ended before it came to the request.
    case threadFinished
    /// The other thread, directly or by way of others, is waiting for this one.
    case wouldDeadlock
    /// The time limit came first. A request that has not begun will not be performed.
    case timedOut
    /// The request was given up before it was performed.
    case cancelled
}
