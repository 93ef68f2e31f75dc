// SPDX-License-Identifier: Apache-2.0
//
// Results that code for Darwin lets fall: there they are of methods in Objective-C, whose results the importer has nobody use. So it is
// with Foundation's dates; the overlay's own have theirs used.

import CoreRunLoopFoundation

func dropped(_ loop: RunLoop, _ port: Port, _ message: PortMessage, _ date: Date) {
    loop.run(mode: .default, before: date)
    loop.run(mode: RunLoop.Mode.default, before: Date(timeIntervalSinceNow: 0.1))
    loop.run(mode: .default, before: .distantFuture)
    loop.run(mode: .default, before: .now + 0.1)
    loop.run(mode: .default, before: WallTime.now)  // expected-warning {{result of call to 'run(mode:before:)' is unused}}
    loop.limitDate(forMode: .default)  // by which programs make a pass
    port.send(before: date, msgid: 1, components: nil, from: nil, reserved: 0)
    message.send(before: date)
    message.send(before: .distantFuture)
    message.send(before: WallTime.now)  // expected-warning {{result of call to 'send(before:)' is unused}}
}
