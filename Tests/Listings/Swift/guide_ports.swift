// SPDX-License-Identifier: Apache-2.0
//
// The guide's listings 3-12 to 3-19 in Swift, with the printed names where they can be kept. 3-15's slip, `setMsgId:setMsgid:`, is left
// out; 3-19's missing check of what CreateRemote returns is not.

import CoreRunLoop
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

private let kCheckinMessage: UInt32 = 100

/// 3-12 and 3-13: the main thread's side.
private final class MainSide: NSPortDelegate {
    let distantPort = Mutex<NSPort?>(nil)
    let events: Events
    let worker = Mutex<Thread?>(nil)
    init(_ events: Events) { self.events = events }

    func launchThread() {
        let myPort = NSMachPort()
        // This class handles incoming port messages.
        myPort.setDelegate(self)
        // Install the port as an input source on the current run loop.
        NSRunLoop.current.add(myPort, forMode: .default)
        // Detach the thread. Let the worker release the port.
        let thread = Thread { MyWorkerClass.launchThread(with: myPort, self.events) }
        worker.withLock { $0 = thread }
        thread.start()
    }

    func handle(_ portMessage: NSPortMessage) {
        if portMessage.msgid == kCheckinMessage {
            // Get the worker thread's communications port, and keep it for later.
            storeDistantPort(portMessage.sendPort)
            events.add("checked in")
        } else {
            events.add("another message")
        }
    }

    private func storeDistantPort(_ port: NSPort?) { distantPort.withLock { $0 = port } }
}

/// 3-14 and 3-15: the worker's side.
private final class MyWorkerClass: NSPortDelegate {
    let remotePort = Mutex<NSPort?>(nil)
    let exits = Mutex(false)
    let events: Events
    init(_ events: Events) { self.events = events }
    var shouldExit: Bool { exits.withLock { $0 } }

    static func launchThread(with inData: NSPort, _ events: Events) {
        autoreleasepool {
            // Set up the connection between this thread and the main thread.
            let workerObj = MyWorkerClass(events)
            workerObj.sendCheckinMessage(inData)
            // Let the run loop process things.
            repeat {
                _ = NSRunLoop.current.run(mode: .default, before: .distantFuture)
            } while !workerObj.shouldExit
        }
    }

    func sendCheckinMessage(_ outPort: NSPort) {
        // Retain and save the remote port for future use.
        remotePort.withLock { $0 = outPort }
        // Create and configure the worker thread port.
        let myPort = NSMachPort()
        myPort.setDelegate(self)
        NSRunLoop.current.add(myPort, forMode: .default)
        // Create the check-in message.
        let messageObj = NSPortMessage(sendPort: outPort, receivePort: myPort, components: nil)
        // Finish configuring the message and send it immediately.
        messageObj.msgid = kCheckinMessage
        #expect(messageObj.send(before: .now))
    }

    func handle(_ message: NSPortMessage) {
        events.add("command \(message.msgid)")
        exits.withLock { $0 = true }
        message.receivePort?.invalidate()
    }
}

@Suite struct `Guide's listings, ports` {
    @Test func `3-12 to 3-15 a check-in by Mach ports`() async throws {
        let events = Events()
        try await Thread.joinable {
            let main = MainSide(events)
            main.launchThread()
            #expect(NSRunLoop.current.run(mode: .default, before: .distantFuture))
            let distant = main.distantPort.withLock { $0 }
            #expect(distant?.send(before: .now, msgid: 1, components: nil, from: nil) == true)
            main.worker.withLock { $0 }?.join()
            #expect(distant?.isValid == false)
        }.value
        #expect(events.all == ["checked in", "command 1"])
    }

    @Test func `3-16 registering a message port`() throws {
        let localPort = try NSMessagePort(name: nil)
        // Configure the object and add it to the current run loop: any loop will do here.
        RunLoop.main.add(localPort, forMode: .default)
        // Register the port using a specific name. The name must be unique.
        let localPortName = "MyPortName.\(getpid())"
        #expect(MessagePortNameServer.shared.registerPort(localPort, name: localPortName))
        #expect(MessagePortNameServer.shared.port(forName: localPortName) != nil)
        localPort.invalidate()
        #expect(MessagePortNameServer.shared.port(forName: localPortName) == nil)
    }

    @Test func `3-17 to 3-19 attaching a message port to a new thread`() async throws {
        let events = Events()
        let myName = "com.myapp.MainThread.\(getpid())"
        try await Thread.joinable {
            // 3-17: the main thread's port, and the worker that gets its name.
            let mainPort = try MessagePort(name: myName)
            RunLoop.current.add(mainPort, forMode: .default)
            let distant = Mutex<MessagePort?>(nil)
            // 3-18: the check-in brings the worker's name.
            mainPort.onRequest = { number, bytes in
                #expect(number == Int32(kCheckinMessage))
                distant.withLock { $0 = try? MessagePort(remote: String(decoding: bytes, as: UTF8.self)) }
                events.add("checked in")
                return nil
            }
            let worker = try Thread.joinable {
                // 3-19: the worker's own port, and its check-in by a name.
                let remote = try MessagePort(remote: myName)
                let own = try MessagePort(name: "\(myName).worker")
                own.handle(.text(number: 1)) { text in
                    events.add(text)
                    RunLoop.current.stop()
                    return "done"
                }
                RunLoop.current.add(own, forMode: .default)
                _ = try remote.requestAndWait(number: Int32(kCheckinMessage), Array(own.name.utf8))
                _ = RunLoop.current.run(in: .default)
                own.invalidate()
            }
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            let remote = try #require(distant.withLock { $0 })
            #expect(try remote.requestAndWait(number: 1, Array("command".utf8)) == Array("done".utf8))
            worker.thread.join()
            mainPort.invalidate()
        }.value
        #expect(events.all == ["checked in", "command"])
    }
}
