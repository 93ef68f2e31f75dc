// SPDX-License-Identifier: Apache-2.0
//
// Foundation and CoreRunLoop in one file, with nothing that says which is meant. The article "Coming from Foundation on Linux" has the
// rule.

import CoreRunLoop
import Foundation

// A name by itself is refused; the compiler names both.
func names() {
    let timer: Timer? = nil  // expected-error {{'Timer' is ambiguous for type lookup in this context}}
    let loop = RunLoop.current  // expected-error {{ambiguous use of 'current'}}
    let thread: Thread? = nil  // expected-error {{'Thread' is ambiguous for type lookup in this context}}
    _ = (timer, loop, thread)
}

// A call is of the module whose units it is written in.
func calls() {
    let foundations: Foundation::Timer = Timer(timeInterval: 0.05, repeats: false) { _ in }
    let ours: CoreRunLoop::Timer = Timer(timeInterval: .milliseconds(50), repeats: false) { _ in }
    let scheduled: CoreRunLoop::Timer = Timer.scheduledTimer(withTimeInterval: .milliseconds(50), repeats: false) { _ in }
    _ = (foundations, ours, scheduled)
}
