// SPDX-License-Identifier: Apache-2.0
//
// Cocoa's spellings of a loop's runs.

extension RunLoop {
    /// Runs once in `mode` as ``run(mode:before:)`` does, without an answer.
    @available(*, noasync, message: "running a loop would block the task's thread")
    public func acceptInput(forMode mode: Mode, before limit: WallTime) { _ = run(mode: mode, before: limit) }
}
