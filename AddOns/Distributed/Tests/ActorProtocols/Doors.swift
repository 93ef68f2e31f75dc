// SPDX-License-Identifier: Apache-2.0
//
// A protocol in a module of its own, as programs that call each other have it. Its functions repeat words of its name, and of its module's,
// which Swift abbreviates.

public import CoreRunLoopDistributed
public import Distributed

public struct Door: Codable, Hashable, Sendable {
    public var number: Int
    public init(number: Int) { self.number = number }
}

@Resolvable
public protocol DoorProtocol: DistributedActor where ActorSystem == MessagePortActorSystem {
    distributed func openDoor(_ door: Door) async throws -> Door
    distributed func openWindow(_ door: Door) async throws -> Int
    distributed func close() async throws
    distributed func openDoors() async throws -> [Door]
}
