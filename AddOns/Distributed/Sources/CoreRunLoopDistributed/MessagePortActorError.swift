// SPDX-License-Identifier: Apache-2.0

public import Distributed

/// Why an actor could not be hosted or found, or a call has no result. Each case names what was refused.
public enum MessagePortActorError: DistributedActorSystemError, Hashable, Codable {
    /// The name is empty, holds a zero byte, or is too long: `actor:`, the kind, a slash and the name may have 128 bytes.
    case invalidName(String)
    /// The type is private or local, so that other programs could not name it, or it is generic.
    case unnamedType(String)
    /// Another actor of this kind has the name.
    case nameTaken(String)
    /// Nobody hosts an actor under the name.
    case notFound(String)
    /// The text is no actor's ID.
    case invalidID(String)
    /// The actor's ID is of another version of this library.
    case unknownVersion(String)
    /// The actor has gone, or its process has ended. A call that was under way may have been carried out.
    case gone(MessagePortActorID)
    /// The actor has no such distributed function: caller and actor are of different versions.
    case unknownTarget(String)
    /// The actor does not let this caller call the function.
    case refused(String)
    /// An argument of the call does not decode: the function, the argument's index, and why.
    case malformedArgument(String, Int, String)
    /// The result of the call does not decode, or was too large to be sent: the function, and why.
    case malformedResult(String, String)
    /// The bytes are no call, or those of another version.
    case malformedCall(String)
    /// The two systems have different codings: the caller's, and the actor's.
    case otherCoding(String, String)
    /// No result of this function came in time. Its task is cancelled.
    case deadlinePassed(String)
    /// The function has thrown an error of a type that ``MessagePortActorSystem/allowErrors(_:)`` does not list, or that is not `Codable`.
    /// This is its text.
    case failed(String)
    /// The message is too large, or the system has no means left.
    case transport(String)
    /// The system was closed.
    case closed
}
