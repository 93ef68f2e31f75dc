// SPDX-License-Identifier: Apache-2.0
// The add-on library in a program of SwiftPM, which links it and calls nothing of it. Rules: 1016
import CCoreRunLoop
import Testing

@Suite struct `The add-on library for networks` {
    @Test func `A program that links it has TLS`() {
        var reader: CFReadStream?
        let host: CFString = CFStringCreateWithCString(nil, "host.invalid", CFStringBuiltInEncodings.UTF8.rawValue)
        CFStreamCreatePairWithSocketToHost(nil, host, 443, &reader, nil)
        let level = unsafeBitCast(kCFStreamSocketSecurityLevelNegotiatedSSL, to: CFTypeRef.self)
        #expect(CFReadStreamSetProperty(reader, kCFStreamPropertySocketSecurityLevel, level))
    }
}
