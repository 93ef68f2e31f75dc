// SPDX-License-Identifier: Apache-2.0

public import CoreRunLoop

extension MessagePort.Exchange where Request: Codable, Reply: Codable {
    /// An exchange of property lists in the binary format: of ``PropertyList``, or of any `Codable` values.
    ///
    /// ```swift
    /// struct Question: Codable, Sendable { var name: String }
    ///
    /// let port = try MessagePort(name: "com.example.addresses")
    /// let addresses = MessagePort.Exchange<Question, [String]>.propertyList(number: 1)
    /// port.handle(addresses) { question in ["\(question.name) Street 1"] }
    /// RunLoop.main.add(port, forMode: .common)
    /// ```
    ///
    /// A C program reads and writes the same bytes by `CFPropertyListCreateWithData` and `CFPropertyListCreateData`. Bytes that are no such
    /// value are ``PortError/malformed(_:)``.
    public static func propertyList(number: Int32) -> Self {
        Self(
            number: number, encodeRequest: { try PropertyList.Encoder().encode($0) },
            decodeRequest: { try? PropertyList.Decoder().decode(Request.self, from: $0) },
            encodeReply: { try PropertyList.Encoder().encode($0) },
            decodeReply: { try? PropertyList.Decoder().decode(Reply.self, from: $0) })
    }
}
