// SPDX-License-Identifier: Apache-2.0
//
// Foundation and CoreRunLoop in one file, where the module says once which is meant: what is the other's is refused.

import CoreRunLoop
import Foundation

typealias RunLoop = CoreRunLoop::RunLoop
typealias Timer = CoreRunLoop::Timer

func ours() {
    let timer: Timer = Timer(timeInterval: .milliseconds(50), repeats: false) { _ in }
    let loop = RunLoop.current
    loop.add(timer, forMode: .default)
    _ = loop.run(mode: .default, before: .now + .seconds(1))
}

func foundations() {
    _ = Timer(timeInterval: 0.05, repeats: false) { _ in }  // expected-error {{cannot convert value of type 'Double'}}
    let timer = Foundation::Timer(timeInterval: 0.05, repeats: false) { _ in }
    RunLoop.current.add(timer, forMode: .default)  // expected-error {{requires that 'Timer' conform to 'RunLoopSource'}}
    RunLoop.current.run(until: Date())  // expected-error {{no exact matches in call to instance method 'run'}}
}
