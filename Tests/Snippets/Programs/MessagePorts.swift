// SPDX-License-Identifier: Apache-2.0
// A service with typed requests, and a client of it.
import CoreRunLoop

struct Order: Sendable {
    var item: UInt8, count: UInt8
}

extension MessagePort.Exchange where Request == Order, Reply == Int {
    static let price = Self(
        number: 2,
        encodeRequest: { [$0.item, $0.count] },
        decodeRequest: { $0.count == 2 ? Order(item: $0[0], count: $0[1]) : nil },
        encodeReply: { Array("\($0)".utf8) },
        decodeReply: { Int(String(decoding: $0, as: UTF8.self)) })
}

let stop = RunLoop.StopToken()
let loop = try Thread.runningLoop(name: "shop", until: stop)
let shop = try MessagePort(name: "com.example.shop")
shop.handle(.text(number: 1)) { name in "hello, \(name)" }
shop.handle(.price) { order in Int(order.item) * Int(order.count) }
loop.add(shop, forMode: .common)

try RunLoop.runMain {
    let client = try MessagePort(remote: "com.example.shop")
    print(try await client.request(.text(number: 1), "you", timeout: .seconds(30)))
    print("price:", try await client.request(.price, Order(item: 7, count: 6)))
    shop.invalidate()
    do {
        _ = try MessagePort(remote: "com.example.shop")
    } catch {
        print("error:", error)
    }
}
stop.requestStop()

// prints: hello, you
// prints: price: 42
// prints: error: notFound("com.example.shop")
