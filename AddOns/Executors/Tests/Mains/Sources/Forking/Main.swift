// SPDX-License-Identifier: Apache-2.0
//
// Forks without exec: before there are tasks elsewhere the child goes on; afterwards it is told, and ended. Its argument says from where.

import Checks
import CoreRunLoop
import CoreRunLoopMain
import Forks
import Glibc
import Synchronization

final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}

@main struct Program {
    static func main() async throws {
        let way = CommandLine.arguments.dropFirst().first
        if way == "early" {
            try await fork(before: 3) { try await Task.sleep(for: .milliseconds(1)) }
            endProgram()
        }
        for _ in 0..<100 { await Task.detached { await MainActor.run {} }.value }
        switch way {
        case "sleep": try await fork(before: EX_SOFTWARE) { try await Task.sleep(for: .milliseconds(1)) }
        case "task": try await fork(before: EX_SOFTWARE) { await Task.detached {}.value }
        case "loop": try await fork(before: 3) { runLoop() }
        case "exec": try await fork(before: 0) { become_another_program() }
        default: await Task.detached { try? await fork(before: EX_SOFTWARE) { try await Task.sleep(for: .milliseconds(1)) } }.value
        }
        endProgram()
    }

    /// The child runs the main loop itself, and waits in it.
    nonisolated static func runLoop() {
        let isOver = Flag()
        RunLoop.main.add(Timer(timeInterval: .milliseconds(1), repeats: false) { _ in isOver.set() }, forMode: .default)
        while !isOver.isSet { _ = RunLoop.main.run(in: .default, for: .milliseconds(10)) }
    }

    /// The child does the work, and would exit with 3 then.
    nonisolated(nonsending) static func fork(before status: Int32, _ work: nonisolated(nonsending) () async throws -> Void) async throws {
        let pid = fork_process()
        if pid == 0 {
            try await work()
            _exit(3)
        }
        let end = end_of_child(pid)
        print("the child: \(end)")
        check("how the child ends", end == status)
    }
}
