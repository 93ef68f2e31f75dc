// SPDX-License-Identifier: Apache-2.0
//
// CFMachPort and CRLMachPortSend. A message is a header and an envelope; ports travel as their numbers, which the registry turns back into
// the objects of this process.

public import CCoreRunLoop
import Synchronization

/// A port between the threads of one process.
///
/// A queue holds five messages; sending to a full one waits until its date. A port that a message names as the answer's must live until the
/// message is handled.
public final class MachPort: Port, @unchecked Sendable {
    /// The C object; `nil` for a port of which only the number is known.
    public let cfMachPort: CFMachPort?
    /// The port's number in this process.
    public let machPort: UInt32
    private let ownSource: CFRunLoopSource?
    private struct Front {
        weak var port: Port?
        var isTaken = false
    }
    /// The port of no subclass that stands on this one.
    private let front = Mutex(Front())

    private static let registry = WeakTable<UInt32, MachPort>()

    private final class Body: Sendable {
        let port = Mutex(Weak<MachPort>())
        func receive(_ message: UnsafeMutableRawPointer, _ size: Int) {
            if let port = port.withLock({ $0.object }) { unsafe port.receive(message, size) }
        }
    }

    /// Makes a port that can be added to a loop.
    public override init() {
        let body = Body()
        var context = unsafe CFMachPortContext()
        unsafe context.info = retainedInfo(body)
        unsafe context.retain = { info in
            if let info = unsafe info { _ = unsafe Unmanaged<AnyObject>.fromOpaque(info).retain() }
            return unsafe info
        }
        unsafe context.release = { info in unsafe releaseConstantInfo(info) }
        let port = unsafe require(
            CFMachPortCreate(
                nil,
                { _, message, size, info in
                    let body = unsafe object(Body.self, from: info)
                    if let message = unsafe message { unsafe body.receive(message, size) }
                }, &context, nil), "MachPort")
        unsafe releaseInfo(context.info)  // the context has its own by its retain
        cfMachPort = port
        machPort = CFMachPortGetPort(port)
        ownSource = CFMachPortCreateRunLoopSource(nil, port, 0)
        super.init()
        body.port.withLock { $0.object = self }
        Self.registry.set(self, for: machPort)
        unsafe CFMachPortSetInvalidationCallBack(port) { port, info in
            let body = unsafe object(Body.self, from: info)
            body.port.withLock { $0.object }?.becomeInvalid()
        }
    }

    /// Stands for a port of this process by its number; for sending.
    private init(number: UInt32) {
        cfMachPort = nil
        ownSource = nil
        machPort = number
        super.init()
    }

    /// Gets the port of this process with a number: the object that was made with it, as long as that lives, or one that can only send.
    static func shared(_ number: UInt32) -> MachPort { registry[number] ?? MachPort(number: number) }

    /// Once, before anybody knows the port: messages that name it name `port`.
    func stand(for port: Port) { front.withLock { $0 = Front(port: port, isTaken: true) } }

    override var isAnnounced: Bool { !front.withLock { $0.isTaken } }

    /// The port that a message has named by its number.
    private static func named(_ number: UInt32) -> Port {
        let port = shared(number)
        return port.front.withLock { $0.port } ?? port
    }

    override var sources: [CFRunLoopSource] { ownSource.map { [$0] } ?? [] }

    /// Makes a port.
    public override class func port() -> MachPort { MachPort() }

    override func close() {
        if let cfMachPort { CFMachPortInvalidate(cfMachPort) }
        Self.registry.remove(self, for: machPort)
    }

    /// Whether the port can be used. A port of which only the number is known can be used until a send has failed. Any thread.
    public override var isValid: Bool { super.isValid && cfMachPort.map { CFMachPortIsValid($0) } ?? true }

    override var label: String { "Mach port \(machPort)" }

    override func encode(_ port: Port) -> [UInt8]? { (port as? MachPort).map { Self.bytes(of: $0.machPort) } }

    override func transmit(_ parts: [Part], _ msgid: UInt32, _ receivePort: Port?, _ date: WallTime) throws(PortError) {
        let answerTo = (receivePort as? MachPort)?.machPort ?? 0
        let payload = try Envelope.encode(answerTo: Self.bytes(of: answerTo), parts)
        let headerSize = MemoryLayout<mach_msg_header_t>.size
        let size = headerSize + payload.count
        let result: CRLMachPortResult = unsafe withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { buffer in
            let header = mach_msg_header_t(
                msgh_bits: 0, msgh_size: UInt32(size), msgh_remote_port: machPort, msgh_local_port: answerTo, msgh_voucher_port: 0,
                msgh_id: Int32(bitPattern: msgid))
            unsafe buffer.storeBytes(of: header, as: mach_msg_header_t.self)
            unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[headerSize...]).copyBytes(from: payload)
            guard let base = buffer.baseAddress else { return .noMemory }
            let message = unsafe base.assumingMemoryBound(to: mach_msg_header_t.self)
            return unsafe CRLMachPortSend(message, max(0, date.timeIntervalSinceNow))
        }
        switch result {
        case .success: return
        case .sendTimeout: throw .sendTimeout
        case .isInvalid:
            becomeInvalid()
            throw .invalid(label)
        default: throw .transport
        }
    }

    /// On the loop's thread.
    private func receive(_ message: UnsafeMutableRawPointer, _ size: Int) {
        let header = unsafe message.loadUnaligned(as: mach_msg_header_t.self)
        let headerSize = MemoryLayout<mach_msg_header_t>.size
        let payload = unsafe Array(UnsafeRawBufferPointer(start: message + headerSize, count: max(0, size - headerSize)))
        let answerTo = header.msgh_remote_port
        var components: [any Sendable] = []
        if let (_, parts) = Envelope.decode(payload) {
            for part in parts {
                switch part {
                case .bytes(let bytes): components.append(bytes)
                case .port(let bytes): components.append(Self.named(Self.number(of: bytes)))
                }
            }
        } else if !payload.isEmpty {
            components = [payload]  // from a sender that uses the C interface
        }
        deliver(
            PortMessage(
                answerTo: answerTo == 0 ? nil : Self.named(answerTo), cameTo: self,
                number: UInt32(bitPattern: header.msgh_id), components: components))
    }

    private static func bytes(of number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (UInt32($0) * 8)) } }
    private static func number(of bytes: [UInt8]) -> UInt32 { bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) } }
}
