// SPDX-License-Identifier: Apache-2.0
//
// Every reference type is imported as a class that ARC counts with CFRetain and CFRelease: whatever Swift does with a reference, the count
// ends where it began. The count itself is read through a raw pointer, which Swift does not count.

import CCoreRunLoop
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The object behind a reference, uncounted.
private func raw<T>(_ reference: T) -> CFTypeRef {
    unsafeBitCast(reference, to: CFTypeRef.self)
}

private final class Box<T> {
    var content: T?
    init(_ content: T) { self.content = content }
}

/// Does with a reference what programs do: optionals, arrays, dictionaries, tuples, closures, classes, existentials.
@inline(never)
private func exercise<T>(_ reference: T) {
    let before = CFGetRetainCount(raw(reference))
    var several = Array(repeating: reference, count: 10)
    #expect(CFGetRetainCount(raw(reference)) == before + 10)
    several.removeLast(5)
    #expect(CFGetRetainCount(raw(reference)) == before + 5)
    let box = Box(reference)
    let read = { [reference, box] in (reference, box.content) }
    _ = (read(), [1: Optional(reference)], reference as Any)
    box.content = nil
    several = []
    withExtendedLifetime((several, box)) {}
}

/// Makes, uses and drops an object in a function of its own; the one reference left is that of `CFRetain`.
@inline(never)
private func useAndDrop<T>(_ make: () -> T?) -> CFTypeRef? {
    guard let object = make() else { return nil }
    let kept = CFRetain(raw(object))
    exercise(object)
    return kept
}

private func expectBalanced<T>(_ type: T.Type, _ make: () -> T?, sourceLocation: SourceLocation = #_sourceLocation) {
    guard let kept = useAndDrop(make) else {
        Issue.record("could not be created", sourceLocation: sourceLocation)
        return
    }
    #expect(CFGetRetainCount(kept) == 1, sourceLocation: sourceLocation)
    CFRelease(kept)
}

private func string(_ text: String) -> CFString {
    CFStringCreateWithCString(nil, text, CFStringBuiltInEncodings.UTF8.rawValue)
}

@Suite struct `Created objects are counted by ARC` {
    @Test func strings() {
        expectBalanced(CFString.self) { string("a text that is not a constant") }
        expectBalanced(CFMutableString.self) { CFStringCreateMutable(nil, 0) }
        expectBalanced(CFStringRef.self) { CFStringCreateCopy(nil, CFStringCreateMutable(nil, 0)) }
    }

    @Test func data() {
        expectBalanced(CFData.self) { CFDataCreate(nil, [1, 2, 3], 3) }
        expectBalanced(CFMutableData.self) { CFDataCreateMutable(nil, 0) }
    }

    @Test func collections() {
        expectBalanced(CFArray.self) { CFArrayCreate(nil, nil, 0, nil) }
        expectBalanced(CFMutableArray.self) { CFArrayCreateMutable(nil, 0, nil) }
        expectBalanced(CFDictionary.self) { CFDictionaryCreate(nil, nil, nil, 0, nil, nil) }
        expectBalanced(CFMutableDictionary.self) { CFDictionaryCreateMutable(nil, 0, nil, nil) }
        expectBalanced(CFSet.self) { CFSetCreate(nil, nil, 0, nil) }
        expectBalanced(CFMutableSet.self) { CFSetCreateMutable(nil, 0, nil) }
    }

    @Test func numbersAndDates() {
        var value = 123_456_789_012
        expectBalanced(CFNumber.self) { CFNumberCreate(nil, .sInt64Type, &value) }
        expectBalanced(CFDate.self) { CFDateCreate(nil, 1.5) }
    }

    @Test func allocators() {
        expectBalanced(CFAllocator.self) {
            var context = CFAllocatorContext()
            context.allocate = { size, _, _ in malloc(size) }
            context.deallocate = { block, _ in free(block) }
            return CFAllocatorCreate(nil, &context)
        }
    }

    @Test func sources() {
        expectBalanced(CFRunLoopSource.self) {
            var context = CFRunLoopSourceContext()
            context.perform = { _ in }
            return CFRunLoopSourceCreate(nil, 0, &context)
        }
    }

    @Test func timers() {
        expectBalanced(CFRunLoopTimer.self) { CFRunLoopTimerCreate(nil, CFAbsoluteTimeGetCurrent() + 1000, 0, 0, 0, { _, _ in }, nil) }
    }

    @Test func observers() {
        expectBalanced(CFRunLoopObserver.self) {
            CFRunLoopObserverCreate(nil, CFRunLoopActivity.allActivities.rawValue, true, 0, { _, _, _ in }, nil)
        }
    }

    @Test func fileDescriptors() {
        expectBalanced(CFFileDescriptor.self) { CFFileDescriptorCreate(nil, 0, false, { _, _, _ in }, nil) }
    }

    @Test func sockets() {
        expectBalanced(CFSocket.self) {
            CFSocketCreate(nil, 0, 0, 0, CFSocketCallBackType.readCallBack.rawValue, { _, _, _, _, _ in }, nil)
        }
    }

    @Test func machPorts() {
        expectBalanced(CFMachPort.self) { CFMachPortCreate(nil, { _, _, _, _ in }, nil, nil) }
    }
}

@Suite struct `Borrowed objects are counted by ARC` {
    @Test func `the current loop`() {
        let loop: CFRunLoop = CFRunLoopGetCurrent()
        let before = CFGetRetainCount(raw(loop))
        for _ in 0..<100 { exercise(CFRunLoopGetCurrent() as CFRunLoop) }
        #expect(CFGetRetainCount(raw(loop)) == before)
    }

