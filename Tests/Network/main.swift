// SPDX-License-Identifier: Apache-2.0
// The add-on library in a program of SwiftPM, which links it and calls nothing of it: a stream then can have TLS. A program of its own,
// because the tests of the overlay are to run without that library.
import CCoreRunLoop

var reader: CFReadStream?
let host: CFString = CFStringCreateWithCString(nil, "host.invalid", CFStringBuiltInEncodings.UTF8.rawValue)
CFStreamCreatePairWithSocketToHost(nil, host, 443, &reader, nil)
let level = unsafeBitCast(kCFStreamSocketSecurityLevelNegotiatedSSL, to: CFTypeRef.self)
guard CFReadStreamSetProperty(reader, kCFStreamPropertySocketSecurityLevel, level) else {
    fatalError("the add-on library is not there")
}
print("the add-on library is there")
