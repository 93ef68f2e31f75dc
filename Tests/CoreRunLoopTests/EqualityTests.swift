// SPDX-License-Identifier: Apache-2.0
//
// Objects of the C interface in Swift: `==` as CFEqual, `===` as the same object, and hashes that agree with the first.

import CoreRunLoop
import Testing

@Suite struct `Comparing objects of the C interface` {
    /// A text that is an object of its own, whatever others there are.
    private func text(_ content: String) -> CFString { CFStringCreateMutableCopy(nil, 0, content.cfString) }

    @Test func `is by their content where they have one`() {
        let (one, same, other) = (text("a mode"), text("a mode"), text("another"))
        #expect(one == same)
        #expect(one != other)
        #expect([1, 2].cfData == [1, 2].cfData)
        #expect([1, 2].cfData != [1, 3].cfData)
        #expect(CFRunLoopMode.defaultMode == text("kCFRunLoopDefaultMode"))
        #expect(CFRunLoopMode.defaultMode != .commonModes)
    }

    @Test func `is by identity where they have none`() async throws {
        let here = try await Thread.joinable(name: "test") {
            let loop: CFRunLoop? = CFRunLoopGetCurrent()
            #expect(loop == CFRunLoopGetCurrent())
            #expect(loop != CFRunLoopGetMain())
            #expect(CFRunLoopGetCurrent() != CFRunLoopGetMain())
            return RunLoop.current
        }.value
        #expect(here.getCFRunLoop() != CFRunLoopGetMain())
    }

    @Test func `tells an object from one that is equal`() {
        let (one, same) = (text("a mode"), text("a mode"))
        #expect(one === one)
        #expect(one !== same)
        #expect(!(one === same))
        #expect(CFRunLoopGetMain() === CFRunLoopGetMain())
    }

    @Test func `tells an object from none`() {
        let (none, some): (CFString?, CFString?) = (nil, text("a mode"))
        #expect(none === nil)
        #expect(none !== some)
        #expect(some !== none)
        #expect(none != some)
        #expect(none == nil)
    }

    @Test func `finds equal ones in sets and dictionaries`() {
        let names: Set<CFString> = [text("a"), text("b"), text("a")]
        #expect(names.count == 2)
        #expect(names.contains(text("b")))
        #expect(!names.contains(text("c")))
        let loops: [CFRunLoop: String] = [CFRunLoopGetMain(): "main"]
        #expect(loops[CFRunLoopGetMain()] == "main")
    }

    @Test func `leaves the counts of references alone`() {
        let (one, same) = (text("counted"), text("counted"))
        let address = unsafeBitCast(one, to: CFTypeRef.self)
        let before = CFGetRetainCount(address)
        for _ in 0..<100 { #expect(one == same && one !== same && Set([one, same]).count == 1) }
        #expect(CFGetRetainCount(address) == before)
        withExtendedLifetime(one) {}
    }

    @Test func `is for objects of every type that can be made`() {
        func isItself(_ object: (some CFObject)?) -> Bool { object == object && object === object && object != nil }
        var context = CFRunLoopSourceContext()
        let source = CFRunLoopSourceCreate(nil, 0, &context)
        let other = CFRunLoopSourceCreate(nil, 0, &context)
        #expect(isItself(source))
        #expect(source == other && source !== other, "CFEqual compares sources by what their contexts say, and these say the same")
        #expect(isItself(CFRunLoopTimerCreateWithHandler(nil, 0, 0, 0, 0) { _ in }))
        #expect(isItself(CFRunLoopObserverCreateWithHandler(nil, CFRunLoopActivity.entry.rawValue, false, 0) { _, _ in }))
        #expect(isItself(CFFileDescriptorCreate(nil, 0, false, { _, _, _ in }, nil)))
        #expect(isItself(CFSocketCreate(nil, 0, 0, 0, 0, nil, nil)))
        #expect(isItself(CFMachPortCreate(nil, nil, nil, nil)))
        #expect(isItself(CFMessagePortCreateLocal(nil, nil, { _, _, _, _ in nil }, nil, nil)))
        #expect(isItself(kCFAllocatorSystemDefault) && isItself(kCFNull) && isItself(kCFBooleanTrue) && isItself(kCFNumberNaN))
        #expect(isItself(CFDateCreate(nil, 1)) && isItself(CFUUIDCreate(nil)))
        #expect(isItself(CFArrayCreate(nil, nil, 0, nil)) && isItself(CFSetCreate(nil, nil, 0, nil)))
        #expect(isItself(CFDictionaryCreate(nil, nil, nil, 0, nil, nil)))
    }
}