    @Test func `a copied mode name`() {
        #expect(CFRunLoopCopyCurrentMode(CFRunLoopGetCurrent()) == nil)
        expectBalanced(CFArray.self) { CFRunLoopCopyAllModes(CFRunLoopGetCurrent()) }
    }

    @Test func constants() {
        func expectImmortal<T>(_ constant: T) {
            let before = CFGetRetainCount(raw(constant))
            let several = Array(repeating: constant, count: 100)
            withExtendedLifetime(several) { #expect(CFGetRetainCount(raw(constant)) == before) }
        }
        let null: CFNull = kCFNull
        let truth: CFBoolean = kCFBooleanTrue
        let mode: CFRunLoopMode = .defaultMode
        let allocator: CFAllocator = kCFAllocatorSystemDefault
        expectImmortal(null)
        expectImmortal(truth)
        expectImmortal(mode)
        expectImmortal(allocator)
        #expect(CFBooleanGetValue(truth))
    }

    @Test func `a source in a loop belongs to the loop too`() {
        let released = UnsafeMutablePointer<Int>.allocate(capacity: 1)
        released.initialize(to: 0)
        defer { released.deallocate() }
        let loop: CFRunLoop = CFRunLoopGetCurrent()
        addSource(to: loop, released)
        #expect(released.pointee == 0)
        removeAllSources(from: loop, released)
        #expect(released.pointee == 1)
    }
}

/// The source that the tests below add, by the way of a global: references outlive the call that brought them.
nonisolated(unsafe) private var lastSource: CFRunLoopSource?

@inline(never)
private func addSource(to loop: CFRunLoop, _ released: UnsafeMutablePointer<Int>) {
    var context = CFRunLoopSourceContext()
    context.info = UnsafeMutableRawPointer(released)
    context.release = { info in UnsafeMutableRawPointer(mutating: info!).assumingMemoryBound(to: Int.self).pointee += 1 }
    context.perform = { _ in }
    let source: CFRunLoopSource = CFRunLoopSourceCreate(nil, 0, &context)
    CFRunLoopAddSource(loop, source, .defaultMode)
    lastSource = source
}

@inline(never)
private func removeAllSources(from loop: CFRunLoop, _ released: UnsafeMutablePointer<Int>) {
    CFRunLoopRemoveSource(loop, lastSource, .defaultMode)
    #expect(released.pointee == 0)
    lastSource = nil
}

@Suite struct `What takes any object` {
    private func source(order: CFIndex = 0) -> CFRunLoopSource {
        var context = CFRunLoopSourceContext()
        context.perform = { _ in }
        return CFRunLoopSourceCreate(nil, order, &context)
    }

    @Test func `compares`() {
        let one = source()
        let other = source(order: 1)
        #expect(CFEqual(one, one))
        #expect(!CFEqual(one, other))
        #expect(CFEqual(string("text"), string("text")))
        #expect(!CFEqual(string("text"), string("other")))
        let text = string("text")
        withExtendedLifetime((one, text)) {
            #expect(CFEqual(raw(one), raw(one)) && !CFEqual(raw(one), raw(text)))
        }
    }

    @Test func `hashes`() {
        let one: CFRunLoopSource? = source()
        withExtendedLifetime(one) { #expect(CFHash(one) == CFHash(raw(one))) }
        #expect(CFHash(string("text")) == CFHash(string("text")))
    }

    @Test func `tells types`() {
        #expect(CFGetTypeID(source()) == CFRunLoopSourceGetTypeID())
        #expect(CFGetTypeID(string("text")) == CFStringGetTypeID())
        #expect(CFGetTypeID(CFRunLoopGetCurrent()) == CFRunLoopGetTypeID())
    }

    @Test func `counts nothing`() {
        let one = source()
        let before = CFGetRetainCount(raw(one))
        for _ in 0..<10 { #expect(CFEqual(one, one) && CFHash(one) == CFHash(one) && CFGetTypeID(one) != 0) }
        #expect(CFGetRetainCount(raw(one)) == before)
    }
}

@Suite struct `Callbacks` {
    @Test func `a timer keeps what its callback stored`() {
        let kept = Box<CFRunLoopTimer?>(nil)
        var context = CFRunLoopTimerContext()
        context.info = Unmanaged.passUnretained(kept).toOpaque()
        let timer: CFRunLoopTimer = CFRunLoopTimerCreate(
            nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0,
            { timer, info in Unmanaged<Box<CFRunLoopTimer?>>.fromOpaque(info!).takeUnretainedValue().content = timer },
            &context)
        let before = CFGetRetainCount(raw(timer))
        CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, .defaultMode)
        #expect(CFRunLoopRunInMode(.defaultMode, 1000, false) == .finished)
        #expect(CFGetRetainCount(raw(timer)) == before + 1)
        kept.content = nil
        #expect(CFGetRetainCount(raw(timer)) == before)
        #expect(!CFRunLoopTimerIsValid(timer))
    }

    @Test func `references cross threads`() async {
        let source: CFRunLoopSource = {
            var context = CFRunLoopSourceContext()
            context.perform = { _ in }
            return CFRunLoopSourceCreate(nil, 0, &context)
        }()
        let before = CFGetRetainCount(raw(source))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<1000 { withExtendedLifetime([source, source]) { CFRunLoopSourceSignal(source) } } }
            }
        }
        #expect(CFGetRetainCount(raw(source)) == before)
    }
}
