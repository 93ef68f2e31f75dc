// SPDX-License-Identifier: Apache-2.0
//
// Foundation and this library in one process: two families of functions with the same names in their sources, and two run loops on one
// thread. Neither may reach the other's functions. Link names are what keeps them apart (docs/symbols.md).
//
// Case: P9

import CCoreRunLoop
import Foundation
import Testing

/// The file that the dynamic linker finds a name in, by way of the whole process.
private func home(of name: String) -> String? {
    dlsym(nil, name).flatMap { home(of: UnsafeRawPointer($0)) }
}

/// The file whose mapping an address lies in.
func home(of address: UnsafeRawPointer) -> String? {
    guard let maps = fopen("/proc/self/maps", "r") else { return nil }
    defer { fclose(maps) }
    var buffer = [CChar](repeating: 0, count: 8192)
    while fgets(&buffer, Int32(buffer.count), maps) != nil {
        let line = String(decoding: buffer.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let range = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
        if range.count == 2, range[0] <= UInt(bitPattern: address), UInt(bitPattern: address) < range[1] {
            return line.firstIndex(of: "/").map { String(line[$0...]) }
        }
    }
    return nil
}

private final class Count: @unchecked Sendable {
    var ours = 0
    var theirs = 0
}

@Suite struct `Foundation beside us` {
    @Test(arguments: ["CFRunLoopAddTimer", "CFRunLoopWakeUp", "CFRetain", "CFRelease", "CFStringCreateWithCString", "CFDataCreate"])
    func `its functions are still its own`(name: String) throws {
        #expect(try #require(home(of: name)).contains("libFoundation"))
    }

    @Test func `ours are ours`() throws {
        let current: @convention(c) () -> CFRunLoop? = CFRunLoopGetCurrent
        let file = try #require(home(of: unsafeBitCast(current, to: UnsafeRawPointer.self)))
        #expect(!file.contains("libFoundation"))
        // A name of Apple's that our library defined would be found here, in the test's own file. Some are, by which CoreRunLoopFoundation
        // joins both loops; they lead to Foundation's loop.
        for name in ["CFRunLoopAddTimer", "CFRunLoopWakeUp", "CFRetain", "kCFRunLoopDefaultMode", "CFArrayCreate"] {
            #expect(home(of: name) != file)
        }
    }

    @Test func `both loops run on one thread`() {
        let count = Count()
        let ours: CFRunLoop = CFRunLoopGetCurrent()
        let theirs = RunLoop.current

        var context = CFRunLoopTimerContext()
        context.info = Unmanaged.passUnretained(count).toOpaque()
        let timer: CFRunLoopTimer = CFRunLoopTimerCreate(
            nil, CFAbsoluteTimeGetCurrent() + 0.01, 0.01, 0, 0,
            { timer, info in
                let count = Unmanaged<Count>.fromOpaque(info!).takeUnretainedValue()
                count.ours += 1
                // Theirs inside ours: a nested run of the other family.
                if count.ours == 2 { _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.02)) }
                if count.ours == 4 { CFRunLoopStop(CFRunLoopGetCurrent()) }
            },
            &context)
        CFRunLoopAddTimer(ours, timer, .defaultMode)

        let theirTimer = Timer(timeInterval: 0.01, repeats: true) { timer in
            count.theirs += 1
            // Ours inside theirs.
            if count.theirs == 2 { _ = CFRunLoopRunInMode(.defaultMode, 0, false) }
            if count.theirs == 4 { timer.invalidate() }
        }
        theirs.add(theirTimer, forMode: .default)

        #expect(CFRunLoopRunInMode(.defaultMode, 1000, false) == .stopped)
        #expect(count.ours == 4)
        let deadline = Date(timeIntervalSinceNow: 10)
        while count.theirs < 4 && Date() < deadline {
            _ = theirs.run(mode: .default, before: deadline)
        }
        #expect(count.theirs == 4)
        #expect(RunLoop.current === theirs)
        CFRunLoopTimerInvalidate(timer)
        withExtendedLifetime(count) {}
    }

    @Test func `objects are not taken for Foundation's`() {
        let text = "beside Foundation" as NSString
        let ours: CFString = CFStringCreateWithCString(nil, "beside us", CFStringBuiltInEncodings.UTF8.rawValue)
        #expect(text.length == 17)
        #expect(CFStringGetLength(ours) == 9)
        // Foundation has its own number for the type of strings, and so have we; ours answers for ours only.
        #expect(CFGetTypeID(unsafeBitCast(ours, to: CFTypeRef.self)) == CFStringGetTypeID())
    }
}
