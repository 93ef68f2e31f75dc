// SPDX-License-Identifier: Apache-2.0
// A global actor that has a loop's thread, and closures that belong to it.
import CoreRunLoop

@globalActor actor Database: RunLoopActor {
    static let stop = RunLoop.StopToken()
    static let shared = Database()
    nonisolated let runLoop: RunLoop

    init() {
        do {
            runLoop = try Thread.runningLoop(name: "database", until: Self.stop)
        } catch {
            fatalError("no thread for the database: \(error)")
        }
    }
}

@Database final class Table {
    private var rows: [String] = []

    func insert(_ row: String) { rows.append(row) }
    var count: Int { rows.count }
    var isOnLoop: Bool { Database.shared.runLoop.isCurrent }
}

let table = Table()
let inserter = InputSource<String> { @Database rows in
    for row in rows { table.insert(row) }
}
Database.shared.runLoop.add(inserter, forMode: .common)
inserter.send("first")
inserter.send("second")
try await Database.shared.runLoop.run { @Database in table.insert("third") }
print("rows:", await table.count, "on the loop:", await table.isOnLoop)
Database.stop.requestStop()

// prints: rows: 3 on the loop: true
