// SPDX-License-Identifier: Apache-2.0
//
// Misuse that the compiler refuses; check-snippets compares its messages with those that are expected here.

import CoreRunLoop

func task(_ loop: RunLoop, _ thread: CoreRunLoop.Thread, _ port: MessagePort) async throws {
    _ = RunLoop.current  // expected-error {{asynchronous contexts; a task has no thread of its own}}
    loop.run()  // expected-error {{asynchronous contexts; running a loop would block the task's thread}}
    _ = loop.run(mode: .default, before: .now)  // expected-error {{asynchronous contexts; running a loop would block the task's thread}}
    _ = loop.limitDate(forMode: .default)  // expected-error {{asynchronous contexts; running a loop would block the task's thread}}
    Thread.sleep(for: .seconds(1))  // expected-error {{asynchronous contexts; sleeping would block the task's thread}}
    thread.join()  // expected-error {{asynchronous contexts; waiting would block the task's thread}}
    try thread.performAndWait {}  // expected-error {{asynchronous contexts; waiting would block the task's thread}}
    _ = try port.requestAndWait(number: 1, [])  // expected-error {{asynchronous contexts; waiting would block the task's thread}}
}

func owner(_ loop: RunLoop) {
    loop.run(mode: .default, before: .now)  // expected-warning {{result of call to 'run(mode:before:)' is unused}}
}
