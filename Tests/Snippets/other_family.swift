// SPDX-License-Identifier: Apache-2.0
//
// A loop of one family, and an item of the other: the error says whose it is. Cocoa's older names.

import CoreRunLoopFoundation

func add(_ theirs: Foundation::RunLoop, _ port: Foundation::Port, _ ours: MachPort) {
    let timer = Foundation::Timer(timeInterval: 1, repeats: false) { _ in }
    RunLoop.main.add(timer, forMode: .default)  // expected-error {{this timer is Foundation's}}
    RunLoop.main.add(port, forMode: .default)  // expected-error {{this port is Foundation's}}
    theirs.add(Timer(timeInterval: 1, repeats: false) { _ in }, forMode: .default)  // expected-error {{this timer is CoreRunLoop's}}
    theirs.add(ours, forMode: .default)  // expected-error {{this port is CoreRunLoop's}}
    RunLoop.main.add(ours, forMode: .default)
}

func names() -> (NSRunLoopMode, NSMessagePortNameServer?) {
    let port = MachPort.port()
    let _: MachPort = port
    let any: Port = Port.port()
    any.invalidate()
    return (.default, nil)
}
