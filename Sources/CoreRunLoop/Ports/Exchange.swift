// SPDX-License-Identifier: Apache-2.0

extension MessagePort {
    /// A kind of request with its answer: the number that it has on the wire, and how both become bytes.
    ///
    /// ```swift
    /// extension MessagePort.Exchange where Request == String, Reply == String {
    ///     static var greeting: Self { .text(number: 1) }
    /// }
    /// ```
    public struct Exchange<Request: Sendable, Reply: Sendable>: Sendable {
        /// The message's number.
        public let number: Int32
        let encodeRequest: @Sendable (Request) throws -> [UInt8]
        let decodeRequest: @Sendable ([UInt8]) -> Request?
        let encodeReply: @Sendable (Reply) throws -> [UInt8]
        let decodeReply: @Sendable ([UInt8]) -> Reply?

        /// Describes an exchange by four closures; the two that decode return `nil` for bytes that are malformed. What is thrown for a
        /// request ends the call, and the text of what is thrown for an answer reaches the caller as ``PortError/failed(_:)``.
        public init(
            number: Int32, encodeRequest: @escaping @Sendable (Request) throws -> [UInt8],
            decodeRequest: @escaping @Sendable ([UInt8]) -> Request?,
            encodeReply: @escaping @Sendable (Reply) throws -> [UInt8], decodeReply: @escaping @Sendable ([UInt8]) -> Reply?
        ) {
            self.number = number
            self.encodeRequest = encodeRequest
            self.decodeRequest = decodeRequest
            self.encodeReply = encodeReply
            self.decodeReply = decodeReply
        }
    }
}

extension MessagePort.Exchange where Request == String, Reply == String {
    /// An exchange of texts.
    public static func text(number: Int32) -> Self {
        let decode: @Sendable ([UInt8]) -> String? = { String(validating: $0, as: UTF8.self) }
        return Self(
            number: number, encodeRequest: { Array($0.utf8) }, decodeRequest: decode, encodeReply: { Array($0.utf8) }, decodeReply: decode)
    }
}

extension MessagePort.Exchange where Request == [UInt8], Reply == [UInt8] {
    /// An exchange of bytes.
    public static func bytes(number: Int32) -> Self {
        Self(number: number, encodeRequest: { $0 }, decodeRequest: { $0 }, encodeReply: { $0 }, decodeReply: { $0 })
    }
}
