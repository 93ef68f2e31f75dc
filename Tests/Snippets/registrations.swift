// SPDX-License-Identifier: Apache-2.0
//
// A registration cannot be copied; see misuse.swift.

import CoreRunLoop

func owner(_ loop: RunLoop) {
    let registration = loop.schedule(every: .seconds(1)) { _ in }  // expected-error {{'registration' used after consume}}
    let other = registration  // expected-note {{consumed here}}
    registration.cancel()  // expected-note {{used here}}
    other.cancel()
}
